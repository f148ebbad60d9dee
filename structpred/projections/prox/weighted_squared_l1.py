"""Proximal operator of the squared l1 norm with a weight for each entry."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import DataError
from structpred.projections.checked import checked_point, checked_step
from structpred.projections.prox.squared_l1 import shrunk, threshold_of


def prox_weighted_squared_l1(point: npt.ArrayLike, step: float, weights: npt.ArrayLike) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_i weights_i |x_i|)^2  (Martins et al. 2010, equation 28).

    point, weights: (n,); a weight of 0 leaves its entry as it is. Entry i moves by weights_i tau towards 0: expected O(n), to
    rounding `prox_weighted_squared_l1_by_sorting`. Raises DataError for points or weights that are empty, not 1-d, not finite
    or of different lengths, and for negative weights; ParameterError for a step that is not finite and at least 0.

    >>> prox_weighted_squared_l1([3.0, -1.0, 1.0], 1.0, [1.0, 1.0, 0.0]).tolist()
    [1.5, 0.0, 1.0]
    """
    x, d, step = *_checked(point, weights), checked_step(step)
    return shrunk(x, d * threshold_of(x, d, step))


def prox_weighted_squared_l1_by_sorting(point: npt.ArrayLike, step: float, weights: npt.ArrayLike) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_i weights_i |x_i|)^2, by Algorithm 4 of Martins et al. (2010).

    In its terms a_r = weights_r^2 and u_r = x_r / weights_r: equations 29 to 37 minimise
    sum_r a_r (u_r - u_0r)^2 / 2 + step/2 (sum_r a_r u_r)^2. Arguments and errors as those of `prox_weighted_squared_l1`.
    O(n log n).

    >>> prox_weighted_squared_l1_by_sorting([3.0, -1.0, 1.0], 1.0, [1.0, 1.0, 0.0]).tolist()
    [1.5, 0.0, 1.0]
    """
    x, d, step = *_checked(point, weights), checked_step(step)
    used = d > 0.0  # the others have no u
    if step == 0.0 or not used.any():
        return x.copy()
    u, a = np.abs(x[used]) / d[used], d[used] ** 2
    order = np.argsort(-u)
    thresholds = np.cumsum((a * u)[order]) / (1.0 / step + np.cumsum(a[order]))
    return shrunk(x, d * thresholds.max())  # they rise up to rho, and fall from there


def _checked(point: npt.ArrayLike, weights: npt.ArrayLike) -> tuple[Floats, Floats]:
    x, d = checked_point(point), checked_point(weights)
    if len(x) != len(d) or (d < 0.0).any():
        raise DataError(f"expected {len(x)} weights >= 0 like the point, got {len(d)}, the least {d.min():g}")
    return x, d
