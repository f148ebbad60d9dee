"""Multiple kernel learning: the squared sum of the norms of the groups of weights, which leaves few groups."""

import numpy as np

from structpred.core.regulariser import DualMap
from structpred.core.types import Floats
from structpred.objectives.regularisers.group_norms import GroupNorms
from structpred.projections.prox.squares import prox_squared_l1

#: no scale is below this share of the largest: a group whose scale is zero would never return
FLOOR = 1e-9
#: an exponent grows while the norm of its group stays on one side of the mean, and shrinks when it changes sides
GROWTH, SHRINKAGE, LEAST, MOST = 1.2, 0.5, 0.5, 60.0
#: no scale is multiplied or divided by more than this at once
FACTOR = 2.0


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
        side = np.sign(ratio)
        turned = side * memory[:, 1]
        exponent = np.clip(memory[:, 0] * np.where(turned > 0, GROWTH, np.where(turned < 0, SHRINKAGE, 1.0)), LEAST, MOST)
        moved = np.log(scale) + np.clip(exponent * ratio, -np.log(FACTOR), np.log(FACTOR))
        beta = np.maximum(np.exp(moved - moved.max()), FLOOR)
        return beta / beta.sum(), np.stack([exponent, side], axis=1)
