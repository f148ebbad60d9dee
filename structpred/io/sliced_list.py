"""A list cut into lists that are made when they are asked for."""

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt


class SlicedList(Sequence[list[str]]):
    """The lists ``flat[offsets[i]:offsets[i + 1]]``: many short lists take ten times the memory of one long one.

    >>> lists = SlicedList(["a", "b", "c"], np.array([0, 1, 3]))
    >>> len(lists), lists[1], lists[-2:], lists == [["a"], ["b", "c"]]
    (2, ['b', 'c'], [['a'], ['b', 'c']], True)
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, flat: list[str], offsets: npt.NDArray[np.int64]) -> None:
        self._flat, self._offsets = flat, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: int) -> list[str]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[str]]: ...
    def __getitem__(self, index: int | slice) -> list[str] | list[list[str]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        return self._flat[self._offsets[i] : self._offsets[i + 1]]

    def __iter__(self) -> Iterator[list[str]]:
        start = 0
        for stop in self._offsets[1:].tolist():
            yield self._flat[start:stop]
            start = stop

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | SlicedList):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
