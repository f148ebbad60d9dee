"""A range of the bytes of a file, read alone, and errors that say where in the file a line of it is."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from structpred.errors import DataError, ParameterError, StructpredError
from structpred.io.opening import PathLike, opened_file
from structpred.io.text import source_name


def read_range(path: PathLike, start: int = 0, stop: int | None = None) -> bytes:
    """The bytes start..stop of a file as they are; stop None: to its end.

    Raises DataError, naming the file: missing, unreadable, a folder, shorter than `stop`. ParameterError for numbers that are no
    range, and for standard input.
    """
    name = source_name(path)
    if name == "<stdin>":
        raise ParameterError("start, stop: standard input has no byte ranges")
    if start < 0 or (stop is not None and stop < start):
        raise ParameterError(f"start, stop: expected 0 <= start <= stop, got {start:,} and {stop}")
    with opened_file(path, name) as file:
        size = os.fstat(file.fileno()).st_size
        if max(start, stop or 0) > size:
            raise DataError(f"{name}: expected at least {max(start, stop or 0):,} bytes, got {size:,}; was the file changed?")
        file.seek(start)
        return file.read(-1 if stop is None else stop - start)


@contextmanager
def counted_from(name: str, start: int, head: int = 0) -> Iterator[None]:
    """Line numbers of errors are counted from byte `start` of the file, and say so. head: lines of a header in front of these.

    >>> with counted_from("train.txt", 1048576):
    ...     raise DataError("train.txt:17: expected 3 columns")
    Traceback (most recent call last):
    structpred.errors.DataError: train.txt: byte 1,048,576 + line 17: expected 3 columns
    """
    try:
        yield
    except StructpredError as error:
        found = re.compile(re.escape(name) + r":(\d+)(?=: )").search(str(error)) if start else None
        if found is None or int(found[1]) <= head:
            raise
        message, line = str(error), int(found[1]) - head
        placed = f"{message[: found.start()]}{name}: byte {start:,} + line {line}{message[found.end() :]}"
        raise type(error)(placed) from error
