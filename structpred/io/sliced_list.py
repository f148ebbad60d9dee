"""A list cut into lists that are made on demand."""

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt


class SlicedList(Sequence[list[str]]):
    """The lists of ``names[code]`` for the codes ``offsets[i]:offsets[i + 1]``: lists of strings take ten times the memory.

    >>> lists = SlicedList(["a", "b"], np.array([0, 1, 0], np.int32), np.array([0, 1, 3]))
    >>> len(lists), lists[1], lists[-2:], lists == [["a"], ["b", "a"]]
    (2, ['b', 'a'], [['a'], ['b', 'a']], True)
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, names: list[str], codes: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64]) -> None:
        self._names, self._codes, self._offsets = names, codes, offsets

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
        return self._strings(*self._offsets[i : i + 2].tolist())

    def _strings(self, start: int, stop: int) -> list[str]:
        return list(map(self._names.__getitem__, self._codes[start:stop].tolist()))

    def __iter__(self) -> Iterator[list[str]]:
        start = 0
        for stop in self._offsets[1:].tolist():
            yield self._strings(start, stop)
            start = stop

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | SlicedList):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
