"""Steps of online multiple kernel learning with lazily scaled groups beside others: ``python benchmarks/lazy_groups.py``.

507 groups of 260,000 weights in all, and of as many as a parser with blocks of 2^14 weights has; float64, steps of 400
coordinates, with the average of the iterates: a gradient step, the prox of the squared sum of the group norms, the scaling. All
three kinds in one run, in turns; the results are compared. Naive steps loop over the groups: norm, prox and scaling of each
one's slice. Dense steps are the same, vectorised. The goal: naive steps take at least 20 times as long as lazy ones.
"""

import time
from itertools import pairwise

import numpy as np
from measure import machine, table

from structpred.core.sparse import SparseVector, coalesced
from structpred.objectives.regularisers.mkl import MKL
from structpred.trainers.online.grouped_weights import GroupedWeights

GROUPS, TOUCHED, GOAL = 507, 400, 20.0
#: so many steps of each kind, one kind after the other: dense steps push the weights of the others out of the caches
TURN = 20
#: weights, and steps
SIZES = ((260_000, 400), (GROUPS << 14, 60))


class Naive:
    """Every group on its own, at every step."""

    def __init__(self, ends: np.ndarray) -> None:
        self.w, self.total, self.bounds = np.zeros(ends[-1]), np.zeros(ends[-1]), list(pairwise(ends.tolist()))

    def step(self, r: MKL, delta: SparseVector, eta: float, tau: float) -> None:
        """A gradient step, the prox, the sum of the iterates."""
        w = self.w
        w[delta.indices] += eta * delta.values
        norms = np.array([np.sqrt(w[a:b] @ w[a:b]) for a, b in self.bounds])
        for (a, b), norm, new in zip(self.bounds, norms, r.group_prox(norms, tau), strict=True):
            w[a:b] *= new / norm if norm > 0.0 else 0.0
        self.total += w


class Dense:
    """All groups at once."""

    def __init__(self, ends: np.ndarray) -> None:
        self.w, self.total, self.starts, self.sizes = np.zeros(ends[-1]), np.zeros(ends[-1]), ends[:-1], np.diff(ends)

    def step(self, r: MKL, delta: SparseVector, eta: float, tau: float) -> None:
        """A gradient step, the prox, the sum of the iterates."""
        self.w[delta.indices] += eta * delta.values
        norms = np.sqrt(np.add.reduceat(self.w * self.w, self.starts))
        ratios = np.divide(r.group_prox(norms, tau), norms, out=np.zeros(GROUPS), where=norms > 0.0)
        self.w *= np.repeat(ratios, self.sizes)
        self.total += self.w


class Lazy:
    """One factor a group: what trainers use."""

    def __init__(self, ends: np.ndarray) -> None:
        self.weights = GroupedWeights.zeros(ends, np.float64, averaged=True)

    def step(self, r: MKL, delta: SparseVector, eta: float, tau: float) -> None:
        """A gradient step, the prox, the sum of the iterates."""
        self.weights.add(delta, eta)
        norms = self.weights.norms
        self.weights.shrink(norms, r.group_prox(norms, tau))
        self.weights.include()


def steps(dim: int, n_steps: int) -> tuple[list[float], float]:
    """Microseconds of a lazy, a dense and a naive step, and the largest difference of their results."""
    rng = np.random.default_rng(0)
    ends = np.concatenate(([0], np.cumsum(rng.multinomial(dim, np.ones(GROUPS) / GROUPS))))
    r = MKL().grouped(ends, [str(k) for k in range(GROUPS)])
    lazy, dense, naive = ways = Lazy(ends), Dense(ends), Naive(ends)
    spent = np.zeros((3, n_steps))
    for first in range(0, n_steps, TURN):
        inputs = [_input(rng, dim, t) for t in range(first, min(first + TURN, n_steps))]
        for way, own in zip(ways, spent, strict=True):
            for t, (delta, eta, tau) in enumerate(inputs, first):
                start = time.process_time()
                way.step(r, delta, eta, tau)
                own[t] = time.process_time() - start
    off = 0.0
    for other in (dense, naive):
        pairs = (lazy.weights.current(), other.w), (lazy.weights.average(), other.total / n_steps)
        off = max(off, *(float(np.abs(one - two).max()) for one, two in pairs))
    return (1e6 * np.median(spent[:, n_steps // 8 :], axis=1)).tolist(), off  # the first steps load the kernels


def _input(rng: np.random.Generator, dim: int, t: int) -> tuple[SparseVector, float, float]:
    delta = coalesced(rng.choice(dim, TOUCHED, replace=False), rng.normal(size=TOUCHED))
    return delta, 0.1 / np.sqrt(t + 1.0), 0.02 * rng.random()


def main() -> None:
    """Print the times of a step and their ratios."""
    rows = []
    for dim, n_steps in SIZES:
        (quick, dense, slow), off = steps(dim, n_steps)
        met = "met" if slow >= GOAL * quick else "missed"
        ratios = [f"{slow / quick:.1f}", met, f"{dense / quick:.1f}"]
        rows.append([f"{dim:,}", f"{quick:.0f}", f"{slow:.0f}", f"{dense:.0f}", *ratios, f"{off:.1e}"])
    print(f"Lazily scaled groups ({machine()})\n")
    head = ["weights", "lazy, us a step", "naive", "dense", "naive / lazy", f"at least {GOAL:g}", "dense / lazy", "difference"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
