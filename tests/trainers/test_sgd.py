"""SGD: the iterates, the average and the dual value are those of a naive dense implementation."""

from typing import Any

import numpy as np
import pytest
from training_cases import TASKS, chain_task, problem

from structpred.errors import ConvergenceError
from structpred.models import ChainLabeler
from structpred.objectives.scalar.errors import Huber, Squared
from structpred.objectives.scalar.margins import Logistic, SmoothedHinge
from structpred.rows.linear_task import LinearTask
from structpred.rows.scalar_loss import ScalarLoss
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD, exactly_summed


def naive(prob, n_passes, seed):
    """Pegasos with dense vectors: w_k = (1 - 1/k) w + n p_i psi / (lam k); returns the last w and the k-weighted average."""
    task, rng, n = prob.task, np.random.Generator(np.random.PCG64(seed)), len(prob.task)
    w, total, weight, k = np.zeros(task.dim), np.zeros(task.dim), 0.0, 0
    for _ in range(n_passes):
        for i in rng.permutation(n):
            k += 1
            y = task.argmax(w, i, prob.surrogate.loss_weight)
            psi = task.difference(i, y).dense(task.dim)
            w = (1.0 - 1.0 / k) * w + n * prob.p[i] * psi / (prob.lam * k)
            total, weight = total + k * w, weight + k
    return w, total / weight


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_iterates_equal_a_dense_implementation(averaged, weighted) -> None:
    """Scale, lazy average and sample weights change nothing but the speed."""
    prob = problem(chain_task(1, weighted=weighted), 0.1)
    result = train(prob, SGD(averaged=averaged), RunSettings(max_iter=5, seed=9))
    np.testing.assert_allclose(result.weights, naive(prob, 5, 9)[int(averaged)], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("structure", TASKS)
@pytest.mark.parametrize("averaged", [True, False])
def test_dual_never_exceeds_primal(structure, averaged) -> None:
    """The free dual value is a lower bound of every primal value, at every pass."""
    for seed in range(3):
        rows = train(
            problem(TASKS[structure](seed), 0.05), SGD(averaged=averaged), RunSettings(max_iter=15, check_every=1)
        ).history
        primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
        assert (dual.max() <= primal + 1e-9 * (1.0 + np.abs(primal))).all()


def test_the_gap_closes() -> None:
    """Primal and dual approach each other."""
    rows = train(problem(TASKS["assignment"](0), 0.3), SGD(), RunSettings(max_iter=200, check_every=20)).history
    gaps = [row["gap"] for row in rows if row["gap"] is not None]
    assert gaps[-1] < 0.2 * gaps[0]


def test_no_dual_value_is_claimed_for_rounded_sums() -> None:
    """float32 with features that are no whole numbers gives a primal value only; with whole ones both."""
    result = train(problem(chain_task(0, dtype=np.float32), 0.1), SGD(), RunSettings(max_iter=3))
    assert result.certificate.primal is not None
    assert result.certificate.dual is None
    assert exactly_summed(np.array([1.0, -7.0], np.float32))
    assert not exactly_summed(np.array([1.5], np.float32))
    assert not exactly_summed(np.array([2.0**24], np.float32))
    assert exactly_summed(np.array([1.5]))


def test_no_dual_value_in_the_middle_of_a_pass() -> None:
    """Only after whole passes is every sample's dual mass spent."""
    trainer, prob = SGD(), problem(chain_task(0), 0.1)
    state = trainer.init_state(prob)
    state, _ = trainer.update(prob, state, 0)
    assert trainer.objective(prob, state)[1] is None


class SquaredHinge(ScalarLoss):
    """A loss of a user's own whose slope has no bound."""

    signs = True

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def value(self, z: Any, y: Any) -> Any:
        return 0.5 * np.maximum(1.0 - y * z, 0.0) ** 2

    def derivative(self, z: Any, y: Any) -> Any:
        return -y * np.maximum(1.0 - y * z, 0.0)


def rows_of(n: int) -> tuple[Any, Any]:
    """Plain data of ridge regression, features of size 3."""
    rng = np.random.default_rng(0)
    X = 3.0 * rng.normal(size=(n, 6))
    return X, X @ rng.normal(size=6) + rng.normal(size=n)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("loss", [Squared(), SquaredHinge()], ids=["squared", "squared hinge"])
def test_losses_with_any_slope_take_steps_that_fit_them(loss: ScalarLoss, C: float) -> None:
    """The squared error, and a loss of one's own that says how smooth it is, come near the optimum."""
    X, y = rows_of(60)
    given = Problem(LinearTask(X, np.sign(y)), loss, 1.0 / (C * len(y)))
    best = train(given, LBFGS(), RunSettings(max_iter=200)).certificate.primal
    found = train(given, SGD(), RunSettings(max_iter=60, check_every=60)).certificate.primal
    assert best is not None
    assert found is not None
    assert best <= found <= best + 0.1 * (0.5 - best)  # at w = 0 it is 0.5


def test_steps_that_are_too_long_end_in_an_error() -> None:
    """A loss whose slope has no bound and that does not say how smooth it is is never left far above w = 0 without a word."""
    X, y = rows_of(30)
    given = Problem(LinearTask(X, np.sign(y)), SquaredHinge(0.0), 1e-3)
    with pytest.raises(ConvergenceError, match=r"SGD: the objective is .*e\+.*, at w = 0 it is 0\.5: its steps are too long"):
        train(given, SGD(), RunSettings(max_iter=1))


@pytest.mark.parametrize("loss", [Logistic(), Huber(1.0), SmoothedHinge(0.1)], ids=lambda loss: loss.name)
def test_losses_with_bounded_slopes_keep_their_steps(loss: ScalarLoss) -> None:
    """Their first step is 1 / lam, as Pegasos has it, and however far from w = 0 it leads is no error."""
    X, y = rows_of(1)
    far = Problem(LinearTask(1e9 * np.ones((2, 1)), [1, -1]), loss, 1e-6)
    train(far, SGD(), RunSettings(max_iter=1))
    given = Problem(LinearTask(X, np.sign(y)), loss, 0.5)
    first = loss.term(given.task, np.zeros(6), 0).difference.dense(6)
    state, _ = SGD().update(given, SGD().init_state(given), 0)
    np.testing.assert_array_equal(state.weights.v * state.weights.scale, first / 0.5)


@pytest.mark.parametrize("seed", [2, 3, 5, 7, 9])
def test_probabilities_near_the_smallest_float(seed) -> None:
    """Where a confident model leaves 1e-320 to all other labels its steps lose digits, and are not held to be inconsistent."""
    rng = np.random.default_rng(0)
    draws = [[rng.normal(size=(3, 4)) for _ in range(20)] for _ in range(10 + seed + 1)][-1]  # as the tenth and later sets
    labels = [[int(a > 0) for a in x[:, 0]] for x in draws]
    labeler = ChainLabeler("sgd", surrogate="log", C=1e3, max_iter=30, random_state=seed).fit(draws, labels)
    assert labeler.score(draws, labels) == 1.0
