"""Text in and out: plain or gzip files, standard input and output, UTF-8, and errors that name the file and the line."""

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from structpred.errors import DataError, ParameterError

PathLike = str | os.PathLike[str]

_GZIP_MAGIC = b"\x1f\x8b"


def source_name(path: PathLike) -> str:
    """The name of a source in messages: the path as given, or ``<stdin>`` for ``-``.

    >>> source_name("-"), source_name("train.conll")
    ('<stdin>', 'train.conll')
    """
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"expected a path (str or pathlib.Path) or '-', got {type(path).__name__}")
    name = os.fspath(path)
    if not isinstance(name, str):
        raise ParameterError(f"expected a path of type str, got {type(name).__name__}")
    return "<stdin>" if name == "-" else name


def read_text(path: PathLike) -> str:
    """The whole text of a UTF-8 file; ``-`` is standard input, gzip is unpacked, a byte order mark is removed.

    Line ends are left as they are. Raises DataError, naming the file and where possible the line: a missing or
    unreadable file, a folder, damaged gzip data, bytes that are not UTF-8, NUL bytes.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.txt"
    ...     _ = path.write_bytes(b"a b\\n")
    ...     read_text(path)
    'a b\\n'
    """
    name = source_name(path)
    data = read_bytes(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        hint = "; it looks like UTF-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else ""
        raise DataError(
            f"{name}:{line}: expected UTF-8 text, got the byte 0x{data[error.start]:02x} ({error.reason}){hint}"
        ) from None
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        raise DataError(f"{name}:{line}: expected text, got a NUL byte; the file is binary, damaged, or UTF-16")
    return text


def read_bytes(path: PathLike) -> bytes:
    """The bytes of a text file, as `read_text` decodes them: gzip unpacked, a UTF-8 byte order mark removed.

    Raises DataError, naming the file: missing, unreadable, a folder, damaged gzip data.
    """
    name = source_name(path)
    return _unpacked(_raw_bytes(path, name), name).removeprefix(codecs.BOM_UTF8)


def split_lines(text: str) -> list[str]:
    """The lines of a text: split at ``\\n`` only, less one trailing ``\\r`` each; a last ``\\n`` opens no further line.

    Other characters that Unicode calls line breaks belong to the line (they do occur inside word forms).

    >>> split_lines("a\\r\\nb\\u2028c\\n")
    ['a', 'b\\u2028c']
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    if "\r" in text:
        return [line.removesuffix("\r") for line in lines]
    return lines


def quoted(line: str, limit: int = 60) -> str:
    """A line as a message shows it: quoted, cut to ``limit`` characters.

    >>> quoted("word  NN"), quoted("x" * 99, limit=3)
    ("'word  NN'", "'xxx...'")
    """
    return repr(line if len(line) <= limit else line[:limit] + "...")


def _raw_bytes(path: PathLike, name: str) -> bytes:
    if name == "<stdin>":
        stream = sys.stdin
        return stream.buffer.read() if hasattr(stream, "buffer") else stream.read().encode()
    try:
        with open(path, "rb") as file:
            return file.read()
    except IsADirectoryError:
        raise DataError(f"{name}: expected a file, got a folder") from None
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{name}: cannot be read: {error}") from None


def _unpacked(data: bytes, name: str) -> bytes:
    if not data.startswith(_GZIP_MAGIC):
        if name.endswith(".gz") and data:
            raise DataError(f"{name}: expected gzip data because of the name, got something else; was it unpacked already?")
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{name}: damaged or truncated gzip data: {error}") from None


@contextmanager
def open_output(path: PathLike) -> Iterator[TextIO]:
    """A text stream to write to, UTF-8 with ``\\n`` line ends; ``-`` is standard output, a name ending in ``.gz`` is packed.

    Raises DataError where the file cannot be made or written; a closed pipe behind standard output stays BrokenPipeError.

    >>> with open_output("-") as out:
    ...     _ = out.write("one line\\n")
    one line
    """
    name = source_name(path)
    if name == "<stdin>":
        with _standard_output() as stream:
            yield stream
        return
    try:
        # mtime=0: the same predictions give the same bytes
        raw = gzip.GzipFile(path, "wb", mtime=0) if name.endswith(".gz") else io.FileIO(path, "w")
    except (OSError, ValueError) as error:
        raise DataError(f"{name}: cannot be written: {error}") from None
    try:
        with io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", newline="\n") as stream:
            yield stream
    except OSError as error:
        if error.filename is not None:  # of another file, inside the caller's block
            raise
        raise DataError(f"{name}: writing failed: {error}") from None
    except UnicodeEncodeError as error:
        raise DataError(f"{name}: expected text that UTF-8 can hold, got {error.object[error.start]!r}") from None


@contextmanager
def _standard_output() -> Iterator[TextIO]:
    """Standard output as UTF-8, whatever the locale says; left open."""
    sys.stdout.flush()
    if not hasattr(sys.stdout, "buffer"):
        yield sys.stdout
        return
    stream = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n")
    try:
        yield stream
        stream.flush()
    finally:
        stream.detach()
