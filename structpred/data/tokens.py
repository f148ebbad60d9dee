"""Tokens as users write them (feature dicts or lists of feature strings) turned into feature ids and values.

The forms are those of python-crfsuite, so that its users' data work unchanged:

- a list or tuple of strings: each string is a feature with the value 1;
- a dict: ``{"w": "x"}`` is the feature ``w:x`` with the value 1; a number is the value of the feature ``key``; True is
  1 and False is 0; a list, tuple or set of strings gives ``key:item``; a nested dict gives ``key:...``.

Arrays that tokens have beside strings are kept apart from them and come in front of their ids.

Exported programs carry this file (`export/programs.py`): it needs NumPy and the errors alone.
"""

import itertools
import numbers
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.ragged import Ragged
from structpred.errors import DataError
from structpred.runtime.ranges import ends_of

#: from here on a number rounds to infinity as float32
FLOAT32_END = 2.0**128 - 2.0**103
MAX_SEEN = 1 << 20
BLOCK = 256
_DEEPEST = 32
_WORDS = "words are no features: give template='pos' and words as rows, ('the',), or a dict of features for each word"
_HINT = "did you pass one sequence instead of a list of sequences?"


def hashed(name: str, n_bits: int) -> int:
    """One of 2**n_bits ids for a feature string, by CRC-32 spread by a multiplication."""
    # the low bits of a CRC are linear in the text; the high bits of a product depend on all of its bits
    return ((zlib.crc32(name.encode("utf-8", "surrogatepass")) * 0x9E3779B1) & 0xFFFFFFFF) >> (32 - n_bits)


class FeatureIndex(dict[str, int]):
    """Feature string -> id. ``unseen(index, name)`` answers for new strings; None closes the index: they are -1."""

    def __init__(self, unseen: Callable[["FeatureIndex", str], int] | None, known: Iterable[str] = ()) -> None:
        super().__init__(zip(known, itertools.count(), strict=False))
        self._unseen = unseen

    def __missing__(self, name: str) -> int:
        if not isinstance(name, str):
            raise _BadToken(f"expected feature strings, got {_shown(name)}")
        return -1 if self._unseen is None else self._unseen(self, name)

    def ids(self, names: Iterable[Iterable[str]], n: int) -> npt.NDArray[np.int32]:
        """The ids of n strings, nested by token."""
        return np.fromiter(map(self.__getitem__, itertools.chain.from_iterable(names)), np.int32, n)


@dataclass(frozen=True)
class Block:
    """Some whole sequences: features of token t are the next ``lengths[t]`` ids; an id of -1 means unknown."""

    first: int
    sequence_lengths: list[int]
    lengths: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32] | None


#: of some tokens: the number of features of each, their ids, and their values (None: all 1)
_Coded = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32] | None]


class _BadToken(Exception):
    """A token cannot be used; the message lacks the place, which the caller adds."""


def read_blocks(sequences: Iterable[Iterable[Any]], index: FeatureIndex) -> Iterator[Block]:
    """The sequences as blocks of feature ids, some hundred sequences at a time; generators are read once, in order.

    Raises DataError that names the sample and position: not a list of sequences, an empty sequence, a token that is a
    string or number, a value that is not finite, a feature that is not a string.
    """
    pairs = _PairIndex(index)
    iterator = iter(listed(sequences, "expected a list of sequences"))
    first = 0
    while block := list(itertools.islice(iterator, BLOCK)):
        tokens: list[Any] = []
        sequence_lengths = []
        for i, sequence in enumerate(block, first):
            before = len(tokens)
            tokens.extend(listed(sequence, f"sample {i}: expected a sequence of tokens"))
            sequence_lengths.append(len(tokens) - before)
            if not sequence_lengths[-1]:
                raise DataError(f"sample {i}: expected a sequence of tokens, got an empty one")
        lengths, ids, values = _coded(tokens, sequence_lengths, first, index, pairs)
        yield Block(first, sequence_lengths, lengths, ids, values)
        first += len(block)


class _PairIndex(dict[tuple[str, Any], int]):
    """(key, value) of a feature dict -> its slot in ``ids`` and ``weights``; each distinct pair is taken apart once.

    Equal keys mean equal features: (k, 1), (k, 1.0) and (k, True) compare equal, and so does what they stand for.
    """

    def __init__(self, index: FeatureIndex) -> None:
        super().__init__()
        self.index = index
        self.forget()

    def forget(self) -> None:
        """Start again: with real-valued features nearly every pair is new."""
        self.clear()
        self.ids = array("i")
        self.weights = array("f")

    def __missing__(self, pair: tuple[str, Any]) -> int:
        name, value = _plain_feature(*pair)
        # a value of 0 adds nothing to any score: not worth an entry, nor a weight
        feature = self.index[name] if value else -1
        slot = self[pair] = len(self.ids)
        self.ids.append(feature)
        self.weights.append(value)
        return slot


def _plain_feature(key: Any, value: Any) -> tuple[str, float]:
    """The feature of a dict entry that is a string or a number; TypeError asks for the long way (nested values)."""
    if not isinstance(key, str):
        raise _BadToken(f"expected feature names that are strings, got {_shown(key)}")
    if isinstance(value, str):
        return f"{key}:{value}", 1.0
    if isinstance(value, tuple | frozenset):
        raise TypeError("nested")
    if not isinstance(value, numbers.Real | np.bool_):
        hint = "; arrays belong into the dicts of all tokens, from the first on" if isinstance(value, np.ndarray) else ""
        raise _BadToken(f"feature {key!r}: expected a string, a number, or a list of strings, got {_shown(value)}{hint}")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not abs(number) < FLOAT32_END:
        raise _BadToken(f"feature {key!r} is {number}; features must be finite (missing values must be filled in first)")
    return key, number


def _flat_features(key: str, value: Any, depth: int = 0) -> Iterator[tuple[str, float]]:
    """The features of any dict entry, nested ones too."""
    if not isinstance(key, str):
        raise _BadToken(f"expected feature names that are strings, got {_shown(key)}")
    if depth > _DEEPEST:
        raise _BadToken(f"feature {key[:40]!r}...: dicts are nested more than {_DEEPEST} deep; does one hold itself?")
    if isinstance(value, Mapping):
        for inner, item in value.items():
            if not isinstance(inner, str):
                raise _BadToken(f"feature {key!r}: expected keys that are strings, got {_shown(inner)}")
            yield from _flat_features(f"{key}:{inner}", item, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            if not isinstance(item, str):
                raise _BadToken(f"feature {key!r}: expected a list of strings, got {_shown(item)} in it")
        for item in sorted(value) if isinstance(value, set | frozenset) else value:
            yield f"{key}:{item}", 1.0
    else:
        yield _plain_feature(key, value)


def _coded(tokens: list[Any], sequence_lengths: list[int], first: int, index: FeatureIndex, pairs: _PairIndex) -> _Coded:
    """The quick ways for a block of one kind of token, else (or to name a bad token) one token after the other."""
    kinds = set(map(type, tokens))
    if any(issubclass(kind, Iterator) for kind in kinds):
        # a generator can be read once, but a bad token is looked at twice
        tokens = [list(token) if isinstance(token, Iterator) else token for token in tokens]
        kinds = set(map(type, tokens))
    try:
        if kinds <= {list, tuple}:
            lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
            return lengths, index.ids(tokens, int(lengths.sum())), None
        if kinds == {dict}:
            try:
                return _coded_dicts(tokens, pairs)
            except TypeError:  # a dict in a dict
                return _coded_dicts([_joined(token) for token in tokens], pairs)
    except (_BadToken, TypeError):
        pass  # the error is raised below
    return _coded_one_by_one(tokens, sequence_lengths, first, index)


def _joined(token: dict[str, Any]) -> dict[str, Any]:
    """The dict with those inside it taken apart, one level deep; TypeError asks for the long way, as for a name twice."""
    flat: dict[str, Any] = {}
    n = 0
    for key, value in token.items():
        inner = {key + ":" + name: item for name, item in value.items()} if isinstance(value, dict) else {key: value}
        flat |= inner
        n += len(inner)
    if len(flat) < n:
        raise TypeError("twice")
    return flat


def _coded_dicts(tokens: list[Any], pairs: _PairIndex) -> _Coded:
    if len(pairs) > MAX_SEEN:
        pairs.forget()
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    flat = itertools.chain.from_iterable(map(dict.items, tokens))
    slots = np.fromiter(map(pairs.__getitem__, flat), np.intp, int(lengths.sum()))
    if not len(slots):
        return lengths, np.empty(0, np.int32), None
    return lengths, np.frombuffer(pairs.ids, np.int32)[slots], np.frombuffer(pairs.weights, np.float32)[slots]


def _coded_one_by_one(tokens: list[Any], sequence_lengths: list[int], first: int, index: FeatureIndex) -> _Coded:
    lengths, ids, values = [], array("i"), array("f")
    places = ((i, t) for i, length in enumerate(sequence_lengths, first) for t in range(length))
    for (i, t), token in zip(places, tokens, strict=True):
        before = len(ids)
        try:
            for name, value in _token_features(token):
                if value:
                    ids.append(index[name])
                    values.append(value)
        except _BadToken as error:
            raise DataError(f"sample {i}, position {t}: {error}") from None
        lengths.append(len(ids) - before)
    return np.array(lengths, np.int64), np.array(ids, np.int32), np.array(values, np.float32)


def _token_features(token: Any) -> Iterator[tuple[str, float]]:
    if isinstance(token, Mapping):
        for key, value in token.items():
            yield from _flat_features(key, value)
        return
    if isinstance(token, str | bytes | numbers.Number | np.ndarray | np.generic) or not isinstance(token, Iterable):
        hint = _WORDS if isinstance(token, str) and token.isalpha() else _HINT  # a feature has signs, as word=the
        raise _BadToken(f"expected a dict of features or a list of feature strings, got {_shown(token)}; {hint}")
    for name in token:
        if not isinstance(name, str):
            hint = (
                f"; {_HINT}" if not isinstance(name, Mapping | list | tuple) else "; are the sequences nested one level too deep?"
            )
            raise _BadToken(f"expected feature strings, got {_shown(name)}{hint}")
    # the order of a set changes from run to run, and with it would the ids of new features
    for name in sorted(token) if isinstance(token, set | frozenset) else token:
        yield name, 1.0


def listed(given: Any, what: str) -> Iterable[Any]:
    """What was given, if it is a list of something; else DataError, which begins with what was expected."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise DataError(f"{what}, got {_shown(given)}; {_HINT}")
    return given


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:60] + '...'}"


#: the arrays of the tokens that have one, float32, a row each; and which of all tokens have one
Part = tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]


def split_dicts(sequences: Any, names: Sequence[str], widths: Sequence[int]) -> tuple[Any, list[Part]]:
    """The sequences without the arrays of these names, and the arrays. widths: of each; empty: as the first token has it.

    Raises DataError, naming sample, position and key, for a token without as many numbers as the first, or as at fit.

    >>> strings, [(values, _)] = split_dicts([[{"w": "a", "v": np.ones(2)}]], ["v"], [2])
    >>> strings, values.tolist()
    ([[{'w': 'a'}]], [[1.0, 1.0]])
    """
    if not names:
        return sequences, []
    given = enumerate(listed(sequences, "expected a list of sequences"))
    nested = [list(listed(tokens, f"sample {i}: expected a sequence of tokens")) for i, tokens in given]
    flat, all_tokens, parts = list(chain.from_iterable(nested)), Ragged(), list[Part]()
    all_tokens.offsets = ends_of(np.array(list(map(len, nested)), np.int64))
    for k, name in enumerate(names):
        arrays: list[Any] = [token.get(name) if isinstance(token, Mapping) else None for token in flat]
        width, values = widths[k] if widths else np.size(arrays[0]), np.empty((0, 0), np.float32)
        fits = np.array([isinstance(x, np.ndarray) and x.shape == (width,) and x.dtype.kind in "fiub" for x in arrays], bool)
        if whole := bool(fits.all()):
            with np.errstate(over="ignore"):  # what does not fit into 32 bits becomes infinite
                joined = np.concatenate((values.ravel(), *arrays), dtype=np.float32, casting="unsafe")
            values = joined.reshape(len(flat), width)
            fits = np.asarray(np.isfinite(values).all(axis=1))
        if not fits.all():
            place = int(fits.argmin())
            got = "NaN or infinity" if whole else f"{type(arrays[place]).__name__} {getattr(arrays[place], 'shape', '')}"
            expected = f"expected an array of {width} finite numbers, as at all tokens"
            raise DataError(f"{all_tokens.place(place)}: feature {name!r}: {expected}, got {got.strip()}")
        parts.append((values, np.ones(len(flat), np.bool_)))
    return all_tokens.nested([{key: token[key] for key in token if key not in names} for token in flat]), parts


def in_front(
    rows: tuple[Any, Any, Any], parts: Sequence[Part], shift: npt.NDArray[np.float64], factor: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Row pointers, ids and values of tokens, behind the columns of their arrays, (x - shift) * factor.

    rows: the same without arrays; values None: all are 1. A token that has no array has no entries there.
    """
    ends, ids, given = rows
    starts, lengths = ends_of(np.array([values.shape[1] for values, _ in parts])).tolist(), np.diff(ends)
    counts = [known * values.shape[1] for values, known in parts]
    indptr = ends_of(np.sum([*counts, lengths], axis=0))
    indices, data, at = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32), indptr[:-1].copy()
    for (values, known), count, a, b in zip(parts, counts, starts, starts[1:], strict=False):
        places = at[known][:, None] + np.arange(b - a)
        indices[places], scaled = np.arange(a, b), values - shift[a:b]
        data[places] = np.multiply(scaled, factor[a:b], out=scaled)
        at += count
    places = np.repeat(at - ends[:-1], lengths) + np.arange(len(ids))
    indices[places], data[places] = ids + starts[-1], 1.0 if given is None else given
    return indptr, indices, data
