"""The multiclass dual over the entries that are free: its maximum, the budget of the search, and what both are worth."""

import numpy as np
import pytest
from training_cases import problem

from structpred.features.label_rows import LabelRows
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem
from structpred.trainers.rows._label_faces_kernels import solve_face, without
from structpred.trainers.rows.label_ascent import LabelAscent, LabelState
from structpred.trainers.sdca import SDCA, ascent_of

RNG = np.random.default_rng(7)
N, D, N_LABELS = 30, 6, 4
X = RNG.normal(size=(N, D))
X[3], X[5] = 0.0, X[4]
Y = RNG.integers(0, N_LABELS, N)
WEIGHTS = np.r_[0.0, RNG.uniform(0.1, 3.0, N - 1)]
UNEVEN = LabelCosts(np.abs(np.subtract.outer(range(N_LABELS), range(N_LABELS))))


def task(rows: np.ndarray = X, y: np.ndarray = Y, loss: object = None, weights: np.ndarray | None = WEIGHTS) -> Task:
    """Four labels; a row of zeros, one of weight zero, and a row twice, so that systems are singular."""
    features = LabelRows(rows, N_LABELS, dtype=np.float64)
    return Task(features, MulticlassOracle(), list(y[:, None]), features.shapes, loss or Hamming(), sample_weight=weights)


def swept(found: Problem) -> tuple[LabelAscent, LabelState]:
    """The state after two sweeps, with free entries that are not at their maximum."""
    ascent = ascent_of(found)
    assert isinstance(ascent, LabelAscent)
    state = ascent.init_state()
    for seed in (1, 2):
        ascent.ascend(state, np.uint64(seed), ascent.work())
        state.counts[:4] = (N, 0, 0, 0)
    return ascent, state


@pytest.mark.parametrize("loss", [None, UNEVEN])
def test_the_dual_is_at_its_maximum_over_the_free_entries(loss: object) -> None:
    """Labels of positive mass tie in each row, mass stays a distribution, none comes up, W fits, and the dual has risen."""
    found = problem(task(loss=loss), 0.05)
    ascent, state = swept(found)
    before, dual = state.mu.copy(), ascent.objective(state)[1]
    assert ascent.solve_face(state)
    assert (state.mu[before == 0.0] == 0.0).all()
    np.testing.assert_allclose(state.mu.sum(axis=1), 1.0, atol=1e-13)
    costs = loss.matrix if loss else 1.0 - np.eye(N_LABELS)
    table, truth = state.w.reshape(D, N_LABELS), np.eye(N_LABELS)[Y]
    np.testing.assert_allclose(table, X.T @ ((truth - state.mu) * ascent.upper[:, None]), atol=1e-11)
    scores = X @ table + np.asarray(costs)[Y]
    free = (state.mu > 0.0) & ((WEIGHTS > 0.0) & X.any(axis=1))[:, None]
    lowest, highest = (np.where(free, scores, wrong) for wrong in (np.inf, -np.inf))
    ties = free.sum(axis=1) > 1
    assert ties.sum() > 5
    np.testing.assert_allclose(lowest.min(axis=1)[ties], highest.max(axis=1)[ties], atol=1e-9)
    assert ascent.objective(state)[1] > dual


def test_without_room_or_budget_nothing_is_solved() -> None:
    """More free entries than there is room for: not a bit changes. No budget for the steps: the dual does not fall."""
    ascent, state = swept(problem(task(), 0.05))
    before, dual = [part.copy() for part in state], ascent.objective(state)[1]

    def solve(room: int, budget: int) -> tuple[bool, int]:
        table = state.w.reshape(D, N_LABELS)
        shared = ascent.rows, ascent.truths, ascent.squares, ascent.upper, ascent.costs
        solved: tuple[bool, int] = solve_face(*shared, table, state.mu, state.labels, state.sizes, room, budget)
        return solved

    assert solve(2, 1000) == (False, 1000)
    assert all(np.array_equal(old, new) for old, new in zip(before, state, strict=True))
    assert not solve(100, 1)[0]
    assert ascent.objective(state)[1] >= dual - 1e-15


@pytest.mark.parametrize("gone", [0, 3, 6])
def test_an_entry_leaves_a_factored_system(gone: int) -> None:
    """U'U without its row and column is the product of what is left, for the first, a middle and the last one."""
    rows = np.random.default_rng(gone).normal(size=(7, 9))
    system = np.linalg.cholesky(rows @ rows.T).T.copy()
    without(system, 7, gone)
    left, kept = np.triu(system[:6, :6]), np.delete(rows, gone, axis=0)
    np.testing.assert_allclose(left.T @ left, kept @ kept.T, atol=1e-12)


def test_few_passes_reach_the_optimum_to_rounding() -> None:
    """Where sweeps alone creep: lam 1e-4, features that nearly depend on one another."""
    rows = X @ (np.ones((D, D)) + 0.1 * np.eye(D))
    result = train(problem(task(rows), 1e-4), SDCA(), RunSettings(max_iter=60, tol=1e-12))
    assert result.stop_reason == "tol"


def test_weights_are_repetition_at_a_loose_tolerance() -> None:
    """Small problems are solved to rounding, so a row of weight three is three rows: the same weights to 1e-9."""
    counts = np.random.default_rng(3).integers(0, 4, N)
    settings = RunSettings(max_iter=1000, tol=1e-4)
    one = train(problem(task(weights=counts.astype(np.float64)), 0.02), SDCA(), settings)
    other = train(problem(task(X.repeat(counts, axis=0), Y.repeat(counts), weights=None), 0.02), SDCA(), settings)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9, atol=1e-9)
