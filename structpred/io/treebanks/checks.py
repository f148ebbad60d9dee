"""A whole treebank file looked at to its end: every problem at once, each with its line."""

from structpred.errors import DataError
from structpred.io.treebanks.formats import TreebankFormat
from structpred.io.treebanks.rules import ERROR, WARNING, Problem, check_sentence
from structpred.io.treebanks.source import Source, TreebankSource, open_treebank

#: a problem takes many times the memory of a short line: a file may have so many, or one for so many bytes
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
        checker = _Checker(opened, format or opened.format())
        checker.run()
    checker.problems.sort(key=lambda problem: problem.line)
    return checker.problems


class _Checker:
    """The run of lines that is being read, and what was found so far."""

    def __init__(self, source: TreebankSource, format: TreebankFormat) -> None:
        self.source, self.format = source, format
        self.problems: list[Problem] = []
        self.block: list[str] = []
        self.sentences = 0
        if source.bom:
            self._warn(1, "bom", "the file begins with a byte order mark")

    def run(self) -> None:
        """Read to the end."""
        end, mixed, number, size, row = b"", False, 0, 0, b""
        blank = True  # the line before
        for number, row in enumerate(self.source.lines(), 1):
            size += len(row)
            if len(self.problems) > max(_MANY, size // _BYTES):
                first = min(self.problems, key=lambda problem: problem.line)
                raise DataError(
                    f"{self.source.name}: expected a treebank, got {len(self.problems):,} problems before line {number:,}; the "
                    f"first: line {first.line}: {first.message}"
                )
            found = b"\r\n" if row.endswith(b"\r\n") else b"\n" if row.endswith(b"\n") else end
            if end and found != end and not mixed:
                mixed = True
                was = "CR LF" if found == b"\n" else "LF"
                self._warn(number, "line-ends", f"a different line ending: before it was {was}")
            end = end or found
            text = row.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape")
            if text:
                self.block.append(text)
            elif blank:
                self._warn(number, "blank", "an extra empty line: exactly one follows each sentence")
            else:
                self._close(number)
            blank = not text
        if not blank:
            self._close(number + 1)
            missing = "an empty line after the last sentence" if row.endswith(b"\n") else "a line end and an empty line"
            self._warn(number, "end", f"expected {missing}, got the end of the file")
        if not self.sentences:
            got = "only comments or blank lines" if number else "an empty file"
            message = f"expected at least one sentence, got {got}"
            self.problems.append(Problem(self.source.name, 0, 0, ERROR, "empty", message))

    def _close(self, after: int) -> None:
        """The run of lines ends before the line number `after`."""
        first = after - len(self.block)
        comments_only = self.format.comments and all(line.startswith("#") for line in self.block)
        if comments_only:
            self._warn(first, "comment", "comments without a sentence")
        else:
            self.sentences += 1
        number = 0 if comments_only else self.sentences
        self.problems += check_sentence(self.block, first, number, self.format, self.source.name)
        self.block = []

    def _warn(self, line: int, kind: str, message: str) -> None:
        self.problems.append(Problem(self.source.name, line, 0, WARNING, kind, message))
