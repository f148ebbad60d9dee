"""Projection onto a box with one linear equality, in linear time."""

from typing import NamedTuple

import numpy as np

from structpred.core.types import ArrayLike, Floats
from structpred.errors import DataError, InfeasibleError, ParameterError

#: what is left of the equality, in proportion to its terms: Newton's method ends at the first, at most the second is accepted
_REACHED, _ACCEPTED = 1e-15, 1e-12
_MAX_ITER = 30
#: boxes with more entries start Newton's method from the root of a sample of this size
_SAMPLE = 2048


class BoxPoint(NamedTuple):
    """A point of a box with an equality. point: (n,). multiplier: the equality's, where the next search may start."""

    point: Floats
    multiplier: float


def project_onto_box(
    point: ArrayLike, lower: ArrayLike, upper: ArrayLike, normal: ArrayLike, total: float, metric: ArrayLike = 1.0
) -> Floats:
    """min_a sum_i metric_i^2 (a_i - point_i)^2  subject to  lower <= a <= upper, <normal, a> = total.

    The point of `nearest_in_box`, whose arguments, accuracy and errors it shares.

    >>> project_onto_box([0.5, 0.5, 0.5], 0.0, 1.0, [1.0, 1.0, -1.0], 0.0).round(9).tolist()
    [0.333333333, 0.333333333, 0.666666667]
    """
    return nearest_in_box(point, lower, upper, normal, total, metric).point


def nearest_in_box(
    point: ArrayLike, lower: ArrayLike, upper: ArrayLike, normal: ArrayLike, total: float, metric: ArrayLike = 1.0,
    start: float | None = None,
) -> BoxPoint:  # fmt: skip
    """min_a sum_i metric_i^2 (a_i - point_i)^2  subject to  lower <= a <= upper, <normal, a> = total.

    point: (n,), n >= 1. lower, upper, normal, metric: (n,) or one number; bounds may be infinite, normals zero or negative.
    start: the multiplier of a call like this one.

    The solution is a_i = clip(point_i + normal_i lam / metric_i^2, lower_i, upper_i); <normal, a> does not fall with lam and is
    linear between 2 n kinks (Saha, Zhang and Vishwanathan 2009, appendix B). Newton's method finds lam in a few passes, from
    `start` or from the root of a sample. Where it ends on a kink and is not right to 1e-12 of the terms, the kinks are halved
    around the median of some of them until none is left (algorithm 2, with its loop over repeated kinks and its last division
    repaired). O(n) either way.

    Raises DataError for arrays of other shapes, NaN, an infinite point or normal and bounds that cross, ParameterError for
    total and metrics that are not finite or not positive, InfeasibleError where no point of the box has this total.

    >>> nearest_in_box([3.0, 1.0, -1.0], 0.0, np.inf, 1.0, 1.0).point.tolist()
    [1.0, 0.0, 0.0]
    """
    from structpred.projections._box_kernels import LANES, by_kinks, evaluate, fill, newton

    arrays = _checked(point, lower, upper, normal, total, metric)
    lam = 0.0 if start is None or not np.isfinite(start) else float(start)
    stride = len(arrays[0]) // _SAMPLE
    if start is None and stride > 1:
        lam, _ = newton(*arrays, total / stride, stride, lam, _MAX_ITER, 1e-6)
    lam, left = newton(*arrays, float(total), 1, lam, _MAX_ITER, _REACHED)
    if left > _ACCEPTED:
        lam, missing = by_kinks(*arrays, float(total))
        if abs(missing) > _ACCEPTED * (evaluate(*arrays, 1, lam, np.empty((3, LANES)))[2] + abs(total)):
            raise InfeasibleError(
                f"<normal, a> = {total:.9g} is out of reach in this box: its {'smallest' if missing > 0 else 'largest'} value is "
                f"{total + missing:.9g}"
            )
        lam, _ = newton(*arrays, float(total), 1, lam, 3, 0.0)  # by_kinks adds up in pieces, this at once
    found = np.empty(len(arrays[0]))
    fill(*arrays, lam, found)
    return BoxPoint(found, lam)


def _checked(
    point: ArrayLike, lower: ArrayLike, upper: ArrayLike, normal: ArrayLike, total: float, metric: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """point, normal, normal / metric^2, lower, upper."""
    from structpred.projections._box_kernels import prepare

    m = np.ascontiguousarray(point, dtype=np.float64)
    if m.ndim != 1 or not m.size:
        raise DataError(f"expected a point (n,) with at least one entry, got shape {m.shape}")
    named = {"normal": normal, "metric": metric, "lower": lower, "upper": upper}
    s, d, low, high = (_as_long(x, len(m), name) for name, x in named.items())
    if not np.isfinite(total):
        raise ParameterError(f"expected a finite total, got {total!r}")
    t = np.empty(len(m))
    if (i := prepare(m, s, d, low, high, t)) < 0:
        return m, s, t, low, high
    if not (np.isfinite(d[i]) and d[i] > 0):
        raise ParameterError(f"expected metrics > 0, got {d[i]} for entry {i}")
    raise DataError(
        f"expected a finite point and normal, and lower <= upper; entry {i} has the point {m[i]}, the normal {s[i]} and the "
        f"bounds {low[i]} and {high[i]}"
    )


def _as_long(x: ArrayLike, n: int, name: str) -> Floats:
    array = np.asarray(x, dtype=np.float64)
    if array.ndim == 0:
        return np.full(n, float(array))
    if array.shape != (n,):
        raise DataError(f"expected {name} to be one number or an array ({n},) like the point, got shape {array.shape}")
    return np.ascontiguousarray(array)
