"""Proximal operator of the sum of the groups' Euclidean norms: the group lasso's."""

import numpy.typing as npt

from structpred.core.types import Floats
from structpred.projections.prox.groups import prox_of_group_norms
from structpred.projections.prox.l1 import prox_l1


def prox_l21(point: npt.ArrayLike, step: float, ends: npt.ArrayLike) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * sum_g |x[ends[g]:ends[g + 1]]|_2.

    point: (n,). ends: whole numbers from 0 to n, ascending; a group may be empty. O(n). Raises DataError for a point that is
    empty, not 1-d or not finite and for ends that do not fit, ParameterError for a step that is not finite and at least 0.

    >>> prox_l21([3.0, 4.0, 0.5], 1.0, [0, 2, 3]).round(6).tolist()
    [2.4, 3.2, 0.0]
    """
    return prox_of_group_norms(prox_l1, point, ends, step)
