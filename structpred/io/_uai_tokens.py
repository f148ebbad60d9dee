"""The tokens of a file in the UAI format, and where they are, for messages."""

import itertools
import re
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from structpred.errors import DataError
from structpred.io.text import quoted

#: more digits cannot be a count of anything
_MAX_DIGITS = 15
#: bytes that are cut into tokens at a time: all tokens at once take twenty times what the file does
_PIECE = 1 << 20
#: up to this number of numbers are faster one by one than as an array
_FEW = 4
_INFINITY = float("inf")
_TOKEN = re.compile(rb"\S+")
_KINDS = bytes(32 if bytes([k]).isspace() else 120 for k in range(256))


class Tokens:
    """The text between white space, piece by piece. at: how many were taken."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data, self._name = data, name
        self._next, self._piece, self._place = 0, list[bytes](), 0
        self._underscores = b"_" in data
        self.at = 0
        self._count = sum(self._tokens_from(start) for start in self._starts())

    def __len__(self) -> int:
        return self._count

    def _starts(self) -> list[int]:
        """Where the pieces begin: after white space, or at the beginning."""
        starts, start = [], 0
        while start < len(self._data):
            starts.append(start)
            start = self._end(start)
        return starts

    def _end(self, start: int) -> int:
        """Behind the token that a piece from `start` on would cut."""
        token = _TOKEN.match(self._data, start + _PIECE)
        return min(start + _PIECE, len(self._data)) if token is None else token.end()

    def _tokens_from(self, start: int) -> int:
        """How many tokens the piece from `start` on has; they are not made, which takes ten times as long."""
        kinds = self._data[start : self._end(start)].translate(_KINDS)
        return kinds.count(b" x") + kinds.startswith(b"x")

    def _more(self) -> bool:
        """Whether tokens are left; those at hand are never all taken then."""
        while self._place == len(self._piece) and self._next < len(self._data):
            start, self._next = self._next, self._end(self._next)
            self._piece, self._place = self._data[start : self._next].split(), 0
        return self._place < len(self._piece)

    def word(self, expected: str) -> str:
        """The next token as text."""
        if self._place == len(self._piece) and not self._more():
            self.fail(self.at, f"expected {expected}, but here the file ends")
        token = self._piece[self._place]
        self._place += 1
        self.at += 1
        return token.decode("ascii", "replace")

    def whole(self, expected: str, *, low: int = 0, high: int | None = None) -> int:
        """The next token as a whole number within low..high."""
        text = self.word(expected)
        value = int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else -1
        if value < low or (high is not None and value > high):
            limits = f"from {low}" if high is None else f"from {low} to {high}"
            self.fail(self.at - 1, f"expected {expected}, a whole number {limits}, got {quoted(text)}")
        return value

    def count(self, expected: str) -> int:
        """The next token as the number of things that follow, each at least a token; so it cannot be more than are left."""
        value, left = self.whole(expected), self._count - self.at
        if value > left:
            self.fail(self.at - 1, f"expected {expected}; {value} is too many, only {left} tokens are left: is the file cut off?")
        return value

    def numbers(self, n: int, what: str) -> npt.NDArray[np.float64]:
        """The next n tokens as finite numbers >= 0."""
        values, done = np.empty(n), 0
        while done < n and self._more():
            chunk = self._piece[self._place : self._place + n - done]
            self._place += len(chunk)
            if (found := self._found(chunk)) is None:
                j, token = next((j, token) for j, token in enumerate(chunk) if self._found([token]) is None)
                expected = f"expected entry {done + j} of {what}, a finite number >= 0 (a factor, not its log)"
                self.fail(self.at + j, f"{expected}, got {quoted(token.decode('ascii', 'replace'))}")
            values[done : done + len(chunk)] = found
            done += len(chunk)
            self.at += len(chunk)
        return values

    def _found(self, chunk: list[bytes]) -> list[float] | npt.NDArray[np.float64] | None:
        """The numbers of these tokens; None where one is none, not finite or negative. A model may have many small tables."""
        found: list[float] | npt.NDArray[np.float64]
        try:
            if len(chunk) <= _FEW:
                found = list(map(float, chunk))
                right = all(0.0 <= value < _INFINITY for value in found)
            else:
                found = np.fromiter(map(float, chunk), np.float64, len(chunk))
                right = bool(((found >= 0.0) & (found < np.inf)).all())
        except ValueError:
            return None
        return found if right and not (self._underscores and any(b"_" in token for token in chunk)) else None

    def end(self, expected: str) -> None:
        """Fail unless all tokens were taken."""
        if self._more():
            self.fail(self.at, f"expected {expected}, got {quoted(self._piece[self._place].decode('ascii', 'replace'))}")

    def fail(self, index: int, message: str) -> NoReturn:
        """Raise DataError at the token with this number: its line, and which one of the line it is."""
        before = 0
        for start in self._starts():
            tokens = self._tokens_from(start)
            if before + tokens > index:
                place = next(itertools.islice(_TOKEN.finditer(self._data, start), index - before, None)).start()
                line_start = self._data.rfind(b"\n", 0, place) + 1
                line = self._data.count(b"\n", 0, place) + 1
                in_line = sum(1 for _ in _TOKEN.finditer(self._data, line_start, place))
                raise DataError(f"{self._name}:{line}: token {in_line + 1}: {message}")
            before += tokens
        raise DataError(f"{self._name}:{self._data.count(bytes([10])) + 1}: at the end: {message}")
