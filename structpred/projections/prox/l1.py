"""Proximal operator of the l1 norm: soft thresholding."""

import numpy.typing as npt

from structpred.core.types import Floats
from structpred.projections.checked import checked_point, checked_step
from structpred.projections.prox.squared_l1 import shrunk


def prox_l1(point: npt.ArrayLike, step: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * sum_i |x_i|.

    point: (n,). O(n). Raises DataError for a point that is empty, not 1-d or not finite, ParameterError for a step that is not
    finite and at least 0.

    >>> prox_l1([3.0, -0.5], 1.0).tolist()
    [2.0, 0.0]
    """
    return shrunk(checked_point(point), checked_step(step))
