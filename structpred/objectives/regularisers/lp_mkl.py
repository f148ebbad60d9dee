"""Non-sparse multiple kernel learning: groups share the norm more evenly than with `mkl`."""

import numpy as np

from structpred.core.regulariser import DualMap
from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.objectives.regularisers.group_norms import GroupNorms
from structpred.objectives.regularisers.mkl import FLOOR
from structpred.projections.prox.entries import checked_exponent
from structpred.projections.prox.squares import prox_squared_lp


class LpMKL(GroupNorms):
    """r(w) = 1/2 (sum_k |w_k|^p)^(2/p) with 1 < p <= 2 (Kloft et al. 2011): towards `mkl` for p near 1, `l2` for p = 2.

    No group in use is zero. Its conjugate is 1/2 (sum_k |u_k|^q)^(2/q), q = p / (p - 1).

    It is the least of sum_k |w_k|^2 / (2 beta_k) over all beta >= 0 whose l_s norm is at most 1, s = p / (2 - p), found at
    beta_k = (|w_k| / |w|_p)^(2 - p): Frank-Wolfe trainers keep beta fixed during a pass, and take that of the weights after it.
    """

    name = "lp_mkl"
    adapts = True

    def __init__(self, p: float = 4.0 / 3.0) -> None:
        self.p = checked_exponent(p, "p")
        if self.p > 2.0:
            raise ParameterError(f"expected p to be above 1 and at most 2, got {p!r}")

    @property
    def strong_convexity(self) -> float:  # type: ignore[override]
        """That of half a squared l_p norm (Kakade, Shalev-Shwartz and Tewari 2012)."""
        return self.p - 1.0

    def group_value(self, norms: Floats) -> float:
        """Half the squared l_p norm."""
        return 0.5 * lp_norm(norms, self.p) ** 2

    def group_prox(self, norms: Floats, step: float) -> Floats:
        """Scalar equations with one common factor."""
        return prox_squared_lp(norms, step, self.p)

    def group_bound(self, loss: float, lam: float, norms: Floats) -> float:
        """After the move t towards the truth that gives the largest t loss - lam t^2 r*(u)."""
        conjugate = 0.5 * lam * lp_norm(norms, self.p / (self.p - 1.0)) ** 2
        t = 1.0 if loss >= 2.0 * conjugate else max(loss, 0.0) / (2.0 * conjugate)
        return t * loss - t * t * conjugate

    def dual_map(self) -> DualMap:
        """w_k = beta_k u_k with equal beta, the first ones."""
        ends = self.ends[1:]
        return DualMap.of(ends, float(len(ends)) ** (1.0 - 2.0 / self.p))

    def rescale(self, scale: Floats, memory: Floats, squares: Floats) -> tuple[Floats, Floats]:
        """The beta of the present weights; none is below a share of the largest, since a beta of zero would never return."""
        norms = scale * np.sqrt(squares)
        if not norms.any():
            return scale, memory
        beta = np.maximum((norms / norms.max()) ** (2.0 - self.p), FLOOR)
        return (beta / lp_norm(beta, self.p / (2.0 - self.p)) if self.p < 2.0 else scale), memory

    def reach(self, value: float) -> float:
        """No Euclidean norm is above the l_p norm of the groups'."""
        return float(np.sqrt(2.0 * max(value, 0.0)))


def lp_norm(x: Floats, p: float) -> float:
    """The l_p norm of numbers >= 0, without overflow on the way.

    >>> lp_norm(np.array([3.0, 4.0]), 2.0)
    5.0
    """
    top = float(x.max(initial=0.0))
    return top * float(((x / top) ** p).sum()) ** (1.0 / p) if top > 0.0 else 0.0
