"""Semi-supervised problems over rows of features, and labels that grow in large steps."""

import cvxpy
import numpy as np
import pytest
from moons import moons
from sklearn.svm import LinearSVC

from structpred.errors import DataError, ParameterError
from structpred.models.kernels.random_features import RandomFeatures
from structpred.nonconvex.gradient import GradientDescent
from structpred.nonconvex.spreading import Growing
from structpred.nonconvex.twins import FeatureProblem

RNG = np.random.default_rng(0)
ROWS = np.c_[RNG.normal(size=(60, 3)), np.ones(60)]
Y = np.r_[1, -1, 1, -1, np.zeros(56, int)]


def test_with_all_labels_it_is_liblinear() -> None:
    """With the labels of a vertex the objective is that of scikit-learn's LinearSVC, to the share that is promised."""
    problem, labels = FeatureProblem(ROWS, Y, 2.0, 2.0), np.where(ROWS[Y == 0, 0] > 0.3, 1, -1)
    inner = problem.solve((labels > 0).astype(float), tol=1e-3)
    y = np.r_[Y[:4], labels]
    peer = LinearSVC(loss="hinge", C=2.0, fit_intercept=False, tol=1e-8, max_iter=10**6).fit(ROWS, y)
    w = peer.coef_[0]
    wanted = 0.5 * w @ w + 2.0 * np.maximum(0.0, 1.0 - y * (ROWS @ w)).sum()
    assert wanted * (1.0 - 1.1e-3) <= inner.objective <= wanted * (1.0 + 1e-6)
    assert problem.primal(inner, (labels > 0).astype(float)) <= wanted * (1.0 + 1.1e-3)


def test_weights_of_both_labels_are_those_of_an_independent_solver() -> None:
    """For weights inside the box, and points left out, primal and dual enclose the value of a general convex solver."""
    plus, minus = RNG.random(56), RNG.random(56)
    plus[:10] = minus[:10] = 0.0
    problem = FeatureProblem(ROWS, Y, 2.0, 1.0)
    upper, lower = problem.boxes(plus, minus)
    w = cvxpy.Variable(4)
    losses = upper @ cvxpy.pos(1.0 - ROWS @ w) + lower @ cvxpy.pos(1.0 + ROWS @ w)
    exact = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + losses)).solve(solver=cvxpy.CLARABEL)
    inner = problem.solve(plus, minus, tol=1e-3)
    assert exact * (1.0 - 1.1e-3) <= inner.objective <= exact * (1.0 + 1e-6)
    assert exact * (1.0 - 1e-6) <= problem.primal(inner, plus, minus) <= exact * (1.0 + 1.1e-3)


def test_labels_grow_along_two_moons() -> None:
    """With random features and one label for each moon all labels are found, within the balance; the objective only falls."""
    X, truth, y = moons(300, 1)
    features = np.c_[RandomFeatures(400, gamma=10.0).fit_transform(X), np.ones(300)]
    problem = FeatureProblem(features, y, 100.0, 1.0, 149)
    found = Growing(max_inner=150).solve(problem)
    assert (found.labels != truth[y == 0]).mean() <= 0.02
    assert found.p.sum() == 149
    objectives = [row["objective"] for row in found.history]
    assert objectives == sorted(objectives, reverse=True)
    assert found.lower_bound <= found.objective
    assert found.level == "local"


def test_what_needs_the_matrix_and_bad_rows_are_refused() -> None:
    """A solver that reads the kernel matrix says so; rows must be finite, steps in (0, 1]."""
    with pytest.raises(ParameterError, match="needs the kernel matrix"):
        GradientDescent().solve(FeatureProblem(ROWS, Y, 1.0, 1.0))
    with pytest.raises(DataError, match="finite"):
        FeatureProblem(ROWS * np.inf, Y, 1.0, 1.0)
    with pytest.raises(ParameterError, match="step in"):
        Growing(step=0.0).solve(FeatureProblem(ROWS, Y, 1.0, 1.0))
