"""Two online learners for structures: passive-aggressive (Crammer et al. 2006) and AROW (Crammer, Kulesza & Dredze 2009).

Both look at the best output without a loss. Where it is wrong in d parts of the loss and scores m above the truth, the cost
to make good is m + sqrt(d). Use them with the surrogate MarginRescaling(loss_weight=0).
"""

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.sparse import SparseVector
from structpred.core.weights import Vector, Weights
from structpred.errors import ParameterError
from structpred.trainers.problem import Problem
from structpred.trainers.states import Values


class OnlineState(NamedTuple):
    """The weights, their average if wanted, and (AROW) the variance of each weight."""

    weights: Weights
    variance: Annotated[npt.NDArray[np.float64], Values(0)]


class _Online:
    """A pass over the data in random order, no objective, no certificate."""

    requires: tuple[str | tuple[str, ...], ...] = ("argmax",)
    online = True  # the state is about no particular data: it can go on with others

    def order(self, problem: Problem, state: OnlineState, rng: np.random.Generator, n_pass: int) -> npt.NDArray[np.int64]:
        """A new permutation every pass."""
        return rng.permutation(len(problem.task))

    def weights(self, problem: Problem, state: OnlineState) -> Vector:
        """The average of all iterates where one is kept, else the last."""
        return state.weights.average()

    def objective(self, problem: Problem, state: OnlineState) -> tuple[None, None]:
        """None: there is no objective."""
        return None, None

    def gap_estimate(self, problem: Problem, state: OnlineState) -> None:
        """None."""
        return None


class PassiveAggressive(_Online):
    """The smallest change of w that makes good the cost of the output found.

    kind: 0 without a limit, 1 with steps of at most c (PA-I), 2 with softer steps (PA-II). sqrt_loss: a cost of
    sqrt(d) for d wrong parts, else of 1. averaged: return the average of all iterates. The problem's lam plays no part.
    """

    def __init__(self, *, c: float = 1.0, kind: int = 1, sqrt_loss: bool = True, averaged: bool = True) -> None:
        if kind not in (0, 1, 2) or not (np.isfinite(c) and c > 0):
            raise ParameterError(f"expected kind 0, 1 or 2 and a finite c > 0, got {kind!r} and {c!r}")
        self.c, self.kind, self.sqrt_loss, self.averaged = float(c), int(kind), sqrt_loss, averaged

    def init_state(self, problem: Problem) -> OnlineState:
        """Zero weights."""
        return OnlineState(Weights.zeros(problem.task.dim, problem.task.dtype, averaged=self.averaged), np.empty(0))

    def update(self, problem: Problem, state: OnlineState, item: int) -> tuple[OnlineState, bool]:
        """One step, if the output found is wrong."""
        step = problem.surrogate.term(problem.task, state.weights.v, item)
        square = float(step.difference.values @ step.difference.values)
        changed = step.loss > 0.0 and square > 0.0
        if changed:
            cost = step.violation + (np.sqrt(step.loss) if self.sqrt_loss else 1.0)
            cap = self.c * float(problem.task.sample_weight[item])
            if self.kind == 2:
                tau = cost / (square + 0.5 / cap) if cap else 0.0
            else:
                tau = cost / square if self.kind == 0 else min(cap, cost / square)
            state.weights.add(step.difference, float(tau))
        state.weights.include(1.0)
        return state, changed


class AROW(_Online):
    """Adaptive regularisation: each weight has a variance, which shrinks as it is updated, and weights that are sure move less.

    variance: of each weight at the start. gamma: large for small steps. It returns the last weights, not an average.
    """

    def __init__(self, *, variance: float = 1.0, gamma: float = 1.0) -> None:
        if not (np.isfinite(variance) and variance > 0 and np.isfinite(gamma) and gamma > 0):
            raise ParameterError(f"variance and gamma must be finite and > 0, got {variance!r} and {gamma!r}")
        self.variance, self.gamma = float(variance), float(gamma)

    def init_state(self, problem: Problem) -> OnlineState:
        """Zero weights, all as unsure as each other."""
        return OnlineState(Weights.zeros(problem.task.dim, problem.task.dtype), np.full(problem.task.dim, self.variance))

    def update(self, problem: Problem, state: OnlineState, item: int) -> tuple[OnlineState, bool]:
        """One step, if the output found is wrong."""
        step = problem.surrogate.term(problem.task, state.weights.v, item)
        at, difference = step.difference.indices, step.difference.values
        share = float(problem.task.sample_weight[item])
        if not (step.loss > 0.0 and share > 0.0 and difference.any()):
            return state, False
        gamma, variance = self.gamma / share, state.variance[at]
        cost = step.violation + np.sqrt(step.loss)
        alpha = cost / (float(variance @ difference**2) + gamma)
        state.weights.add(SparseVector(at, variance * difference), float(alpha))
        state.variance[at] = 1.0 / (1.0 / variance + difference**2 / gamma)
        return state, True
