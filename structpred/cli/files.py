"""Files that commands read and write: checked before any work, written atomically, packed where the name ends in .gz."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from structpred.errors import DataError, StorageError
from structpred.storage.atomic import Produce, packing, write_atomic


def check_output(path: str, option: str, inputs: Sequence[str | None] = ()) -> None:
    """Raise DataError now where writing would fail later: no such folder, no permission, a folder, one of the inputs."""
    from structpred.runtime.compiled import writable

    if path == "-":
        return
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise DataError(f"{option} {path}: expected the name of a file, but this is a folder")
    if not os.path.isdir(folder):
        raise DataError(f"{option} {path}: the folder {os.path.dirname(path) or folder} does not exist; make it first")
    if not writable(Path(folder)):
        raise DataError(f"{option} {path}: nothing can be written in the folder {folder}: permission denied, or the disk is full")
    for name in inputs:
        if name not in (None, "-") and os.path.realpath(str(name)) == target:
            raise DataError(f"{option} {path}: this is one of the files to be read; give another name")


def check_picture(path: str | None, option: str, inputs: Sequence[str | None]) -> None:
    """The same for a picture, if one is wanted; ParameterError for a name that is not one of a picture."""
    if path is not None:
        from structpred.report.figures import check_path

        check_path(path)
        check_output(path, option, inputs)


def write_output(path: str, text: str) -> None:
    """Write a result: immediately to standard output (``-``), else atomically, packed if the name ends in .gz."""
    write_stream(path, lambda stream: stream.write(text.encode()))


def json_lines(entries: Iterable[Mapping[str, Any]]) -> str:
    """An object a line."""
    return "".join(f"{json.dumps(entry)}\n" for entry in entries)


def write_stream(path: str, produce: Produce) -> None:
    """Let `produce` write its bytes: immediately to standard output (``-``), else atomically, packed if the name ends in .gz."""
    if path != "-":
        write_atomic(path, packing(produce) if path.endswith(".gz") else produce)
        return
    if sys.stdout is None:
        raise StorageError("standard output is closed; give -o FILE")
    sys.stdout.flush()  # what was printed as text comes first
    produce(sys.stdout.buffer)
    sys.stdout.buffer.flush()
