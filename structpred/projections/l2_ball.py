"""Projection onto the Euclidean ball."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.projections.checked import checked_point, checked_size


def project_onto_l2_ball(point: npt.ArrayLike, radius: float) -> Floats:
    """min_x |point - x|^2  subject to  sum x_i^2 <= radius^2.

    point: (n,). Outside, x = radius * point / |point|. O(n). Raises DataError for a point that is empty, not 1-d or not finite,
    ParameterError for a radius that is not above 0.

    >>> project_onto_l2_ball([3.0, 4.0], 1.0).tolist()
    [0.6, 0.8]
    """
    found, radius = checked_point(point), checked_size(radius, "radius")
    length = norm(found)
    return found.copy() if length <= radius else radius * (found / length)


def norm(x: Floats) -> float:
    """The Euclidean norm, without overflow on the way.

    >>> norm(np.array([0.0, -3e200]))
    3e+200
    """
    largest = float(np.abs(x).max(initial=0.0))
    return largest * float(np.sqrt(np.square(x / largest).sum())) if largest > 0.0 else 0.0
