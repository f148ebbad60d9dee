"""Proximal operators of squared norms.

All take a point (n,). They raise DataError for a point that is empty, not 1-d or not finite, ParameterError for a step that is
not finite and at least 0. Groups are those of `structpred.projections.prox.groups`.
"""

import numpy as np

from structpred.core.types import ArrayLike, Floats
from structpred.errors import DataError
from structpred.projections.checked import checked_point
from structpred.projections.prox.entries import checked_exponent, shrunk
from structpred.projections.prox.groups import prox_of_group_norms
from structpred.runtime.settings import checked_nonnegative


def prox_squared_l1(point: ArrayLike, step: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_i |x_i|)^2, by Algorithm 2 of Martins et al. (2010).

    All entries move by one threshold towards 0, which some reach. Algorithm 2 has the 1/2, as equation 7 does; line 7 of
    Algorithm 3 as printed leaves it out. O(n log n). DataError also for a point that is too large to be added up.

    >>> prox_squared_l1([3.0, -1.0, 1.0], 1.0).tolist()
    [1.5, 0.0, 0.0]
    """
    x, step = checked_point(point), checked_nonnegative(step, "step")
    if step == 0.0:
        return x.copy()
    y = np.sort(np.abs(x))[::-1]  # 2: the largest first
    return shrunk(x, _threshold(y, np.ones(len(y)), step))


def prox_weighted_squared_l1(point: ArrayLike, step: float, weights: ArrayLike) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_i weights_i |x_i|)^2, by Algorithm 4 of Martins et al. (2010).

    In its terms a_r = weights_r^2 and u_r = x_r / weights_r: equations 29 to 37 minimise
    sum_r a_r (u_r - u_0r)^2 / 2 + step/2 (sum_r a_r u_r)^2. weights: (n,), >= 0, else DataError; 0 leaves its entry as it is.
    O(n log n).

    >>> prox_weighted_squared_l1([3.0, -1.0, 1.0], 1.0, [1.0, 1.0, 0.0]).tolist()
    [1.5, 0.0, 1.0]
    """
    x, d, step = checked_point(point), checked_point(weights), checked_nonnegative(step, "step")
    if len(x) != len(d) or (d < 0.0).any():
        raise DataError(f"expected {len(x)} weights >= 0 like the point, got {len(d)}, the least {d.min():g}")
    used = d > 0.0  # the others have no u
    if step == 0.0 or not used.any():
        return x.copy()
    u, a = np.abs(x[used]) / d[used], d[used] ** 2
    order = np.argsort(-u)
    return shrunk(x, d * _threshold((a * u)[order], a[order], step))


def _threshold(sizes: Floats, masses: Floats, step: float) -> float:
    """The largest of sum sizes / (1 / step + sum masses) over all first entries: they rise up to rho, and fall from there."""
    with np.errstate(over="ignore"):
        tops, bottoms = np.cumsum(sizes), 1.0 / step + np.cumsum(masses)
    if not tops[-1] < np.inf > bottoms[-1]:
        raise DataError(f"the point is too large to be added up: its largest size is {sizes.max():g}")
    return float((tops / bottoms).max())


def prox_squared_lp(point: ArrayLike, step: float, p: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_i |x_i|^p)^(2/p).

    The sizes solve x + c x^(p-1) = |point_i| with c = step |x|_p^(2-p): Newton's method for log c, and for each size within it.
    p: above 1, also above 2; else ParameterError. O(n) a round, about six rounds.

    >>> prox_squared_lp([3.0, -1.0], 1.0, 2.0).round(6).tolist()
    [1.5, -0.5]
    >>> prox_squared_lp([3.0, -1.0], 1.0, 1.2).round(6).tolist()
    [1.479583, -0.104734]
    """
    from structpred.projections.prox._prox_kernels import sizes_of_squared_norm

    x, step, p = checked_point(point), checked_nonnegative(step, "step"), checked_exponent(p, "p")
    used = x != 0.0
    if step == 0.0 or not used.any():
        return x.copy()
    found = np.zeros_like(x)
    found[used] = np.copysign(sizes_of_squared_norm(np.log(np.abs(x[used])), np.log(step), p), x[used])
    return found


def prox_squared_l2p(point: ArrayLike, step: float, ends: ArrayLike, p: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_g |x[ends[g]:ends[g + 1]]|_2^p)^(2/p).

    The form of `prox_squared_lp` over groups.

    >>> prox_squared_l2p([3.0, 4.0, 1.0], 1.0, [0, 2, 3], 2.0).round(6).tolist()
    [1.5, 2.0, 0.5]
    """
    return prox_of_group_norms(lambda norms, s: prox_squared_lp(norms, s, p), point, ends, step)


def prox_squared_l21(point: ArrayLike, step: float, ends: ArrayLike) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_g |x[ends[g]:ends[g + 1]]|_2)^2.

    The form of `prox_squared_l1` over groups.

    >>> prox_squared_l21([3.0, 4.0, 0.5], 1.0, [0, 2, 3]).tolist()
    [1.5, 2.0, 0.0]
    """
    return prox_of_group_norms(prox_squared_l1, point, ends, step)
