"""An arena of sparse vectors: n blocks of sorted (index, value) pairs in two flat arrays that grow as blocks do."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.runtime.lazy_names import later
from structpred.trainers.states import COUNT, Values

_kernels = later("structpred.trainers.blocks._bcfw_kernels")

Indices = npt.NDArray[np.int64]


class Arena(NamedTuple):
    """Block i is idx[start[i] : start[i] + length[i]] with val; room[i] pairs are reserved for it.

    taken: how many pairs are; limit: how many may be before the holes that moved blocks leave are closed. Both single numbers.
    """

    # beyond the blocks idx and val hold what happened to be there
    idx: Annotated[Indices, Values(-np.inf, np.inf, grows=True)]
    val: Annotated[npt.NDArray[np.float64], Values(-np.inf, np.inf, nan=True, grows=True)]
    start: Annotated[Indices, COUNT]
    length: Annotated[Indices, COUNT]
    room: Annotated[Indices, COUNT]
    taken: Annotated[Indices, COUNT]
    limit: Annotated[Indices, COUNT]

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays, for vectors of length dim; None where all does."""
        taken, limit = int(self.taken), int(self.limit)
        in_order = np.flatnonzero(self.room)[np.argsort(self.start[self.room > 0], kind="stable")]
        ends = self.start[in_order] + self.room[in_order]
        nexts = np.append(self.start[in_order[1:]], taken) if len(in_order) else ends
        if len(self.idx) != len(self.val) or not taken <= limit <= len(self.idx):
            return f"taken: {taken} pairs of {limit} are taken, but there are {len(self.idx)} indices and {len(self.val)} values"
        if (self.length > self.room).any() or (ends > nexts).any():
            return "start: the blocks overlap, or are longer than their room"
        firsts = np.cumsum(self.length) - self.length
        at = np.repeat(self.start - firsts, self.length) + np.arange(self.length.sum())
        idx, rises = self.idx[at], np.ones(len(at), np.bool_)
        rises[1:] = np.diff(idx) > 0
        rises[firsts[self.length > 0]] = True
        if not (rises.all() and idx.min(initial=0) >= 0 and idx.max(initial=-1) < dim):
            return f"idx: expected ascending numbers in [0, {dim}) in every block"
        return None if np.isfinite(self.val[at]).all() else "val: expected finite numbers"

    def without_room(self) -> "Arena":
        """The same blocks, with nothing after the last: views of the arrays, in which the next block that grows moves all."""
        taken = int(self.taken)
        return self._replace(idx=self.idx[:taken], val=self.val[:taken], limit=np.array(taken))

    @staticmethod
    def empty(n: int) -> "Arena":
        """n empty blocks."""
        start, length, room = np.zeros((3, n), np.int64)
        return Arena(np.empty(0, np.int64), np.empty(0), start, length, room, np.array(0), np.array(0))

    def block(self, i: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The pairs of block i, as views."""
        a = self.start[i]
        b = a + self.length[i]
        return self.idx[a:b], self.val[a:b]

    def store(self, i: int, idx: npt.NDArray[np.int64], val: npt.NDArray[np.float64]) -> "Arena":
        """Replace block i; returns the arena to use from now on (another one only when the arrays had to grow)."""
        n, arena = len(idx), self
        if n > self.room[i]:
            self.length[i] = 0
            arena = self.with_room(i, n)
        a = arena.start[i]
        arena.idx[a : a + n] = idx
        arena.val[a : a + n] = val
        arena.length[i] = n
        return arena

    def with_room(self, i: int, n: int) -> "Arena":
        """Move block i to where n pairs and some more have room; returns the arena to use from now on, as `store` does."""
        arena = self
        while not _kernels().make_room(arena[:], i, n):
            arena = arena._widened(extra=n + n // 2 + 4)
        return arena

    def with_space(self, n: int) -> "Arena":
        """Where n more pairs may be taken: for compiled code that places blocks itself."""
        return self if self.taken + n <= self.limit else self._widened(extra=n)

    def _widened(self, extra: int) -> "Arena":
        """With a higher limit; and without the holes, where they are most of the quarter that may be there beyond what is live.

        It is done in place while the arrays are long enough, for two copies at once are what memory is short of. New arrays are
        longer than what may be taken at first: what is never written costs no memory.
        """
        live = int(self.room.sum())
        limit = live + live // 4 + extra
        fits = limit <= len(self.idx)
        if fits and self.taken - live <= live // 16 * 3:
            return self._replace(limit=np.array(limit))
        idx, val = (self.idx, self.val) if fits else (np.empty(limit + limit // 2, np.int64), np.empty(limit + limit // 2))
        start, order = self.start.copy(), np.argsort(self.start, kind="stable")
        _kernels().pack_blocks(order, self.idx, self.val, self.start, self.length, self.room, idx, val, start)
        return Arena(idx, val, start, self.length.copy(), self.room.copy(), np.array(live), np.array(limit))

    def add_all_into(self, out: npt.NDArray[np.float64], first: int = 0) -> None:
        """out += entries first..first + len(out) - 1 of the sum of all blocks."""
        _kernels().add_blocks(out, first, self.idx, self.val, self.start, self.length)

    def pieces_of_sum(self, dim: int) -> Iterator[npt.NDArray[np.float64]]:
        """The sum of all blocks, piece by piece: no full-length float64 vector. Each piece is good until the next one comes."""
        piece = np.empty(min(dim, 1 << 18))
        for first in range(0, dim, 1 << 18):
            part = piece[: min(dim - first, 1 << 18)]
            part[:] = 0.0
            self.add_all_into(part, first)
            yield part
