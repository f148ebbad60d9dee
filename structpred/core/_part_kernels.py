# mypy: ignore-errors
"""Compiled halves of a step that knows nothing but parts: costs are added, the output found is compared with the truth."""

import numpy as np

from structpred.core._sparse_kernels import coalesce
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def augment(scores, costs, loss_weight, out):
    """out = scores + loss_weight * costs; returns whether all scores are finite."""
    finite = True
    for k in range(scores.shape[0]):
        finite &= np.isfinite(scores[k])
        out[k] = scores[k] + loss_weight * costs[k]
    return finite


@njit(cache=True, nogil=True)
def compare(truth, found, constant, costs):
    """(whether `found` are parts, their loss, truth - found as parts, counts): sorted, unique, without zeros."""
    n = truth.shape[0] + found.shape[0]
    idx = np.empty(n, np.int64)
    val = np.empty(n)
    loss = 0.0
    for k in range(found.shape[0]):
        if not 0 <= found[k] < costs.shape[0]:
            return False, 0.0, idx[:0], val[:0]
        loss += costs[found[k]]
        idx[truth.shape[0] + k] = found[k]
        val[truth.shape[0] + k] = -1.0
    for k in range(truth.shape[0]):
        idx[k] = truth[k]
        val[k] = 1.0
    m = coalesce(idx, val, n, np.empty(n, np.int64), np.empty(n))
    return True, constant + loss, idx[:m], val[:m]
