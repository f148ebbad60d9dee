"""Working memory of the tree oracles; what cannot fit is refused before it is allocated."""

from typing import NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.runtime.memory import check_fits

#: scratch for sentences up to this length may stay allocated between calls (up to 4 MiB per thread, as far as it is used)
KEPT = 500
#: the same for projective trees (2 MiB per thread)
KEPT_PROJECTIVE = 250
#: rows of `marks`
MARKS = 8


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
