"""The UAI format of graphical models (that of the inference competitions): reader, and pairwise problems.

A file is a preamble (MARKOV or BAYES, the number of variables, the number of states of each, the number of factors, and for each
the number of its variables and which they are) and then a table for each factor: the number of entries and the entries, the last
variable of the factor running fastest. Entries are factors, not logarithms: the score of an assignment is the sum of their logs.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NoReturn

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.core.types import ArrayLike, Floats
from structpred.errors import DataError
from structpred.io.opening import Source
from structpred.io.string_codes import Tables
from structpred.io.text import quoted, read_bytes, stream_name
from structpred.runtime.memory import check_fits

#: more digits cannot be a count of anything
_MAX_DIGITS = 15
#: bytes that are cut into tokens, and tokens that become numbers, at a time: all at once take twenty times what the file does
_PIECE = 1 << 20
_TOKEN = re.compile(rb"\S+")
_KINDS = bytes(32 if bytes([k]).isspace() else 120 for k in range(256))


def _words(data: bytes) -> Iterator[bytes]:
    """What is between white space, cut up piece by piece."""
    start = 0
    while start < len(data):
        token = _TOKEN.match(data, start + _PIECE)  # which the piece would cut
        stop = start + _PIECE if token is None else token.end()
        yield from data[start:stop].split()
        start = stop


class Tokens:
    """The text between white space. at: how many were taken."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data, self._name, self._words, self.at = data, name, _words(data), 0
        kinds = data.translate(_KINDS)  # counted without making them, which takes ten times as long
        self._count = kinds.count(b" x") + kinds.startswith(b"x")

    def __len__(self) -> int:
        return self._count

    def word(self, expected: str) -> str:
        """The next token as text."""
        if (token := next(self._words, None)) is None:
            self.fail(self.at, f"expected {expected}, but here the file ends")
        self.at += 1
        return token.decode("ascii", "replace")

    def whole(self, expected: str, *, low: int = 0, high: int | None = None) -> int:
        """The next token as a whole number within low..high."""
        text = self.word(expected)
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else -1
        if value < low or (high is not None and value > high):
            limits = f"from {low}" if high is None else f"from {low} to {high}"
            self.fail(self.at - 1, f"expected {expected}, a whole number {limits}, got {quoted(text)}")
        return value

    def count(self, expected: str) -> int:
        """The next token as the number of things that follow, each at least a token; so it cannot be more than are left."""
        value, left = self.whole(expected), self._count - self.at
        if value > left:
            self.fail(self.at - 1, f"expected {expected}; {value} is too many, only {left} tokens are left: is the file cut off?")
        return value

    def numbers(self, n: int, what: str) -> Floats:
        """The next n tokens, which are there, as finite numbers >= 0."""
        values = np.empty(n)
        for done in range(0, n, _PIECE):
            chunk = list(itertools.islice(self._words, min(_PIECE, n - done)))
            if (found := _numbers(chunk)) is None:
                j, token = next((j, token) for j, token in enumerate(chunk) if _numbers([token]) is None)
                expected = f"expected entry {done + j} of {what}, a finite number >= 0 (a factor, not its log)"
                self.fail(self.at + j, f"{expected}, got {quoted(token.decode('ascii', 'replace'))}")
            values[done : done + len(chunk)] = found
            self.at += len(chunk)
        return values

    def end(self, expected: str) -> None:
        """Fail unless all tokens were taken."""
        if (token := next(self._words, None)) is not None:
            self.fail(self.at, f"expected {expected}, got {quoted(token.decode('ascii', 'replace'))}")

    def fail(self, index: int, message: str) -> NoReturn:
        """Raise DataError at the token with this number: its line, and which one of the line it is."""
        token = next(itertools.islice(_TOKEN.finditer(self._data), index, None), None)
        if token is None:
            raise DataError(f"{self._name}:{self._data.count(bytes([10])) + 1}: at the end: {message}")
        line, line_start = self._data.count(b"\n", 0, token.start()) + 1, self._data.rfind(b"\n", 0, token.start()) + 1
        in_line = sum(1 for _ in _TOKEN.finditer(self._data, line_start, token.start()))
        raise DataError(f"{self._name}:{line}: token {in_line + 1}: {message}")


def _numbers(chunk: list[bytes]) -> Floats | None:
    """The numbers of these tokens; None where one is none, not finite or negative."""
    try:
        found = np.fromiter(map(float, chunk), np.float64, len(chunk))
    except ValueError:
        return None
    return found if ((found >= 0.0) & (found < np.inf)).all() and b"_" not in b"".join(chunk) else None


KINDS = ("MARKOV", "BAYES")

#: the most parts of a pairwise problem (512 MiB of scores): a few bytes of text may declare any number of states
MAX_PARTS = 1 << 26


@dataclass(frozen=True)
class PairwiseProblem:
    """A pairwise MRF as the oracles take it.

    shape: (n, K, i1, j1, ...), K the largest number of states. scores: float64 (n * K + E * K^2), node tables, then edge tables;
    -1e30 forbids, among others the states that a variable lacks. constant: what is to be added to every score and to log Z.
    n_states: how many states each variable has.
    """

    shape: Shape
    scores: Floats
    constant: float
    n_states: tuple[int, ...]

    def score(self, labels: ArrayLike) -> float:
        """The log of the product of all factors for one assignment; -1e30 or less where one of them is zero."""
        states = np.asarray(labels)
        n, k = self.shape[:2]
        first, second = np.array(self.shape[2:], dtype=np.int64).reshape(-1, 2).T
        pairs = n * k + np.arange(len(first)) * k * k + states[first] * k + states[second]
        return float(self.scores[np.arange(n) * k + states].sum() + self.scores[pairs].sum()) + self.constant


@dataclass(frozen=True)
class UaiModel:
    """A model as its file has it.

    kind: MARKOV or BAYES. n_states: one number per variable. scopes: the variables of each factor. tables: one float64 array a
    factor, one axis a variable of its scope, entries >= 0. In a model that was read they are made on demand.
    """

    kind: str
    n_states: tuple[int, ...]
    scopes: Sequence[tuple[int, ...]]
    tables: Sequence[Floats]

    def score(self, labels: ArrayLike) -> float:
        """The log of the product of all factors for one assignment; -inf where one of them is zero."""
        states = np.asarray(labels)
        with np.errstate(divide="ignore"):
            logs = [np.log(t[tuple(states[list(scope)])]) for scope, t in zip(self.scopes, self.tables, strict=True)]
        return float(np.sum(logs))

    def paired(self) -> "UaiModel":
        """A model with the same scores whose tables are over one or two variables.

        Each larger factor becomes one more variable, after those that are there: its states are the entries that are not zero,
        and 0/1 tables tie it to the factor's variables. For each assignment of the old variables with a product > 0 exactly one
        of the new ones is possible, so the best score and log Z stay.
        """
        n_states, scopes, tables = list(self.n_states), [], []
        for scope, table in zip(self.scopes, self.tables, strict=True):
            if len(scope) <= 2:
                scopes.append(scope)
                tables.append(table)
                continue
            entries = np.nonzero(table)
            values = table[entries] if len(entries[0]) else np.zeros(1)  # a factor of zeros alone: one state, impossible
            new = len(n_states)
            n_states.append(len(values))
            scopes.append((new,))
            tables.append(values)
            for i, states in zip(scope, entries if len(entries[0]) else (), strict=False):
                scopes.append((i, new))
                tables.append((np.arange(self.n_states[i])[:, None] == states).astype(np.float64))
        return UaiModel(self.kind, tuple(n_states), tuple(scopes), tuple(tables))

    def pairwise(self, evidence: Mapping[int, int] | None = None) -> PairwiseProblem:
        """The model as a pairwise problem: logs of the tables, those of the same variables added up.

        evidence: the states of variables that are known. Their other states are forbidden, and factors that mention them are
        tables over the rest of their variables; so are factors with variables of one state. A factor over more than two
        variables is refused: DataError. So is evidence that names missing variables or states, and a model too large for memory.
        """
        known = {i: 0 for i, count in enumerate(self.n_states) if count == 1} | _checked(evidence or {}, self.n_states)
        reduced = [_sliced(f, scope, t, known) for f, (scope, t) in enumerate(zip(self.scopes, self.tables, strict=True))]
        n, k = len(self.n_states), max(self.n_states, default=0)
        if not n:
            raise DataError("expected a model with at least one variable, got none")
        edges: dict[tuple[int, ...], int] = {}
        for scope, _ in reduced:
            if len(scope) == 2:
                edges.setdefault(scope, len(edges))
        size = n * k + len(edges) * k * k
        if size > MAX_PARTS:
            raise DataError(
                f"{n} variables of up to {k} states and {len(edges)} edges give {size:,} parts, {MAX_PARTS:,} at most"
            )
        check_fits(8 * size, f"a pairwise model of {size:,} parts")
        scores, constant = np.zeros(size), 0.0
        for scope, table in reduced:
            at = scope[0] * k if len(scope) == 1 else n * k + edges[scope] * k * k if scope else 0
            if len(scope) == 1:
                scores[at : at + len(table)] += table
            elif len(scope) == 2:
                scores[at : at + k * k].reshape(k, k)[: len(table), : table.shape[1]] += table
            else:
                constant += float(table)
        grid = scores[: n * k].reshape(n, k)
        grid[np.arange(k) >= np.array(self.n_states)[:, None]] = FORBIDDEN
        for i, state in known.items():
            grid[i, np.arange(k) != state] = FORBIDDEN
        if constant == -np.inf:  # a factor of known variables alone is zero: nothing is possible
            scores[:k], constant = FORBIDDEN, 0.0
        scores[scores == -np.inf] = FORBIDDEN
        return PairwiseProblem((n, k, *(i for scope in edges for i in scope)), scores, constant, self.n_states)


def _checked(evidence: Mapping[int, int], n_states: Sequence[int]) -> dict[int, int]:
    for i, state in evidence.items():
        if not 0 <= i < len(n_states):
            raise DataError(f"evidence names variable {i}, which is missing: there are {len(n_states)}, from 0")
        if not 0 <= state < n_states[i]:
            raise DataError(f"evidence says that variable {i} is in state {state}, but it has {n_states[i]} states, from 0")
    return dict(evidence)


def _sliced(factor: int, scope: tuple[int, ...], table: Floats, known: Mapping[int, int]) -> tuple[tuple[int, ...], Floats]:
    """The variables that are open, the smaller first, and the log table over them."""
    rest = tuple(i for i in scope if i not in known)
    if len(rest) > 2:
        names = ", ".join(map(str, rest[:8])) + (", ..." if len(rest) > 8 else "")
        raise DataError(
            f"factor {factor} is a table over {len(rest)} variables ({names}); a pairwise MRF has tables over one or two: "
            "make the larger ones variables of their own with UaiModel.paired()"
        )
    with np.errstate(divide="ignore"):
        logs = np.log(table[tuple(known.get(i, slice(None)) for i in scope)])
    if len(rest) == 2 and rest[0] > rest[1]:
        return rest[::-1], logs.T
    return rest, logs


def read_uai(path: Source) -> UaiModel:
    """Read a model: plain or gzip, ``-`` for standard input, or an open binary file. Raises DataError with file, line and place.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.uai"
    ...     _ = path.write_text("MARKOV 2  2 3  1  2 0 1  6  1 1 2  3 5 8")
    ...     model = read_uai(path)
    >>> model.tables[0].tolist(), round(model.score([1, 2]), 6)
    ([[1.0, 1.0, 2.0], [3.0, 5.0, 8.0]], 2.079442)
    """
    tokens = Tokens(read_bytes(path), stream_name(path))
    kind = tokens.word("MARKOV or BAYES, the kind of the network").upper()
    if kind not in KINDS:
        tokens.fail(0, f"expected MARKOV or BAYES, the kind of the network, got {quoted(kind)}")
    n = tokens.count("the number of variables")
    n_states = tuple(tokens.whole("the number of states of a variable", low=1) for _ in range(n))
    scopes = list[tuple[int, ...]]()
    for _ in range(tokens.count("the number of factors")):
        size = tokens.count("the number of variables of a factor")
        if size > 32:
            tokens.fail(tokens.at - 1, f"expected factors of up to 32 variables, got one of {size}")
        scope = tuple(tokens.whole("a variable of a factor", high=n - 1) for _ in range(size))
        if len(set(scope)) < size:
            tokens.fail(tokens.at - 1, f"expected different variables in one factor, got {quoted(str(scope))}")
        scopes.append(scope)
    tables = Tables(n_states, scopes)
    for f, scope in enumerate(scopes):
        tables.append(_table(tokens, f, tuple(n_states[i] for i in scope)))
    tokens.end(f"the end after {len(tables)} tables")
    return UaiModel(kind, n_states, tuple(scopes), tables)


def _table(tokens: Tokens, factor: int, shape: tuple[int, ...]) -> Floats:
    size = tokens.count(f"the number of entries of table {factor}")
    if size != prod(shape):
        states = " * ".join(map(str, shape)) or "1"
        tokens.fail(tokens.at - 1, f"expected {states} = {prod(shape)} entries in table {factor}, got {size}")
    return tokens.numbers(size, f"table {factor}")


def read_uai_evidence(path: Source) -> dict[int, int]:
    """Read an evidence file, ``k variable state variable state ...``: {variable: state}. Raises DataError with the place.

    The older form with the number of samples in front is read where that number is 1.
    """
    tokens = Tokens(read_bytes(path), stream_name(path))
    if len(tokens) % 2 == 0 and len(tokens):  # one number more than k and k pairs
        tokens.whole("the number of samples, of which one can be read,", low=1, high=1)
    found: dict[int, int] = {}
    for _ in range(tokens.count("the number of known variables")):
        variable = tokens.whole("a variable")
        if variable in found:
            tokens.fail(tokens.at - 1, f"expected each variable once, got {variable} again")
        found[variable] = tokens.whole("the state of a variable")
    tokens.end(f"the end after {len(found)} known variables")
    return found
