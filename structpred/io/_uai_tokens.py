"""The tokens of a file in the UAI format, and where they stand, for messages."""

from typing import NoReturn

import numpy as np
import numpy.typing as npt

from structpred.errors import DataError
from structpred.io.text import quoted

#: more digits are no number of anything
_MAX_DIGITS = 15


class Tokens:
    """What stands between white space, taken one after the other. at: how many were taken."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data, self._name = data, name
        self._tokens = data.split()
        self.at = 0

    def __len__(self) -> int:
        return len(self._tokens)

    def word(self, expected: str) -> str:
        """The next token as text."""
        if self.at >= len(self._tokens):
            self.fail(self.at, f"expected {expected}, but here the file ends")
        self.at += 1
        return self._tokens[self.at - 1].decode("ascii", "replace")

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
        value, left = self.whole(expected), len(self._tokens) - self.at
        if value > left:
            self.fail(self.at - 1, f"expected {expected}; {value} is too many, only {left} tokens are left: is the file cut off?")
        return value

    def numbers(self, n: int, what: str) -> npt.NDArray[np.float64]:
        """The next n tokens as finite numbers >= 0."""
        chunk = self._tokens[self.at : self.at + n]
        try:
            values = np.array([float(token) for token in chunk], dtype=np.float64)
            right = bool(((values >= 0.0) & (values < np.inf)).all()) and not any(b"_" in token for token in chunk)
        except ValueError:
            right = False
        if not right:
            self._fail_at_number(chunk, what)
        self.at += n
        return values

    def _fail_at_number(self, chunk: list[bytes], what: str) -> NoReturn:
        for j, token in enumerate(chunk):
            try:
                right = b"_" not in token and 0.0 <= float(token) < float("inf")
            except ValueError:
                right = False
            if not right:
                shown = quoted(token.decode("ascii", "replace"))
                self.fail(self.at + j, f"expected entry {j} of {what}, a finite number >= 0 (a factor, not its log), got {shown}")
        raise AssertionError("all entries are numbers")

    def end(self, expected: str) -> None:
        """Fail unless all tokens were taken."""
        if self.at < len(self._tokens):
            self.fail(self.at, f"expected {expected}, got {quoted(self._tokens[self.at].decode('ascii', 'replace'))}")

    def fail(self, index: int, message: str) -> NoReturn:
        """Raise DataError at the token with this number: its line, and which one of the line it is."""
        line = before = 0
        for line, text in enumerate(self._data.split(b"\n"), start=1):
            n = len(text.split())
            if before + n > index:
                raise DataError(f"{self._name}:{line}: token {index - before + 1}: {message}")
            before += n
        raise DataError(f"{self._name}:{line}: at the end: {message}")
