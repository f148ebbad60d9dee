"""Column files: one token per line, white space between columns, a blank line between sentences (CoNLL-2000 and similar)."""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.ragged import Ragged, runs
from structpred.errors import DataError, ParameterError
from structpred.io.guesses import looks_like
from structpred.io.string_codes import StringCodes
from structpred.io.text import (
    HeldBytes,
    PathLike,
    counted_from,
    numbered_pieces,
    quoted,
    read_range,
    read_text,
    source_name,
    split_lines,
)

log = logging.getLogger("structpred.io")

#: column files by the name of their format, and how many columns they have; None: any number
COLUMN_FORMATS = {"columns": None, "conll2000": 3, "conll2003": 4}
#: the same for all formats whose tokens are rows of columns, which templates read
ROW_FORMATS = {**COLUMN_FORMATS, "jsonl": 2}
#: what begins a line that is no token but a boundary of documents, as in CoNLL-2003
BOUNDARY = "-DOCSTART-"
_BOUNDARY_LINE = re.compile(rf"^{BOUNDARY}(?![^ \t\r\n])[^\n]*$", re.MULTILINE)

Row = tuple[str, ...]

# Only space and tab separate columns: other Unicode white space (a no-break space, say) does occur inside tokens.
_FIELD = re.compile("[^ \t\n]+")
_TABBED_FIELD = re.compile("[^\t\n]+")
_SPACE, _TAB, _NEWLINE = 32, 9, 10
_PIECE = 1 << 17
#: each column has a dictionary of its own: a line of a million words is not a table row
MOST_COLUMNS = 10_000


@dataclass(frozen=True, eq=False)
class ColumnCorpus(Ragged):
    """Sentences of tokens with a fixed number of columns, integer-coded.

    vocabularies: for each column its distinct strings. codes: int32 (n_tokens, n_columns), indices into them.
    offsets: int64 (n_sentences + 1), sentence i is the tokens ``offsets[i]:offsets[i+1]``. lines: int64 (n_tokens),
    the 1-based line of each token in its file, 0 where there is no file. name: the source, for messages.
    text: the file as it was read, kept for `format_columns`; None where there is none. documents: int64, the first sentence of
    each document, ascending from 0; None: not known, each sentence is one.

    >>> corpus = ColumnCorpus.from_rows([[("the", "DT"), ("cat", "NN")], [("so", "RB")]])
    >>> len(corpus), corpus.n_tokens, corpus.column(1), corpus.sentences()[1]
    (2, 3, ['DT', 'NN', 'RB'], [('so', 'RB')])
    """

    vocabularies: list[list[str]]
    codes: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    name: str
    text: str | None = None
    documents: npt.NDArray[np.int64] | None = None

    @property
    def document_of(self) -> npt.NDArray[np.int64]:
        """The number of the document of each sentence."""
        firsts = np.arange(len(self)) if self.documents is None else self.documents
        return np.searchsorted(firsts, np.arange(len(self)), side="right") - 1

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.vocabularies)

    def column(self, j: int) -> list[str]:
        """Column j of every token, in file order; negative j counts from the last column."""
        if not -self.n_columns <= j < self.n_columns:
            raise ParameterError(f"{self.name} has {self.n_columns} columns, numbered from 0; there is no column {j}")
        return list(map(self.vocabularies[j].__getitem__, self.codes[:, j].tolist()))

    def labels(self, column: int = -1) -> list[list[str]]:
        """One column as a list of strings for each sentence; by default the last, where the labels usually are."""
        return self.nested(self.column(column))

    def sentences(self) -> list[list[Row]]:
        """The corpus as a list of sentences, each a list of tuples of strings."""
        return self.nested(list(zip(*(self.column(j) for j in range(self.n_columns)), strict=True)))

    def take(self, start: int, stop: int) -> "ColumnCorpus":
        """The sentences start..stop-1 as a corpus of their own (arrays are views; line numbers stay, the text does not)."""
        t0, t1 = int(self.offsets[start]), int(self.offsets[stop])
        offsets = self.offsets[start : stop + 1] - t0
        firsts = self.documents
        if firsts is not None:  # what is left of a document is one
            firsts = np.unique(np.maximum(firsts[: np.searchsorted(firsts, stop)] - start, 0))
        return ColumnCorpus(self.vocabularies, self.codes[t0:t1], offsets, self.lines[t0:t1], self.name, documents=firsts)

    def where(self, token: int) -> str:
        """Where token number ``token`` is, for messages: file and line, or sample and position.

        >>> ColumnCorpus.from_rows([[("a",)], [("b",), ("c",)]]).where(2)
        'sample 1, position 1'
        """
        return f"{self.name}:{self.lines[token]}" if self.lines[token] > 0 else self.place(token)

    @classmethod
    def from_rows(
        cls, sentences: Iterable[Iterable[Sequence[str]]], name: str = "<rows>", *, groups: Sequence[Any] | None = None
    ) -> "ColumnCorpus":
        """A corpus of sentences given as sequences of rows, each row a tuple or list of strings.

        groups: the document of each sentence, by any name; those that follow each other with the same name are one document.
        Raises DataError naming the sample and position: an empty sentence, rows of different lengths, something that
        is not a row of strings, one sentence in place of a list of sentences; and for groups of another number.

        >>> ColumnCorpus.from_rows([[("a",)], [("b",)], [("c",)]], groups=["p", "p", "q"]).documents.tolist()
        [0, 2]
        """
        rows: list[Sequence[str]] = []
        offsets = [0]
        width: int | None = None
        for i, sentence in enumerate(_iterable(sentences, "expected a list of sentences")):
            for t, row in enumerate(_iterable(sentence, f"sample {i}: expected a sentence, a list of rows")):
                width = _checked_width(row, width, i, t)
                rows.append(row)
            if len(rows) == offsets[-1]:
                raise DataError(f"sample {i}: expected a list of rows, got an empty sentence")
            offsets.append(len(rows))
        if width is None:
            raise DataError(f"{name}: expected at least one sentence, got none")
        coded = [_code_checked(list(column), j) for j, column in enumerate(zip(*rows, strict=True))]
        lines = np.zeros(len(rows), np.int64)
        codes = np.stack([codes for _, codes in coded], axis=1)
        documents, n = None, len(offsets) - 1
        if groups is not None:
            if len(names := list(groups)) != n:
                raise DataError(f"groups: expected one for each of the {n} sentences, got {len(names)}")
            documents = np.array([i for i in range(n) if not i or names[i] != names[i - 1]], np.int64)
        return cls([vocabulary for vocabulary, _ in coded], codes, np.array(offsets, np.int64), lines, name, documents=documents)


def format_columns(corpus: ColumnCorpus, predictions: Sequence[Sequence[str]]) -> str:
    """The corpus's lines with one more column, as CRF++ and conlleval expect; what was read comes back byte for byte.

    predictions: one label per token, nested by sentence. The new column follows a tab where the first token's line has
    one, else a space, and is O on ``-DOCSTART-`` lines. A corpus that was not read from a file is written with spaces.
    Raises DataError where the lengths differ or a label could not be read back.

    >>> corpus = ColumnCorpus.from_rows([[("the", "DT"), ("cat", "NN")], [("so", "RB")]])
    >>> print(format_columns(corpus, [["B", "I"], ["O"]]), end="")
    the DT B
    cat NN I
    <BLANKLINE>
    so RB O
    """
    if len(predictions) != len(corpus):
        raise DataError(f"{corpus.name} has {len(corpus)} sentences, but there are predictions for {len(predictions)}")
    for i, (length, own) in enumerate(zip(corpus.lengths.tolist(), predictions, strict=True)):
        if length != len(own):
            raise DataError(f"sample {i}: the sentence has {length} tokens, but there are {len(own)} predictions")
    labels = [str(label) for own in predictions for label in own]
    for label in set(labels):
        if not label or any(c in label for c in " \t\r\n"):
            raise DataError(f"the label {label!r} cannot be written in a column: it is empty or holds white space")
    if corpus.text is None:
        sentences = zip(corpus.sentences(), predictions, strict=True)
        blocks = ["".join(f"{' '.join((*row, label))}\n" for row, label in zip(*pair, strict=True)) for pair in sentences]
        return "\n".join(blocks)
    out = corpus.text.split("\n")
    separator = "\t" if corpus.n_tokens and "\t" in out[int(corpus.lines[0]) - 1] else " "
    bounds = [(k, "O") for k, line in enumerate(out, 1) if _BOUNDARY_LINE.match(line)] if BOUNDARY in corpus.text else []
    for line, label in (*zip(corpus.lines.tolist(), labels, strict=True), *bounds):
        row = out[line - 1]
        if row.endswith("\r"):
            out[line - 1] = f"{row[:-1]}{separator}{label}\r"
        else:
            out[line - 1] = f"{row}{separator}{label}"
    return "\n".join(out)


def parse_columns(text: str, name: str, n_columns: int | None = None, *, tabs: bool = False) -> ColumnCorpus:
    """As `read_columns`, for text that was read already; name: for messages."""
    # All lines of a piece at once: field counts come from the bytes, so that Python sees each field once.
    body = f"{text}\n".replace("\r\n", "\n") if "\r" in text else text
    bounds: list[int] = []
    if BOUNDARY in body:
        bounds = [k for k, line in enumerate(body.split("\n"), 1) if _BOUNDARY_LINE.match(line)]
        body = _BOUNDARY_LINE.sub("", body)
        log.info("%s: %d %s lines left out: they are boundaries of documents", name, len(bounds), BOUNDARY)
    lines, width = _token_lines(body, name, n_columns, tabs)
    if not len(lines):
        raise DataError(f"{name}: expected at least one sentence, got {'only blank lines' if text else 'an empty file'}")
    # the strings of one piece are let go before the next one is cut up
    fields = (_tabbed_fields(piece) if tabs else _FIELD.findall(piece) for _, piece in numbered_pieces(body, _PIECE))
    vocabularies, codes = _code_pieces(fields, len(lines), width)
    offsets, documents = runs(lines), None
    if bounds:
        firsts = np.searchsorted(lines[offsets[:-1]], bounds)
        documents = np.unique(np.concatenate(([0], firsts[firsts < len(offsets) - 1])))
    return ColumnCorpus(vocabularies, codes, offsets, lines, name, text, documents)


def _code_pieces(pieces: Iterable[list[str]], n: int, width: int) -> tuple[list[list[str]], npt.NDArray[np.int32]]:
    """For each column the distinct strings in order of appearance; and each entry's index among them, (n, width)."""
    columns, codes, done = [StringCodes() for _ in range(width)], np.empty((n, width), np.int32), 0
    for fields in pieces:
        rows = len(fields) // width
        for j, column in enumerate(columns):
            codes[done : done + rows, j] = np.fromiter(map(column.__getitem__, fields[j::width]), np.int32, rows)
        done += rows
    return list(map(list, columns)), codes


def _token_lines(body: str, name: str, n_columns: int | None, tabs: bool) -> tuple[npt.NDArray[np.int64], int]:
    """The 1-based numbers of the token lines, and their common number of columns; DataError at the first bad line."""
    found, width, first = [np.zeros(0, np.int64)], n_columns, 0
    for number, piece in numbered_pieces(body, _PIECE):
        columns, fields = _counts(piece, tabs)
        lines = np.flatnonzero(fields)
        if len(lines) and not first:
            first, width = number + int(lines[0]), width or int(columns[lines[0]])
        wrong = lines[(columns[lines] != width) | (fields[lines] != width)]
        if len(wrong) or (width or 0) > MOST_COLUMNS:
            k = int(wrong[0]) if len(wrong) else int(lines[0])
            where, source = f"{name}:{number + k}", "" if n_columns is not None else f" (as in line {first})"
            raise _line_error(piece.split("\n")[k], where, width or 0, source, tabs, body)
        found.append(lines.astype(np.int64) + number)
    return np.concatenate(found), width or 0


def _counts(piece: str, tabs: bool) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """For each line how many columns it has, and how many of them are not empty; a blank line has none of the latter."""
    buffer = np.frombuffer(piece.encode(), np.uint8)
    newline, tab = buffer == _NEWLINE, buffer == _TAB
    bounds = np.concatenate(([0], np.flatnonzero(newline) + 1, [len(buffer)]))
    filled = _per_line(_field_starts(newline | tab | (buffer == _SPACE)), bounds)
    if not tabs:
        return filled, filled
    return _per_line(tab, bounds) + 1, np.where(filled > 0, _per_line(_field_starts(newline | tab), bounds), 0)


def _field_starts(separator: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    starts = ~separator
    starts[1:] &= separator[:-1]
    return starts


def _per_line(mask: npt.NDArray[np.bool_], bounds: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """How many set bytes lie in each line."""
    return np.diff(np.searchsorted(np.flatnonzero(mask), bounds))


def _line_error(line: str, where: str, width: int, source: str, tabs: bool, body: str) -> DataError:
    n = line.count("\t") + 1 if tabs else field_count(line)
    if n > MOST_COLUMNS:
        return DataError(f"{where}: expected at most {MOST_COLUMNS:,} columns, got {n:,}; is this one token per line?")
    if tabs and n == width:
        empty = line.split("\t").index("") + 1
        message = f"expected {width} columns separated by single tabs, but column {empty} is empty"
        return DataError(f"{where}: {message}: {quoted(line)}")
    hint = looks_like(split_lines(body[: 1 << 16]))
    return DataError(f"{where}: expected {width} columns{source}, got {n}: {quoted(line)}{hint}")


def field_count(line: str) -> int:
    """How many columns a line has, without a list of them, which of a long line takes twenty times its memory."""
    return sum(1 for _ in _FIELD.finditer(line))


def _tabbed_fields(piece: str) -> list[str]:
    """With tabs as separators a line of spaces is a field to the pattern, but a blank line to us."""
    if " " not in piece:
        return _TABBED_FIELD.findall(piece)
    return _TABBED_FIELD.findall("\n".join(line for line in piece.split("\n") if line.strip(" \t")))


def _iterable(value: object, expected: str) -> Iterable[Any]:
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        raise DataError(f"{expected}, got {type(value).__name__}")
    return value


def _checked_width(row: object, width: int | None, sample: int, position: int) -> int:
    if isinstance(row, list | tuple) and row and (width is None or len(row) == width):
        return len(row)
    where = f"sample {sample}, position {position}"  # only now: there may be millions of rows
    if isinstance(row, str):
        raise DataError(
            f"{where}: expected a row of columns (a tuple of strings), got the string {quoted(row)}; "
            f"a word alone is the row ({row[:20]!r},); or did you pass one sequence instead of a list of sequences?"
        )
    if not isinstance(row, list | tuple):
        raise DataError(f"{where}: expected a row of columns (a tuple of strings), got {type(row).__name__}")
    raise DataError(f"{where}: expected {width or 'at least 1'} columns, got {len(row)}")


def _code_checked(column: list[str], j: int) -> tuple[list[str], npt.NDArray[np.int32]]:
    """The distinct strings in order of appearance, and each entry's index among them. The cells may be anything."""
    try:
        index = {entry: code for code, entry in enumerate(dict.fromkeys(column))}
    except TypeError:  # an unhashable cell
        index = {}
    for entry in index or column:
        if not isinstance(entry, str):
            raise DataError(f"column {j}: expected strings, got {entry!r} of type {type(entry).__name__}")
    return list(index), np.fromiter(map(index.__getitem__, column), np.int32, len(column))


def read_columns(
    path: PathLike, n_columns: int | None = None, name: str | None = None, *, tabs: bool = False, encoding: str = "utf-8",
    start: int = 0, stop: int | None = None,
) -> ColumnCorpus:  # fmt: skip
    """Read a column file: every non-blank line is one token, blank lines (or white space alone) separate sentences.

    Columns are separated by spaces and tabs; with ``tabs=True`` by single tabs only, so that a column may hold spaces.
    n_columns is what every line must have; None takes it from the first token line. name stands for the path in
    messages. encoding: of the file, by Python's name for it. ``-DOCSTART-`` lines are boundaries, whatever their columns;
    nothing else is skipped: comment lines are tokens as any other. start, stop: the bytes of a plain file to read alone, from
    the start of a line to the end of one; lines are then counted from there.

    Raises DataError with file and line: a line with more or fewer columns, an empty column (tabs=True), no token at
    all, and what `read_text` raises.
    """
    if n_columns is not None and n_columns < 1:
        raise ParameterError(f"n_columns must be at least 1, got {n_columns}")
    called = source_name(path) if name is None else name
    if not start and stop is None:
        return parse_columns(read_text(path, encoding), called, n_columns, tabs=tabs)
    with counted_from(called, start):
        text = read_text(HeldBytes(read_range(path, start, stop), called), encoding)
        return parse_columns(text, called, n_columns, tabs=tabs)
