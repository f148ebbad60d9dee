"""Proximal operators of functions that depend on the Euclidean norms of groups alone."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.projections.checked import checked_ends, checked_point


def prox_of_group_norms(
    prox: Callable[[Floats, float], Floats], point: npt.ArrayLike, ends: npt.ArrayLike, step: float
) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * f(|x_1|, ..., |x_G|) with the groups x_g = x[ends[g]:ends[g + 1]].

    prox: that of f, from the norms (G,) and the step to new norms. Each group keeps its direction and takes its new norm
    (Martins et al. 2010, Proposition 1). point: (n,). ends: whole numbers from 0 to n, ascending; a group may be empty. O(n)
    and one call. Raises DataError for a point that is empty, not 1-d or not finite and for ends that do not fit.

    >>> from structpred.projections.prox.l1 import prox_l1
    >>> prox_of_group_norms(prox_l1, [3.0, 4.0, 0.5], [0, 2, 3], 1.0).round(6).tolist()
    [2.4, 3.2, 0.0]
    """
    x = checked_point(point)
    cuts = checked_ends(ends, len(x))
    norms = group_norms(x, cuts)
    factors = np.divide(prox(norms, step), norms, out=np.zeros_like(norms), where=norms > 0.0)
    found: Floats = x * np.repeat(factors, np.diff(cuts))
    return found


def group_norms(x: Floats, ends: npt.NDArray[np.int64]) -> Floats:
    """The Euclidean norm of each group x[ends[g]:ends[g + 1]], without overflow on the way; 0 for an empty group.

    >>> group_norms(np.array([3.0, 4.0, -2.0]), np.array([0, 2, 2, 3])).tolist()
    [5.0, 0.0, 2.0]
    """
    norms, filled = np.zeros(len(ends) - 1), np.diff(ends) > 0
    largest = float(np.abs(x).max(initial=0.0))
    if largest > 0.0:
        norms[filled] = largest * np.sqrt(np.add.reduceat(np.square(x / largest), ends[:-1][filled]))
    return norms
