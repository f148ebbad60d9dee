"""Features in place of a kernel matrix: the same problem, for many points."""

import numpy as np
import pytest
from moons import moons

from structpred.errors import DataError, ParameterError
from structpred.nonconvex.cccp import CCCP
from structpred.nonconvex.pdm import PDM
from structpred.nonconvex.problem import FeatureProblem, SemiSupervisedProblem
from structpred.nonconvex.staged import StagedSearch

RNG = np.random.default_rng(0)


def features_of_moons(n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(m features by landmarks, true labels of unlabelled points, labels)."""
    X, truth, y = moons(n, 0)

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1) / 0.1)

    base = X[RNG.choice(n, m, replace=False)]
    values, vectors = np.linalg.eigh(kernel(base, base))
    kept = values > 1e-8 * values[-1]
    return kernel(X, base) @ (vectors[:, kept] / np.sqrt(values[kept])), truth[y == 0], y


def test_its_inner_problem_is_the_one_with_the_kernel_of_the_features() -> None:
    """With the constant feature in the kernel and no other offset: bounds of the accuracy asked for hold cvxpy's optimum."""
    import cvxpy as cp

    Z = RNG.normal(size=(14, 3))
    p = FeatureProblem(Z, np.r_[1, 1, -1, -1, np.zeros(10, int)], 2.0, 1.0, offset=2.0, accuracy=1e-9, max_rounds=100_000)
    full = np.hstack([Z, np.full((14, 1), 2.0)])
    for plus, minus in ((RNG.random(10), None), (RNG.random(10), RNG.random(10))):
        found, w = p.solve(plus, minus, tol=1e-9), cp.Variable(4)
        upper, lower = p.boxes(plus, 1.0 - plus if minus is None else minus)
        objective = 0.5 * cp.sum_squares(w) + upper @ cp.pos(1 - full @ w) + lower @ cp.pos(1 + full @ w)
        expected = cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL")
        assert found.objective == pytest.approx(expected, abs=1e-6)
        assert p.primal(found, plus, minus) == pytest.approx(expected, abs=1e-6)
        np.testing.assert_allclose(full @ p.weights(found), found.h, atol=1e-9)


@pytest.mark.slow
def test_the_default_solver_starts_from_some_of_the_points() -> None:
    """Two moons of 800 points with 100 landmarks: the labels of 150 of them lead to those of all, in a small budget."""
    Z, truth, y = features_of_moons(800, 100)
    p = FeatureProblem(Z.astype(np.float32), y, 100.0, 1.0, 399)
    found = StagedSearch(max_inner=40, coarse=150).solve(p)
    assert (found.labels != truth).mean() <= 0.01
    assert found.p.sum() == 399
    assert found.lower_bound <= found.objective
    assert found.history[0]["event"] == "coarse"


def test_other_solvers_work_or_say_why_not() -> None:
    """PDM needs no kernel matrix, CCCP does; features must be finite, and a subset is the problem of its points."""
    Z, _, y = features_of_moons(60, 40)
    p = FeatureProblem(Z, y, 100.0, 10.0, 29)
    assert PDM(max_inner=200).solve(p).p.sum() == 29
    with pytest.raises(ParameterError, match="needs the kernel matrix"):
        CCCP().solve(p)
    with pytest.raises(DataError, match="finite numbers"):
        FeatureProblem(np.full((3, 2), np.nan), np.array([1, -1, 0]), 1.0, 1.0)
    points = np.arange(0, 60, 1)
    part = p.subset(points, 5.0)
    assert isinstance(part, SemiSupervisedProblem)
    assert (part.C2, part.positives, part.u) == (5.0, 29, 58)
    found = part.solve(np.ones(58), tol=1e-8)
    np.testing.assert_allclose(p.decision(points, found), found.h, atol=1e-6)
