"""SPO+ as a structural support vector machine whose loss is the regret: trained to a proven gap."""

from itertools import pairwise

import numpy as np
import pytest

from structpred import LabelRows, Task
from structpred.data.decisions import shortest_path_data
from structpred.layers import Scores, SPOPlus
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Regret
from structpred.oracles.shortest_path import ShortestPathOracle
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.names import trainers
from structpred.trainers.problem import Problem

ORACLE, SHAPE, LAM = ShortestPathOracle(), (3, 3), 0.3


def problem() -> tuple[Problem, np.ndarray, np.ndarray]:
    """SPO+ of 12 instances on a 3 x 3 grid: the margin of the regret at twice the scores. Also features and costs."""
    data = shortest_path_data(12, n_features=3, grid=SHAPE, degree=4, noise=0.5, seed=1)
    columns = np.column_stack((data.features, np.ones(12)))
    best = [ORACLE.argmax(-own, SHAPE) for own in data.costs]
    task = Task(LabelRows(2.0 * columns, 12, dtype=np.float64), ORACLE, best, [SHAPE] * 12, Regret(-data.costs))
    return Problem(task, MarginRescaling(), LAM), columns, data.costs


@pytest.fixture(scope="module")
def optimum() -> float:
    """The least value of lam / 2 |W|^2 + the mean of SPO+, by cvxpy over all six paths."""
    import cvxpy as cp

    given, columns, costs = problem()
    paths = np.zeros((6, 12))
    for k, path in enumerate(ORACLE.enumerate(SHAPE)):
        paths[k, path] = 1.0
    gold = np.zeros((12, 12))
    for i, labels in enumerate(given.task.labels):
        gold[i, labels] = 1.0
    W = cp.Variable((4, 12))
    scores = 2.0 * columns @ W + costs
    losses = cp.max(scores @ paths.T, axis=1) - cp.sum(cp.multiply(scores, gold), axis=1)
    return float(cp.Problem(cp.Minimize(LAM / 2 * cp.sum_squares(W) + cp.sum(losses) / 12)).solve(solver="CLARABEL"))


@pytest.mark.parametrize(("name", "tol"), [("bcfw", 0.04), ("one_slack", 1e-3), ("n_slack", 1e-3)])
def test_both_bounds_meet_the_optimum_over_all_paths(name: str, tol: float, optimum: float) -> None:
    """At every pass the dual is at most the optimum, and the primal at least; at the end both are within the gap asked for."""
    result = train(problem()[0], trainers()[name](), RunSettings(max_iter=200, tol=tol, check_every=1))
    assert result.stop_reason == "tol"
    for row in result.history:
        assert row["dual"] <= optimum * (1 + 1e-7) <= row["primal"] * (1 + 2e-7)
    assert all(later["dual"] >= row["dual"] - 1e-9 for row, later in pairwise(result.history))
    assert result.certificate.dual == pytest.approx(optimum, rel=tol)
    assert result.certificate.primal == pytest.approx(optimum, rel=tol)


def test_the_objective_is_that_of_the_loss_layer() -> None:
    """At any weights the margin of the regret is the SPO+ loss of the predicted scores, to rounding."""
    given, columns, costs = problem()
    w = np.random.default_rng(3).normal(size=(4, 12))
    values = given.surrogate.values(given.task, w.ravel())
    found = SPOPlus(ORACLE)(Scores.of(ORACLE, [SHAPE] * 12), columns @ w, true_scores=-costs)
    assert values == pytest.approx(found.values, rel=1e-12)
