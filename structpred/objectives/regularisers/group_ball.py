"""The groups' norms within a budget."""

import numpy as np

from structpred.core.types import Floats
from structpred.objectives.regularisers.group_norms import GroupNorms
from structpred.projections.balls import project_onto_l1_ball
from structpred.projections.checked import checked_size

#: what rounding may add to the sum of the norms of float32 weights, as a share of the radius
_ROUNDED = 1e-5


class GroupBall(GroupNorms):
    """r(w) = 0 where sum_k |w_k| <= radius, inf elsewhere: the group lasso as a constraint.

    Its conjugate is radius max_k |u_k|. The strength of the regulariser has no effect.
    """

    name = "group_ball"

    def __init__(self, radius: float = 1.0) -> None:
        self.radius = checked_size(radius, "radius")

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
