"""Projection onto the top-k simplex of Lapin, Hein and Schiele."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.projections.capped_simplex import project_onto_capped_simplex
from structpred.projections.checked import checked_point, checked_size


def project_onto_topk_simplex(point: npt.ArrayLike, k: int, radius: float = 1.0) -> Floats:
    """min_x |point - x|^2  subject to  x >= 0, sum x <= radius, x_i <= (1/k) sum x for each i.

    point: (n,). The dual set of the top-k hinge loss with max(0, .) (Lapin, Hein and Schiele 2015, definition 2); for k = 1 the
    simplex filled up to 0, for k > n the point 0 alone. The nearest point of the cone without the radius is tried first; where
    its sum is larger, the sum is the radius and the set a capped simplex. In the cone, the u largest entries are at the cap, the
    next ones are point + lam, the others 0; each u is solved for all numbers of next ones at once: O(n log n + k n).
    Raises DataError for a point that is empty, not 1-d or not finite, ParameterError for k < 1 and radii that are not above 0.

    >>> project_onto_topk_simplex([0.5, 0.1, 0.0], 2).round(6).tolist()
    [0.366667, 0.233333, 0.133333]
    """
    found = checked_point(point)
    radius = checked_size(radius, "radius")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError(f"expected k to be a whole number of at least 1, got {k!r}")
    if k > len(found):
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
