"""Projection onto the ball of the sum of the groups' Euclidean norms."""

import numpy.typing as npt

from structpred.core.types import Floats
from structpred.projections.checked import checked_size
from structpred.projections.l1_ball import project_onto_l1_ball
from structpred.projections.prox.groups import prox_of_group_norms


def project_onto_group_ball(point: npt.ArrayLike, ends: npt.ArrayLike, radius: float) -> Floats:
    """min_x |point - x|^2  subject to  sum_g |x[ends[g]:ends[g + 1]]|_2 <= radius.

    point: (n,). ends: whole numbers from 0 to n, ascending; a group may be empty. Each group keeps its direction; the norms are
    projected on the l1 ball. O(n + G log G). Raises DataError for a point that is empty, not 1-d or not finite and for ends that
    do not fit, ParameterError for a radius that is not above 0.

    >>> project_onto_group_ball([3.0, 4.0, 1.0], [0, 2, 3], 2.0).round(6).tolist()
    [1.2, 1.6, 0.0]
    """
    radius = checked_size(radius, "radius")
    return prox_of_group_norms(lambda norms, _: project_onto_l1_ball(norms, radius), point, ends, 1.0)
