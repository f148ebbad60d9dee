"""Between the group lasso and the squared norm: groups with little use are left out, the others shrink."""

import numpy as np

from structpred.core.products import dot
from structpred.core.types import Floats
from structpred.objectives.regularisers.group_norms import GroupNorms, nearer_to_the_truth
from structpred.projections.prox.entries import checked_share, prox_elastic_net


class ElasticNetMKL(GroupNorms):
    """r(w) = sum_k (1 - share) |w_k| + share/2 |w_k|^2 (Tomioka and Suzuki 2010).

    Its conjugate is sum_k max(|u_k| - (1 - share), 0)^2 / (2 share); for the share 0 it is that of the group lasso.
    """

    name = "elastic_net_mkl"

    def __init__(self, share: float = 0.5) -> None:
        self.share = checked_share(share)

    @property
    def strong_convexity(self) -> float:  # type: ignore[override]
        """The square's share."""
        return self.share

    def group_value(self, norms: Floats) -> float:
        """The two sums."""
        return (1.0 - self.share) * float(norms.sum()) + 0.5 * self.share * dot(norms, norms)

    def group_prox(self, norms: Floats, step: float) -> Floats:
        """Soft thresholds, then a shrinkage."""
        return prox_elastic_net(norms, step, self.share)

    def group_bound(self, loss: float, lam: float, norms: Floats) -> float:
        """From the point itself, or after a move towards the truth to where the conjugate is 0."""
        largest, free = float(norms.max()), 1.0 - self.share
        moved = nearer_to_the_truth(loss, largest / free if free else np.inf if largest else 0.0)
        if self.share == 0.0:
            return moved
        above = np.maximum(norms - free, 0.0)
        return max(moved, loss - lam * dot(above, above) / (2.0 * self.share))

    def reach(self, value: float) -> float:
        """The root of (1 - share) x + share/2 x^2 = value, which is least where one group has all of the norm."""
        free = 1.0 - self.share
        return 2.0 * value / (free + float(np.sqrt(free * free + 2.0 * self.share * value))) if value > 0.0 else 0.0
