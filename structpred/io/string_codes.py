"""Strings of a file as numbers, in a fraction of the memory of a dictionary; lists whose entries are made when asked for."""

import operator
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats, Integers, Integers32

Entry = TypeVar("Entry")


class OnDemand(Sequence[Entry], Generic[Entry]):
    """A subclass has a length and `_at(i)`, its entry number i. Slices are lists, or tuples, and so is what equals it."""

    __hash__ = None  # type: ignore[assignment]
    _like: Any = list

    def _at(self, i: int) -> Entry:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        found = range(len(self))[index]
        return self._at(found) if isinstance(found, int) else self._like(map(self._at, found))

    def __iter__(self) -> Iterator[Entry]:
        return map(self._at, range(len(self)))

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, self._like | OnDemand):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))


class SlicedList(OnDemand[list[str]]):
    """The lists of ``names[code]`` for the codes ``offsets[i]:offsets[i + 1]``.

    >>> lists = SlicedList(["a", "b"], np.array([0, 1, 0], np.int32), np.array([0, 1, 3]))
    >>> len(lists), lists[1], lists[-2:], lists == [["a"], ["b", "a"]]
    (2, ['b', 'a'], [['a'], ['b', 'a']], True)
    """

    def __init__(self, names: list[str], codes: Integers32, offsets: Integers) -> None:
        self._names, self._codes, self._offsets = names, codes, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def _at(self, i: int) -> list[str]:
        start, stop = self._offsets[i : i + 2].tolist()
        return list(map(self._names.__getitem__, self._codes[start:stop].tolist()))


class NumberedNames(OnDemand[str]):
    """The numbers first, first + 1, ... as strings, n of them.

    >>> names = NumberedNames(1, 3)
    >>> len(names), names[-1], list(names), names == ["1", "2", "3"]
    (3, '3', ['1', '2', '3'], True)
    """

    def __init__(self, first: int, n: int) -> None:
        self._numbers = range(first, first + n)

    def __len__(self) -> int:
        return len(self._numbers)

    def _at(self, i: int) -> str:
        return str(self._numbers[i])

    def __repr__(self) -> str:
        return f"NumberedNames({self._numbers.start}, {len(self)})"


class Scopes(OnDemand[tuple[int, ...]]):
    """The variables of each factor of a graphical model.

    >>> scopes = Scopes([(1, 0), ()])
    >>> len(scopes), scopes[0], list(scopes), scopes == ((1, 0), ())
    (2, (1, 0), [(1, 0), ()], True)
    """

    _like = tuple

    def __init__(self, scopes: Sequence[tuple[int, ...]] = ()) -> None:
        self._variables, self._ends = array("q"), array("q", [0])
        for scope in scopes:
            self.append(scope)

    def append(self, scope: tuple[int, ...]) -> None:
        """One more factor."""
        self._variables.extend(scope)
        self._ends.append(len(self._variables))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def _at(self, i: int) -> tuple[int, ...]:
        return tuple(self._variables[self._ends[i] : self._ends[i + 1]])


class Tables(OnDemand[Floats]):
    """The table of each factor, as views of one array.

    >>> tables = Tables((2, 3), Scopes([(1,), (0, 1)]))
    >>> tables.append(np.ones(3))
    >>> tables.append(np.arange(6.0))
    >>> tables[0].tolist(), tables[-1].shape
    ([1.0, 1.0, 1.0], (2, 3))
    """

    _like = tuple

    def __init__(self, n_states: Sequence[int], scopes: Scopes) -> None:
        self._n_states, self._scopes = n_states, scopes
        self._entries, self._ends = array("d"), array("q", [0])

    def append(self, table: Floats) -> None:
        """The entries of the next factor."""
        self._entries.frombytes(table.tobytes())
        self._ends.append(len(self._entries))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def _at(self, i: int) -> Floats:
        shape = tuple(self._n_states[variable] for variable in self._scopes[i])
        return np.frombuffer(self._entries)[self._ends[i] : self._ends[i + 1]].reshape(shape)


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
