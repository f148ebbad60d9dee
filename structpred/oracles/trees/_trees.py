"""What everything about trees shares: scores and parts, all trees of a sentence, working memory, and the parent of both oracles.

Memory that cannot fit is refused before it is allocated.
"""

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import (
    check_listed,
    checked_batch,
    checked_scores,
    checked_sizes,
    checked_table,
    shaped_batch,
    shaped_scores,
)
from structpred.core.types import Floats, Integers
from structpred.projections.lockstep import nearest_mixture
from structpred.runtime.entries import entry_of
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of

#: scratch for sentences up to this length may stay allocated between calls (up to 4 MiB per thread, as far as it is used)
KEPT = 500
#: the same for projective trees (2 MiB per thread)
KEPT_PROJECTIVE = 250
#: rows of `marks`
MARKS = 8


def arc_scores(scores: Scores, shape: Shape) -> tuple[Scores, int]:
    """The n * (n + 1) scores of the arcs, a row of n + 1 heads (0 is the root) for each token, and n. Raises DataError."""
    (n,) = checked_sizes(shape, "tokens")
    return checked_scores(scores, n * (n + 1), shape), n


def arcs_of(heads: Labels) -> Integers:
    """The parts that are on: (m - 1) * (n + 1) + h for each token m with head h."""
    n = len(heads)
    return np.arange(n, dtype=np.int64) * (n + 1) + heads


def all_trees(n: int, single_root: bool) -> Iterator[Labels]:
    """Every tree of n tokens, in the order of their heads: (n + 1)^(n - 1) of them, n^(n - 1) with a single root."""
    check_listed(n)
    heads = np.zeros(n + 1, np.int64)

    def fill(m: int, roots: int) -> Iterator[Labels]:
        if m > n:
            if roots or not single_root:
                yield heads[1:].copy()
            return
        for head in range(n + 1):
            if head == 0 and single_root and roots:
                continue
            above = head
            while 0 < above < m:  # tokens from m on have no head yet
                above = int(heads[above])
            if above != m:
                heads[m] = head
                yield from fill(m + 1, roots + (head == 0))

    yield from fill(1, 0)


def tree_room(n: int) -> Floats:
    """Scratch for `best_heads` and `second_best` of n tokens, or fewer: marks (8, 2n + 2), then (2n + 2, n + 2) numbers, flat.

    Pages come as they are used. Raises DataError where it cannot fit.
    """
    size = (2 * n + 2) * (n + 2 + MARKS)
    check_fits(8 * size, f"parsing a sentence of {n:,} tokens")
    return np.empty(size)


def projective_scratch(n: int) -> Floats:
    """Scratch for projective trees of n tokens, or fewer: (5, n + 2, n + 2) float64. Raises DataError where it cannot fit."""
    check_fits(40 * (n + 2) ** 2, f"projective parsing of a sentence of {n:,} tokens")
    return np.empty((5, n + 2, n + 2))


_INT = np.dtype(np.int64)


class _Tools(NamedTuple):
    """The compiled search, and room for sentences of up to `size` tokens."""

    size: int
    search: Callable[..., bool]
    room: Floats


def _no_search(*_: object) -> bool:
    raise AssertionError("no sentence is so short")


class Kept(threading.local):
    """A thread's tools: importing and allocating take longer than a short sentence. Up to `most` tokens they are kept."""

    tools = _Tools(0, _no_search, np.empty(0))

    def __init__(self, most: int) -> None:
        self.most = most


class TreeOracle(Oracle):
    """shape = (n,): trees of n tokens 1..n below the artificial root 0.

    Labels: the head of each token. Parts: (m - 1) * (n + 1) + h is on when token m has head h. single_root: exactly one token has
    head 0. Scores of -1e30 forbid an arc. Ties always go to the same tree.
    """

    output = "tree"
    _kept: ClassVar[Kept]

    def __init__(self, single_root: bool = True) -> None:
        self.single_root = bool(single_root)
        self._single = int(self.single_root)  # numba takes longer to determine the type of a bool

    @staticmethod
    @abstractmethod
    def _kernels() -> Any:
        """The module with `best_heads` and `best_trees`."""

    @staticmethod
    @abstractmethod
    def _room(n: int) -> Floats:
        """What these write to, for up to n tokens. Raises DataError where it cannot fit."""

    @abstractmethod
    def _sums(self, scores: Scores, n: int) -> tuple[float, Floats]:
        """log Z and the probability of each arc, for checked scores. Raises InfeasibleError."""

    def _tools_for(self, n: int) -> _Tools:
        """Tools for n tokens, kept by this thread unless they are large."""
        kept = self._kept
        if n <= kept.tools.size:
            return kept.tools
        size = n if n > kept.most else min(kept.most, max(n, 2 * kept.tools.size, 32))
        room, some = self._room(size), np.empty(2)
        tools = _Tools(size, entry_of(self._kernels().best_heads, some, 1, room, np.empty(1, _INT)), room)
        if size <= kept.most:
            kept.tools = tools
        return tools

    def n_parts(self, shape: tuple[int, ...]) -> int:
        """n * (n + 1), the parts of tokens that head themselves included; those are never on."""
        (n,) = checked_sizes(shape, "tokens")
        return n * (n + 1)

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best tree. Raises DataError for other than n * (n + 1) finite scores, and before what cannot fit."""
        (n,) = checked_sizes(shape, "tokens")
        scores = shaped_scores(scores, n * (n + 1), shape)
        size, search, room = self._kept.tools
        if n > size:
            _, search, room = self._tools_for(n)
        heads = np.empty(n, _INT)
        if not search(scores, self._single, room, heads):
            checked_scores(scores, n * (n + 1), shape)  # says which one is not finite
        return heads

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best tree of each instance, in one compiled call."""
        sizes = checked_table(shapes, "tokens")[:, 0]
        scores, offsets = shaped_batch(scores, offsets, sizes * (sizes + 1))
        ends = ends_of(sizes)
        heads = np.empty(int(ends[-1]), _INT)
        if len(sizes):
            room = self._tools_for(int(sizes.max())).room
            if not self._kernels().best_trees(scores, offsets, sizes, self._single, room, heads):
                checked_batch(scores, offsets, sizes * (sizes + 1))  # says which one is not finite
        return heads, ends

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """One arc per token. ValueError for heads that are not such a tree, or have several roots where single_root holds."""
        n = shape[0]
        if labels.shape != (n,):
            raise ValueError(f"expected {n} heads, one per token, got shape {labels.shape}")
        if n and not (labels.min() >= 0 and labels.max() <= n):
            raise ValueError(f"heads must lie in 0..{n} (0 is the root), got {labels.min()}..{labels.max()}")
        roots = int(np.count_nonzero(labels == 0))
        if self.single_root and roots > 1:
            raise ValueError(f"expected one token with head 0, got {roots}")
        above = np.concatenate(([0], labels))  # each round doubles the height that has been climbed
        for _ in range(n.bit_length()):
            above = above[above]
        if above.any():
            raise ValueError(f"no tree: following the heads from token {int(above.argmax())} upwards never reaches the root")
        self._refuse(labels)
        return arcs_of(labels)

    def _refuse(self, heads: Labels) -> None:
        """Raise ValueError for a tree that is not an output. A child that changed `parts` would lose `parts_batch`."""

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each output, flat, in one compiled call."""
        from structpred.oracles.trees._tree_kernels import grid_parts

        out = np.empty(len(labels), np.int64)
        grid_parts(labels, ends, checked_table(shapes, "tokens")[:, 0] + 1, out)
        return out, ends

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """log Z, and the probability of each arc; stable for any scores.

        Raises InfeasibleError where every tree uses a forbidden arc.
        """
        return self._sums(*arc_scores(scores, shape))  # a child that changed `marginals` would lose compiled steps

    project = nearest_mixture

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """n tokens, each labelled with its head, 0..n."""
        return shape[0], shape[0] + 1
