"""The scopes and tables of very many factors in flat arrays; an object for each takes 200 bytes."""

import itertools
from array import array
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from structpred.core.types import Floats


class Scopes(Sequence[tuple[int, ...]]):
    """The variables of each factor, as tuples that are made on demand.

    >>> scopes = Scopes([(1, 0), ()])
    >>> len(scopes), scopes[0], list(scopes), scopes == ((1, 0), ())
    (2, (1, 0), [(1, 0), ()], True)
    """

    __hash__ = None  # type: ignore[assignment]

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

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[int, ...], ...]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        if isinstance(index, slice):
            return tuple(self[f] for f in range(*index.indices(len(self))))
        f = range(len(self))[index]
        return tuple(self._variables[self._ends[f] : self._ends[f + 1]])

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        start = 0
        for end in itertools.islice(self._ends, 1, None):
            yield tuple(self._variables[start:end])
            start = end

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | Scopes):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))


class Tables(Sequence[Floats]):
    """The table of each factor, as views of one array.

    >>> tables = Tables((2, 3), Scopes([(1,), (0, 1)]))
    >>> tables.append(np.ones(3))
    >>> tables.append(np.arange(6.0))
    >>> tables[0].tolist(), tables[-1].shape
    ([1.0, 1.0, 1.0], (2, 3))
    """

    def __init__(self, n_states: Sequence[int], scopes: Scopes) -> None:
        self._n_states, self._scopes = n_states, scopes
        self._entries, self._ends = array("d"), array("q", [0])

    def append(self, table: Floats) -> None:
        """The entries of the next factor."""
        self._entries.frombytes(table.tobytes())
        self._ends.append(len(self._entries))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> Floats: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Floats, ...]: ...
    def __getitem__(self, index: int | slice) -> Floats | tuple[Floats, ...]:
        if isinstance(index, slice):
            return tuple(self[f] for f in range(*index.indices(len(self))))
        f = range(len(self))[index]
        shape = tuple(self._n_states[i] for i in self._scopes[f])
        return np.frombuffer(self._entries)[self._ends[f] : self._ends[f + 1]].reshape(shape)
