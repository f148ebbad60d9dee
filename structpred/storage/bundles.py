"""Model and checkpoint files: one file, no pickle, every byte covered by a checksum; reading one never runs code."""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from structpred.errors import CheckpointError, DataError, FileFormatError, MissingModelError, ModelFileError
from structpred.storage import archive, strict_json
from structpred.storage.atomic import remove_leftovers, write_atomic

__all__ = ["Bundle", "looks_like_bundle", "read_bundle", "remove_leftovers", "write_atomic", "write_bundle"]

Entry = TypeVar("Entry")

_ENVELOPE = ("format", "format_version", "kind", "structpred", "header")
_MAX_MODEL_JSON = 32 << 20
_ALLOWANCE = 100 << 20
_FOREIGN = {
    b"\x80": "it looks like a pickle, which structpred never loads, because loading one can run any code",
    b"\x1f\x8b": "it is gzip-compressed; unpack it first",
    b"x\x9c": "it looks like a compressed pickle (joblib), which structpred never loads, because loading one can run any code",
    b"lCRF": "it is a CRFsuite model; `structpred import` makes one of ours of it",
    b"version https://git-lfs": "it is a Git LFS pointer, not the file itself; run `git lfs pull`",
}


@dataclass(eq=False)
class Bundle:
    """What one file holds.

    header: plain JSON values (dicts with string keys, lists, strings, booleans, integers, finite floats, None).
    arrays: NumPy arrays of booleans, integers or floats (16 to 64 bits), of any shape.
    texts: long lists of strings, such as feature names.
    format_version: the version of the contents, set by `read_bundle`.
    """

    header: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)
    format_version: int = 1

    def add(self, name: str, part: "Bundle") -> None:
        """Take in the arrays and texts of a part, under its name; where its header goes the owner decides."""
        self.arrays |= {f"{name}.{key}": array for key, array in part.arrays.items()}
        self.texts |= {f"{name}.{key}": texts for key, texts in part.texts.items()}

    def part(self, name: str, header: dict[str, Any]) -> "Bundle":
        """The inverse of `add`, with this header."""
        return Bundle(header, under(f"{name}.", self.arrays), under(f"{name}.", self.texts))


def under(prefix: str, entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The arrays or texts whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): entry for name, entry in entries.items() if name.startswith(prefix)}


def write_bundle(
    path: str | os.PathLike[str], bundle: Bundle, *, kind: str, format_version: int = 1, previous: Path | None = None
) -> None:
    """Write a bundle as one file, atomically: the old file stays if anything fails.

    kind: what the file is, such as "model" or "checkpoint"; `read_bundle` insists on it. format_version: raise it when
    the meaning of the contents changes. previous: where the old file is moved to. The same bundle always gives the same bytes.
    Arrays are stored in C order.

    Raises DataError for contents that cannot be stored (the message names the place), StructpredError for a full disk.

    >>> import tempfile, pathlib, numpy as np
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "m.spz"
    >>> write_bundle(file, Bundle({"C": 1.0}, {"w": np.zeros(3)}, {"labels": ["B", "I"]}), kind="model")
    >>> read_bundle(file, kind="model").arrays["w"].tolist()
    [0.0, 0.0, 0.0]
    """
    import structpred  # not at the top: the package may import this module first

    try:
        values = ("structpred", format_version, kind, structpred.__version__, bundle.header)
        head = strict_json.dump(dict(zip(_ENVELOPE, values, strict=True)), "model.json")
        if (n := len(head)) > _MAX_MODEL_JSON:
            raise ValueError(f"the header takes {n} bytes, at most {_MAX_MODEL_JSON} are stored; long lists belong in texts")
        contents: list[list[archive.Piece]] = [[head], archive.pack(bundle.arrays), [strict_json.dump_lists(bundle.texts)]]
    except ValueError as error:
        raise DataError(f"{os.fspath(path)}: cannot store this {kind}: {error}") from error
    write_atomic(path, lambda file: archive.write(file, contents), previous=previous)


def read_bundle(path: str | os.PathLike[str], *, kind: str, format_version: int = 1, memory_limit: int | None = None) -> Bundle:
    """Read what `write_bundle` wrote, trusting nothing: any change of any bit is refused, and no code is ever run.

    kind: what the file must be. format_version: the newest version that the caller understands. memory_limit: the most
    memory to use, in bytes; by default twice the file and 100 MB (only a file of very many short names needs more).
    The arrays are writable and share one block of memory.

    Raises ModelFileError (CheckpointError for kind="checkpoint") with the likely cause.
    """
    failure: type[FileFormatError] = CheckpointError if kind == "checkpoint" else ModelFileError
    name = os.fspath(path)
    try:
        with _open(path) as file:
            size = os.fstat(file.fileno()).st_size
            limit = 2 * size + _ALLOWANCE if memory_limit is None else memory_limit
            try:
                raw = archive.read(file, size)
            except ValueError as error:
                raise failure(f"{name}: {_diagnosis(file, size, kind, format_version)} ({error})") from error
        return _parse(raw, kind, format_version, limit - size)
    except FileFormatError:
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError) and failure is ModelFileError:
            failure = MissingModelError
        raise failure(f"{name}: cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise failure(f"{name}: not enough memory to read this {kind}") from error
    except ValueError as error:
        raise failure(f"{name}: not a valid {kind} file: {error}") from error


def looks_like_bundle(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as those that `write_bundle` writes; False where it cannot be read."""
    try:
        with _open(path) as file:
            start = file.read(64)
    except OSError:
        return False
    return start.startswith(b"PK") and start[30:].startswith(archive.CONTENT[0].encode())  # behind 30 bytes comes the first name


def _open(path: str | os.PathLike[str]) -> BinaryIO:
    # O_NONBLOCK: a named pipe must not hang the reader; it is refused just below.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "it is not a regular file")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _parse(raw: list[npt.NDArray[np.uint8]], kind: str, format_version: int, memory: int) -> Bundle:
    """Make the bundle of entries whose checksums are known to be right; raises ValueError."""
    model, weights, vocab = raw
    if len(model) > _MAX_MODEL_JSON:
        raise ValueError(f"its header has {len(model)} bytes, at most {_MAX_MODEL_JSON} are read")
    version, header = _open_envelope(strict_json.load(model.tobytes()), kind, format_version)
    try:
        texts = strict_json.load_lists(vocab.tobytes(), memory)
    except ValueError as error:
        raise ValueError(f"vocab.json: {error}") from error
    try:
        arrays = archive.unpack(weights)
    except ValueError as error:
        raise ValueError(f"weights.safetensors: {error}") from error
    return Bundle(header, arrays, texts, version)


def _open_envelope(envelope: Any, kind: str, format_version: int) -> tuple[int, dict[str, Any]]:
    if type(envelope) is not dict or envelope.get("format") != "structpred":
        raise ValueError("model.json does not say that it is structpred's")
    version = envelope.get("format_version")
    if type(version) is not int or version < 1:
        raise ValueError(f"its format version is {version!r}, expected a positive integer")
    if version > format_version:
        raise ValueError(_newer(version, format_version, envelope.get("structpred")))
    if envelope.get("kind") != kind:
        raise ValueError(f"it is a {str(envelope.get('kind'))[:40]!r} file, expected a {kind!r} file")
    if tuple(envelope) != _ENVELOPE or type(envelope["header"]) is not dict or type(envelope["structpred"]) is not str:
        raise ValueError("model.json lacks a part or has one too many")
    return version, envelope["header"]


def _newer(version: int, known: int, writer: Any = None) -> str:
    by = f" (written by structpred {writer[:40]})" if isinstance(writer, str) else ""
    return f"it has format version {version}{by}, this library reads up to {known}; update structpred"


def _diagnosis(file: BinaryIO, size: int, kind: str, format_version: int) -> str:
    """The likeliest reason why this is not one of our files; looks at the first bytes only, and parses nothing."""
    file.seek(0)
    start = file.read(4096)
    if not size:
        return f"not a {kind} file: it is empty (was a copy interrupted?)"
    for magic, reason in _FOREIGN.items():
        if start.startswith(magic):
            return f"not a {kind} file: {reason}"
    if not start.startswith(b"PK"):
        return f"not a {kind} file, or its beginning is damaged"
    version = re.search(rb'"format_version": ?([0-9]{1,9})\b', start)
    if version and int(version[1]) > format_version:
        return f"cannot be used: {_newer(int(version[1]), format_version)}"
    return f"this {kind} file was truncated, damaged, or packed again by another program; copy or save it again"
