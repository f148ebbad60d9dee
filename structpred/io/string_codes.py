"""Strings of a file as numbers, and lists whose entries are made when asked for, in a fraction of the memory."""

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np

from structpred.core.types import Floats, Integers, Integers32

Entry = TypeVar("Entry")


class OnDemand(Sequence[Entry], Generic[Entry]):
    """A subclass has a length and `_at(i)`, its entry number i. Slices are lists, and so is what equals it."""

    __hash__ = None  # type: ignore[assignment]

    def _at(self, i: int) -> Entry:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        found = range(len(self))[index]
        return self._at(found) if isinstance(found, int) else list(map(self._at, found))

    def __iter__(self) -> Iterator[Entry]:
        return map(self._at, range(len(self)))

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, list | OnDemand):
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


class Tables(OnDemand[Floats]):
    """The table of each factor of a graphical model, as views of one array. scopes: the variables of each.

    >>> tables = Tables((2, 3), [(1,), (0, 1)])
    >>> tables.append(np.ones(3))
    >>> tables.append(np.arange(6.0))
    >>> tables[0].tolist(), tables[-1].shape
    ([1.0, 1.0, 1.0], (2, 3))
    """

    def __init__(self, n_states: Sequence[int], scopes: Sequence[tuple[int, ...]]) -> None:
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


class StringCodes(dict[str, int]):
    """A string -> its number, in order of first appearance.

    >>> codes = StringCodes()
    >>> [codes[string] for string in ("b", "a", "b")], list(codes)
    ([0, 1, 0], ['b', 'a'])
    """

    def __missing__(self, string: str) -> int:
        number = self[string] = len(self)
        return number
