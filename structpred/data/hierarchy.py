"""Hierarchies of labels: a forest or a directed acyclic graph; a label that is on has its parents on."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.errors import DataError

Integers = npt.NDArray[np.int64]


class LabelHierarchy:
    """Edges (parent, child) over labels 0..n-1, without cycles. Labels without a parent are roots; there may be several.

    edges: whole numbers (E, 2). names: of the labels, for messages. Raises DataError for edges that name missing labels, join a
    label to itself, come twice, or run in a circle.

    >>> tree = LabelHierarchy(4, [(0, 1), (0, 2), (2, 3)])
    >>> tree.depths.tolist(), tree.closed([[0, 0, 0, 1]]).tolist()
    ([0, 1, 1, 2], [[1, 0, 1, 1]])
    """

    def __init__(self, n: int, edges: npt.ArrayLike, names: Sequence[str] | None = None) -> None:
        pairs = np.asarray(edges)
        if pairs.size == 0:
            pairs = np.zeros((0, 2), np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise DataError(
                f"the edges of a hierarchy are pairs (parent, child), whole numbers (E, 2); got {pairs.dtype} {pairs.shape}"
            )
        if names is not None and len(names) != n:
            raise DataError(f"a hierarchy of {n} labels got {len(names)} names")
        self.n, self.edges = int(n), pairs.astype(np.int64)
        self.names = [str(k) for k in range(n)] if names is None else [str(name) for name in names]
        for k, (parent, child) in enumerate(self.edges.tolist()):
            if not (0 <= parent < self.n and 0 <= child < self.n):
                raise DataError(f"edge {k} of the hierarchy, ({parent}, {child}), names a label that is missing: 0..{self.n - 1}")
            if parent == child:
                raise DataError(f"edge {k} of the hierarchy makes label {self.names[parent]!r} its own parent")
        if len(np.unique(self.edges, axis=0)) < len(self.edges):
            raise DataError("an edge of the hierarchy comes more than once")
        _ = self.order

    @classmethod
    def from_parents(cls, parents: npt.ArrayLike, names: Sequence[str] | None = None) -> "LabelHierarchy":
        """A forest from the parent of each label, -1 for roots.

        >>> LabelHierarchy.from_parents([-1, 0, 0]).edges.tolist()
        [[0, 1], [0, 2]]
        """
        above = np.asarray(parents)
        if above.ndim != 1 or above.dtype.kind not in "iu":
            raise DataError(f"parents must be whole numbers, one per label, -1 for a root; got {above.dtype} {above.shape}")
        children = np.flatnonzero(above != -1)
        return cls(len(above), np.stack((above[children], children), axis=1), names)

    @cached_property
    def parents(self) -> list[list[int]]:
        """The parents of each label."""
        return self._ends(of=1, other=0)

    @cached_property
    def children(self) -> list[list[int]]:
        """The children of each label."""
        return self._ends(of=0, other=1)

    def _ends(self, of: int, other: int) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in range(self.n)]
        for edge in self.edges.tolist():
            found[edge[of]].append(edge[other])
        return found

    @cached_property
    def order(self) -> list[int]:
        """The labels, parents before children."""
        waiting = [len(p) for p in self.parents]
        order = [k for k in range(self.n) if not waiting[k]]
        for k in order:  # it grows while it is walked
            for child in self.children[k]:
                waiting[child] -= 1
                if not waiting[child]:
                    order.append(child)
        if len(order) < self.n:
            raise DataError(f"the hierarchy of labels has a cycle: {self._cycle(set(range(self.n)) - set(order))}")
        return order

    def _cycle(self, left: set[int]) -> str:
        """One circle among the labels that have a parent among them, in words."""
        at = min(left)
        place = {at: 0}
        while True:
            at = next(p for p in self.parents[at] if p in left)
            if at in place:
                circle = [*list(place)[place[at] :], at][::-1]
                shown = circle if len(circle) <= 20 else circle[:20]
                return " -> ".join(repr(self.names[k]) for k in shown) + (" -> ..." if len(circle) > 20 else "")
            place[at] = len(place)

    @property
    def is_tree(self) -> bool:
        """Whether no label has two parents."""
        return all(len(p) < 2 for p in self.parents)

    def require_tree(self) -> None:
        """Raise DataError, naming the label, where one has two parents."""
        for k, above in enumerate(self.parents):
            if len(above) > 1:
                listed = " and ".join(repr(self.names[p]) for p in above)
                raise DataError(f"expected a tree of labels, but {self.names[k]!r} has {len(above)} parents: {listed}")

    @cached_property
    def depths(self) -> Integers:
        """Edges on the shortest way down from a root."""
        depths = np.zeros(self.n, np.int64)
        for k in self.order:
            depths[k] = min((depths[p] + 1 for p in self.parents[k]), default=0)
        return depths

    @cached_property
    def ancestors(self) -> npt.NDArray[np.bool_]:
        """(n, n): whether column label is an ancestor of row label."""
        found = np.zeros((self.n, self.n), dtype=np.bool_)
        for k in self.order:
            for p in self.parents[k]:
                found[k] |= found[p]
                found[k, p] = True
        return found

    def closed(self, Y: npt.ArrayLike) -> npt.NDArray[np.integer[Any]]:
        """The indicator rows with all ancestors of labels that are on switched on: uint8, or int8 where some are -1, missing."""
        given = np.asarray(Y)
        rows = given.astype(np.int8 if (given < 0).any() else np.uint8)
        rows[self._with_ancestors(rows == 1)] = 1
        return rows

    def _with_ancestors(self, marked: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The marks, and those of all ancestors of what is marked; in place."""
        for k in reversed(self.order):  # children before parents
            for p in self.parents[k]:
                marked[:, p] |= marked[:, k]
        return marked

    def implied(self, Y: Integers) -> Integers:
        """Rows of 0, 1 and -1 (missing) with the missing labels that others decide: ancestors of what is on, descendants of what
        is off. A new array; rows without missing labels stay as they are.

        Raises DataError, naming the sample, where a label is on and an ancestor of it is off.

        >>> LabelHierarchy(4, [(0, 1), (1, 2), (1, 3)]).implied(np.array([[-1, -1, 1, -1], [1, 0, -1, -1]])).tolist()
        [[1, 1, 1, -1], [1, 0, 0, 0]]
        """
        partial = (Y < 0).any(axis=1)
        rows = Y[partial]
        on, off = self._with_ancestors(rows == 1), rows == 0
        for k in self.order:
            for p in self.parents[k]:
                off[:, k] |= off[:, p]
        if (both := on & off).any():
            i, k = np.argwhere(both)[0].tolist()
            child = int(np.flatnonzero((rows[i] == 1) & (self.ancestors[:, k] | (np.arange(self.n) == k)))[0])
            above = int(np.flatnonzero((rows[i] == 0) & (self.ancestors[k] | (np.arange(self.n) == k)))[0])
            sample = int(np.flatnonzero(partial)[i])
            raise DataError(f"sample {sample}: label {self.names[child]!r} is on, but {self.names[above]!r} above it is off")
        found = Y.copy()
        found[partial] = np.where(on, 1, np.where(off, 0, rows))
        return found

    def broken(self, Y: npt.ArrayLike) -> tuple[int, int, int] | None:
        """The first (row, parent, child) where a child is on without its parent; None where rows are closed."""
        rows = np.asarray(Y)
        bad = (rows[:, self.edges[:, 1]] != 0) & (rows[:, self.edges[:, 0]] == 0)
        if not bad.any():
            return None
        i, e = np.argwhere(bad)[0].tolist()
        return int(i), int(self.edges[e, 0]), int(self.edges[e, 1])
