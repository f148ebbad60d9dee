"""Proximal operator of the elastic net."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.projections.checked import checked_point, checked_step
from structpred.projections.prox.squared_l1 import shrunk


def prox_elastic_net(point: npt.ArrayLike, step: float, share: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * ((1 - share) sum_i |x_i| + share/2 sum_i x_i^2).

    point: (n,). share: that of the square, from 0 to 1. O(n). Raises DataError for a point that is empty, not 1-d or not finite,
    ParameterError for a step that is not finite and at least 0 and for a share outside [0, 1].

    >>> prox_elastic_net([3.0, -0.5], 1.0, 0.5).round(6).tolist()
    [1.666667, 0.0]
    """
    x, step, share = checked_point(point), checked_step(step), checked_share(share)
    return shrunk(x, step * (1.0 - share)) / (1.0 + step * share)


def checked_share(share: float) -> float:
    """A share: a number from 0 to 1, else ParameterError.

    >>> checked_share(1)
    1.0
    """
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0.0 <= share <= 1.0:
        raise ParameterError(f"expected share to be a number from 0 to 1, got {share!r}")
    return float(share)
