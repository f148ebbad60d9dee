"""Heads as outputs: which arrays are trees, their parts, and all of them for small sentences."""

from collections.abc import Iterator, Sequence

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import check_listed, checked_scores, checked_sizes, checked_table
from structpred.core.types import Integers


def arc_scores(scores: Scores, shape: Shape) -> tuple[Scores, int]:
    """The n * (n + 1) scores of the arcs, a row of n + 1 heads (0 is the root) for each token, and n. Raises DataError."""
    (n,) = checked_sizes(shape, "tokens")
    return checked_scores(scores, n * (n + 1), shape), n


def arcs_of(heads: Labels) -> Integers:
    """The parts that are on: (m - 1) * (n + 1) + h for each token m with head h."""
    n = len(heads)
    return np.arange(n, dtype=np.int64) * (n + 1) + heads


def arcs_of_each(heads: Labels, ends: Integers, shapes: Sequence[Shape]) -> Integers:
    """The same for a batch, flat, in one compiled call."""
    from structpred.oracles.trees._geometry_kernels import grid_parts

    out = np.empty(len(heads), np.int64)
    grid_parts(heads, ends, checked_table(shapes, "tokens")[:, 0] + 1, out)
    return out


def tree_parts(heads: Labels, n: int, single_root: bool) -> Integers:
    """The arcs of a tree. Raises ValueError for heads that are not a tree, or have several roots where one is demanded."""
    if heads.shape != (n,):
        raise ValueError(f"expected {n} heads, one per token, got shape {heads.shape}")
    if n and not (heads.min() >= 0 and heads.max() <= n):
        raise ValueError(f"heads must lie in 0..{n} (0 is the root), got {heads.min()}..{heads.max()}")
    roots = int(np.count_nonzero(heads == 0))
    if single_root and roots > 1:
        raise ValueError(f"expected one token with head 0, got {roots}")
    above = np.concatenate(([0], heads))  # each round doubles the height that has been climbed
    for _ in range(n.bit_length()):
        above = above[above]
    if above.any():
        raise ValueError(f"no tree: following the heads from token {int(above.argmax())} upwards never reaches the root")
    return arcs_of(heads)


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
