"""Stochastic subgradient descent with Pegasos' step size (Shalev-Shwartz et al. 2011, fig. 1) and a k-weighted average.

With the step size 1/(lam k) the k-th iterate is w_k = (1/(lam k)) sum_{j<=k} n p_i psi_j: a sum that is only added to, and
a scale. The average sum_k k w_k / sum_k k (Lacoste-Julien, Schmidt & Bach 2012) converges in O(1/(lam k)).

After whole passes every instance was visited equally often, so w_k is itself a feasible dual point (each visit gives its
output 1/passes of the instance's dual mass) with the value (1/k) sum_j n p_i offset_j - lam/2 |w_k|^2: a free certificate.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.weights import Vector, Weights
from structpred.trainers.problem import Problem, squared_norm


class SGDState(NamedTuple):
    """weights: v is the sum of steps, scale is 1/(lam k). counts: float64 [k, sum of n p_i offset]."""

    weights: Weights
    counts: npt.NDArray[np.float64]

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        return None if self.counts[0] >= 0 else "counts: expected a number of steps >= 0"


class SGD:
    """Pegasos without the projection step. Use `averaged=False` for the last iterate."""

    requires: tuple[str | tuple[str, ...], ...] = ("argmax",)
    online = True  # the state is about no particular data: it can go on with others

    def __init__(self, *, averaged: bool = True) -> None:
        self.averaged = averaged

    def init_state(self, problem: Problem) -> SGDState:
        """Zero weights."""
        weights = Weights.zeros(problem.task.dim, problem.task.dtype, averaged=self.averaged)
        return SGDState(weights, np.zeros(2))

    def order(self, problem: Problem, state: SGDState, rng: np.random.Generator, n_pass: int) -> npt.NDArray[np.int64]:
        """A new permutation every pass."""
        return rng.permutation(len(problem.task))

    def update(self, problem: Problem, state: SGDState, item: int) -> tuple[SGDState, bool]:
        """w <- (1 - 1/k) w + n p_i psi / (lam k)."""
        weights, counts = state
        step = problem.surrogate.term(problem.task, weights.v, item, weights.scale)
        share = problem.share(item)
        changed = len(step.difference.indices) > 0
        if changed:
            weights.add(step.difference, share)
        counts[0] += 1
        if problem.surrogate.piecewise_linear:
            counts[1] += share * problem.surrogate.offset(step)
        weights.set_scale(1.0 / (problem.lam * counts[0]))
        if self.averaged:
            weights.include(float(counts[0]))
        return state, changed

    def weights(self, problem: Problem, state: SGDState) -> Vector:
        """The k-weighted average, or the last iterate."""
        return state.weights.average() if self.averaged else state.weights.current()

    def objective(self, problem: Problem, state: SGDState) -> tuple[float, float | None]:
        """Primal at the returned weights; the dual value of the last iterate if the passes so far were whole."""
        primal = problem.primal(self.weights(problem, state))
        k, offsets = state.counts
        if not problem.surrogate.piecewise_linear or k == 0 or k % len(problem.task) or not exactly_summed(state.weights.v):
            return primal, None
        return primal, offsets / k - 0.5 * problem.lam * state.weights.scale**2 * squared_norm(state.weights.v)

    def gap_estimate(self, problem: Problem, state: SGDState) -> None:
        """None."""
        return None


def exactly_summed(v: Vector) -> bool:
    """Whether v is free of rounding errors that would spoil the dual value.

    float64 sums are good to 1e-15. float32 sums are exact as long as all of them are whole numbers below 2^24 (features that
    are zero or one); with other features their rounding errors add up unseen, and no dual value is claimed.
    """
    if v.dtype == np.float64:
        return True
    pieces = (v[k : k + (1 << 18)] for k in range(0, len(v), 1 << 18))
    return all(np.array_equal(np.rint(piece), piece) and np.abs(piece).max(initial=0) < 2**23 for piece in pieces)
