"""The format of a data file of sequences or trees, found by its first lines."""

import codecs
import io
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from structpred.errors import DataError
from structpred.io import ocr
from structpred.io.columns import BOUNDARY, COLUMN_FORMATS, ROW_FORMATS, field_count
from structpred.io.guesses import looks_like, looks_like_treebank
from structpred.io.jsonl import each_object
from structpred.io.opening import open_bytes
from structpred.io.text import PathLike, quoted, source_name, split_lines
from structpred.io.treebanks.formats import TREEBANK_FORMATS, treebank_format_of

_LOOKED_AT, _HEAD = 500, 1 << 16
_ATTRIBUTE = re.compile(r"[^\s=:]+[=:].*")
FORMATS = f"of sequences {', '.join(ROW_FORMATS)}, crfsuite, ocr; of trees {', '.join(TREEBANK_FORMATS)} (docs/formats.md)"


class Detected(NamedTuple):
    """format: its name. seen: what showed it. width: the columns of a column file, else None."""

    format: str
    seen: str
    width: int | None = None

    def labels(self, lines: Iterable[str], column: int = -1) -> Counter[str]:
        """How often each label occurs in lines: of column files, where it is in `column`, JSON objects, CRFsuite's text."""
        if self.format == "jsonl":
            found = (rows for _, rows in each_object(lines) if not isinstance(rows, DataError))
            return Counter(label for objects in found for _, *labels in objects for label in labels)
        at, width = (column, self.width) if self.width else (0, 1)
        rows = (line.split() if self.width else line.split("\t", 1)[:1] for line in lines if line.strip())
        return Counter(row[at] for row in rows if len(row) == width and row[0] != BOUNDARY and -width <= at < width)


def first_lines(path: PathLike, encoding: str = "utf-8") -> list[str]:
    """The lines in the first 64 KiB of a file, unpacked; standard input can be read again. Raises DataError where it cannot be
    read; for text that is no text the reader of the whole file does."""
    if path == "-" and hasattr(sys.stdin, "buffer"):
        sys.stdin = io.TextIOWrapper(io.BytesIO(sys.stdin.buffer.read()))
    with open_bytes(path, source_name(path), encoding) as stream:
        head = stream.read(_HEAD).removeprefix(codecs.BOM_UTF8)
    if path == "-":
        sys.stdin.seek(0)
    whole = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1] or head
    return list(split_lines(whole.decode("utf-8", "replace")))


def detect_format(lines: Iterable[str], name: str) -> Detected:
    """The format that the first lines show. name: for messages.

    Raises DataError, with what was seen and the formats that there are, where they show none or more than one.

    >>> detect_format(["-DOCSTART- -X- -X- O", "", "Oslo NNP B-NP B-LOC"], "train.txt")
    Detected(format='conll2003', seen='4 columns separated by spaces, -DOCSTART- lines', width=4)
    >>> detect_format(["B-LOC\\tw=Oslo", "O\\tw=is\\tbias"], "train.txt").format
    'crfsuite'
    """
    looked_at = [line[:10_000] for line in itertools.islice((line for line in lines if line.strip()), _LOOKED_AT)]
    filled = [line for line in looked_at if not line.startswith(BOUNDARY)]
    if not filled:
        raise DataError(f"{name}: expected at least one sentence, got an empty file, or blank lines alone")
    if ocr.line_problem(filled[0]) is None:
        return Detected("ocr", "letters of 128 pixels")
    if all(line.lstrip().startswith("{") for line in filled):
        return Detected("jsonl", "JSON objects", 2)
    if looks_like_treebank(filled):
        return Detected(treebank_format_of(looked_at, name).name, "numbered words, columns separated by tabs")
    if all("\t" in line for line in filled) and (found := _attributes([line.split("\t") for line in filled], name)):
        return found
    widths = Counter(map(field_count, filled))
    width, n = widths.most_common(1)[0]
    if looks_like(filled) or 2 * n <= len(filled):
        counts = ", ".join(f"{n} with {width}" for width, n in sorted(widths.items())[:4])
        raise _unknown(name, f"lines by their number of columns: {counts}{', ...' if len(widths) > 4 else ''}", filled)
    by_width = {known: kind for kind, known in COLUMN_FORMATS.items()}
    between = "tabs" if all("\t" in line for line in filled) else "spaces"
    seen = f"{width} column{'s' * (width > 1)} separated by {between}{f', {BOUNDARY} lines' * (len(filled) < len(looked_at))}"
    return Detected(by_width.get(width, "columns"), seen, width)


def _attributes(rows: Sequence[list[str]], name: str) -> Detected | None:
    """CRFsuite's text: behind the label mostly attributes with values. None: not that. DataError where it may be columns, too."""
    named = [sum(1 for field in row[1:] if _ATTRIBUTE.fullmatch(field)) for row in rows]
    if 2 * sum(named) <= sum(len(row) - 1 for row in rows):
        return None
    if {len(row) for row in rows} == {2}:
        lines = ["\t".join(row) for row in rows]
        raise _unknown(name, "a word and its features as the label (columns), or a label and one attribute (crfsuite)", lines)
    return Detected("crfsuite", "labels, then attributes with values, separated by tabs")


def _unknown(name: str, seen: str, lines: Sequence[str]) -> DataError:
    return DataError(
        f"{name}: the format is unclear from the lines: {seen}; the first: {quoted(lines[0])}{looks_like(lines)}. "
        f"Name it with --format: {FORMATS}"
    )
