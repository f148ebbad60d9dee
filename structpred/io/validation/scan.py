"""A data file read line by line without stopping at the first error, so that all its problems can be reported at once."""

import itertools
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.ragged import Ragged, runs
from structpred.errors import DataError, ParameterError
from structpred.io import crfsuite, ocr
from structpred.io.columns import BOUNDARY, COLUMN_FORMATS, MOST_COLUMNS, Row, field_count
from structpred.io.jsonl import each_object
from structpred.io.string_codes import SlicedList
from structpred.io.text import ENCODING_HINT, PathLike, check_lines, check_mean, quoted, read_bytes, source_name
from structpred.io.validation.rows import BLANK, COLUMNS, ENCODING, GOOD, LINKS, LabelCodes, Lines, Rows, broken_links, word_ends
from structpred.runtime.ranges import ends_of

FORMATS = (*COLUMN_FORMATS, "crfsuite", "jsonl", "ocr")
_BOUNDARY_LINE = re.compile(rb"^%s(?![^ \t\r\n])" % BOUNDARY.encode(), re.MULTILINE)
_UNPRINTED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """Something wrong in one line. kind: a short name. line: 1-based. text: what was expected and what came."""

    kind: str
    line: int
    text: str


@dataclass(frozen=True)
class Tokens(Ragged):
    """The tokens of sequences in flat arrays; an object for each takes many times the memory of the file.

    lines: int32, of all tokens. offsets: int64 (n_sequences + 1), sequence i has the lines ``offsets[i]:offsets[i + 1]``. broken:
    bool, the sequences with a problem. label_names, codes and label_offsets: the same for the labels of the good tokens, of which
    there are none after one label too many; excess: the line of that. hashes: int64, of all but the labels of each sequence.
    content: that itself, for a sequence's number; it is made again.
    """

    lines: npt.NDArray[np.int32]
    offsets: Offsets
    broken: npt.NDArray[np.bool_]
    label_names: list[str]
    codes: npt.NDArray[np.int32]
    label_offsets: Offsets
    hashes: npt.NDArray[np.int64]
    content: Callable[[int], tuple[str, ...]]
    excess: int | None = None

    @property
    def label_counts(self) -> npt.NDArray[np.intp]:
        """How many tokens have each label."""
        return np.bincount(self.codes, minlength=len(self.label_names))

    @cached_property
    def by_name(self) -> npt.NDArray[np.intp]:
        """The labels that tokens have, in the order of their names."""
        order = np.argsort(np.array(self.label_names, object))
        return order[self.label_counts[order] > 0]

    @property
    def labels(self) -> Sequence[list[str]]:
        """The labels of the good tokens of each sequence."""
        return SlicedList(self.label_names, self.codes, self.label_offsets)

    def same_labels(self, i: int, j: int) -> bool:
        """Whether two sequences have the same labels."""
        ends = self.label_offsets.data
        return self.codes[ends[i] : ends[i + 1]].tobytes() == self.codes[ends[j] : ends[j + 1]].tobytes()

    def lines_of(self, labels: npt.NDArray[np.intp]) -> npt.NDArray[np.int32]:
        """The lines of labels, by their numbers; for those of a broken sequence the line that it begins in."""
        i = np.searchsorted(self.label_offsets, labels, side="right") - 1
        return self.lines[self.offsets[i] + np.where(self.broken[i], 0, labels - self.label_offsets[i])]

    def of(self, i: int) -> list[int]:
        """The lines of a sequence."""
        return self.lines[self.offsets[i] : self.offsets[i + 1]].tolist()


@dataclass(frozen=True)
class Scan:
    """What a file holds. problems: made anew each time. text: its lines. documents: the lines of -DOCSTART- rows.

    bare: whether no good row has more than a label. characters: unprinted character -> the lines it is in. blank: lines that
    end no sentence.
    """

    name: str
    format: str
    tokens: Tokens
    problems: Callable[[], Iterator[Problem]]
    n_columns: int | None = None
    text: Lines | None = None
    documents: Sequence[int] = ()
    bare: bool = False
    characters: Mapping[str, Sequence[int]] = field(default_factory=dict)
    blank: Sequence[int] = ()


def scan_file(
    path: PathLike, format: str, *, label_column: int = -1, n_columns: int | None = None, encoding: str = "utf-8"
) -> Scan:
    """Read a file in one of FORMATS, keeping what is good and noting what is not.

    n_columns: what every row must have; None: as many as the format has, 3 of conll2000, else what most rows have. Raises
    DataError only for a file that cannot be opened or unpacked, has a line too long for any format, or very many lines of one
    or two letters; ParameterError for an unknown format or label column.
    """
    _check_format(format)  # before the file is opened
    return scan_bytes(read_bytes(path, encoding), source_name(path), format, label_column=label_column, n_columns=n_columns)


def scan_bytes(data: bytes, name: str, format: str, *, label_column: int = -1, n_columns: int | None = None) -> Scan:
    """As `scan_file`, for UTF-8 text that was read already; name: for messages."""
    _check_format(format)
    check_lines(data, name)
    check_mean(data, name)
    lines = Lines(data)
    if format == "jsonl":
        return _scan_objects(lines, name)
    kinds, width, documents = _encodings(lines), None, list[int]()
    if format in COLUMN_FORMATS:
        width = n_columns or COLUMN_FORMATS[format] or _usual_width(lines)
        if not -width <= label_column < width:
            raise ParameterError(f"label column {label_column}: {name} has {width} columns, numbered from 0")
        documents = [lines.number_at(match.start()) for match in _BOUNDARY_LINE.finditer(data)]
        kinds[np.array(documents, np.int64) - 1] = BLANK
    rows = Rows(lines, format, kinds, width, label_column % width if width else 0)
    numbers = (np.flatnonzero(kinds != BLANK) + 1).astype(np.int32)
    offsets = word_ends(lines) if format == "ocr" else runs(numbers)
    codes, links = rows.labels.codes, dict[int, str]()
    if format == "ocr":
        good = numbers[kinds[numbers - 1] == GOOD]
        links = dict(broken_links(lines, kinds, (numbers[a:b].tolist() for a, b in pairs(offsets))))
        kinds[np.fromiter(links, np.int64, len(links)) - 1] = LINKS
        codes = codes[kinds[good - 1] == GOOD] if rows.excess is None else codes
    tokens = _tokens(rows, numbers, offsets, codes)
    kinds[np.array(documents, np.int64) - 1] = GOOD  # what is around them is no sentence without tokens
    blank = _idle_blanks(kinds, numbers) if format != "ocr" else ()
    problems = partial(_problems, rows, links)
    return Scan(name, format, tokens, problems, width, lines, documents, rows.bare, _unprinted(lines), blank)


def _scan_objects(lines: Lines, name: str) -> Scan:
    """JSON lines: an object is a sequence, whose tokens are all in its line."""
    objects, problems, width, labels = dict[int, list[Row]](), list[Problem](), 0, LabelCodes()
    for number, found in each_object(map(lines.text, range(1, len(lines) + 1))):
        wrong = [Problem("encoding", number, text) for text in _encoding_problems(lines, number)]
        if isinstance(found, DataError):
            wrong = wrong or [Problem("row", number, str(found))]
        elif not wrong and len(found[0]) != (width := width or len(found[0])):
            wrong = [Problem("row", number, "expected labels in all objects or in none")]
        objects[number] = [] if wrong else found  # type: ignore[assignment]
        problems += wrong
    words = [tuple(row[0] for row in rows) for rows in objects.values()]
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    offsets, label_offsets = ends_of(np.maximum(lengths, 1)), ends_of(lengths * (width > 1))
    labels.extend([row[1] for rows in objects.values() for row in rows if width > 1])
    places = np.repeat(np.fromiter(objects, np.int32, len(words)), np.diff(offsets))
    excess = None if labels.excess is None else int(np.repeat(places[offsets[:-1]], lengths)[labels.excess])
    label_offsets = label_offsets if excess is None else np.zeros_like(label_offsets)
    hashes = np.fromiter(map(hash, words), np.int64, len(words))
    known = labels.names, labels.codes, label_offsets, hashes, words.__getitem__, excess
    tokens = Tokens(places, offsets, lengths == 0, *known)
    return Scan(name, "jsonl", tokens, lambda: iter(problems), None, lines, characters=_unprinted(lines))


def ints(numbers: npt.NDArray[Any]) -> Iterator[int]:
    """The numbers of an array one after the other: a list of them takes five times the memory."""
    return iter(numbers.data)


def pairs(offsets: Offsets) -> Iterator[tuple[int, int]]:
    """The bounds of each sequence."""
    return itertools.pairwise(ints(offsets))


def _check_format(format: str) -> None:
    if format not in FORMATS:
        raise ParameterError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")


def _encodings(lines: Lines) -> npt.NDArray[np.uint8]:
    """ENCODING for each line that is no text in UTF-8, GOOD for the others."""
    kinds = np.full(len(lines), GOOD, np.uint8)
    for number, text in lines.pieces():
        if "\ufffd" not in text and "\0" not in text:
            continue
        for n in range(number, number + text.count("\n") + 1):
            if any(_encoding_problems(lines, n)):
                kinds[n - 1] = ENCODING
    return kinds


def _encoding_problems(lines: Lines, number: int) -> Iterator[str]:
    row = lines[number]
    try:
        row.decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"expected UTF-8 text, got the byte 0x{row[error.start]:02x}; {ENCODING_HINT}"
    if b"\0" in row:
        yield "expected text, got a NUL byte"


def _problems(rows: Rows, links: Mapping[int, str]) -> Iterator[Problem]:
    """All problems of a file by line. Their texts take many times the memory of a bad line: they are made when asked for."""
    for number in ints(np.flatnonzero(rows.kinds >= ENCODING) + 1):
        kind = rows.kinds[number - 1]
        if kind == ENCODING:
            yield from (Problem("encoding", number, text) for text in _encoding_problems(rows.lines, number))
        elif kind == COLUMNS:
            line = rows.lines.text(number)
            yield Problem("columns", number, f"expected {rows.width} columns, got {field_count(line)}: {quoted(line)}")
        elif kind == LINKS:
            yield Problem("links", number, links[number])
        else:
            reader = ocr if rows.format == "ocr" else crfsuite
            yield Problem("row", number, reader.line_problem(rows.lines.text(number)) or "")


def _usual_width(lines: Lines) -> int:
    counts = Counter[int]()
    for _, text in lines.pieces():
        counts.update(map(field_count, text.split("\n")))
    counts = Counter({width: count for width, count in counts.items() if 0 < width <= MOST_COLUMNS})
    return max(counts, key=lambda width: (counts[width], -width)) if counts else 1


def _tokens(rows: Rows, numbers: npt.NDArray[np.int32], offsets: Offsets, codes: npt.NDArray[np.int32]) -> Tokens:
    """numbers: the lines of all rows."""
    good = rows.kinds[numbers - 1] == GOOD
    before = np.concatenate(([0], np.cumsum(good)))[offsets]
    broken = np.diff(before) < np.diff(offsets)
    hashes = np.fromiter((hash(rows.hashes[numbers[a:b] - 1].tobytes()) for a, b in pairs(offsets)), np.int64, len(broken))

    def content(i: int) -> tuple[str, ...]:
        lines = numbers[offsets[i] : offsets[i + 1]]
        lines = lines[rows.kinds[lines - 1] == GOOD] if broken[i] else lines
        return tuple(map(rows.content, lines.tolist()))

    del rows.hashes  # `content` keeps the rows
    label_offsets = before if rows.excess is None else np.zeros_like(before)
    return Tokens(numbers, offsets, broken, rows.labels.names, codes, label_offsets, hashes, content, rows.excess)


def _idle_blanks(kinds: npt.NDArray[np.uint8], numbers: npt.NDArray[np.int32]) -> Sequence[int]:
    """Blank lines where a sentence without tokens would be: in front, and after another blank line; the end may have some."""
    blank = kinds[: numbers[-1] if len(numbers) else 0] == BLANK
    return array("q", (np.flatnonzero(blank & np.concatenate(([True], blank))[: len(blank)]) + 1).tobytes())


def _unprinted(lines: Lines) -> dict[str, Sequence[int]]:
    """Invisible characters (controls, direction marks, zero-width ones, no-break spaces), with their lines."""
    letters = set[str]()
    for _, text in lines.pieces():
        letters.update(text if not text.isascii() else map(chr, np.unique(np.frombuffer(text.encode(), np.uint8)).tolist()))
    seen = {c for c in letters if c not in " \t\n" and (unicodedata.category(c) in _UNPRINTED or c.isspace())}
    seen.discard("\0")  # reported as an error
    if not seen:
        return {}
    pattern = re.compile("[" + "".join(map(re.escape, sorted(seen))) + "]")
    found = {c: array("q") for c in sorted(seen)}
    for number, text in lines.pieces():
        if pattern.search(text):
            for n, line in enumerate(text.split("\n"), number):
                for c in set(pattern.findall(line)):
                    found[c].append(n)
    return dict(found)
