"""The averaged structured perceptron (Collins 2002)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.weights import Vector, Weights
from structpred.trainers.problem import Problem


class PerceptronState(NamedTuple):
    """The weights and their running average."""

    weights: Weights


class AveragedPerceptron:
    """w += phi(x_i, y_i) - phi(x_i, argmax): steps towards the truth wherever the prediction is wrong.

    Returns the average of all iterates. It minimises no regularised objective, so `lam` has no effect and there is
    no certificate. Use it with the surrogate MarginRescaling(loss_weight=0), or with loss_weight=1 for a margin.
    """

    requires: tuple[str | tuple[str, ...], ...] = ("argmax",)
    online = True  # the state is about no particular data: it can go on with others

    def init_state(self, problem: Problem) -> PerceptronState:
        """Zero weights."""
        return PerceptronState(Weights.zeros(problem.task.dim, problem.task.dtype, averaged=True))

    def order(self, problem: Problem, state: PerceptronState, rng: np.random.Generator, n_pass: int) -> npt.NDArray[np.int64]:
        """A new permutation every pass."""
        return rng.permutation(len(problem.task))

    def update(self, problem: Problem, state: PerceptronState, item: int) -> tuple[PerceptronState, bool]:
        """One mistake-driven step."""
        step = problem.surrogate.term(problem.task, state.weights.v, item)
        changed = len(step.difference.indices) > 0
        if changed:
            state.weights.add(step.difference, float(problem.task.sample_weight[item]))
        state.weights.include(1.0)
        return state, changed

    def weights(self, problem: Problem, state: PerceptronState) -> Vector:
        """The average of all iterates."""
        return state.weights.average()

    def objective(self, problem: Problem, state: PerceptronState) -> tuple[None, None]:
        """None: the perceptron has no objective."""
        return None, None

    def gap_estimate(self, problem: Problem, state: PerceptronState) -> None:
        """None."""
        return None
