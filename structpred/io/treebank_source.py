"""Where treebanks come from: files, standard input and open binary files, plain or gzip, whole or sentence by sentence."""

import codecs
import gzip
import io
import itertools
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from structpred.errors import DataError, ParameterError
from structpred.io.text import PathLike, source_name
from structpred.io.treebank_formats import LINES_THAT_TELL, TreebankFormat, treebank_format_of

Source = PathLike | BinaryIO

_GZIP_MAGIC = b"\x1f\x8b"
#: a longer line ends a stream: it is no treebank, and must not fill the memory
_LONGEST_LINE = 1 << 26


class Chunk(NamedTuple):
    """Whole sentences as bytes. line: the number of the first line. sentence: how many sentences came before."""

    data: bytes
    line: int
    sentence: int
    last: bool


def treebank_name(source: Source) -> str:
    """The name of a source in messages. Raises ParameterError for what is none."""
    if isinstance(source, str | os.PathLike):
        return source_name(source)
    if not hasattr(source, "read"):
        raise ParameterError(f"expected a path, '-' or an open binary file, got {type(source).__name__}")
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


class TreebankSource:
    """An open source, unpacked, after its byte order mark. name: for messages. bom: whether there was one."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.name = name
        self._stream = stream
        self._head: list[bytes] = []
        self.bom = False
        first = self._read_line()
        if first.startswith(codecs.BOM_UTF8):
            self.bom = True
            first = first.removeprefix(codecs.BOM_UTF8)
        if first:
            self._head.append(first)

    def format(self) -> TreebankFormat:
        """The format that the first lines show; they stay to be read. Raises DataError where they show none."""
        while len(self._head) < LINES_THAT_TELL and (line := self._read_line()):
            self._head.append(line)
        lines = [line.rstrip(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape") for line in self._head]
        return treebank_format_of(lines, self.name)

    def lines(self) -> Iterator[bytes]:
        """All lines, with their ends."""
        return itertools.chain(self._head, iter(self._read_line, b""))

    def read(self) -> bytes:
        """All that is there."""
        try:
            return b"".join(self._head) + self._stream.read()
        except _BROKEN as error:
            raise _broken(self.name, error) from None

    def chunks(self, batch_size: int, comments: bool) -> Iterator[Chunk]:
        """The file in pieces of `batch_size` sentences; the last one, which may have fewer, is there even if it is empty.

        What stands between two sentences goes with the second.
        """
        held: list[bytes] = []
        line = start = 1
        sentence = done = 0
        inside = False  # a sentence: a word line was met since the last blank line
        for row in self.lines():
            blank = row in (b"\n", b"\r\n", b"\r")
            if not blank and done == batch_size and not inside:
                yield Chunk(b"".join(held), start, sentence, False)
                held, start, sentence, done = [], line, sentence + done, 0
            if not blank and not inside and not (comments and row.startswith(b"#")):
                inside = True
                done += 1
            inside = inside and not blank
            held.append(row)
            line += 1
        yield Chunk(b"".join(held), start, sentence, True)

    def _read_line(self) -> bytes:
        try:
            line = self._stream.readline(_LONGEST_LINE)
        except _BROKEN as error:
            raise _broken(self.name, error) from None
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            raise DataError(f"{self.name}: expected a treebank, got a line of more than {_LONGEST_LINE >> 20} MiB")
        return line


@contextmanager
def open_treebank(source: Source) -> Iterator[TreebankSource]:
    """Open a path (``-`` is standard input) or use an open binary file; gzip is known by its first bytes.

    Raises DataError, naming the source: missing, unreadable, a folder, damaged gzip data.
    """
    name = treebank_name(source)
    if not isinstance(source, str | os.PathLike):
        yield TreebankSource(_unpacked(_Readable(source, name), name), name)
    elif name == "<stdin>":
        yield TreebankSource(_unpacked(_Readable(_standard_input(), name), name), name)
    else:
        with _opened(source, name) as raw:
            yield TreebankSource(_unpacked(raw, name, by_name=True), name)


class _Held(io.BytesIO):
    """Bytes under the name of the file that they come from."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


def held_treebank(source: Source) -> BinaryIO:
    """All of a source in memory, unpacked and under its name, for those who read it more than once (a pipe, say).

    Rewind it with ``seek(0)``. Raises what `open_treebank` raises.
    """
    with open_treebank(source) as opened:
        return _Held((codecs.BOM_UTF8 if opened.bom else b"") + opened.read(), opened.name)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise DataError("<stdin>: standard input is closed")
    return sys.stdin.buffer if hasattr(sys.stdin, "buffer") else io.BytesIO(sys.stdin.read().encode())


class _Readable(io.RawIOBase):
    """What has a method `read`, as a file to be buffered; closing leaves it open."""

    def __init__(self, source: BinaryIO, name: str) -> None:
        self._source, self._name = source, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        data = self._source.read(len(buffer))
        if not isinstance(data, bytes | bytearray):
            raise DataError(f"{self._name}: expected a file opened in binary mode, got one that reads {type(data).__name__}")
        buffer[: len(data)] = data
        return len(data)


def _opened(path: PathLike, name: str) -> io.FileIO:
    try:
        return io.FileIO(path, "r")
    except IsADirectoryError:
        raise DataError(f"{name}: expected a file, got a folder") from None
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{name}: cannot be read: {error}") from None


def _unpacked(raw: io.RawIOBase, name: str, *, by_name: bool = False) -> BinaryIO:
    """A buffered stream of plain bytes. by_name: refuse plain ones under a name ending in .gz; an open file may be unpacked."""
    stream = io.BufferedReader(raw, 1 << 18)
    try:
        head = stream.peek(2)[:2]
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error}") from None
    if head == _GZIP_MAGIC:
        return io.BufferedReader(gzip.GzipFile(fileobj=stream), 1 << 18)
    if by_name and name.endswith(".gz") and head:
        raise DataError(f"{name}: expected gzip data because of the name, got something else; was it unpacked already?")
    return stream


_BROKEN = (OSError, EOFError, zlib.error)


def _broken(name: str, error: Exception) -> DataError:
    return DataError(f"{name}: cannot be read, or damaged or truncated gzip data: {error}")
