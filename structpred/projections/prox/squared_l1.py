"""Proximal operator of the squared l1 norm."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import DataError
from structpred.projections.checked import checked_point, checked_step


def prox_squared_l1(point: npt.ArrayLike, step: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_i |x_i|)^2.

    point: (n,). All entries move by one threshold towards 0, which some reach: expected O(n), to rounding
    `prox_squared_l1_by_sorting`. Raises DataError for a point that is empty, not 1-d, not finite or too large to be added up,
    ParameterError for a step that is not finite and at least 0.

    >>> prox_squared_l1([3.0, -1.0, 1.0], 1.0).tolist()
    [1.5, 0.0, 0.0]
    """
    x, step = checked_point(point), checked_step(step)
    return shrunk(x, threshold_of(x, np.ones(1), step))


def prox_squared_l1_by_sorting(point: npt.ArrayLike, step: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_i |x_i|)^2, by Algorithm 2 of Martins et al. (2010).

    Algorithm 2 has the 1/2, as equation 7 does; line 7 of Algorithm 3 as printed leaves it out. Point and errors as those of
    `prox_squared_l1`. O(n log n).

    >>> prox_squared_l1_by_sorting([3.0, -1.0, 1.0], 1.0).tolist()
    [1.5, 0.0, 0.0]
    """
    x, step = checked_point(point), checked_step(step)
    if step == 0.0:
        return x.copy()
    y = np.sort(np.abs(x))[::-1]  # 2: the largest first
    thresholds = np.cumsum(y) / (1.0 / step + np.arange(1, len(y) + 1))
    return shrunk(x, float(thresholds.max()))  # 3 and 4: they rise up to rho, and fall from there


def threshold_of(x: Floats, weights: Floats, step: float) -> float:
    """By how much an entry with the weight 1 moves in step/2 (sum_i weights_i |x_i|)^2; one weight may hold for all.

    Raises DataError where the sum of the sizes, or of the squared weights, overflows.

    >>> threshold_of(np.array([3.0, -1.0]), np.ones(1), 1.0)
    1.5
    """
    from structpred.projections.prox._squared_l1_kernels import threshold

    tau = float(threshold(x, weights, step)) if step > 0.0 else 0.0
    if np.isnan(tau):
        raise DataError(f"the point is too large to be added up: its largest size is {np.abs(x).max():g}")
    return tau


def shrunk(x: Floats, threshold: Floats | float) -> Floats:
    """soft(x, threshold): each entry moves by its threshold towards 0, and stays there.

    >>> shrunk(np.array([3.0, -0.5]), 1.0).tolist()
    [2.0, 0.0]
    """
    found: Floats = x - np.minimum(np.maximum(x, -threshold), threshold)  # np.clip takes longer for few entries
    return found
