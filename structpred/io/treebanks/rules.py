"""The rules for the sentences of a treebank file, the messages where one is broken, and all problems of a file at once."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from unicodedata import name

from structpred.errors import DataError
from structpred.io.opening import Source
from structpred.io.text import ENCODING_HINT, quoted
from structpred.io.treebanks.formats import TreebankFormat, TreebankSource, open_treebank

ERROR, WARNING = "error", "warning"

# No more than nine digits: every number fits, and nothing spends its time on a number of a million digits.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
WORD_ID = re.compile(r"[1-9][0-9]{0,8}")
_RANGE_ID = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY_ID = re.compile(r"(0|[1-9][0-9]{0,8})\.([1-9][0-9]{0,8})")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_ODD_SPACES = re.compile("^ |  | $")


class Problem(NamedTuple):
    """One problem of a treebank file.

    line: from 1; 0 where the whole file is meant. sentence: its number in the file, from 1; 0 outside sentences.
    severity: "error" (the sentence cannot be used) or "warning". kind: one word for problems of the same sort.
    """

    path: str
    line: int
    sentence: int
    severity: str
    kind: str
    message: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}"


class _Row(NamedTuple):
    """A line of a word, multiword token or empty node. whole: whether it has as many columns as it should."""

    at: int
    fields: list[str]
    whole: bool


class _Found:
    """The problems of one sentence, or of a file, so far."""

    def __init__(self, path: str, line: int, sentence: int) -> None:
        self.path, self.line, self.sentence = path, line, sentence
        self.problems: list[Problem] = []

    def error(self, index: int, kind: str, message: str) -> None:
        """An error in the sentence's line number `index`, from 0."""
        self.problems.append(Problem(self.path, self.line + index, self.sentence, ERROR, kind, message))

    def warn(self, index: int, kind: str, message: str) -> None:
        """A warning likewise."""
        self.problems.append(Problem(self.path, self.line + index, self.sentence, WARNING, kind, message))


def check_sentence(
    lines: Sequence[str], line: int, sentence: int, format: TreebankFormat, path: str, *, check_trees: bool = True,
    missing_heads: bool = False,
) -> list[Problem]:  # fmt: skip
    """All problems of one sentence, by line.

    lines: without line ends, bytes that are not UTF-8 as lone surrogates. line: the number of the first. sentence: its
    number; 0 for comments that belong to none. check_trees: whether the heads are looked at. missing_heads: whether only some
    words of a sentence may have ``_`` as HEAD.

    >>> from structpred.io.treebanks.formats import CONLL_U
    >>> rows = ["1\\tno\\t_\\t_\\t_\\t_\\t2\\t_\\t_\\t_"]
    >>> print(*check_sentence(rows, 5, 1, CONLL_U, "a.conllu"))
    a.conllu:5: expected a head from 0 to 1 (the sentence has 1 word), got 2
    """
    found = _Found(path, line, sentence)
    rows: list[_Row] = []
    width = 0
    for index, text in enumerate(lines):
        _check_text(text, index, found)
        if format.comments and text.startswith("#"):
            if rows:
                found.warn(index, "comment", "expected comments before the first word of a sentence, got one among its lines")
            continue
        fields = text.split("\t")
        width = width or max(format.n_columns, len(fields) if format.open_ended else 0)
        _check_columns(text, fields, width, index, format, found)
        rows.append(_Row(index, fields, len(fields) == width))
    if rows:
        words, sound = _check_ids(rows, format, found)
        if check_trees:
            _check_heads(words, sound, format, found, missing_heads)
    found.problems.sort(key=lambda problem: problem.line)
    return found.problems


def _check_text(text: str, index: int, found: _Found) -> None:
    if text.replace("\t", " ").isprintable():
        return
    if (bad := _NOT_UTF8.search(text)) is not None:
        found.error(index, "encoding", f"expected UTF-8 text, got the byte 0x{ord(bad.group()) - 0xDC00:02x}; {ENCODING_HINT}")
    if "\0" in text:
        found.error(index, "encoding", "expected text, got a NUL byte; the file is binary, damaged, or UTF-16")
    if "\r" in text:
        found.error(index, "line-ends", "expected a carriage return before a line feed only, got one inside the line")
    unseen = next((c for c in text if not c.isprintable() and c not in "\t\r\0" and not _NOT_UTF8.match(c)), None)
    if unseen is not None:
        found.warn(index, "unprinted", f"an invisible character: U+{ord(unseen):04X} {name(unseen, 'control character')}")


def _check_columns(text: str, fields: list[str], width: int, index: int, format: TreebankFormat, found: _Found) -> None:
    if len(fields) != width:
        hint = ""
        if text.startswith("#"):
            hint = f"; the format {format.name} has no comments"
        elif len(fields) == 1 and len(text.split()) >= format.n_columns:
            hint = "; are they separated by spaces?"
        elif format.open_ended and len(fields) >= format.n_columns:
            hint = f" (the first line of the sentence has {width})"
        found.error(
            index, "columns", f"expected {width} columns separated by single tabs, got {len(fields)}{hint}: {quoted(text)}"
        )
        return
    if "" in fields:
        column = fields.index("")
        found.error(index, "empty-column", f"{_column(format, column)} is empty; expected _ where there is nothing")
    if " " not in text:
        return
    for column, field in enumerate(fields):
        if " " in field and column not in format.spaced:
            found.error(index, "spaces", f"expected no spaces in {_column(format, column)}, got {quoted(field)}")
        elif _ODD_SPACES.search(field) is not None:
            found.warn(index, "spaces", f"leading, trailing or double spaces in {_column(format, column)}: {quoted(field)}")


def _column(format: TreebankFormat, column: int) -> str:
    return f"column {column + 1}" + (f" ({format.columns[column]})" if column < format.n_columns else "")


def _check_ids(rows: list[_Row], format: TreebankFormat, found: _Found) -> tuple[list[_Row], bool]:
    """The rows that are words, and whether their ids count from 1 without a gap and all rows are whole."""
    words: list[_Row] = []
    ranges: list[tuple[_Row, int]] = []
    before = len(found.problems)
    last = last_end = last_empty = 0
    for row in rows:
        text = row.fields[0]
        if WORD_ID.fullmatch(text):
            words.append(row)
            last = _check_word_id(row, int(text), last, found)
            last_empty = 0
        elif format.extended_ids and (match := _RANGE_ID.fullmatch(text)):
            first, end = int(match[1]), int(match[2])
            _check_range(row, first, end, last, last_end, found)
            ranges.append((row, end))
            last_end = max(last_end, end)
            _check_no_tree(row, format, "a multiword token", found)
        elif format.extended_ids and (match := _EMPTY_ID.fullmatch(text)):
            if (int(match[1]), int(match[2])) != (last, last_empty + 1):
                found.error(row.at, "ids", f"expected {last}.{last_empty + 1} as the id of an empty node here, got {text}")
            last_empty = int(match[2]) if int(match[1]) == last else last_empty
            _check_no_tree(row, format, "an empty node", found)
        elif row.whole or len(row.fields) > 1:
            kinds = "a number, a range such as 3-4 or an empty node such as 5.1" if format.extended_ids else "a number"
            found.error(row.at, "ids", f"expected as ID {kinds}, got {quoted(text)}")
    for row, end in ranges:
        if end > last:
            found.error(row.at, "ids", f"expected a range within the sentence of {last} words, got {row.fields[0]}")
    sound = all(problem.severity != ERROR for problem in found.problems[before:]) and all(row.whole for row in rows)
    if sound and not words:
        found.error(rows[0].at, "ids", "expected at least one word, got only multiword tokens or empty nodes")
    return words, sound


def _check_word_id(row: _Row, number: int, last: int, found: _Found) -> int:
    """The id from which the next one counts on: after a gap from the far side, so that one gap is one problem."""
    if number == last + 1:
        return number
    if number <= last:
        found.error(row.at, "ids", f"expected id {last + 1}, got {number}, which was used before or skipped")
        return last
    found.error(row.at, "ids", f"expected id {last + 1}, got {number}")
    return number


def _check_range(row: _Row, first: int, end: int, last: int, last_end: int, found: _Found) -> None:
    text = row.fields[0]
    if end < first:
        found.error(row.at, "ids", f"expected a range from a lower to a higher id, got {text}")
    elif first <= last_end:
        found.error(row.at, "ids", f"expected a range that begins after the one before, which ends at {last_end}, got {text}")
    elif first != last + 1:
        found.error(row.at, "ids", f"expected the range before its first word, {last + 1}-... here, got {text}")
    elif first == end:
        found.warn(row.at, "range", f"a multiword token of one word: {text}")


def _check_no_tree(row: _Row, format: TreebankFormat, what: str, found: _Found) -> None:
    if row.whole and (row.fields[format.head], row.fields[format.deprel]) != ("_", "_"):
        found.warn(row.at, "no-word", f"{what} has no place in the tree: expected _ as HEAD and DEPREL")


def _check_heads(words: list[_Row], sound: bool, format: TreebankFormat, found: _Found, missing_heads: bool) -> None:
    """Heads as numbers; with sound ids also as a tree."""
    n = len(words)
    heads: list[int | None] = []
    for number, row in enumerate(words, 1):
        text = row.fields[format.head] if row.whole else "_"
        head = int(text) if _NUMBER.fullmatch(text) else None
        heads.append(head if head is not None and head <= n and head != number else None)
        if head is None:
            if text not in ("_", ""):  # an empty column was reported before
                found.error(row.at, "heads", f"expected a whole number from 0 or _ as HEAD, got {quoted(text)}")
        elif sound and head > n:
            size = f"{n} word{'s' if n > 1 else ''}"
            found.error(row.at, "heads", f"expected a head from 0 to {n} (the sentence has {size}), got {head}")
        elif sound and head == number:
            found.error(row.at, "heads", f"word {number} is its own head")
        label = row.fields[format.deprel] if head is not None and format.single_root else "_"
        if label != "_" and (label.partition(":")[0] == "root") != (head == 0):
            message = f"expected the relation root where the head is 0, and only there, got {quoted(label)} and head {head}"
            found.warn(row.at, "root", message)
    if not sound:
        return
    missing = [row for row in words if row.fields[format.head] == "_"]
    if missing and len(missing) < n and not missing_heads:
        message = f"expected a head on every word of a sentence or on none, got _ on {len(missing)} of {n}"
        found.error(missing[0].at, "heads", message)
    if len(missing) < n:
        _check_tree(words, heads, format, found)


def _check_tree(words: list[_Row], heads: list[int | None], format: TreebankFormat, found: _Found) -> None:
    """One root, and from every word a way to it; a head that is wrong by itself (None) leads somewhere, for all we know."""
    roots = [number for number, head in enumerate(heads, 1) if head == 0]
    if not roots and None not in heads:
        found.error(words[0].at, "root", "expected a word with head 0, the root, got none in the sentence")
    if format.single_root and len(roots) > 1:
        message = f"expected one word with head 0, got {len(roots)}: {_listed(roots)}"
        found.error(words[roots[1] - 1].at, "root", message)
    for cycle in cycles(heads):
        start = cycle.index(min(cycle))
        way = [*cycle[start:], *cycle[:start], min(cycle)]
        found.error(words[min(cycle) - 1].at, "cycle", f"the heads form a cycle: {_listed(way, ' -> ')}")


def cycles(heads: Sequence[int | None]) -> Iterator[list[int]]:
    """Each circle once, as the words along it."""
    seen = [0] * (len(heads) + 1)  # the walk on which a word was first met
    for start in range(1, len(heads) + 1):
        word: int | None = start
        walk = []
        while word and not seen[word]:
            seen[word] = start
            walk.append(word)
            word = heads[word - 1]
        if word and seen[word] == start:
            yield walk[walk.index(word) :]


def _listed(numbers: list[int], separator: str = ", ") -> str:
    shown = numbers if len(numbers) <= 10 else numbers[:9]
    return separator.join(map(str, shown)) + ("" if len(numbers) <= 10 else f"{separator}...")


#: a problem takes many times the memory of a short line: the most problems of a file, and the bytes for one where it is large
_MANY, _BYTES = 1 << 16, 20


def validate_treebank(source: Source, format: TreebankFormat | None = None, *, encoding: str = "utf-8") -> list[Problem]:
    """All problems of a treebank file, by line; an empty list if there are none.

    Errors, for which `read_treebank` refuses a sentence: too few or too many columns, an empty column, a space where none
    may be, NUL, a lone carriage return, bytes that are not UTF-8; ids that do not count from 1, ranges that overlap, run
    backwards, are at the wrong place or go beyond the sentence, ids of empty nodes out of order; heads that are not numbers,
    out of range, the word itself, or there for some words only; a circle, no root, or several where the format has one. A
    file without a sentence is an error, too.

    Warnings: comments inside or without a sentence, empty lines too many or missing at the end, a byte order mark, mixed
    line ends, invisible characters, odd spaces inside a column, a range of one word, multiword tokens and empty
    nodes with a head, and a relation root that is not where the head is 0 (in formats with one root).

    The file is read line by line and is never in memory as a whole. Raises DataError where it cannot be opened, where its
    lines show no format, or where it has more than 65,536 problems and one for every 20 bytes.

    >>> import io
    >>> [str(problem) for problem in validate_treebank(io.BytesIO(b"1\\tno\\t_\\t_\\t_\\t_\\t1\\t_\\t_\\t_\\n\\n"))]
    ['<stream>:1: word 1 is its own head']
    """
    with open_treebank(source, encoding) as opened:
        found = _Found(opened.name, 1, 0)
        _check_file(opened, format or opened.format(), found)
    found.problems.sort(key=lambda problem: problem.line)
    return found.problems


def _check_file(source: TreebankSource, format: TreebankFormat, found: _Found) -> None:
    """Read to the end."""
    block: list[str] = []  # the run of lines that is being read
    end, mixed, number, size, row, sentences = b"", False, 0, 0, b"", 0

    def close(after: int) -> bool:
        """The run of lines ends before the line number `after`; whether it is a sentence."""
        first = after - len(block)
        if comments_only := format.comments and all(line.startswith("#") for line in block):
            found.warn(first - 1, "comment", "comments without a sentence")
        found.problems += check_sentence(block, first, 0 if comments_only else sentences + 1, format, source.name)
        block.clear()
        return not comments_only

    if source.bom:
        found.warn(0, "bom", "the file begins with a byte order mark")
    for number, row in enumerate(source.lines(), 1):
        size += len(row)
        if len(found.problems) > max(_MANY, size // _BYTES):
            first = min(found.problems, key=lambda problem: problem.line)
            raise DataError(
                f"{source.name}: expected a treebank, got {len(found.problems):,} problems before line {number:,}; the first: "
                f"line {first.line}: {first.message}"
            )
        ending = b"\r\n" if row.endswith(b"\r\n") else b"\n" if row.endswith(b"\n") else end
        if end and ending != end and not mixed:
            mixed = True
            was = "CR LF" if ending == b"\n" else "LF"
            found.warn(number - 1, "line-ends", f"a different line ending: before it was {was}")
        end = end or ending
        text = row.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape")
        if text:
            block.append(text)
        elif block:
            sentences += close(number)
        else:
            found.warn(number - 1, "blank", "an extra empty line: exactly one follows each sentence")
    if block:
        sentences += close(number + 1)
        missing = "an empty line after the last sentence" if row.endswith(b"\n") else "a line end and an empty line"
        found.warn(number - 1, "end", f"expected {missing}, got the end of the file")
    if not sentences:
        got = "only comments or blank lines" if number else "an empty file"
        found.error(-1, "empty", f"expected at least one sentence, got {got}")
