"""What everything about trees shares: scores and parts, all trees of a sentence, and working memory.

Memory that cannot fit is refused before it is allocated.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import check_listed, checked_scores, checked_sizes, checked_table
from structpred.core.types import Floats, Integers
from structpred.runtime.memory import check_fits

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


def arcs_of_each(heads: Labels, ends: Integers, shapes: Sequence[Shape]) -> Integers:
    """The same for a batch, flat, in one compiled call."""
    from structpred.oracles.trees._tree_kernels import grid_parts

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


class TreeScratch(NamedTuple):
    """What `best_tree` and `second_best` write to; a longer sentence's serves a shorter one."""

    work: Floats
    marks: Integers


def tree_scratch(n: int) -> TreeScratch:
    """Scratch for trees of n tokens: work (2n + 2, n + 2) float64 and marks (8, 2n + 2) int64; pages come as they are used.

    Raises DataError where it cannot fit.
    """
    n_rows = 2 * n + 2
    check_fits(8 * n_rows * (n + 2 + MARKS), f"parsing a sentence of {n:,} tokens")
    return TreeScratch(np.empty((n_rows, n + 2)), np.empty((MARKS, n_rows), np.int64))


def tree_room(n: int) -> Floats:
    """The same in one flat array, for `best_heads`."""
    size = (2 * n + 2) * (n + 2 + MARKS)
    check_fits(8 * size, f"parsing a sentence of {n:,} tokens")
    return np.empty(size)


def projective_scratch(n: int) -> Floats:
    """Scratch for projective trees of n tokens, or fewer: (5, n + 2, n + 2) float64. Raises DataError where it cannot fit."""
    check_fits(40 * (n + 2) ** 2, f"projective parsing of a sentence of {n:,} tokens")
    return np.empty((5, n + 2, n + 2))
