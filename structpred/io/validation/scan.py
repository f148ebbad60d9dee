"""A data file read line by line without stopping at the first error, so that all its problems can be reported at once."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from structpred.errors import DataError, ParameterError
from structpred.io import crfsuite, ocr
from structpred.io.columns import MOST_COLUMNS, field_count
from structpred.io.text import ENCODING_HINT, PathLike, check_lines, quoted, read_bytes, source_name

FORMATS = ("columns", "conll2000", "crfsuite", "ocr")
_FIELD = re.compile("[^ \t]+")
#: so many lines must have so many bytes on average
_MANY_LINES, _SHORT_LINES = 1 << 16, 5
_UNPRINTED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


@dataclass(frozen=True)
class Problem:
    """Something wrong in one line. kind: a short name. line: 1-based. text: what was expected and what came."""

    kind: str
    line: int
    text: str


class Sentence(NamedTuple):
    """One sequence as it was found. lines: of all its tokens. labels and content (all but the labels): of the good ones."""

    lines: Sequence[int]
    labels: tuple[str, ...]
    content: tuple[str, ...]
    broken: bool


@dataclass(frozen=True)
class Scan:
    """What a file holds. characters: unprinted character -> the lines it is in. blank: lines that end no sentence."""

    name: str
    format: str
    rows: list[bytes]
    sentences: list[Sentence]
    problems: list[Problem]
    n_columns: int | None = None
    characters: dict[str, list[int]] = field(default_factory=dict)
    blank: list[int] = field(default_factory=list)

    @property
    def broken_lines(self) -> set[int]:
        """The lines of all sentences that have a problem."""
        return {number for sentence in self.sentences if sentence.broken for number in sentence.lines}

    @property
    def n_tokens(self) -> int:
        """Tokens of all sentences, the bad ones included."""
        return sum(len(sentence.lines) for sentence in self.sentences)


def scan_file(
    path: PathLike, format: str, *, label_column: int = -1, n_columns: int | None = None, encoding: str = "utf-8"
) -> Scan:
    """Read a file in one of FORMATS, keeping what is good and noting what is not.

    n_columns: what every row must have; None: 3 for conll2000, else what most rows have. Raises DataError only for a file
    that cannot be opened or unpacked, has a line too long for any format, or very many lines of one or two letters;
    ParameterError for an unknown format or label column.
    """
    _check_format(format)  # before the file is opened
    return scan_bytes(read_bytes(path, encoding), source_name(path), format, label_column=label_column, n_columns=n_columns)


def scan_bytes(data: bytes, name: str, format: str, *, label_column: int = -1, n_columns: int | None = None) -> Scan:
    """As `scan_file`, for UTF-8 text that was read already; name: for messages."""
    _check_format(format)
    check_lines(data, name)
    _check_mean(data, name)
    rows = [row.removesuffix(b"\r") for row in data.removesuffix(b"\n").split(b"\n")] if data else []
    problems, lines = _decoded(rows)
    bad = {problem.line for problem in problems}
    width = None
    if format in ("columns", "conll2000"):
        width = n_columns or (3 if format == "conll2000" else _usual_width(lines))
        if not -width <= label_column < width:
            raise ParameterError(f"label column {label_column}: {name} has {width} columns, numbered from 0")
    parsed = _Rows(format, width, label_column % width if width else 0, bad, problems)
    found = _words(lines, parsed) if format == "ocr" else _blocks(lines, blank_is_white=width is not None)
    blocks: list[Sequence[int]] = list(found)
    sentences = [parsed.sentence(lines, block) for block in blocks]
    if format == "ocr":
        _check_links(lines, sentences, parsed)
        sentences = [parsed.sentence(lines, block, again=True) for block in blocks]
    blank = _idle_blanks(blocks) if format != "ocr" else []
    problems.sort(key=lambda problem: problem.line)
    return Scan(name, format, rows, sentences, problems, width, _unprinted(lines), blank)


def _check_mean(data: bytes, name: str) -> None:
    """What is kept of a line is many times as long as a line of one or two letters; no file of sentences is made of those."""
    n = data.count(b"\n")
    if n > _MANY_LINES and _SHORT_LINES * n > len(data):
        raise DataError(f"{name}: expected lines of {_SHORT_LINES} bytes or more on average, got {n:,} of {len(data) / n:.1f}")


def _check_format(format: str) -> None:
    if format not in FORMATS:
        raise ParameterError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")


def _decoded(rows: list[bytes]) -> tuple[list[Problem], list[str]]:
    problems, lines = [], []
    for number, row in enumerate(rows, 1):
        try:
            line = row.decode("utf-8")
        except UnicodeDecodeError as error:
            problems.append(
                Problem("encoding", number, f"expected UTF-8 text, got the byte 0x{row[error.start]:02x}; {ENCODING_HINT}")
            )
            line = row.decode("utf-8", "replace")
        if "\0" in line:
            problems.append(Problem("encoding", number, "expected text, got a NUL byte"))
        lines.append(line)
    return problems, lines


def _usual_width(lines: list[str]) -> int:
    counts = Counter(field_count(line) for line in lines)
    counts = Counter({width: count for width, count in counts.items() if 0 < width <= MOST_COLUMNS})
    return max(counts, key=lambda width: (counts[width], -width)) if counts else 1


def _blocks(lines: list[str], *, blank_is_white: bool) -> Iterator[range]:
    """The line numbers of each sentence, separated by blank lines."""
    start = 0
    for number, line in enumerate(lines, 1):
        if line.strip(" \t") if blank_is_white else line:
            start = start or number
        elif start:
            yield range(start, number)
            start = 0
    if start:
        yield range(start, len(lines) + 1)


def _words(lines: list[str], parsed: "_Rows") -> Iterator[list[int]]:
    """The line numbers of each word of OCR data: a word ends where next_id is -1, or the word's number changes."""
    block: list[int] = []
    word: str | None = None
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        fields = line.split("\t", 5)
        here = fields[3] if len(fields) > 5 else word
        if block and word is not None and here != word:
            yield block
            block = []
        block.append(number)
        word = here
        if len(fields) > 2 and fields[2] == "-1":
            yield block
            block, word = [], None
    if block:
        yield block


def _idle_blanks(blocks: Sequence[Sequence[int]]) -> list[int]:
    """Blank lines where a sentence without tokens would be: in front, and after another blank line; the end may have some."""
    idle, before = list[int](), 0
    for block in blocks:
        idle += range(1 if before == 0 else before + 2, block[0])
        before = block[-1]
    return idle


class _Rows:
    """Takes single rows of a format apart; notes problems."""

    def __init__(self, format: str, width: int | None, label: int, bad: set[int], problems: list[Problem]) -> None:
        self.format, self.width, self.label, self.bad, self.problems = format, width, label, bad, problems
        self.known: dict[str, str] = {}  # equal strings are one object, which saves most of the memory

    def note(self, kind: str, line: int, text: str) -> None:
        """One more problem."""
        self.problems.append(Problem(kind, line, text))
        self.bad.add(line)

    def sentence(self, lines: list[str], numbers: Sequence[int], *, again: bool = False) -> Sentence:
        """The sentence in these lines; `again` notes nothing the second time."""
        labels, content = [], []
        for number in numbers:
            label, rest = self._row(lines[number - 1], number, quiet=again)
            if number not in self.bad:
                labels.append(self.known.setdefault(label, label))
                content.append(self.known.setdefault(rest, rest))
        return Sentence(numbers, tuple(labels), tuple(content), any(number in self.bad for number in numbers))

    def _row(self, line: str, number: int, *, quiet: bool) -> tuple[str, str]:
        """(label, everything else)."""
        if number in self.bad:
            return "", ""
        if self.width is not None:
            if (n := field_count(line)) != self.width:
                self.note("columns", number, f"expected {self.width} columns, got {n}: {quoted(line)}")
                return "", ""
            fields = _FIELD.findall(line)
            return fields.pop(self.label), " ".join(fields)
        if not quiet and (problem := (ocr if self.format == "ocr" else crfsuite).line_problem(line)) is not None:
            self.note("row", number, problem)
            return "", ""
        if self.format == "ocr":
            fields = line.split("\t", 6)
            return fields[1], fields[6].rstrip("\t")
        label, _, rest = line.partition("\t")
        return label, rest


def _check_links(lines: list[str], words: list[Sentence], rows: _Rows) -> None:
    """The ids, positions, words and folds of OCR letters, wherever both neighbours can be read."""
    for w, word in enumerate(words):
        heads = {
            n: [int(text) for k, text in enumerate(lines[n - 1].split("\t", 6)[:6]) if k != 1]
            for n in word.lines
            if n not in rows.bad
        }
        for place, number in enumerate(word.lines, 1):
            if number not in heads:
                continue
            _, following, _, position, fold = heads[number]
            last = place == len(word.lines)
            after = None if last else heads.get(word.lines[place])
            if last and following != -1:
                reason = "the file ends here; is it cut short?" if w == len(words) - 1 else "the word ends here"
                rows.note("links", number, f"expected next_id -1, because {reason}, got {following}")
            elif after is not None and following != after[0]:
                rows.note("links", number, f"expected next_id {after[0]} (the id of the next line), got {following}")
            elif position != place:
                rows.note("links", number, f"expected position {place} (counting from 1 in each word), got {position}")
            elif after is not None and fold != after[4]:
                rows.note("links", number, f"expected the fold of the next line, in the same word, {after[4]}, got {fold}")


def _unprinted(lines: list[str]) -> dict[str, list[int]]:
    """Invisible characters (controls, direction marks, zero-width ones, no-break spaces), with their lines."""
    letters = set[str]()
    for line in lines:
        letters.update(line)
    seen = {c for c in letters if c not in " \t" and (unicodedata.category(c) in _UNPRINTED or c.isspace())}
    seen.discard("\0")  # reported as an error
    if not seen:
        return {}
    pattern = re.compile("[" + "".join(map(re.escape, sorted(seen))) + "]")
    found: dict[str, list[int]] = {c: [] for c in sorted(seen)}
    for number, line in enumerate(lines, 1):
        for c in set(pattern.findall(line)):
            found[c].append(number)
    return found
