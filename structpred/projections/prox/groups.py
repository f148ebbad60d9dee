"""Proximal operators of the Euclidean norms of groups.

Group g of a point (n,) is x[ends[g]:ends[g + 1]]; ends: whole numbers from 0 to n, ascending; a group may be empty. All raise
DataError for a point that is empty, not 1-d or not finite and for ends that do not fit, ParameterError for a step that is not
finite and at least 0. O(n), and what the operators given take.
"""

from collections.abc import Callable, Iterable

import numpy as np

from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError
from structpred.projections.checked import checked_ends, checked_point
from structpred.projections.prox.entries import checked_share, prox_l1
from structpred.runtime.settings import checked_nonnegative


def prox_of_group_norms(prox: Callable[[Floats, float], Floats], point: ArrayLike, ends: ArrayLike, step: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * f(|x_1|, ..., |x_G|) with the groups x_g = x[ends[g]:ends[g + 1]].

    prox: that of f, from the norms (G,) and the step to new norms. Each group keeps its direction and takes its new norm
    (Martins et al. 2010, Proposition 1).

    >>> from structpred.projections.prox.entries import prox_l1
    >>> prox_of_group_norms(prox_l1, [3.0, 4.0, 0.5], [0, 2, 3], 1.0).round(6).tolist()
    [2.4, 3.2, 0.0]
    """
    x = checked_point(point)
    cuts = checked_ends(ends, len(x))
    norms = group_norms(x, cuts)
    factors = np.divide(prox(norms, step), norms, out=np.zeros_like(norms), where=norms > 0.0)
    return x * np.repeat(factors, np.diff(cuts))


def norm(x: Floats) -> float:
    """The Euclidean norm, without overflow on the way.

    >>> norm(np.array([0.0, -3e200]))
    3e+200
    """
    largest = float(np.abs(x).max(initial=0.0))
    return largest * float(np.sqrt(np.square(x / largest).sum())) if largest > 0.0 else 0.0


def group_norms(x: Floats, ends: Integers) -> Floats:
    """The Euclidean norm of each group x[ends[g]:ends[g + 1]], without overflow on the way; 0 for an empty group.

    >>> group_norms(np.array([3.0, 4.0, -2.0]), np.array([0, 2, 2, 3])).tolist()
    [5.0, 0.0, 2.0]
    """
    norms, filled = np.zeros(len(ends) - 1), np.diff(ends) > 0
    largest = float(np.abs(x).max(initial=0.0))
    if largest > 0.0:
        norms[filled] = largest * np.sqrt(np.add.reduceat(np.square(x / largest), ends[:-1][filled]))
    return norms


def prox_l21(point: ArrayLike, step: float, ends: ArrayLike) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * sum_g |x[ends[g]:ends[g + 1]]|_2.

    >>> prox_l21([3.0, 4.0, 0.5], 1.0, [0, 2, 3]).round(6).tolist()
    [2.4, 3.2, 0.0]
    """
    return prox_of_group_norms(prox_l1, point, ends, step)


def prox_chain(proxes: Iterable[Callable[[Floats, float], Floats]], point: ArrayLike, step: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * sum_j f_j(x), where the steps f_1, f_2, ... in turn lead there.

    They do for the l1 norm followed by norms of groups, and for norms of groups each two of which are disjoint or nested, the
    inner ones first (Jenatton, Mairal, Obozinski and Bach 2011). For other functions the result is a step of Algorithm 1 of
    Martins et al. (2010), whose regret bounds hold, but no argmin. proxes: from a point and a step to a point.

    >>> from structpred.projections.prox.entries import prox_l1
    >>> prox_chain([prox_l1, prox_l1], [3.0, -0.5], 1.0).tolist()
    [1.0, 0.0]
    """
    x, step = checked_point(point).copy(), checked_nonnegative(step, "step")
    for prox in proxes:
        x = prox(x, step)
    return x


def prox_sparse_group(point: ArrayLike, step: float, ends: ArrayLike, share: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * (share sum_g |x[ends[g]:ends[g + 1]]|_2 + (1 - share) sum_i |x_i|).

    Soft thresholds of the entries, then of the groups. share: from 0 to 1, else ParameterError.

    >>> prox_sparse_group([3.5, 4.5, 0.5], 1.0, [0, 2, 3], 0.5).round(6).tolist()
    [2.7, 3.6, 0.0]
    """
    share = checked_share(share)
    return prox_chain((lambda x, s: prox_l1(x, (1.0 - share) * s), lambda x, s: prox_l21(x, share * s, ends)), point, step)


def prox_subset(point: ArrayLike, step: float, members: ArrayLike) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * (sum of x_i^2 over the members)^(1/2).

    members: different places in [0, n), at least one, else DataError; the other entries stay.

    >>> prox_subset([3.0, 1.0, 4.0], 1.0, [0, 2]).round(6).tolist()
    [2.4, 1.0, 3.2]
    """
    x, step, where = checked_point(point).copy(), checked_nonnegative(step, "step"), np.asarray(members)
    fine = where.ndim == 1 and len(where) and where.dtype.kind in "iu" and where.min() >= 0 and where.max() < len(x)
    if not fine or len(np.unique(where)) < len(where):
        raise DataError(f"expected different places in [0, {len(x)}), at least one, got {where.ravel()[:5]}")
    length = norm(x[where])
    x[where] *= 1.0 - step / length if length > step else 0.0
    return x
