"""Few groups in use, and few weights within these."""

from typing import cast

import numpy as np

from structpred.core.regulariser import Pieces, Regulariser, pieces_of
from structpred.core.weights import Vector
from structpred.objectives.regularisers.group_norms import Grouped, dual_norm, nearer_to_the_truth
from structpred.projections.prox.entries import checked_share, shrunk
from structpred.projections.prox.groups import group_norms, prox_sparse_group


class SparseGroupLasso(Grouped, Regulariser):
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
