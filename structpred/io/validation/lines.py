"""The lines of a text by their numbers; as a list of strings they take many times the memory."""

from collections.abc import Iterator

import numpy as np

_PIECE = 1 << 17


class Lines:
    """Lines end at ``\\n``, which one ``\\r`` may precede; a last line end opens no further line. The first has the number 1.

    >>> lines = Lines(b"a\\r\\ncaf\\xe9")
    >>> len(lines), lines[1], lines.text(2), list(lines.pieces())
    (2, b'a', 'caf\\ufffd', [(1, 'a\\ncaf\\ufffd')])
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        kind = np.int32 if len(data) < 1 << 31 else np.int64
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10).astype(kind)
        self._ends = ends if data.endswith(b"\n") or not data else np.append(ends, kind(len(data)))

    def __len__(self) -> int:
        return len(self._ends)

    def _start(self, number: int) -> int:
        return self.end(number - 1) + 1 if number > 1 else 0

    def __getitem__(self, number: int) -> bytes:
        return self.data[self._start(number) : self.end(number)].removesuffix(b"\r")

    def end(self, number: int) -> int:
        """The byte behind the last one of a line."""
        return int(self._ends[number - 1])

    def text(self, number: int) -> str:
        """A line, with U+FFFD for bytes that are not UTF-8."""
        return self[number].decode("utf-8", "replace")

    def number_at(self, byte: int) -> int:
        """The number of the line that this byte of the data is in."""
        kind = self._ends.dtype.type  # a number of another type makes `searchsorted` copy all ends
        return int(self._ends.searchsorted(kind(min(byte, len(self.data))))) + 1

    def pieces(self) -> Iterator[tuple[int, str]]:
        """Pieces of whole lines as `text` gives them, joined by ``\\n``; each with the number of its first line."""
        number = 1
        while number <= len(self):
            last = min(self.number_at(self._start(number) + _PIECE), len(self))
            piece = self.data[self._start(number) : self.end(last)]
            try:
                yield number, piece.decode("utf-8").replace("\r\n", "\n").removesuffix("\r")
            except UnicodeDecodeError:
                yield number, "\n".join(map(self.text, range(number, last + 1)))
            number = last + 1
