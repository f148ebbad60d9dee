"""Proximal operator of the squared sum of the groups' Euclidean norms: that of multiple kernel learning."""

import numpy.typing as npt

from structpred.core.types import Floats
from structpred.projections.prox.groups import prox_of_group_norms
from structpred.projections.prox.squared_l1 import prox_squared_l1


def prox_squared_l21(point: npt.ArrayLike, step: float, ends: npt.ArrayLike) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_g |x[ends[g]:ends[g + 1]]|_2)^2.

    point: (n,). ends: whole numbers from 0 to n, ascending; a group may be empty. Expected O(n). Raises DataError for a point
    that is empty, not 1-d or not finite and for ends that do not fit, ParameterError for a step that is not finite and at least
    0.

    >>> prox_squared_l21([3.0, 4.0, 0.5], 1.0, [0, 2, 3]).tolist()
    [1.5, 2.0, 0.0]
    """
    return prox_of_group_norms(prox_squared_l1, point, ends, step)
