"""Where treebanks come from: files, standard input and open binary files, plain or gzip, whole or sentence by sentence."""

import codecs
import io
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from structpred.errors import DataError
from structpred.io.opening import Source, open_bytes
from structpred.io.text import check_lines, stream_name
from structpred.io.treebanks.formats import LINES_THAT_TELL, TreebankFormat, treebank_format_of

__all__ = ["Chunk", "HeldBytes", "Source", "TreebankSource", "held_treebank", "open_treebank"]

#: a longer line is not a line of a treebank, and must not fill the memory
_LONGEST_LINE = 1 << 20


class Chunk(NamedTuple):
    """Whole sentences as bytes. line: the number of the first line. sentence: how many sentences came before."""

    data: bytes
    line: int
    sentence: int
    last: bool


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
        data = b"".join(self._head) + self._stream.read()
        check_lines(data, self.name, _LONGEST_LINE)
        return data

    def chunks(self, batch_size: int, comments: bool) -> Iterator[Chunk]:
        """The file in pieces of `batch_size` sentences; the last one, which may have fewer, is there even if it is empty.

        What is between two sentences belongs to the second.
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
        line = self._stream.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE and not line.endswith(b"\n"):
            raise DataError(f"{self.name}: expected a treebank, got a line of more than {_LONGEST_LINE >> 20} MiB")
        return line


@contextmanager
def open_treebank(source: Source, encoding: str = "utf-8") -> Iterator[TreebankSource]:
    """Open a path (``-`` is standard input) or use an open binary file; gzip is known by its first bytes.

    Raises DataError, naming the source: missing, unreadable, a folder, damaged gzip data or such that unpack to too much.
    """
    name = stream_name(source)
    with open_bytes(source, name, encoding) as stream:
        yield TreebankSource(stream, name)


class HeldBytes(io.BytesIO):
    """Bytes under the name of the file that they come from."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


def held_treebank(source: Source, encoding: str = "utf-8") -> BinaryIO:
    """All of a source in memory, unpacked and under its name, for those who read it more than once (a pipe, say).

    Rewind it with ``seek(0)``. Raises what `open_treebank` raises.
    """
    with open_treebank(source, encoding) as opened:
        return HeldBytes((codecs.BOM_UTF8 if opened.bom else b"") + opened.read(), opened.name)
