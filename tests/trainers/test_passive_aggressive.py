"""The two online learners: each step does what its formula says."""

import numpy as np
import pytest
from training_cases import sequences

from structpred.errors import ParameterError
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.chain import ChainOracle
from structpred.task.task import Task
from structpred.trainers.arow import AROW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.passive_aggressive import PassiveAggressive
from structpred.trainers.problem import Problem


def make_problem(n: int = 12, seed: int = 0) -> Problem:
    """Random sequences with the labels that random weights find best: they can be told apart."""
    rng = np.random.default_rng(seed)
    data = sequences(rng, n, exact=True)
    features = SequenceFeatures(data, 3, dtype=np.float64)
    shapes, truth = [(k, 3) for k in data.lengths.tolist()], rng.normal(size=features.dim)
    gold = [ChainOracle().argmax(features.scores(truth, i), shape) for i, shape in enumerate(shapes)]
    task = Task(features, ChainOracle(), gold, shapes, Hamming())
    return Problem(task, MarginRescaling(0.0), 1.0)


def step_of(problem: Problem, w: np.ndarray, i: int):
    """The dense difference of features, the number of wrong labels, and how much the output found is ahead."""
    found = problem.task.argmax(w, i)
    difference = problem.task.difference(i, found).dense(problem.task.dim)
    return difference, int((found != problem.task.labels[i]).sum()), -float(w @ difference)


def first_wrong(problem: Problem, w: np.ndarray) -> int:
    """The first sequence that is not all right."""
    return next(i for i in range(len(problem.task)) if step_of(problem, w, i)[1])


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("sqrt_loss", [True, False])
def test_a_passive_aggressive_step(kind: int, sqrt_loss: bool) -> None:
    """The step length is that of PA, PA-I or PA-II, computed here from the output found; two steps in a row."""
    problem = make_problem()
    trainer = PassiveAggressive(c=0.05, kind=kind, sqrt_loss=sqrt_loss, averaged=False)
    state, w = trainer.init_state(problem), np.zeros(problem.task.dim)
    for _ in range(2):
        i = first_wrong(problem, w)
        difference, wrong, ahead = step_of(problem, w, i)
        cost, square = ahead + (np.sqrt(wrong) if sqrt_loss else 1.0), float(difference @ difference)
        tau = {0: cost / square, 1: min(0.05, cost / square), 2: cost / (square + 10.0)}[kind]
        w = w + tau * difference
        state, changed = trainer.update(problem, state, i)
        assert changed
        np.testing.assert_allclose(trainer.weights(problem, state), w, atol=1e-12)


def test_an_arow_step() -> None:
    """Weights move by alpha Sigma delta, variances shrink as 1 / (1/v + delta^2 / gamma); two steps in a row."""
    problem = make_problem(seed=1)
    trainer = AROW(variance=2.0, gamma=3.0)
    state, w, variance = trainer.init_state(problem), np.zeros(problem.task.dim), np.full(problem.task.dim, 2.0)
    for _ in range(2):
        i = first_wrong(problem, w)
        difference, wrong, ahead = step_of(problem, w, i)
        alpha = (ahead + np.sqrt(wrong)) / (float(variance @ difference**2) + 3.0)
        w = w + alpha * variance * difference
        variance = 1.0 / (1.0 / variance + difference**2 / 3.0)
        state, changed = trainer.update(problem, state, i)
        assert changed
        np.testing.assert_allclose(trainer.weights(problem, state), w, atol=1e-12)
        np.testing.assert_allclose(state.variance, variance, atol=1e-12)


@pytest.mark.parametrize("trainer", [PassiveAggressive(), PassiveAggressive(kind=2), AROW()], ids=["pa1", "pa2", "arow"])
def test_they_learn_and_leave_right_sequences_alone(trainer) -> None:
    """On data that can be told apart everything is right in the end, and then a step changes nothing."""
    problem = make_problem(30, seed=2)
    result = train(problem, trainer, RunSettings(max_iter=60))
    wrong = sum(step_of(problem, np.asarray(result.weights), i)[1] for i in range(len(problem.task)))
    assert wrong == 0
    assert result.certificate.primal is None


@pytest.mark.parametrize("make", [lambda: PassiveAggressive(c=0.0), lambda: PassiveAggressive(kind=3), lambda: AROW(gamma=0.0)])
def test_bad_settings_are_refused(make) -> None:
    """Nonsense gives ParameterError."""
    with pytest.raises(ParameterError):
        make()
