"""Projections onto the simplex, with caps on its entries, and filled up to 0.

All raise DataError for a point that is empty, not 1-d or not finite.
"""

import numpy as np

from structpred.core.types import ArrayLike, Floats
from structpred.errors import InfeasibleError
from structpred.projections.box import project_onto_box
from structpred.projections.checked import checked_point
from structpred.runtime.settings import checked_positive, checked_whole


def project_onto_simplex(point: ArrayLike) -> Floats:
    """min_mu |point - mu|^2  subject to  mu >= 0, sum mu = 1.

    The solution is mu = max(point - tau, 0) with the tau that makes the sum 1; tau = (sum of the k largest - 1) / k for the
    largest k that leaves the k-th positive (Held, Wolfe, Crowder 1974). O(n log n).

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
    return np.maximum(shifted - tau, 0.0)


def project_onto_capped_simplex(point: ArrayLike, cap: float, total: float = 1.0) -> Floats:
    """min_x |point - x|^2  subject to  0 <= x <= cap, sum x = total.

    point: (n,). With cap 1/k and total 1 it is the dual set of the top-k hinge loss as a maximum over k labels. A box with one
    equality: O(n), by `nearest_in_box`. Raises ParameterError for a cap or total that is not above 0, InfeasibleError where n
    caps are less than the total.

    >>> project_onto_capped_simplex([3.0, 1.0, 0.0], 0.5).tolist()
    [0.5, 0.5, 0.0]
    """
    found = checked_point(point)
    cap, total = checked_positive(cap, "cap"), checked_positive(total, "total")
    if len(found) * cap < total * (1.0 - 1e-12):
        raise InfeasibleError(f"{len(found)} entries of at most {cap:g} cannot have the sum {total:g}")
    if len(found) * cap <= total:
        return np.full(len(found), cap)
    return project_onto_box(found, 0.0, cap, 1.0, total)


def project_onto_topk_simplex(point: ArrayLike, k: int, radius: float = 1.0) -> Floats:
    """min_x |point - x|^2  subject to  x >= 0, sum x <= radius, x_i <= (1/k) sum x for each i.

    point: (n,). The dual set of the top-k hinge loss with max(0, .) (Lapin, Hein and Schiele 2015, definition 2); for k = 1 the
    simplex filled up to 0, for k > n the point 0 alone. The nearest point of the cone without the radius is tried first; where
    its sum is larger, the sum is the radius and the set a capped simplex. In the cone, the u largest entries are at the cap, the
    next ones are point + lam, the others 0; each u is solved for all numbers of next ones at once: O(n log n + k n).
    Raises ParameterError for k < 1 and radii that are not above 0.

    >>> project_onto_topk_simplex([0.5, 0.1, 0.0], 2).round(6).tolist()
    [0.366667, 0.233333, 0.133333]
    """
    found = checked_point(point)
    radius = checked_positive(radius, "radius")
    if checked_whole(k, "k") > len(found):
        return np.zeros(len(found))
    in_cone = _in_cone(found, int(k))
    return in_cone if in_cone.sum() <= radius else project_onto_capped_simplex(found, radius / k, radius)


def _in_cone(point: Floats, k: int) -> Floats:
    """The same without the radius. The multiplier lam of the sum and the sum s solve s = u s/k + sum of the next ones + c lam and
    lam = (sum of the u largest + u lam - u s/k) / k, for c next ones."""
    order = np.argsort(-point, kind="stable")
    high, n = point[order], len(point)
    sums = np.concatenate(([0.0], np.cumsum(high)))
    if sums[k] <= 0.0:
        return np.zeros(n)
    best, least = (sums[k] / k, 0.0, k, 0), np.inf  # the k largest at the cap, which is their mean, all others 0
    if k == n or high[k - 1] - high[k] >= sums[k] / k:
        least = 0.0
    padded = np.concatenate(([np.inf], high, [-np.inf]))
    for u in range(k if least else 0):
        c = np.arange(n - u + 1)
        free, middle = 1.0 - u / k, sums[u:] - sums[u]
        s = (free * middle + c * sums[u] / k) / (free**2 + c * u / k**2)
        lam = (free * sums[u] / k - u / k**2 * middle) / (free**2 + c * u / k**2)
        # how far entries are on the wrong side of 0, and of the cap s / k
        wrong = np.maximum(padded[u + c + 1] + lam, -(padded[u + c] + lam))
        wrong = np.maximum(wrong, (s / k - lam) - padded[u])
        wrong = np.maximum(wrong, np.where(c > 0, padded[u + 1] + lam - s / k, -np.inf))
        at = int(wrong.argmin())
        if s[at] >= 0.0 and wrong[at] < least:
            best, least = (float(s[at]) / k, float(lam[at]), u, int(c[at])), float(wrong[at])
    cap, lam_, u, n_next = best
    x = np.zeros(n)
    x[order[:u]] = cap
    x[order[u : u + n_next]] = np.clip(high[u : u + n_next] + lam_, 0.0, cap)
    return x
