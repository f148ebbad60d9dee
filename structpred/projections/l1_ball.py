"""Projection onto the ball of the sum of absolute values."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.projections.checked import checked_point, checked_size
from structpred.projections.simplex import project_onto_simplex


def project_onto_l1_ball(point: npt.ArrayLike, radius: float) -> Floats:
    """min_x |point - x|^2  subject to  sum |x_i| <= radius.

    point: (n,). Outside, x has the signs of the point and the sizes of its projection on the simplex (Duchi, Shalev-Shwartz,
    Singer and Chandra 2008). O(n log n). Raises DataError for a point that is empty, not 1-d or not finite, ParameterError for a
    radius that is not above 0.

    >>> project_onto_l1_ball([3.0, -2.0, 0.5], 2.0).tolist()
    [1.5, -0.5, 0.0]
    """
    found, radius = checked_point(point), checked_size(radius, "radius")
    sizes = np.abs(found)
    with np.errstate(over="ignore"):
        if sizes.sum() <= radius:
            return found.copy()
    return np.sign(found) * (radius * project_onto_simplex(sizes / radius))
