"""Strings of a file as numbers, in a fraction of the memory that a dictionary takes for each."""

import operator
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]

_CHUNK = 1 << 16
_FEW, _BYTES = 1 << 13, 100


def recent_limit(size: int) -> int:
    """How many recent strings a reader may have in dictionaries, for a text of `size` characters: all those of a usual file."""
    return max(_FEW, size // _BYTES)


class StringCodes(dict[str, int]):
    """A string -> its place among the recent ones; `settle` turns places into numbers, in order of first appearance.

    names: the distinct strings that are settled. A dictionary takes 100 bytes per string, for its entry and the number, so it
    holds the recent ones only. The others are in a hash table of numbers, which takes at most 12 bytes per string.

    >>> codes = StringCodes()
    >>> places = np.array([codes[string] for string in ("b", "a", "b")], np.int32)
    >>> codes.settle(places)
    >>> places.tolist(), codes.names, len(codes)
    ([0, 1, 0], ['b', 'a'], 0)
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self._table, self._entered = np.full(4, -1, np.int32), 0

    def __missing__(self, string: str) -> int:
        place = self[string] = len(self)
        return place

    def settle(self, places: Codes) -> None:
        """Put numbers in place of all places that were given since the last time; the dictionary is empty then."""
        strings = list(self)
        self.clear()
        if not self.names:  # the places are the numbers
            self.names = strings
        else:
            # unknown strings get the next numbers
            self._enter()
            numbers = self._find(strings)
            new, before = np.flatnonzero(numbers < 0), len(self.names)
            numbers[new] = np.arange(before, before + len(new))
            self.names += map(strings.__getitem__, new.tolist())
            for start in range(0, len(places), _CHUNK):
                places[start : start + _CHUNK] = numbers[places[start : start + _CHUNK]]

    def _find(self, strings: list[str]) -> Codes:
        """The number of each string, -1 for unknown ones. All look at their next entry of the table at once."""
        found = np.full(len(strings), -1, np.int32)
        left, at, step = np.arange(len(strings)), self._first(strings), 0
        while len(left):
            held = self._table[at]
            taken = held >= 0
            left, at, held = left[taken], at[taken], held[taken]
            pairs = map(self.names.__getitem__, held.tolist()), map(strings.__getitem__, left.tolist())
            same = np.fromiter(map(operator.eq, *pairs), np.bool_, len(left))
            found[left[same]] = held[same]
            step += 1
            left, at = left[~same], self._next(at[~same], step)
        return found

    def _enter(self) -> None:
        """Put the numbers that are not in the table into it, at most two thirds of which are filled. The last ones never are."""
        start, n = self._entered, len(self.names)
        if 3 * n > 2 * len(self._table):
            self._table = np.zeros(0, np.int32)  # freed before the larger one is made
            self._table = np.full(1 << (3 * n // 2).bit_length(), -1, np.int32)
            start = 0
        self._entered = n
        for first in range(start, n, _CHUNK):
            numbers = np.arange(first, min(first + _CHUNK, n), dtype=np.int32)
            at, step = self._first(self.names[first : first + _CHUNK]), 0
            while len(numbers):
                free = self._table[at] < 0
                self._table[at[free]] = numbers[free]
                lost = self._table[at] != numbers
                step += 1
                numbers, at = numbers[lost], self._next(at[lost], step)

    def _first(self, strings: Sequence[str]) -> npt.NDArray[np.int64]:
        return np.fromiter(map(hash, strings), np.int64, len(strings)) & (len(self._table) - 1)

    def _next(self, at: npt.NDArray[np.int64], step: int) -> npt.NDArray[np.int64]:
        return (at + step) & (len(self._table) - 1)  # steps of 1, 2, 3, ... visit all entries of a table of 2^k
