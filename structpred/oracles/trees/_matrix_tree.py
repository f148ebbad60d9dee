"""Sums over all trees of a sentence, by the matrix-tree theorem."""

import numpy as np

from structpred.core.oracle import Scores
from structpred.core.scores import checked_sums
from structpred.core.types import Floats
from structpred.errors import InfeasibleError
from structpred.runtime.memory import check_fits


def matrix_tree_scratch(n: int) -> Floats:
    """The working memory of `tree_marginals` for up to n tokens: (8 n + 130, n + 1) float64.

    Raises DataError where it cannot fit.
    """
    check_fits(8 * (8 * n + 130) * (n + 1), f"marginals of the trees of {n:,} tokens")
    return np.empty((8 * n + 130, n + 1))


def matrix_tree(scores: Scores, n: int, single_root: bool) -> tuple[float, Floats]:
    """log of the sum of exp(score) over all trees of n tokens, and the probability of each arc, (n * (n + 1),). O(n^3).

    scores[(m - 1) * (n + 1) + h] belongs to the arc from head h to token m; -1e30 forbids it. Every marginal has a small relative
    error, however small it is and whatever the scores are, up to n * |score| = 1e16; with both a single root and forbidden arcs
    a small absolute one (1e-11 at most).
    Raises InfeasibleError if no tree is left, DataError where the working memory cannot fit, or where scores lie too far apart.

    >>> log_z, mu = matrix_tree(np.zeros(2 * 3), 2, True)  # 0 -> 1 -> 2 and 0 -> 2 -> 1
    >>> round(float(np.exp(log_z)), 9), mu.tolist()
    (2.0, [0.5, 0.0, 0.5, 0.5, 0.5, 0.0])
    """
    from structpred.oracles.trees._matrix_tree_kernels import tree_marginals

    work, mu = matrix_tree_scratch(n), np.zeros(len(scores))
    log_z = tree_marginals(scores, n, single_root, work, mu)
    if log_z == -np.inf:
        raise InfeasibleError("every tree uses a forbidden arc (a score of -1e30): no marginals exist")
    return checked_sums(log_z, mu, scores, (n,))
