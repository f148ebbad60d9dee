"""AROW, adaptive regularisation of weights, with a diagonal matrix (Crammer, Kulesza & Dredze 2009)."""

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.sparse import SparseVector, weighted_square
from structpred.core.weights import Weights
from structpred.objectives.margin import perceptron_loss
from structpred.runtime.settings import checked_positive
from structpred.task.fast.update_rules import CONFIDENT, UpdateRule
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.states import Values


class AROWState(NamedTuple):
    """The weights, and the variance of each."""

    weights: Weights
    variance: Annotated[npt.NDArray[np.float64], Values(0)]


class AROW(Trainer):
    """Each weight has a variance, which shrinks as it is updated, and weights that are sure move less.

    It looks at the best output without a loss, as passive-aggressive learning does, with the cost m + sqrt(d).

    variance: of each weight at the start. gamma: large for small steps. It returns the last weights, not an average.
    """

    name = "arow"
    surrogates = (perceptron_loss,)
    online = True
    nonconvex = True

    def __init__(self, *, variance: float = 1.0, gamma: float = 1.0) -> None:
        self.variance, self.gamma = checked_positive(variance, "variance"), checked_positive(gamma, "gamma")

    def init_state(self, problem: Problem) -> AROWState:
        """Zero weights, all as unsure as each other."""
        return AROWState(Weights.zeros(problem.task.dim, problem.task.dtype), np.full(problem.task.dim, self.variance))

    def update(self, problem: Problem, state: AROWState, item: int) -> tuple[AROWState, bool]:
        """One step, if the output found is wrong."""
        step = problem.surrogate.term(problem.task, state.weights.v, item)
        at, difference = step.difference.indices, step.difference.values
        share = float(problem.task.sample_weight[item])
        if not (step.loss > 0.0 and share > 0.0 and difference.any()):
            return state, False
        gamma, variance = self.gamma / share, state.variance[at]
        cost = step.violation + np.sqrt(step.loss)
        alpha = cost / (weighted_square(state.variance, step.difference) + gamma)
        state.weights.add(SparseVector(at, variance * difference), float(alpha))
        state.variance[at] = 1.0 / (1.0 / variance + difference**2 / gamma)
        return state, True

    def update_rule(self, problem: Problem, state: AROWState) -> UpdateRule:
        """`update` as numbers."""
        limits, variance = problem.task.sample_weight, state.variance
        return UpdateRule(CONFIDENT, limits, state.weights, average=(0.0, 0.0), softness=self.gamma, variance=variance)
