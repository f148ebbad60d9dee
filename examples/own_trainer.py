"""Your own trainer: the subgradient method in about thirty lines, compared with a certified one, and from the shell.

python examples/own_trainer.py
cd examples && structpred train chain TRAIN --format crfsuite --trainer own_trainer:Subgradient -o model.spz
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from structpred.models import ChainLabeler
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.trainers.problem import Trainer
from structpred.trainers.states import COUNT


class SubgradientState(NamedTuple):
    """w: the weights. slope: what the present pass has summed up. t: passes done, a single number."""

    w: Any
    slope: Any
    t: Annotated[Any, COUNT]


class Subgradient(Trainer):
    """w <- w - (lam w + the mean subgradient) / (lam t) after the t-th pass over the data."""

    surrogates = (MarginRescaling, LogLoss)

    def init_state(self, problem):
        """Zero weights."""
        w = np.zeros(problem.task.dim, problem.task.dtype)
        return SubgradientState(w, np.zeros(len(w)), np.array(0))

    def order(self, problem, state, rng, n_pass):
        """Every sample once, then the step (item -1)."""
        return np.append(np.arange(len(problem.task)), -1)

    def update(self, problem, state, item):
        """What one sample adds to the slope; or the step."""
        if item >= 0:
            difference = problem.surrogate.term(problem.task, state.w, item).difference
            state.slope[difference.indices] += problem.p[item] * difference.values
            return state, False
        state.t[...] += 1
        state.w[:] = (1 - 1 / state.t) * state.w + state.slope / (problem.lam * state.t)
        state.slope[:] = 0.0
        return state, True

    def weights(self, problem, state):
        """The present weights."""
        return state.w.copy()

    def objective(self, problem, state):
        """The objective; no lower bound."""
        return problem.primal(state.w), None


def make_data(n_samples, rng):
    """Sequences of rows with a label each, told by hidden weights and some noise."""
    X = [rng.normal(size=(int(rng.integers(3, 8)), 4)) for _ in range(n_samples)]
    hidden = rng.normal(size=(4, 3))
    scores = [x @ hidden + 0.3 * rng.normal(size=(len(x), 3)) for x in X]
    return X, [[f"label {k}" for k in s.argmax(axis=1)] for s in scores]


def main():
    """Train with it and with bcfw, whose certificate says how far it still is from the optimum."""
    X, y = make_data(60, np.random.default_rng(0))
    best = ChainLabeler("bcfw", C=1.0, max_iter=200, tol=0.01).fit(X, y).certificate_
    for surrogate in (None, "log"):
        model = ChainLabeler(Subgradient(), C=1.0, max_iter=200, surrogate=surrogate).fit(X, y)
        minimised = "log loss" if model.probabilistic_ else "margin"
        print(f"{minimised:<10} {model.score(X, y):.1%} right; {model.certificate_}")
        if not model.probabilistic_:
            print(f"above the lower bound of bcfw by {model.certificate_.primal / best.dual - 1:.1%}")


if __name__ == "__main__":
    main()
