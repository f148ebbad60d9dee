"""Solvers agree: on three small problems they end at the optimum of the convex program, between their bounds all the way."""

from functools import cache

import numpy as np
import pytest
from training_cases import chain_task, multiclass_task, optimum, problem

from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l2 import FreeIntercept
from structpred.rows.linear_task import LinearTask
from structpred.task.steps import TaskLike
from structpred.trainers.bcfw import BCFW
from structpred.trainers.bmrm import BMRM
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.names import trainers
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.pragam_b import PragamB
from structpred.trainers.problem import Problem

#: solver -> settings; names alone are looked for among all trainers
SOLVERS = {
    "bmrm": lambda: BMRM(precision=1e-8),
    "one_slack": lambda: OneSlackCuttingPlane(precision=1e-8),
    "n_slack": lambda: NSlackCuttingPlane(precision=1e-8),
    "bcfw": lambda: BCFW(averaged=False),
    **{name: trainers()[name] for name in ("corrective", "ls_bmrm", "sdca", "pragam")},
}


def binary_rows() -> tuple[np.ndarray, np.ndarray]:
    """Twenty noisy rows."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=20) > 0, 1, -1)


PROBLEMS = {
    "binary": (lambda: LinearTask(*binary_rows()), 0.2),
    "multiclass": (lambda: multiclass_task(5, n=6, n_labels=3, d=2), 0.1),
    "chain": (lambda: chain_task(1, n=3, longest=2, n_labels=2), 0.5),
}


@cache
def case(name: str) -> tuple[TaskLike, float, float]:
    """(task, lam, the optimum by an independent solver)."""
    make, lam = PROBLEMS[name]
    task = make()
    return task, lam, binary_optimum(lam) if name == "binary" else optimum(task, lam)[0]


def binary_optimum(lam: float, free: bool = False) -> float:
    """Of the support vector machine, without any code of the project; free: with an intercept that is not regularised."""
    import cvxpy as cp

    X, y = binary_rows()
    w, b = cp.Variable(X.shape[1]), cp.Variable() if free else 0.0
    hinge = cp.sum(cp.pos(1 - cp.multiply(y, X @ w + b))) / len(y)
    program = cp.Problem(cp.Minimize(lam / 2 * cp.sum_squares(w) + hinge))
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return float(program.value)


#: what those that need more than an argmax are tried on
ONLY_ON = {"sdca": ("binary",)}
CASES = [(name, solver) for name in PROBLEMS for solver in SOLVERS if name in ONLY_ON.get(solver, PROBLEMS)]


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("name", "solver"), CASES)
def test_solvers_agree_on_the_optimum(name: str, solver: str) -> None:
    """The primal is within 1e-6 of the optimum at the end, and never below it, the dual never above it, at every check."""
    pytest.importorskip("cvxpy")
    task, lam, value = case(name)
    settings = RunSettings(max_iter=6000, tol=5e-7, check_every=5)
    result = train(problem(task, lam), SOLVERS[solver](), settings)
    checked = [row for row in result.history if row["primal"] is not None]
    assert all(row["dual"] - 1e-9 <= value <= row["primal"] + 1e-9 for row in checked)
    assert result.certificate.proven
    assert result.certificate.primal == pytest.approx(value, abs=1e-6)


def test_a_free_intercept_has_an_optimum_of_its_own() -> None:
    """Pragam-b ends within 1e-6 of it, and it is below the one without an intercept."""
    pytest.importorskip("cvxpy")
    value = binary_optimum(0.2, free=True)
    made = Problem(LinearTask(*binary_rows(), intercept=1.0), MarginRescaling(), 0.2, regulariser=FreeIntercept())
    result = train(made, PragamB(), RunSettings(max_iter=3000, tol=5e-7, check_every=5))
    assert result.certificate.dual - 1e-9 <= value <= result.certificate.primal + 1e-9
    assert result.certificate.primal == pytest.approx(value, abs=1e-6)
    assert value < case("binary")[2]
