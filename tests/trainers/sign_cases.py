"""Small problems of rows with sign constraints, and their optimal values by a generic solver."""

from typing import Any

import numpy as np

from structpred.core.regulariser import Regulariser
from structpred.objectives.regularisers.l2 import SignConstraints
from structpred.objectives.scalar.errors import Absolute, Huber, Squared
from structpred.objectives.scalar.margins import Hinge, Logistic, SmoothedHinge
from structpred.rows.linear_task import LinearTask, RegressionTask, RowTask
from structpred.rows.scalar_loss import ScalarLoss
from structpred.trainers.problem import Problem

LOSSES: dict[str, ScalarLoss] = {
    "hinge": Hinge(), "smoothed hinge": SmoothedHinge(0.5), "logistic": Logistic(), "squared": Squared(),
    "absolute": Absolute(), "huber": Huber(0.5),
}  # fmt: skip


def data(n: int = 80, d: int = 6, seed: int = 1) -> tuple[Any, Any, Any, Any]:
    """X, signs, targets, and random constraints."""
    rng = np.random.default_rng(seed)
    X, truth = rng.normal(size=(n, d)), rng.normal(size=d)
    noisy = X @ truth + rng.normal(size=n)
    return X, np.where(noisy > 0, 1.0, -1.0), noisy, rng.integers(-1, 2, d)


def problem(loss: ScalarLoss, lam: float, regulariser: Regulariser | None = None, **options: Any) -> Problem:
    """Of the data, with random constraints unless another regulariser is given; for numbers where the loss is for them."""
    X, signs, targets, c = data(**options)
    task: RowTask = LinearTask(X, signs) if loss.signs else RegressionTask(X, targets)
    return Problem(task, loss, lam, regulariser=regulariser or SignConstraints(c))


def optimal_value(given: Problem, value: Any) -> float:
    """The least lam value(w) + sum_i p_i phi(<w, a_i>; y_i) as a convex program; value: (r(w), constraints) as expressions."""
    import cvxpy as cp

    task, w = given.task, cp.Variable(given.task.dim)
    rows = np.array([task.combined(row) for row in np.eye(len(task))])  # type: ignore[attr-defined]
    left: Any = task.targets - rows @ w  # type: ignore[attr-defined]
    losses = {
        "hinge": lambda: cp.pos(left),
        "smoothed_hinge": lambda: cp.huber(cp.pos(left), 0.5),
        "logistic": lambda: cp.logistic(left - 1.0),
        "squared": lambda: 0.5 * cp.square(left),
        "absolute": lambda: cp.abs(left),
        "huber": lambda: cp.huber(left, 0.5),
    }
    r, constraints = value(cp, w)
    found = cp.Problem(cp.Minimize(given.lam * r + given.p @ losses[given.surrogate.name]()), constraints)  # type: ignore[attr-defined]
    found.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(found.value)


def signed(c: Any) -> Any:
    """1/2 |w|^2 and c_j w_j >= 0, for `optimal_value`."""
    return lambda cp, w: (0.5 * cp.sum_squares(w), [cp.multiply(c, w) >= 0])
