"""Bytes from files, standard input and open binary files: gzip unpacked up to a limit, other encodings turned into UTF-8."""

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from structpred.errors import DataError, ParameterError

PathLike = str | os.PathLike[str]
Source = PathLike | BinaryIO

_GZIP_MAGIC = b"\x1f\x8b"
_BUFFER = 1 << 18
#: gzip data may unpack to this many bytes in any case, and to this many times the packed bytes read so far
MAX_UNPACKED, MAX_RATIO = 64 << 20, 100
#: the environment variable that puts another number of bytes in their place
LIMIT_VARIABLE = "STRUCTPRED_MAX_UNPACKED"


@contextmanager
def open_bytes(source: Source, name: str, encoding: str = "utf-8") -> Iterator[BinaryIO]:
    """A buffered stream of plain bytes, of UTF-8 text if `encoding` is another one; an open file stays open.

    name: for messages; ``<stdin>`` is standard input. Raises DataError, naming the source: missing, unreadable, a folder,
    damaged gzip data, gzip data that unpack to too much, text that is not in `encoding`. ParameterError: no such encoding.
    """
    codec = checked_encoding(encoding)
    with _raw(source, name) as raw:
        plain = io.BufferedReader(raw, _BUFFER)
        stream: BinaryIO = plain
        head = plain.peek(2)[:2]
        if head == _GZIP_MAGIC:
            stream = io.BufferedReader(_Unpacked(stream, raw, name), _BUFFER)
        elif isinstance(source, str | os.PathLike) and name.endswith(".gz") and head:
            raise DataError(f"{name}: expected gzip data because of the name, got something else; was it unpacked already?")
        if codec.name != "utf-8":
            stream = io.BufferedReader(_InUtf8(stream, codec, name), _BUFFER)
        yield stream


def checked_encoding(encoding: str) -> codecs.CodecInfo:
    """What Python knows of a text encoding. Raises ParameterError for an unknown encoding.

    >>> checked_encoding("latin-1").name
    'iso8859-1'
    """
    try:
        "".encode(encoding)  # refuses those that are not of text, such as base64
        return codecs.lookup(encoding)
    except (LookupError, TypeError, ValueError):
        raise ParameterError(
            f"encoding: expected the name of a text encoding such as utf-8 or latin-1, got {encoding!r}"
        ) from None


def limit_of_unpacking() -> int | None:
    """The bytes that LIMIT_VARIABLE allows; None where it is not set. Raises ParameterError for anything but a number."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ParameterError(f"{LIMIT_VARIABLE}: expected a number of bytes, got {text!r}")
    return int(text) if text else None


def check_unpacked(unpacked: int, packed: int, name: str, given: int | None) -> None:
    """Raise DataError where packed data of a few bytes unpack to far more than plausible. given: of `limit_of_unpacking`."""
    limit = max(MAX_UNPACKED, MAX_RATIO * packed) if given is None else given
    if unpacked > limit:
        rule = f", {MAX_RATIO} times its packed size" if given is None and limit > MAX_UNPACKED else ""
        raise DataError(
            f"{name}: the packed data unpack to more than the limit of {limit:,} bytes{rule}; if you trust the file, unpack it "
            f"first, or set the environment variable {LIMIT_VARIABLE} to a number of bytes"
        )


@contextmanager
def _raw(source: Source, name: str) -> Iterator["_Readable"]:
    if not isinstance(source, str | os.PathLike):
        yield _Readable(source, name)
    elif name == "<stdin>":
        if sys.stdin is None:
            raise DataError("<stdin>: standard input is closed")
        yield _Readable(sys.stdin.buffer if hasattr(sys.stdin, "buffer") else io.BytesIO(sys.stdin.read().encode()), name)
    else:
        with opened_file(source, name) as file:
            yield _Readable(file, name)


def opened_file(path: PathLike, name: str) -> BinaryIO:
    """A file to read bytes from, without a buffer. Raises DataError, naming it: missing, unreadable, a folder."""
    try:
        return open(path, "rb", buffering=0)
    except IsADirectoryError:
        raise DataError(f"{name}: expected a file, got a folder") from None
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{name}: cannot be read: {error}") from None


class _Stream(io.RawIOBase):
    """Bytes to be buffered; closing leaves open what they come from."""

    def readable(self) -> bool:
        return True


class _Readable(_Stream):
    """What has a method `read`. count: the bytes that were read of it."""

    def __init__(self, source: BinaryIO, name: str) -> None:
        self._source, self._name, self.count = source, name, 0

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        try:
            data = self._source.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:  # an open file may unpack by itself
            raise DataError(f"{self._name}: cannot be read: {error}") from None
        if not isinstance(data, bytes | bytearray):
            raise DataError(f"{self._name}: expected a file opened in binary mode, got one that reads {type(data).__name__}")
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


class _Unpacked(_Stream):
    """What gzip data hold. The limit is looked at while they unpack, so that no more than it is ever worked on."""

    def __init__(self, packed: BinaryIO, raw: "_Readable", name: str) -> None:
        self._raw, self._name, self._done, self._limit = raw, name, 0, limit_of_unpacking()
        self._gzip = gzip.GzipFile(fileobj=packed, mode="rb")

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        try:
            count: int = self._gzip.readinto(buffer)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{self._name}: damaged or truncated gzip data: {error}") from None
        self._done += count
        check_unpacked(self._done, self._raw.count, self._name, self._limit)
        return count


class _InUtf8(_Stream):
    """Text in another encoding as UTF-8."""

    def __init__(self, stream: BinaryIO, codec: codecs.CodecInfo, name: str) -> None:
        assert codec.incrementaldecoder is not None
        self._stream, self._codec, self._name = stream, codec, name
        self._decoder = codec.incrementaldecoder()
        self._held, self._line = b"", 1

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        while not self._held:
            block = self._stream.read(1 << 16)
            try:
                text = self._decoder.decode(block, final=not block)
                self._held = text.encode("utf-8")
            except UnicodeError as error:
                reason = getattr(error, "reason", str(error))
                raise DataError(
                    f"{self._name}: in line {self._line} or soon after: expected {self._codec.name} text: {reason}"
                ) from None
            self._line += text.count("\n")
            if not block:
                break
        count = min(len(buffer), len(self._held))
        buffer[:count], self._held = self._held[:count], self._held[count:]
        return count
