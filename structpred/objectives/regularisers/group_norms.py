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

#: no scale is below this share of the largest: a group whose scale is zero would never return
FLOOR = 1e-9
#: an exponent grows while the norm of its group stays on one side of its goal, and shrinks when it changes sides
GROWTH, SHRINKAGE, LEAST, MOST = 1.2, 0.5, 0.5, 60.0
#: no scale is multiplied or divided by more than this at once
FACTOR = 2.0


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
        return np.sqrt(DualMap.of(self.ends[1:], 1.0).squares(pieces))


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


class Reweighted:
    """Scales for batch trainers: r(w) is nearly sum_j w_j^2 / (2 s_j) plus a constant where s_j = |w_j| / (dr / d|w_j|).

    At the optimum abs(u_j) is that slope, so each scale moves between passes by a power of abs(u_j) / slope, its own one. The
    certificate is that of r itself, whatever the scales are. Weights that vanish become tiny, and zero at a proximal step. A
    subclass writes `slopes`, from the norms of groups, or of single weights where `ends` are theirs.
    """

    adapts = True

    def slopes(self, norms: Floats) -> Floats:
        """The derivative of r by each of the norms."""
        raise NotImplementedError

    def dual_map(self) -> DualMap:
        """w_k = s_k u_k with equal scales, the first ones."""
        return DualMap.of(self.ends[1:], 1.0)  # type: ignore[attr-defined]

    def first_memory(self, n_groups: int) -> Floats:
        """Exponent of each group, and the side of its goal on which its norm was: neither yet."""
        return np.tile([1.0, 0.0], (n_groups, 1))

    def rescale(self, scale: Floats, memory: Floats, squares: Floats) -> tuple[Floats, Floats]:
        """The scales of the next pass."""
        norms = np.sqrt(squares)
        if not norms.any():
            return scale, memory
        goal = self.slopes(scale * norms)
        ratio = np.full(len(scale), -np.inf)
        np.log(np.divide(norms, goal, out=np.full(len(scale), np.inf), where=goal > 0.0), out=ratio, where=norms > 0.0)
        moved, memory = moved_scales(scale, memory, ratio)
        return np.maximum(np.exp(moved), FLOOR * np.exp(moved.max())), memory


def moved_scales(scale: Floats, memory: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """(logarithms of new scales, memory): each moves by its ratio, a logarithm, times an exponent of its own."""
    side = np.sign(ratio)
    turned = side * memory[:, 1]
    exponent = np.clip(memory[:, 0] * np.where(turned > 0, GROWTH, np.where(turned < 0, SHRINKAGE, 1.0)), LEAST, MOST)
    moved = np.log(scale) + np.clip(exponent * ratio, -np.log(FACTOR), np.log(FACTOR))
    return moved, np.stack([exponent, side], axis=1)


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
