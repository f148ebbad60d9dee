"""The averaged structured perceptron (Collins 2002)."""

from typing import NamedTuple

from structpred.core.moves import CONSTANT, Moves
from structpred.core.weights import Vector, Weights
from structpred.objectives.margin import MarginRescaling, perceptron_loss
from structpred.slack.surrogate import SlackRescaling
from structpred.trainers.problem import Problem, Trainer


class PerceptronState(NamedTuple):
    """The weights and their running average."""

    weights: Weights


class AveragedPerceptron(Trainer):
    """w += phi(x_i, y_i) - phi(x_i, argmax): steps towards the truth wherever the prediction is wrong.

    Returns the average of all iterates. It minimises no regularised objective, so `lam` has no effect and there is
    no certificate. The default surrogate is MarginRescaling(loss_weight=0); loss_weight=1 asks for a margin.
    """

    name = "perceptron"
    surrogates = (perceptron_loss, MarginRescaling, SlackRescaling)
    online = True
    nonconvex = True

    def init_state(self, problem: Problem) -> PerceptronState:
        """Zero weights."""
        return PerceptronState(Weights.zeros(problem.task.dim, problem.task.dtype, averaged=True))

    def update(self, problem: Problem, state: PerceptronState, item: int) -> tuple[PerceptronState, bool]:
        """One mistake-driven step."""
        step = problem.surrogate.term(problem.task, state.weights.v, item)
        changed = len(step.difference.indices) > 0
        if changed:
            state.weights.add(step.difference, float(problem.task.sample_weight[item]))
        state.weights.include(1.0)
        return state, changed

    def moves(self, problem: Problem, state: PerceptronState) -> Moves:
        """`update` as numbers."""
        return Moves(CONSTANT, problem.task.sample_weight, state.weights)

    def last_objective(self, problem: Problem, state: PerceptronState) -> tuple[Vector, float | None, float | None]:
        """`weights` and `objective` of a state that is given up: the average in place."""
        return state.weights.given_up(), None, None
