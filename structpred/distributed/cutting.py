"""Where a file is cut into shards: before the first sentence, or example, that begins behind each n-th of its bytes."""

import os
from collections.abc import Callable
from functools import partial
from typing import BinaryIO

from structpred.distributed.reading import Reading
from structpred.errors import DataError, ParameterError
from structpred.io.multilabel.by_format import Source
from structpred.io.text import LONGEST_LINE, HeldBytes, PathLike, read_range, read_text, source_name

_PIECE = 1 << 16
_SPACE = b" \t\r\n"


def size_of(path: PathLike) -> int:
    """The bytes of a file. Raises DataError where there is none, or it is empty."""
    name = source_name(path)
    if name == "<stdin>":
        raise ParameterError("shards: expected a file, got standard input, which cannot be read where the shards are")
    if not os.path.isfile(path):
        raise DataError(f"{name}: {'expected a file, got a folder' if os.path.isdir(path) else 'there is no such file'}")
    if not (size := os.path.getsize(path)):
        raise DataError(f"{name}: expected at least one sentence, got an empty file; leave it out")
    return size


def cuts_of(path: PathLike, n: int, reading: Reading) -> tuple[list[int], int]:
    """n + 1 ascending places, from 0 to the size of the file, at each of which a sentence or example begins, except for the last.

    Also the bytes of a header, which are a part of the first piece.

    Raises ParameterError where a shard would be empty, and for files that cannot be cut; DataError for a table without @data.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ParameterError(f"n: expected a number of shards >= 1, got {n!r}")
    size, name = size_of(path), source_name(path)
    if n == 1:
        return [0, size], 0
    reading.check_cutting()
    with open(path, "rb") as file:
        if _is_packed(file):
            raise ParameterError(
                f"{name}: a gzip file cannot be cut into byte ranges: unpack it, or give one file a shard to Shards.of_files"
            )
        following, first = _follower(reading), _first(file, reading, size)
        bounds = [0]
        for k in range(1, n + 1):
            bounds.append(following(file, first + k * (size - first) // n, size) if k < n else size)
            if bounds[-1] <= max(bounds[-2], first) or (k == n and _is_blank(file, bounds[-2])):
                hint = ", or are there no blank lines between the sentences?" if reading.table is None else ""
                raise ParameterError(
                    f"{name}: shard {k - 1} of {n} would be empty: cut at {'ends of lines' if not hint else 'blank lines'}, "
                    f"{size:,} bytes give fewer pieces; ask for fewer shards{hint}"
                )
    return bounds, first


def read_head(path: PathLike, encoding: str = "utf-8") -> str:
    """The text of the first sentences of a file, as `read_text` gives it: what is wrong with all lines shows there."""
    size, name = size_of(path), source_name(path)
    with open(path, "rb") as file:
        stop = None if _is_packed(file) or size <= _PIECE else _next_sentence(file, _PIECE, size)
    return read_text(HeldBytes(read_range(path, 0, stop), name), encoding)


def held_examples(path: PathLike, format: str) -> HeldBytes:
    """The same of a file with sets of labels, as bytes: its header and the first examples."""
    size, reading = size_of(path), Reading(format, table=Source(format))
    with open(path, "rb") as file:
        whole = format == "npz" or _is_packed(file)
        stop = None if whole else _follower(reading)(file, _first(file, reading, size) + _PIECE, size)
    return HeldBytes(read_range(path, 0, stop), source_name(path))


def _is_packed(file: BinaryIO) -> bool:
    return file.read(2) == b"\x1f\x8b"


def _first(file: BinaryIO, reading: Reading, size: int) -> int:
    """Where the first example begins, behind a header; 0 of sentences, which have none."""
    if reading.table is None:
        return 0
    file.seek(0)
    if reading.format != "libsvm":
        while (line := file.readline(LONGEST_LINE)).lower().split(None, 1)[:1] != [b"@data"]:
            if not line:
                raise DataError(f"{file.name}: expected @data in front of the examples, got none; is it an ARFF file?")
    return _follower(reading)(file, file.tell(), size)


def _follower(reading: Reading) -> Callable[[BinaryIO, int, int], int]:
    """What finds the next sentence, or example, in a file of that size."""
    if reading.table is None:
        return _next_sentence
    return partial(_next_example, comment=b"#" if reading.format == "libsvm" else b"%")


def _next_example(file: BinaryIO, at: int, size: int, comment: bytes) -> int:
    """The first place, `at` or later, where a line with an example begins; the size where there is none."""
    file.seek(max(at - 1, 0))
    if at:
        file.readline(LONGEST_LINE)  # the rest of the line that ends there or later
    while line := file.readline(LONGEST_LINE):
        if (text := line.strip()) and not text.startswith(comment):
            return file.tell() - len(line)
    return size


def _next_sentence(file: BinaryIO, at: int, size: int) -> int:
    """The first place, `at` or later, where a sentence begins behind a blank line; the size where there is none."""
    back = max(at - _PIECE, 0)
    file.seek(back)
    before = file.read(at - back)
    blank = before.endswith(b"\n") and not before[before.rfind(b"\n", 0, -1) + 1 :].strip(_SPACE)
    if not before.endswith(b"\n"):
        file.readline()
    while line := file.readline(_PIECE):
        if blank and line.strip(_SPACE):
            return file.tell() - len(line)
        blank = not line.strip(_SPACE)
    return size


def _is_blank(file: BinaryIO, start: int) -> bool:
    file.seek(start)
    while line := file.readline(_PIECE):
        if line.strip(_SPACE):
            return False
    return True
