"""Where a file is cut into shards: behind the blank line that follows each n-th of its bytes."""

import os
from typing import BinaryIO

from structpred.distributed.reading import Reading
from structpred.errors import DataError, ParameterError
from structpred.io.ranges import read_range
from structpred.io.text import PathLike, decoded, plain_bytes, source_name

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


def cuts_of(path: PathLike, n: int, reading: Reading) -> list[int]:
    """n + 1 ascending places, from 0 to the size of the file, at each of which a sentence begins, except for the last.

    Raises ParameterError where a shard would be empty, and for files that cannot be cut.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ParameterError(f"n: expected a number of shards >= 1, got {n!r}")
    size, name = size_of(path), source_name(path)
    if n == 1:
        return [0, size]
    reading.check_cutting()
    with open(path, "rb") as file:
        if file.read(2) == b"\x1f\x8b":
            raise ParameterError(
                f"{name}: a gzip file cannot be cut into byte ranges: unpack it, or give one file a shard to Shards.of_files"
            )
        bounds = [0]
        for k in range(1, n + 1):
            bounds.append(_next_sentence(file, k * size // n, size) if k < n else size)
            if bounds[-1] <= bounds[-2] or (k == n and _is_blank(file, bounds[-2])):
                raise ParameterError(
                    f"{name}: shard {k - 1} of {n} would be empty: cut at blank lines, {size:,} bytes give fewer pieces; "
                    "ask for fewer shards, or are there no blank lines between the sentences?"
                )
    return bounds


def read_head(path: PathLike, encoding: str = "utf-8") -> str:
    """The text of the first sentences of a file, as `read_text` gives it: what is wrong with all lines shows there."""
    size, name = size_of(path), source_name(path)
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        stop = None if packed or size <= _PIECE else _next_sentence(file, _PIECE, size)
    return decoded(plain_bytes(read_range(path, 0, stop), name, encoding), name)


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
