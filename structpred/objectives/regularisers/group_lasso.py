"""Few groups in use: the sum of the groups' norms, with few weights within the groups too, and as a constraint."""

from typing import cast

import numpy as np

from structpred.core.regulariser import DualMap, Pieces, Regulariser, pieces_of
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.objectives.regularisers.group_norms import Grouped, GroupNorms, Reweighted, dual_norm, nearer_to_the_truth
from structpred.objectives.regularisers.l1 import L1
from structpred.projections.balls import project_onto_l1_ball
from structpred.projections.prox.entries import checked_share, prox_l1, shrunk
from structpred.projections.prox.groups import group_norms, prox_sparse_group
from structpred.runtime.settings import checked_positive


class GroupLasso(Reweighted, GroupNorms):
    """r(w) = mu sum_k |w_k|, the l2,1 norm (Yuan and Lin 2006). Its conjugate is 0 where all |u_k| <= mu, inf elsewhere."""

    name = "group_lasso"

    def __init__(self, mu: float = 1.0) -> None:
        self.mu = L1(mu).mu

    def slopes(self, norms: Floats) -> Floats:
        """Mu."""
        return np.full(len(norms), self.mu)

    def group_value(self, norms: Floats) -> float:
        """Mu times their sum."""
        return self.mu * float(norms.sum())

    def group_prox(self, norms: Floats, step: float) -> Floats:
        """Soft thresholds."""
        return prox_l1(norms, self.mu * step)

    def group_bound(self, loss: float, lam: float, norms: Floats) -> float:
        """The loss, after a move towards the truth that makes all norms at most mu."""
        largest = float(norms.max())
        return nearer_to_the_truth(loss, largest / self.mu if self.mu else np.inf if largest else 0.0)

    def reach(self, value: float) -> float:
        """No Euclidean norm is above the sum of the groups'."""
        return value / self.mu if self.mu else np.inf


class SparseGroupLasso(Reweighted, Grouped, Regulariser):
    """r(w) = share sum_k |w_k| + (1 - share) |w|_1 (Friedman, Hastie and Tibshirani 2010).

    Its conjugate is 0 where the entries of u, each moved by 1 - share towards 0, leave no group with a norm above the share; inf
    elsewhere.
    """

    name = "sparse_group_lasso"

    def __init__(self, share: float = 0.5) -> None:
        self.share = checked_share(share)

    def value(self, w: Vector) -> float:
        """The two norms."""
        entries = sum(float(np.abs(piece).sum()) for piece in pieces_of(w))
        return self.share * float(self.norms(pieces_of(w)).sum()) + (1.0 - self.share) * entries

    def dual_map(self) -> DualMap:
        """w_j = s_j u_j with equal scales, one for each weight."""
        return DualMap.of(np.arange(1, self.ends[-1] + 1), 1.0)

    def slopes(self, norms: Floats) -> Floats:
        """1 - share, and the weight's part of the share in its group."""
        lengths = np.repeat(group_norms(norms, self.ends), np.diff(self.ends))
        return 1.0 - self.share + self.share * np.divide(norms, lengths, out=np.zeros_like(norms), where=lengths > 0.0)

    def prox(self, w: Vector, step: float) -> Vector:
        """Soft thresholds of the entries, then of the groups."""
        return cast(Vector, prox_sparse_group(w.astype(np.float64), step, self.ends, self.share).astype(w.dtype))

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """The loss, after a move towards the truth to where the conjugate is 0."""
        whole, ends = np.concatenate([np.empty(0), *u]), self.ends
        if self.share == 0.0:
            return nearer_to_the_truth(loss, float(np.abs(whole).max(initial=0.0)))

        def residual(t: float) -> tuple[float, float]:
            left = shrunk(t * whole, 1.0 - self.share)
            norms = group_norms(left, ends)
            k = int(norms.argmax())
            slope = float(left[ends[k] : ends[k + 1]] @ whole[ends[k] : ends[k + 1]])
            return float(norms[k]) / self.share, slope / (self.share * float(norms[k])) if norms[k] else 0.0

        return nearer_to_the_truth(loss, dual_norm(residual))

    def reach(self, value: float) -> float:
        """The Euclidean norm is above neither of the two."""
        return value


#: what rounding may add to the sum of the norms of float32 weights, as a share of the radius
_ROUNDED = 1e-5


class GroupBall(GroupNorms):
    """r(w) = 0 where sum_k |w_k| <= radius, inf elsewhere: the group lasso as a constraint.

    Its conjugate is radius max_k |u_k|. The strength of the regulariser has no effect.
    """

    name = "group_ball"

    def __init__(self, radius: float = 1.0) -> None:
        self.radius = checked_positive(radius, "radius")

    def group_value(self, norms: Floats) -> float:
        """0 or inf."""
        return 0.0 if float(norms.sum()) <= self.radius * (1.0 + _ROUNDED) else np.inf

    def group_prox(self, norms: Floats, step: float) -> Floats:
        """The nearest norms, whatever the step."""
        return project_onto_l1_ball(norms, self.radius)

    def group_bound(self, loss: float, lam: float, norms: Floats) -> float:
        """From the point itself, or 0 from the truth."""
        return max(0.0, loss - lam * self.radius * float(norms.max()))

    def reach(self, value: float) -> float:
        """The radius, up to rounding."""
        return self.radius * (1.0 + _ROUNDED)
