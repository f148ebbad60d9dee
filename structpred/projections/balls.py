"""Projections onto the balls of the Euclidean norm, of the sum of absolute values, and of the sum of groups' norms.

All raise DataError for a point that is empty, not 1-d or not finite, ParameterError for a radius that is not finite and above 0.
"""

import numpy as np

from structpred.core.types import ArrayLike, Floats
from structpred.projections.checked import checked_point
from structpred.projections.prox.groups import norm, prox_of_group_norms
from structpred.projections.simplex import project_onto_simplex
from structpred.runtime.settings import checked_positive


def project_onto_l2_ball(point: ArrayLike, radius: float) -> Floats:
    """min_x |point - x|^2  subject to  sum x_i^2 <= radius^2.

    point: (n,). Outside, x = radius * point / |point|. O(n).

    >>> project_onto_l2_ball([3.0, 4.0], 1.0).tolist()
    [0.6, 0.8]
    """
    found, radius = checked_point(point), checked_positive(radius, "radius")
    length = norm(found)
    return found.copy() if length <= radius else radius * (found / length)


def project_onto_l1_ball(point: ArrayLike, radius: float) -> Floats:
    """min_x |point - x|^2  subject to  sum |x_i| <= radius.

    point: (n,). Outside, x has the signs of the point and the sizes of its projection on the simplex (Duchi, Shalev-Shwartz,
    Singer and Chandra 2008). O(n log n).

    >>> project_onto_l1_ball([3.0, -2.0, 0.5], 2.0).tolist()
    [1.5, -0.5, 0.0]
    """
    found, radius = checked_point(point), checked_positive(radius, "radius")
    sizes = np.abs(found)
    with np.errstate(over="ignore"):
        if sizes.sum() <= radius:
            return found.copy()
    return np.sign(found) * (radius * project_onto_simplex(sizes / radius))


def project_onto_group_ball(point: ArrayLike, ends: ArrayLike, radius: float) -> Floats:
    """min_x |point - x|^2  subject to  sum_g |x[ends[g]:ends[g + 1]]|_2 <= radius.

    point: (n,). ends: whole numbers from 0 to n, ascending; a group may be empty. Each group keeps its direction; the norms are
    projected on the l1 ball. O(n + G log G). DataError also for ends that do not fit.

    >>> project_onto_group_ball([3.0, 4.0, 1.0], [0, 2, 3], 2.0).round(6).tolist()
    [1.2, 1.6, 0.0]
    """
    radius = checked_positive(radius, "radius")
    return prox_of_group_norms(lambda norms, _: project_onto_l1_ball(norms, radius), point, ends, 1.0)
