"""check_trainer names what is wrong with a trainer, and passes every trainer of ours, and the one of the how-to."""

import importlib.util
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import structpred
from structpred.errors import MissingCapabilityError, OracleError
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.regularisers.l1 import L1
from structpred.slack.surrogate import SlackRescaling
from structpred.trainers.bcfw import BCFW
from structpred.trainers.names import trainers
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.sgd import SGD

ELSEWHERE = ("marginal_bcfw", "pragam_b")  # for other tasks than the one that is made here


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", [name for name in trainers() if name not in ELSEWHERE])
def test_trainers_of_ours_pass(name: str) -> None:
    """No false alarm under the default surrogate and regulariser of each."""
    assert structpred.check_trainer(trainers()[name]()).checked["weights"] == 16


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_trainer_that_needs_another_task_says_so(name: str) -> None:
    """What is missing is said before any work."""
    with pytest.raises(MissingCapabilityError):
        structpred.check_trainer(trainers()[name]())


@pytest.mark.parametrize("trainer", [BCFW(averaged=False), BCFW(gap_sampling=True), SGD(averaged=False)])
def test_settings_of_ours_pass(trainer) -> None:
    """Without an average, and with another order."""
    assert structpred.check_trainer(trainer).checked["primal"] == 3


def test_the_trainer_of_the_how_to_passes() -> None:
    """The example that people start from, with each of its surrogates."""
    path = Path(__file__).parents[2] / "examples" / "own_trainer.py"
    spec = importlib.util.spec_from_file_location("own_trainer", path)
    own = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    assert structpred.check_trainer(own.Subgradient()).checked["primal"] == 3


class TooLow(BCFW):
    """A primal that is reported 1 % too low."""

    last_objective = None

    def objective(self, problem, state):
        primal, dual = super().objective(problem, state)
        return 0.99 * primal, dual


class DualIsPrimal(BCFW):
    """The primal as the dual."""

    last_objective = None

    def objective(self, problem, state):
        primal, _ = super().objective(problem, state)
        return primal, primal


class Halved(BCFW):
    """Other weights than those that were judged."""

    last_objective = None

    def weights(self, problem, state):
        return 0.5 * super().weights(problem, state)

    def objective(self, problem, state):
        return problem.primal(2.0 * self.weights(problem, state)), super().objective(problem, state)[1]


class NotFinite(SGD):
    """NaN after the first step."""

    def weights(self, problem, state):
        return super().weights(problem, state) * np.nan


class Longer(SGD):
    """A weight too many."""

    def weights(self, problem, state):
        return np.append(super().weights(problem, state), 0.0)


class Hidden(SGD):
    """Counts on the object, not in the state."""

    count = 0

    def weights(self, problem, state):
        self.count += 1
        return super().weights(problem, state) * (1.0 + 1e-3 * self.count)

    def objective(self, problem, state):
        return problem.primal(super().weights(problem, state) * (1.0 + 1e-3 * (self.count + 1))), None


class Once(BCFW):
    """A dual that is too high in the second pass alone."""

    last_objective = None

    def objective(self, problem, state):
        self.passes = getattr(self, "passes", 0) + 1
        primal, dual = super().objective(problem, state)
        return primal, dual + 1.0 * (self.passes == 2)


class Given(BCFW):
    """last_objective gives other weights."""

    def last_objective(self, problem, state):
        weights, primal, dual = super().last_objective(problem, state)
        return 0.5 * weights, primal, dual


class Alone(SGD):
    """update gives the state alone."""

    def update(self, problem, state, item):
        return super().update(problem, state, item)[0]


class Number(SGD):
    """The state is no tuple of arrays."""

    def init_state(self, problem):
        return 0.0


class Silent(SGD):
    """objective gives nothing."""

    def objective(self, problem, state):
        return None


class NoStateAfterPass(SGD):
    """The state is lost where a pass ends."""

    def finish_pass(self, problem, state):
        return None


class WithoutWeights(SGD):
    """A state without `weights`, and the usual method of a trainer."""

    weights = Trainer.weights

    def init_state(self, problem):
        return Plain(np.zeros(problem.task.dim))

    def update(self, problem, state, item):
        return state, False


class Plain(NamedTuple):
    """No field of this is called weights."""

    w: np.ndarray


class Uncertified(BCFW):
    """There is a dual, and it says that there is none."""

    certified = False


BROKEN = [
    (TooLow, "primal"), (DualIsPrimal, "dual"), (Halved, "primal"), (NotFinite, "NaN"), (Longer, "weights"),
    (Hidden, "checkpoint"),
    (Once, "dual"), (Given, "last_objective"), (Alone, "update"), (Number, "state"), (Uncertified, "certified"),
    (Silent, "objective"), (NoStateAfterPass, "finish_pass"), (WithoutWeights, "no exceptions"),
]  # fmt: skip


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("kind", "rule"), BROKEN, ids=[kind.__name__ for kind, _ in BROKEN])
def test_wrong_trainers_are_named(kind, rule) -> None:
    """The error names the trainer and the rule."""
    with pytest.raises(OracleError, match=rf"{kind.__name__} breaks(.|\n)*- {rule}, at"):
        structpred.check_trainer(kind())


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Silent, r"\(primal, dual\); got NoneType: None. Likely cause: a `return` that is missing"),
        (NoStateAfterPass, "the state; got NoneType: None. Likely cause: a `return` that is missing"),
        (WithoutWeights, "WithoutWeights needs a method `weights` of its own.* no such thing in Plain"),
    ],
)
def test_what_a_trainer_lacks_is_said_in_words(kind, words) -> None:
    """Not as Python's own errors about None and attributes."""
    with pytest.raises(OracleError, match=words):
        structpred.check_trainer(kind())


@pytest.mark.parametrize(("name", "surrogate", "regulariser"), [("bcfw", SlackRescaling(), None), ("proximal", LogLoss(), L1())])
def test_other_problems_pass(name, surrogate, regulariser) -> None:
    """A problem may be given, with any surrogate and regulariser that the trainer takes."""
    from structpred.contracts.training import few_classes

    trainer = trainers()[name]()
    task = few_classes(trainer).task
    problem = Problem(task, surrogate, 0.05) if regulariser is None else Problem(task, surrogate, 0.05, regulariser=regulariser)
    assert structpred.check_trainer(trainer, problem).checked["primal"] == 3
