"""What regularisers share that depend on the Euclidean norms of the groups alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Self, cast

import numpy as np

from structpred.core.regulariser import DualMap, Pieces, Regulariser, pieces_of
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.projections.prox.groups import prox_of_group_norms


class Grouped:
    """What regularisers share that know the groups of the weights.

    Attributes
    ----------
    groups : array (K + 1,)
        Where the groups end, from 0 on; set by `grouped`.
    """

    groups: Integers | None = None

    def grouped(self, groups: Integers, names: Sequence[str]) -> Self:
        """With these groups."""
        new = copy(self)
        new.groups = np.array(groups, np.int64)
        return new

    @property
    def ends(self) -> Integers:
        """The groups. Raises ParameterError where they were never given."""
        if self.groups is None:
            raise ParameterError(f"{type(self).__name__} needs the groups of the weights: call grouped(groups, names) first")
        return self.groups

    def norms(self, pieces: Pieces) -> Floats:
        """The Euclidean norm of each group of a vector in pieces."""
        found: Floats = np.sqrt(DualMap.of(self.ends[1:], 1.0).squares(pieces))
        return found


class GroupNorms(Grouped, Regulariser, ABC):
    """r(w) = f(|w_1|, ..., |w_K|) over the groups of the feature map, with an f that does not fall where a norm rises.

    A subclass writes f, its prox and the bound. The conjugate is f*(|u_1|, ..., |u_K|), and the prox keeps the direction of each
    group (Martins et al. 2010, Proposition 1). An empty group has the norm 0.
    """

    @abstractmethod
    def group_value(self, norms: Floats) -> float:
        """F of the norms (K,)."""

    @abstractmethod
    def group_prox(self, norms: Floats, step: float) -> Floats:
        """argmin_a |a - norms|^2 / 2 + step * f(a), all (K,)."""

    @abstractmethod
    def group_bound(self, loss: float, lam: float, norms: Floats) -> float:
        """A lower bound of the least objective, from loss and |u_k| (K,): loss - lam f*(norms), or a better one."""

    def value(self, w: Vector) -> float:
        """F of the groups' norms."""
        return self.group_value(self.norms(pieces_of(w)))

    def prox(self, w: Vector, step: float) -> Vector:
        """Each group keeps its direction."""
        found = prox_of_group_norms(self.group_prox, w.astype(np.float64), self.ends, step)
        return cast(Vector, found.astype(w.dtype))

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """As `group_bound`."""
        return self.group_bound(loss, lam, self.norms(u))


def nearer_to_the_truth(loss: float, dual_norm: float) -> float:
    """The best t * loss, 0 <= t <= 1, with t * dual_norm <= 1: the bound where r is a norm.

    The conjugate of a norm is 0 where the dual norm of u is at most 1, inf elsewhere. Dual points may be moved towards that of
    the true outputs, whose loss and u are 0.

    >>> nearer_to_the_truth(3.0, 2.0), nearer_to_the_truth(3.0, 0.5), nearer_to_the_truth(3.0, np.inf)
    (1.5, 3.0, 0.0)
    """
    return max(loss, 0.0) / max(1.0, dual_norm)


def dual_norm(residual: Callable[[float], tuple[float, float]]) -> float:
    """1 / t for the largest t in (0, 1] at which a residual is at most 1; a smaller number than 1 only where that is known.

    residual: from t to (its value, its slope); convex, rising, 0 at 0. Newton's method from 1 comes down to the root without
    passing it; the value v at the last t makes t / v safe, by convexity.

    >>> round(dual_norm(lambda t: ((2.0 * t) ** 2, 8.0 * t)), 12)
    2.0
    """
    t = 1.0
    value, slope = residual(t)
    for _ in range(60):
        if value <= 1.0 + 1e-13:
            break
        t -= (value - 1.0) / slope
        value, slope = residual(t)
    return max(value, 1.0) / t if t < 1.0 else value
