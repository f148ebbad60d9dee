"""Proximal steps one after the other."""

from collections.abc import Callable, Iterable

import numpy.typing as npt

from structpred.core.types import Floats
from structpred.projections.checked import checked_point, checked_step


def prox_chain(proxes: Iterable[Callable[[Floats, float], Floats]], point: npt.ArrayLike, step: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * sum_j f_j(x), where the steps f_1, f_2, ... in turn lead there.

    They do for the l1 norm followed by norms of groups, and for norms of groups each two of which are disjoint or nested, the
    inner ones first (Jenatton, Mairal, Obozinski and Bach 2011). For other functions the result is a step of Algorithm 1 of
    Martins et al. (2010), whose regret bounds hold, but no argmin. proxes: from a point and a step to a point. Raises DataError
    for a point that is empty, not 1-d or not finite, ParameterError for a step that is not finite and at least 0.

    >>> from structpred.projections.prox.l1 import prox_l1
    >>> prox_chain([prox_l1, prox_l1], [3.0, -0.5], 1.0).tolist()
    [1.0, 0.0]
    """
    x, step = checked_point(point).copy(), checked_step(step)
    for prox in proxes:
        x = prox(x, step)
    return x
