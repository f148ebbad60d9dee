"""The averaged structured perceptron (Collins 2002)."""

from typing import NamedTuple

from structpred.core.weights import Vector, Weights
from structpred.objectives.margin import perceptron_loss
from structpred.task.fast.update_rules import CONSTANT, UpdateRule
from structpred.trainers.problem import Problem, Trainer


class WeightsState(NamedTuple):
    """The weights, and their running average where it is kept."""

    weights: Weights


class OnlineLearner(Trainer):
    """The parent of trainers whose state is the weights alone. averaged: return the average of all iterates."""

    online = True
    nonconvex = True
    averaged = True

    def init_state(self, problem: Problem) -> WeightsState:
        """Zero weights."""
        return WeightsState(Weights.zeros(problem.task.dim, problem.task.dtype, averaged=self.averaged))

    def last_objective(self, problem: Problem, state: WeightsState) -> tuple[Vector, float | None, float | None]:
        """`weights` and `objective` of a state that is not used again: the average in place."""
        return state.weights.average_in_place(), None, None


class AveragedPerceptron(OnlineLearner):
    """w += phi(x_i, y_i) - phi(x_i, argmax): steps towards the truth wherever the prediction is wrong.

    Returns the average of all iterates. It minimises no regularised objective, so `lam` has no effect and there is
    no certificate. The default surrogate is MarginRescaling(loss_weight=0); loss_weight=1 asks for a margin.
    """

    name = "perceptron"
    surrogates = (perceptron_loss,)

    def update(self, problem: Problem, state: WeightsState, item: int) -> tuple[WeightsState, bool]:
        """One mistake-driven step."""
        step = problem.surrogate.term(problem.task, state.weights.v, item)
        changed = len(step.difference.indices) > 0
        if changed:
            state.weights.add(step.difference, float(problem.task.sample_weight[item]))
        state.weights.include(1.0)
        return state, changed

    def update_rule(self, problem: Problem, state: WeightsState) -> UpdateRule:
        """`update` as numbers."""
        return UpdateRule(CONSTANT, problem.task.sample_weight, state.weights)
