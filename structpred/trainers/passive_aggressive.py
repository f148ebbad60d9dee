"""Passive-aggressive learning of structures: PA, PA-I and PA-II (Crammer, Dekel, Keshet, Shalev-Shwartz & Singer 2006)."""

import numpy as np

from structpred.core.sparse import squared_norm
from structpred.errors import ParameterError
from structpred.objectives.margin import perceptron_loss
from structpred.task.fast.update_rules import PASSIVE, PASSIVE_CAPPED, PASSIVE_SOFT, UpdateRule
from structpred.trainers.perceptron import OnlineLearner, WeightsState
from structpred.trainers.problem import Problem


class PassiveAggressive(OnlineLearner):
    """The smallest change of w that makes good the cost of the output found.

    It looks at the best output without a loss. Where that is wrong in d parts of the loss and scores m above the truth, the
    cost is m + sqrt(d), or m + 1.

    kind: 0 without a limit, 1 with steps of at most c (PA-I), 2 with softer steps (PA-II). sqrt_loss: a cost of
    sqrt(d) for d wrong parts, else of 1. averaged: return the average of all iterates. The problem's lam plays no part.
    """

    name = "pa"
    surrogates = (perceptron_loss,)

    def __init__(self, *, c: float = 1.0, kind: int = 1, sqrt_loss: bool = True, averaged: bool = True) -> None:
        if kind not in (0, 1, 2) or not (np.isfinite(c) and c > 0):
            raise ParameterError(f"expected kind 0, 1 or 2 and a finite c > 0, got {kind!r} and {c!r}")
        self.c, self.kind, self.sqrt_loss, self.averaged = float(c), int(kind), sqrt_loss, averaged

    def update(self, problem: Problem, state: WeightsState, item: int) -> tuple[WeightsState, bool]:
        """One step, if the output found is wrong."""
        step = problem.surrogate.term(problem.task, state.weights.v, item)
        square = squared_norm(step.difference)
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

    def update_rule(self, problem: Problem, state: WeightsState) -> UpdateRule:
        """`update` as numbers."""
        formula, caps = (PASSIVE, PASSIVE_CAPPED, PASSIVE_SOFT)[self.kind], self.c * problem.task.sample_weight
        return UpdateRule(formula, caps, state.weights, roots=self.sqrt_loss)
