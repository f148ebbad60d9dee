# mypy: ignore-errors
"""A look at the scores of one sentence, before a search that reads them anyway."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True, borrows=True)
def all_finite(scores):
    """Whether no number is NaN or infinite, without branches."""
    bad = 0
    for i in range(scores.shape[0]):
        bad += not abs(scores[i]) < np.inf
    return bad == 0
