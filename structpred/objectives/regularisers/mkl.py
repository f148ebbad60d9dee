"""Multiple kernel learning: groups of weights share a norm so that few are left, or more evenly."""

import numpy as np

from structpred.core.products import dot
from structpred.core.regulariser import DualMap
from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.objectives.regularisers.group_norms import FLOOR, GroupNorms, Reweighted, moved_scales, nearer_to_the_truth
from structpred.projections.prox.entries import checked_exponent, checked_share, prox_elastic_net
from structpred.projections.prox.squares import prox_squared_l1, prox_squared_lp


class MKL(GroupNorms):
    """r(w) = 1/2 (sum_k |w_k|)^2 over the groups of weights, one group for each feature template, or kernel.

    It is the least of sum_k |w_k|^2 / (2 beta_k) over all beta >= 0 with the sum 1, found at beta_k = |w_k| / sum_k |w_k|: the
    kernel sum_k beta_k <x_k, x'_k> is learned with the weights. Its conjugate, 1/2 max_k |u_k|^2, has no gradient where groups
    tie, as they do at the optimum. So Frank-Wolfe trainers keep beta fixed during a pass and move it between passes, by

        beta_k ~ beta_k (|u_k| / mean)^e_k,   mean = sum_k beta_k |u_k|,

    each group with its own exponent: at the optimum every group in use has |u_k| = max_k |u_k|. No beta more than doubles, or
    falls by more than half, before they are normalised. The certificate is that of r itself, whatever beta is: any dual point
    bounds the optimum.

    References
    ----------
    Bach, Lanckriet and Jordan (2004), Multiple kernel learning, conic duality, and the SMO algorithm; Martins et al. (2011),
    Online learning of structured predictors with multiple kernels.

    Examples
    --------
    >>> r = MKL().grouped(np.array([0, 2, 3]), ["letters", "words"])
    >>> r.value(np.array([3.0, 4.0, -1.0]))
    18.0
    """

    name = "mkl"
    adapts = True

    def group_value(self, norms: Floats) -> float:
        """Half the squared sum."""
        return 0.5 * float(norms.sum()) ** 2

    def group_prox(self, norms: Floats, step: float) -> Floats:
        """The norms less a common threshold, where they exceed it."""
        return prox_squared_l1(norms, step)

    def group_bound(self, loss: float, lam: float, norms: Floats) -> float:
        """t loss - lam/2 (t max_k |u_k|)^2: scaled towards the truth, whose loss is zero, by the best t <= 1."""
        largest = float(norms.max())
        t = min(1.0, loss / (lam * largest**2)) if loss < lam * largest**2 else 1.0
        return t * loss - 0.5 * lam * (t * largest) ** 2

    def dual_map(self) -> DualMap:
        """w_k = beta_k u_k with equal beta, the first ones."""
        ends = self.ends[1:]
        return DualMap.of(ends, 1.0 / len(ends))

    def reach(self, value: float) -> float:
        """No Euclidean norm is above the sum of the norms of the groups."""
        return float(np.sqrt(2.0 * max(value, 0.0)))

    def first_memory(self, n_groups: int) -> Floats:
        """Exponent of each group, and the side of the mean on which its norm was: neither yet."""
        return np.tile([1.0, 0.0], (n_groups, 1))

    def rescale(self, scale: Floats, memory: Floats, squares: Floats) -> tuple[Floats, Floats]:
        """beta of the next pass; equal norms leave it as it is."""
        norms = np.sqrt(squares)
        mean = float(scale @ norms)
        if not mean > 0.0:
            return scale, memory
        with np.errstate(divide="ignore"):
            ratio = np.log(norms / mean)
        moved, memory = moved_scales(scale, memory, ratio)
        beta = np.maximum(np.exp(moved - moved.max()), FLOOR)
        return beta / beta.sum(), memory


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


class ElasticNetMKL(Reweighted, GroupNorms):
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

    def slopes(self, norms: Floats) -> Floats:
        """Of both sums."""
        return 1.0 - self.share + self.share * norms

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
