"""Names that are numbers, made on demand: twenty million strings take gigabytes."""

from collections.abc import Iterator, Sequence
from typing import overload


class NumberedNames(Sequence[str]):
    """The numbers first, first + 1, ... as strings, n of them.

    >>> names = NumberedNames(1, 3)
    >>> len(names), names[-1], list(names), names == ["1", "2", "3"]
    (3, '3', ['1', '2', '3'], True)
    """

    def __init__(self, first: int, n: int) -> None:
        self._numbers = range(first, first + n)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        found = self._numbers[index]
        return str(found) if isinstance(found, int) else list(map(str, found))

    def __iter__(self) -> Iterator[str]:
        return map(str, self._numbers)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames):
            return self._numbers == other._numbers
        return isinstance(other, list) and len(other) == len(self) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"NumberedNames({self._numbers.start}, {len(self)})"
