"""Regularisers for the tests alone: the weights in groups, one-sided, sparse, and one that adapts its scales."""

import numpy as np

from structpred.core.regulariser import DualMap, Regulariser


class Groups(Regulariser):
    """sum_k |w_k|^2 / (2 scale_k) over groups of two and the rest; a scale of zero freezes a group."""

    def __init__(self, scale=(0.5, 3.0)):
        self.scale = scale

    def dual_map(self):
        return DualMap.of([2, 10**9], self.scale)


class NonNegative(Regulariser):
    """1/2 |w|^2 over w >= 0."""

    def dual_map(self):
        return DualMap.alike(1.0, -np.inf, 0.0)


class Mixed(Regulariser):
    """The first two weights at least zero, the third and fourth at most, the rest sparse."""

    def dual_map(self):
        return DualMap.of([2, 4, 10**9], [1.0, 2.0, 0.5], [-np.inf, 0.0, -0.3], [0.0, np.inf, 0.3])


class Adapting(Regulariser):
    """1/2 (sum_k |w_k|)^2, multiple kernel learning: groups of two and the rest, scales that are adapted between passes."""

    adapts = True

    def __init__(self, *ends):
        self.ends = ends or (2, 10**9)

    def dual_map(self):
        return DualMap.of(self.ends, 1.0 / len(self.ends))

    def norms(self, w):
        return np.sqrt(self.dual_map().squares(w))

    def value(self, w):
        return 0.5 * float(self.norms([w]).sum()) ** 2

    def prox(self, w, step):
        a = self.norms([w.astype(np.float64)])
        largest_first = np.sort(a)[::-1]
        sums = np.cumsum(largest_first) / (1.0 + step * np.arange(1, len(a) + 1))  # of the new norms, if the first k are not zero
        total = sums[np.flatnonzero(largest_first >= step * sums)[-1]] if a.any() else 0.0
        shrink = np.maximum(a - step * total, 0.0) / np.where(a > 0.0, a, 1.0)
        return DualMap.of(self.ends, shrink).weights(w.astype(np.float64)).astype(w.dtype)

    def bound(self, loss, lam, u):
        largest = float(self.norms(u).max())
        t = min(1.0, loss / (lam * largest**2)) if largest else 1.0  # nearer to the truth, which costs nothing
        return t * loss - 0.5 * lam * (t * largest) ** 2

    def rescale(self, scale, memory, squares):
        moved = scale * np.sqrt(squares)
        return np.maximum(moved / moved.sum(), 1e-9) if moved.any() else scale, memory
