"""Proximal operator of the Euclidean norm of some entries."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import DataError
from structpred.projections.checked import checked_point, checked_step
from structpred.projections.l2_ball import norm


def prox_subset(point: npt.ArrayLike, step: float, members: npt.ArrayLike) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * (sum of x_i^2 over the members)^(1/2).

    point: (n,). members: different places in [0, n); the other entries stay. O(n). Raises DataError for a point that is empty,
    not 1-d or not finite and for members that are none, outside or repeated, ParameterError for a step that is not finite and at
    least 0.

    >>> prox_subset([3.0, 1.0, 4.0], 1.0, [0, 2]).round(6).tolist()
    [2.4, 1.0, 3.2]
    """
    x, step, where = checked_point(point).copy(), checked_step(step), np.asarray(members)
    fine = where.ndim == 1 and len(where) and where.dtype.kind in "iu" and where.min() >= 0 and where.max() < len(x)
    if not fine or len(np.unique(where)) < len(where):
        raise DataError(f"expected different places in [0, {len(x)}), at least one, got {where.ravel()[:5]}")
    length = norm(x[where])
    x[where] *= 1.0 - step / length if length > step else 0.0
    return x
