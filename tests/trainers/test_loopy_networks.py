"""Max-margin networks on graphs with cycles: Pragam over the local polytope, against a generic solver's relaxed optimum."""

from typing import Any

import numpy as np
import pytest
from training_cases import optimum, problem

from structpred.features.parts import PartFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.mrf import graph_of, graph_shape
from structpred.oracles.mrf_lp import RelaxedMRF
from structpred.task.task import Task
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.pragam import Pragam

pytest.importorskip("ortools")
LAM = 0.1
SQUARE = graph_shape(4, 3, [(0, 1), (1, 3), (2, 3), (0, 2)])

ROWS = np.random.default_rng(1).normal(size=(3, graph_of(SQUARE).n_parts, 3))


def loopy_task(n: int = 3) -> Task:
    """Squares of four nodes with three states; three features a part."""
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 3, 4) for _ in range(n)]
    return Task(PartFeatures(list(ROWS[:n])), RelaxedMRF(), labels, [SQUARE] * n, Hamming())


def relaxed_optimum(task: Task, lam: float) -> float:
    """max over m_i in the local polytope of the dual, by Clarabel, with the rows of `RelaxedMRF.polytope`."""
    import cvxpy as cp

    n, value, errors = len(task), 0.0, 0.0
    constraints: list[Any] = []
    for i in range(n):
        A, lower, upper = RelaxedMRF().polytope(task.shapes[i])
        m, truth = cp.Variable(A.shape[1]), np.bincount(task.parts[i], minlength=A.shape[1]).astype(float)
        equal = np.flatnonzero(lower == upper)
        constraints += [A[equal] @ m == lower[equal], m >= 0]
        value = value + task.costs(i)[1] @ (m - truth) / n
        errors = errors + ROWS[i].T @ (truth - m) / n
    goal = cp.Problem(cp.Maximize(value - cp.sum_squares(errors) / (2 * lam)), constraints)
    goal.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(goal.value)


@pytest.mark.slow
def test_the_gap_closes_at_its_rate() -> None:
    """The relaxed optimum, not below that over outputs, is enclosed at every step by a gap of 4 L max d / ((k + 1)(k + 2))."""
    task = loopy_task()
    best, made, trainer = relaxed_optimum(task, LAM), problem(task, LAM), Pragam(adaptive=False, recentre=0.0)
    assert optimum(task, LAM)[0] <= best + 1e-7
    dual, state = trainer.dual_set(made), trainer.init_state(made)
    most = 0.5 * (len(graph_of(SQUARE).edges) + 4)  # each table is at most 1 from the centre, squared
    for k in range(25):
        assert float(state.bound) <= best + 1e-7 <= float(state.primal) + 2e-7
        assert state.gap <= 4.0 * float(state.curvature) * most / ((k + 1) * (k + 2)) + 1e-9
        state = trainer.update(made, state, 0)[0]
    assert dual.square(state.answer - state.centre) <= 2.0 * most


@pytest.mark.slow
def test_training_is_certified_against_the_relaxed_objective() -> None:
    """By the usual loop: both bounds come to the relaxed optimum."""
    task = loopy_task()
    best = relaxed_optimum(task, LAM)
    found = train(problem(task, LAM), Pragam(), RunSettings(max_iter=60, tol=1e-3, check_every=20)).certificate
    assert found.dual <= best + 1e-7 <= found.primal + 2e-7
    assert found.gap <= 0.05 * best
