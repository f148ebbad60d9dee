"""Projection onto the probability simplex, by sorting."""

import numpy as np
import numpy.typing as npt

from structpred.projections.checked import checked_point


def project_onto_simplex(point: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """min_mu |point - mu|^2  subject to  mu >= 0, sum mu = 1.

    The solution is mu = max(point - tau, 0) with the tau that makes the sum 1; tau = (sum of the k largest - 1) / k for the
    largest k that leaves the k-th positive (Held, Wolfe, Crowder 1974). O(n log n). Raises DataError for a point that is
    empty, not 1-d or not finite.

    >>> project_onto_simplex(np.array([3.0, 1.0, -1.0])).tolist()
    [1.0, 0.0, 0.0]
    """
    point = checked_point(point)
    # taken relative to the largest, so that nothing cancels; tau >= -1, so what lies lower is 0
    with np.errstate(over="ignore"):  # a difference of -inf lies lower, too
        shifted = point - point.max()
    high = np.sort(shifted[shifted > -1.0])[::-1]
    thresholds = (np.cumsum(high) - 1.0) / np.arange(1, len(high) + 1)
    tau = float(thresholds[np.flatnonzero(high > thresholds)[-1]])
    nearest: npt.NDArray[np.float64] = np.maximum(shifted - tau, 0.0)
    return nearest
