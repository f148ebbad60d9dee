"""Steps of online multiple kernel learning with lazily scaled groups beside dense ones: ``python benchmarks/lazy_groups.py``.

507 groups of 260,000 weights in all, and of as many as a parser with blocks of 2^14 weights has; float64, steps of 400
coordinates, with the average of the iterates: a gradient step, the prox of the squared sum of the group norms, the scaling. Both
in one run, in turns; the results are compared. The dense steps are vectorised. The goal: they take at least 20 times as long.
"""

import time

import numpy as np
from measure import machine, table

from structpred.core.sparse import coalesced
from structpred.objectives.regularisers.mkl import MKL
from structpred.trainers.grouped_weights import GroupedWeights

GROUPS, TOUCHED, GOAL = 507, 400, 20.0
#: weights, and steps
SIZES = ((260_000, 400), (GROUPS << 14, 60))


def steps(dim: int, n_steps: int) -> tuple[float, float, float]:
    """Microseconds of a lazy and of a dense step, and the largest difference of their results."""
    rng = np.random.default_rng(0)
    sizes = rng.multinomial(dim, np.ones(GROUPS) / GROUPS)
    ends = np.concatenate(([0], np.cumsum(sizes)))
    r = MKL().grouped(ends, [str(k) for k in range(GROUPS)])
    lazy = GroupedWeights.zeros(ends, np.float64, averaged=True)
    w, total, spent = np.zeros(dim), np.zeros(dim), np.zeros((2, n_steps))
    for t in range(n_steps):
        delta = coalesced(rng.choice(dim, TOUCHED, replace=False), rng.normal(size=TOUCHED))
        eta, tau = 0.1 / np.sqrt(t + 1.0), 0.02 * rng.random()
        start = time.process_time()
        lazy.add(delta, eta)
        norms = lazy.norms
        lazy.shrink(norms, r.group_prox(norms, tau))
        lazy.include()
        middle = time.process_time()
        w[delta.indices] += eta * delta.values
        norms = np.sqrt(np.add.reduceat(w * w, ends[:-1]))
        shrunk = r.group_prox(norms, tau)
        w *= np.repeat(np.divide(shrunk, norms, out=np.zeros(GROUPS), where=norms > 0.0), sizes)
        total += w
        spent[:, t] = middle - start, time.process_time() - middle
    off = max(float(np.abs(lazy.current() - w).max()), float(np.abs(lazy.average() - total / n_steps).max()))
    quick, slow = 1e6 * np.median(spent[:, n_steps // 8 :], axis=1)  # the first steps load the kernels
    return float(quick), float(slow), off


def main() -> None:
    """Print the times of a step and their ratio."""
    rows = []
    for dim, n_steps in SIZES:
        quick, slow, off = steps(dim, n_steps)
        met = "met" if slow >= GOAL * quick else "missed"
        rows.append([f"{dim:,}", f"{quick:.0f}", f"{slow:.0f}", f"{slow / quick:.1f}", met, f"{off:.1e}"])
    print(f"Lazily scaled groups ({machine()})\n")
    print(table(["weights", "lazy, us a step", "dense, us a step", "ratio", f"at least {GOAL:g}", "largest difference"], rows))


if __name__ == "__main__":
    main()
