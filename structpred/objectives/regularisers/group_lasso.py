"""The sum of the groups' norms: few groups in use."""

import numpy as np

from structpred.core.types import Floats
from structpred.objectives.regularisers.group_norms import GroupNorms, nearer_to_the_truth
from structpred.objectives.regularisers.l1 import L1
from structpred.projections.prox.entries import prox_l1


class GroupLasso(GroupNorms):
    """r(w) = mu sum_k |w_k|, the l2,1 norm (Yuan and Lin 2006). Its conjugate is 0 where all |u_k| <= mu, inf elsewhere."""

    name = "group_lasso"

    def __init__(self, mu: float = 1.0) -> None:
        self.mu = L1(mu).mu

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
