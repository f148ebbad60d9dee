"""Text in and out: plain or gzip files, standard input and output, UTF-8, and errors that name the file and the line."""

import codecs
import gzip
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from structpred.errors import DataError, ParameterError
from structpred.io.lines import numbered_pieces, quoted, split_lines
from structpred.io.opening import PathLike, Source, open_bytes

__all__ = [
    "PathLike",
    "check_lines",
    "decoded",
    "numbered_pieces",
    "open_output",
    "plain_bytes",
    "quoted",
    "read_bytes",
    "read_text",
    "source_name",
    "split_lines",
    "stream_name",
]

#: a longer line is not a line of any format that is read here, and would take much memory to be taken apart
LONGEST_LINE = 16 << 20
#: what to do about bytes that are not UTF-8
ENCODING_HINT = "name the encoding if it is another one: --encoding latin-1, or encoding='latin-1' in Python"


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


def stream_name(source: Source) -> str:
    """The name of a source in messages, also of an open file: its own, if it has one.

    Raises ParameterError for what is neither a path nor an open file.
    """
    if isinstance(source, str | os.PathLike):
        return source_name(source)
    if not hasattr(source, "read"):
        raise ParameterError(f"expected a path, '-' or an open binary file, got {type(source).__name__}")
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def read_text(path: Source, encoding: str = "utf-8") -> str:
    """The whole text of a file; ``-`` is standard input, gzip is unpacked, a byte order mark is removed.

    path: or an open binary file. Line ends are left as they are.

    Raises DataError, naming the file and where possible the line: a missing or unreadable file,
    a folder, damaged gzip data or such that unpack to too much, bytes that are not in the encoding, NUL bytes, a line of more
    than 16 MiB. Raises ParameterError for an encoding that Python does not know.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.txt"
    ...     _ = path.write_bytes(b"caf\\xe9 NN\\n")
    ...     read_text(path, "latin-1")
    'café NN\\n'
    """
    return decoded(read_bytes(path, encoding), stream_name(path))


def decoded(data: bytes, name: str) -> str:
    """The text of bytes that were read already; raises as `read_text` does."""
    check_lines(data, name)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"got the byte 0x{data[error.start]:02x} ({error.reason})"
        hint = "it looks like UTF-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else ENCODING_HINT
        raise DataError(f"{name}:{line}: expected UTF-8 text, {byte}; {hint}") from None
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        raise DataError(f"{name}:{line}: expected text, got a NUL byte; the file is binary, damaged, or UTF-16")
    return text


def read_bytes(path: Source, encoding: str = "utf-8") -> bytes:
    """The bytes of a text file, as `read_text` decodes them: gzip unpacked, in UTF-8, a byte order mark removed.

    Raises DataError, naming the file: missing, unreadable, a folder, damaged gzip data or such that unpack to too much;
    ParameterError for what is neither a path nor an open file.
    """
    with open_bytes(path, stream_name(path), encoding) as stream:
        return stream.read().removeprefix(codecs.BOM_UTF8)


def plain_bytes(data: bytes, name: str, encoding: str = "utf-8") -> bytes:
    """Bytes of a file that are in memory as `read_bytes` gives them; raises as it does."""
    with open_bytes(io.BytesIO(data), name, encoding) as stream:
        return stream.read().removeprefix(codecs.BOM_UTF8)


def check_lines(data: bytes, name: str, longest: int = LONGEST_LINE) -> None:
    """Raise DataError, naming the line, where one has more than `longest` bytes."""
    start = 0
    while start + longest < len(data):
        end = data.rfind(b"\n", start, start + longest + 1)
        if end < 0:
            number = data.count(b"\n", 0, start) + 1
            raise DataError(f"{name}:{number}: expected lines of at most {longest >> 20} MiB, got a longer one; other format?")
        start = end + 1


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
