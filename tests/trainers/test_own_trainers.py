"""A trainer from outside the package is judged after its first step, and at the weights that it returns."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from structpred.errors import OracleError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem, Trainer


class State(NamedTuple):
    """The weights."""

    w: Any


class Subgradient(Trainer):
    """A step along each sample's subgradient, and the objective at the weights that it returns."""

    def init_state(self, problem):
        return State(np.zeros(problem.task.dim, problem.task.dtype))

    def update(self, problem, state, item):
        step = problem.surrogate.term(problem.task, state.w, item)
        state.w[step.difference.indices] += 0.1 * step.difference.values
        return state, step.violation > 0.0

    def weights(self, problem, state):
        return state.w.copy()

    def objective(self, problem, state):
        return problem.primal(state.w), None


def problem_of(n: int = 8) -> Problem:
    """Three classes at random."""
    rng = np.random.default_rng(0)
    task = Task(
        PartFeatures(list(rng.normal(size=(n, 3, 4)))), MulticlassOracle(), rng.integers(0, 3, (n, 1)), [(3,)] * n, Hamming()
    )
    return Problem(task, MarginRescaling(), 0.1)


def test_an_own_trainer_that_tells_the_truth_trains() -> None:
    """Its certificate is as it says, with held-out data, too."""
    problem = problem_of()
    result = train(problem, Subgradient(), RunSettings(max_iter=3, dev=lambda w: -float(w @ w)))
    assert result.certificate.primal == problem.primal(result.weights)


LIES = {
    "a smaller objective": {"objective": lambda self, problem, state: (0.5 * problem.primal(state.w), None)},
    "other weights": {"weights": lambda self, problem, state: 1.5 * state.w},
    "its own primal": {
        "objective": lambda self, problem, state: (0.5 * problem.primal(state.w), None),
        "primal": lambda self, problem, w: 0.5 * problem.primal(w),
    },
}


@pytest.mark.parametrize("lie", LIES)
def test_an_objective_that_is_not_that_of_the_weights_is_refused(lie: str) -> None:
    """The error has both numbers, the one told and the one of a sweep of the plain methods."""
    kind = type("Mine", (Subgradient,), LIES[lie])
    with pytest.raises(ParameterError, match=r"trainer: Mine says that the objective .* is [\d.]+, and there it is [\d.]+: .*"):
        train(problem_of(), kind(), RunSettings(max_iter=3))


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"init_state": lambda self, problem: None}, r"Mine.init_state must give .*, got None: is a `return` missing\?"),
        ({"update": lambda self, problem, state, item: state}, r"Mine.update must give \(state, .*\), got State"),
        ({"update": lambda self, problem, state, item: (None, True)}, r"Mine.update must give \(state, .*\), got tuple"),
        ({"update": lambda self, problem, state, item: None}, r"Mine.update must .*, got None: is a `return` missing\?"),
        ({"update": lambda self, problem, state, item: 1 / 0}, "Mine raised ZeroDivisionError.* in its first step; "),
        ({"weights": Trainer.weights}, r"Mine needs a method `weights` .*no such thing in State"),
        ({"weights": lambda self, problem, state: state.w[:-1]}, r"Mine.weights to give 4 finite numbers.* got \(3,\)"),
        ({"weights": lambda self, problem, state: None}, r"Mine.weights to give 4 finite numbers.* got NoneType"),
        ({"weights": lambda self, problem, state: state.w * np.nan}, "4 finite numbers, one a weight, got numbers that are not"),
    ],
)
def test_a_trainer_whose_first_step_leads_nowhere_is_refused_before_training(methods: dict[str, Any], message: str) -> None:
    """What is wrong is said at once, with the trainer's name, and no pass is made."""
    rows: list[Any] = []
    with pytest.raises(ParameterError, match=message):
        train(problem_of(), type("Mine", (Subgradient,), methods)(), RunSettings(max_iter=3, callbacks=(rows.append,)))
    assert not rows


def test_what_an_oracle_raises_in_the_first_step_stays() -> None:
    """Errors of the package pass as they are."""
    problem = problem_of()
    problem.task.features.scores = lambda w, i: 1 / 0  # type: ignore[attr-defined]
    with pytest.raises(OracleError, match="ZeroDivisionError"):
        train(problem, Subgradient(), RunSettings(max_iter=1))


def test_trainers_of_the_package_pay_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sweep is made for them beyond those of their own objective."""
    calls: list[None] = []
    plain, counts = Problem.primal, []
    monkeypatch.setattr(Problem, "primal", lambda self, w: (calls.append(None), plain(self, w))[1])
    for trainer in (BCFW(), type("Mine", (BCFW,), {})()):
        calls.clear()
        train(problem_of(), trainer, RunSettings(max_iter=3))
        counts.append(len(calls))
    assert counts[0] < counts[1] <= counts[0] + 2
