"""Projection onto the clique marginals of chains, many at a time."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.projections.tree_marginals import Forest, project_forests
from structpred.runtime.ranges import ends_of


def project_onto_chain_marginals(point: Floats) -> Floats:
    """min_a sum_t |point[t] - a[t]|^2  subject to  a[t] the marginals of neighbouring labels (y_t, y_t+1) in a chain.

    point: (T - 1, m, m) for T positions and m labels, T >= 2; so is the answer. The a that are allowed: a >= 0, each table
    sums to 1, and the column sums of a table are the row sums of the next. Accuracy and errors: `project_forests`. A label's own
    score, put on the table before it or on that after it, leads to different points, but to the same marginals.

    >>> project_onto_chain_marginals(np.array([[[2.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]]])).round(6).tolist()
    [[[0.5, 0.25], [0.0, 0.25]], [[0.25, 0.25], [0.0, 0.5]]]
    """
    point = np.ascontiguousarray(point, dtype=np.float64)
    if point.ndim != 3 or point.shape[1] != point.shape[2] or not point.size:
        raise DataError(f"expected tables (T - 1, m, m) with T >= 2 positions and m >= 1 labels, got shape {point.shape}")
    chain = chain_forest(len(point) + 1, point.shape[1])
    return project_forests(point.ravel(), np.array([0, point.size]), [chain])[0].reshape(point.shape)


def project_chains(
    points: Floats, offsets: Integers, sizes: Sequence[tuple[int, int]], start: Floats | None = None, n_jobs: int = 1
) -> tuple[Floats, Floats]:
    """The same for a batch of (T, m), flat, with the multipliers; a chain of one position has its m label marginals alone.

    >>> mu, multipliers = project_chains(np.array([0.75, 0.25]), np.array([0, 2]), [(1, 2)])
    >>> mu.tolist(), multipliers.tolist()
    ([0.75, 0.25], [])
    """
    return project_forests(points, offsets, [chain_forest(*size) for size in sizes], start, n_jobs=n_jobs)


@lru_cache(maxsize=4096)
def chain_forest(length: int, n_labels: int) -> Forest:
    """The chain as a forest: tables between neighbours and no node terms; one position: the node's term alone."""
    plan = np.zeros((length - 1, 4), np.int64)
    plan[:, 0], plan[:, 1], plan[:, 2] = np.arange(length - 1), np.arange(1, length), np.arange(length - 1)
    return Forest(length, n_labels, length == 1, plan)


def chain_parts(length: int, n_labels: int) -> tuple[Integers, Integers]:
    """Variable k of the flat clique marginals counts for the chain's parts in parts[ends[k]:ends[k + 1]].

    Variable (t, i, j) for the transition part (i, j) and the label part (t + 1, j); for t = 0 for the label part (0, i), too.
    One position: the labels themselves. The parts are those of `structpred.oracles.chain`.

    >>> ends, parts = chain_parts(2, 2)
    >>> ends.tolist(), parts[ends[1] : ends[2]].tolist()  # (0, 0, 1)
    ([0, 3, 6, 9, 12], [5, 3, 0])
    """
    if length == 1:
        return np.arange(n_labels + 1), np.arange(n_labels)
    t, i, j = (grid.ravel() for grid in np.meshgrid(np.arange(length - 1), *[np.arange(n_labels)] * 2, indexing="ij"))
    ends = ends_of(np.where(t == 0, 3, 2))
    parts = np.empty(ends[-1], np.int64)
    parts[ends[:-1]] = (length + i) * n_labels + j
    parts[ends[:-1] + 1] = (t + 1) * n_labels + j
    parts[ends[:-1][t == 0] + 2] = i[t == 0]
    return ends, parts
