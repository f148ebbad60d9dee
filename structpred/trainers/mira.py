"""MIRA, the margin-infused relaxed algorithm with one best output (Crammer & Singer 2003; McDonald et al. 2005)."""

from structpred.core.sparse import squared_norm
from structpred.core.weights import Vector
from structpred.task.fast.update_rules import MARGIN, UpdateRule
from structpred.trainers.perceptron import OnlineLearner, WeightsState
from structpred.trainers.problem import Problem


class MIRA(OnlineLearner):
    """The smallest change of w that gives the truth a margin of the loss over the output found, but at most C of it.

    w += tau psi_i with tau = min(C s_i, violation / |psi_i|^2), C = 1 / (lam n). It is passive where the margin holds and
    aggressive where it does not. The average of all iterates is returned. It is an online learner: there is no dual value.

    References
    ----------
    Crammer and Singer (2003); McDonald, Crammer and Pereira (2005), with the one best output.

    Examples
    --------
    >>> import numpy as np
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=MIRA(), max_iter=5).fit([np.eye(2)], [["a", "b"]])
    >>> model.predict([np.eye(2)])[0].tolist()
    ['a', 'b']
    """

    name = "mira"

    def update(self, problem: Problem, state: WeightsState, item: int) -> tuple[WeightsState, bool]:
        """One passive-aggressive step."""
        step = problem.surrogate.term(problem.task, state.weights.v, item)
        square = squared_norm(step.difference)
        changed = step.violation > 0.0 and square > 0.0
        if changed:
            cap = float(problem.p[item]) / problem.lam
            state.weights.add(step.difference, min(cap, step.violation / square))
        state.weights.include(1.0)
        return state, changed

    def update_rule(self, problem: Problem, state: WeightsState) -> UpdateRule:
        """`update` as numbers."""
        return UpdateRule(MARGIN, problem.p / problem.lam, state.weights)

    def objective(self, problem: Problem, state: WeightsState) -> tuple[float, None]:
        """The primal at the average; no dual value."""
        return problem.primal(self.weights(problem, state)), None

    def last_objective(self, problem: Problem, state: WeightsState) -> tuple[Vector, float | None, float | None]:
        """`weights` and `objective` of a state that is not used again: the average in place."""
        weights = state.weights.average_in_place()
        return weights, problem.primal(weights), None
