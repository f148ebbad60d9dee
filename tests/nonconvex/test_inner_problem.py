"""The inner problem of the semi-supervised support vector machine, as a function of the weights of labels."""

from typing import Any

import numpy as np
import pytest
from moons import problem
from sklearn.svm import SVC

from structpred.errors import DataError, ParameterError
from structpred.nonconvex.problem import SemiSupervisedProblem
from structpred.nonconvex.regions import Region, gradient_vertices, region_of

RNG = np.random.default_rng(0)


def small(kind: str = "rbf", n: int = 16) -> SemiSupervisedProblem:
    """Random points, three labelled of each class; with copies of points, or a linear kernel of rank two, where asked for."""
    X = RNG.normal(size=(n, 2))
    if kind == "copies":
        X[n // 2 :] = X[: n - n // 2]
    gram = X @ X.T if kind == "linear" else np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 2)
    return SemiSupervisedProblem(gram, np.r_[1, 1, 1, -1, -1, -1, np.zeros(n - 6, int)], 2.0, 1.5)


def by_cvxpy(p: SemiSupervisedProblem, plus: Any, minus: Any) -> float:
    """The same minimum, over w in the space that the kernel matrix spans."""
    import cvxpy as cp

    values, vectors = np.linalg.eigh(p.gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    w, b, (upper, lower) = cp.Variable(p.n), cp.Variable(), p.boxes(plus, minus)
    h = root @ w + b
    objective = 0.5 * cp.sum_squares(w) + upper @ cp.pos(1 - h) + lower @ cp.pos(1 + h)
    return float(cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL"))


@pytest.mark.parametrize("kind", ["rbf", "copies", "linear"])
def test_its_value_is_that_of_a_general_solver(kind: str) -> None:
    """Dual and primal are the optimum of cvxpy, for weights that sum to one and others, also where the kernel is degenerate."""
    p = small(kind)
    for plus, minus in ((RNG.random(10), None), (RNG.random(10), RNG.random(10)), (np.ones(10), None)):
        found = p.solve(plus, minus, tol=1e-9)
        expected = by_cvxpy(p, plus, 1.0 - plus if minus is None else minus)
        assert found.objective == pytest.approx(expected, abs=1e-6)
        assert 0.0 <= p.primal(found, plus, minus) - found.objective + 1e-12 < 1e-6


def test_the_gradient_is_that_of_differences() -> None:
    """dF/dp by central differences; the step keeps p inside (0, 1)."""
    p, at, step = small(), RNG.uniform(0.1, 0.9, 10), 1e-5
    gradient = p.gradient(p.solve(at, tol=1e-10))
    for i, unit in enumerate(np.eye(10)):
        ends = [-p.solve(at + sign * step * unit, tol=1e-10).objective for sign in (1, -1)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-5)


def test_F_is_convex_and_the_anchor_is_its_least_value() -> None:
    """On chords of the box F is below the line; the anchor's p solves to the anchor's value, and nothing tried is below."""
    p = small()
    anchor, value = p.anchor(1e-9)
    assert p.solve(anchor, tol=1e-9).objective == pytest.approx(value, abs=1e-6)
    for _ in range(30):
        a, b, t = RNG.random(10), RNG.random(10), RNG.random()
        F_a, F_b, F_t = (-p.solve(q, tol=1e-8).objective for q in (a, b, t * a + (1 - t) * b))
        assert F_t <= t * F_a + (1 - t) * F_b + 1e-6
        assert min(F_a, F_b) >= -value - 1e-6


def test_opposite_labels_give_opposite_weights_the_same_value() -> None:
    """F(p; y) = F(1 - p; -y)."""
    p, at = small(), RNG.random(10)
    turned = SemiSupervisedProblem(p.gram, -p.y, p.C, p.C2)
    assert turned.solve(1.0 - at, tol=1e-9).objective == pytest.approx(p.solve(at, tol=1e-9).objective, abs=1e-7)


def test_certain_labels_make_it_a_support_vector_machine() -> None:
    """With p of 0 and 1 the decision values are those of scikit-learn's SVC with these labels and weights."""
    p, at = small(), (RNG.random(10) > 0.5).astype(float)
    y = p.y.copy()
    y[p.unlabelled] = np.where(at > 0, 1, -1)
    peer = SVC(kernel="precomputed", C=1.0, tol=1e-8).fit(p.gram, y, sample_weight=np.where(p.y != 0, p.C, p.C2))
    np.testing.assert_allclose(p.solve(at, tol=1e-8).h, peer.decision_function(p.gram), atol=1e-4)


@pytest.mark.parametrize("kind", ["rbf", "copies", "linear"])
def test_warm_starts_change_nothing(kind: str) -> None:
    """A start from the solution for other weights leads to the same optimum."""
    p, start = small(kind), None
    for _ in range(5):
        at = (RNG.random(10) > 0.5).astype(float)
        start = p.solve(at, start=start, tol=1e-8)
        assert start.objective == pytest.approx(p.solve(at, tol=1e-8).objective, abs=1e-7)


def contains(region: Region, plus: Any) -> bool:
    """Whether the equations give the optimum there: free points between their bounds, the others on their sides. Of solutions
    that are not unique, such as those with copies of a point, they give only one: then False proves nothing."""
    found = region.solution(plus)
    inside = (region.room(plus) >= -1e-7).all() and abs(found.beta.sum()) <= 1e-7
    return bool(inside and np.allclose(found.h[region.free], region.sides, atol=1e-6))


@pytest.mark.parametrize("kind", ["rbf", "copies", "linear"])
def test_a_critical_region_gives_the_solution_without_solving(kind: str) -> None:
    """In the region about a point the equations give the value, gradient and decision values of a new solution."""
    p, inside = small(kind), 0
    for _ in range(10):
        at = RNG.uniform(0.1, 0.9, 10)
        region = region_of(p, p.solve(at, tol=1e-10))
        assert contains(region, at)
        other = at + 1e-4 * RNG.normal(size=10)
        if contains(region, other):
            inside += 1
            found, solved = region.solution(other), p.solve(other, tol=1e-10)
            assert found.objective == pytest.approx(solved.objective, abs=1e-8)
            np.testing.assert_allclose(found.h, solved.h, atol=1e-6)
    assert inside >= (2 if kind == "copies" else 5)


def test_the_published_formula_lacks_a_term() -> None:
    """alpha = T R^-1 (C_A p + v) - H 1 solves a problem with an invertible Q; without - H 1, as printed, it does not."""
    n = 8
    X = RNG.normal(size=(n, 3))
    gram, y = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)), np.tile([1.0, -1.0], n // 2)
    p = SemiSupervisedProblem(gram, np.r_[1, -1, np.zeros(n - 2, int)], 3.0, 0.6)
    plus, minus = (y[2:] > 0).astype(float), (y[2:] < 0).astype(float)
    beta = p.solve(plus, minus, tol=1e-11).beta
    top = np.where(p.y != 0, 3.0, 0.6)
    at_zero, at_top = np.abs(beta) < 1e-9, np.abs(beta) > top - 1e-9
    rows = np.vstack([-np.eye(n)[at_zero], np.eye(n)[at_top]])  # C_A
    bound = np.concatenate([np.zeros(at_zero.sum()), top[at_top]])
    Q_inverse = np.linalg.inv(gram * np.outer(y, y))
    H = np.outer(Q_inverse @ y, Q_inverse @ y) / (y @ Q_inverse @ y) - Q_inverse
    printed = H @ rows.T @ np.linalg.solve(rows @ H @ rows.T, bound + rows @ H @ np.ones(n))
    assert len(rows)
    np.testing.assert_allclose(printed - H @ np.ones(n), np.abs(beta), atol=1e-7)
    assert np.abs(printed - np.abs(beta)).max() > 0.1


def test_an_offset_that_is_an_interval_has_two_gradients() -> None:
    """Where all support vectors are at their bounds, both ends of the offset are subgradients, and there is no region."""
    p = SemiSupervisedProblem(np.eye(3), np.array([1, -1, 0]), 0.1, 0.01)
    found = p.solve(np.zeros(1), np.zeros(1), tol=1e-9)
    assert (found.low, found.high) == pytest.approx((-0.9, 0.9))
    assert len(gradient_vertices(p, found)) == 2
    with pytest.raises(ParameterError, match="no gradient here"):
        region_of(p, found)


def test_a_balance_that_is_no_whole_number_has_a_vertex() -> None:
    """The best vertex for 2.5 positives: two ones, a half, in the order of the gradient; ties go to the earlier point."""
    p = SemiSupervisedProblem(np.eye(6), np.array([1, -1, 0, 0, 0, 0]), 1.0, 1.0, positives=2.5)
    assert p.best_vertex(np.array([0.0, 3.0, -1.0, 0.0])).tolist() == [1.0, 1.0, 0.0, 0.5]


@pytest.mark.parametrize(
    ("gram", "y", "settings", "error", "words"),
    [
        (np.diag([1.0, -1.0, 1.0]), [1, -1, 0], {}, DataError, "not positive semidefinite, its least eigenvalue is -1"),
        ([[1.0, 0.5, 0], [0.0, 1.0, 0], [0, 0, 1.0]], [1, -1, 0], {}, DataError, "not symmetric"),
        (np.full((3, 3), np.nan), [1, -1, 0], {}, DataError, "must be finite"),
        (np.eye(3), [0, 0, 0], {}, DataError, "no labelled point"),
        (np.eye(3), [1, 0, 0], {}, DataError, r"both classes, got \[1\]"),
        (np.eye(3), [1, -1, 0], {"positives": 2}, ParameterError, "expected 0 to 1"),
        (np.eye(3), [1, -1, 0], {"C2": 0.0}, ParameterError, "C2 must be a positive number"),
    ],
)
def test_what_is_no_such_problem_is_refused(gram: Any, y: Any, settings: Any, error: Any, words: str) -> None:
    """Each impossible input is named: the kernel, the labels, the balance, the weights."""
    with pytest.raises(error, match=words):
        SemiSupervisedProblem(gram, np.array(y), **{"C": 1.0, "C2": 1.0, **settings})


def test_weights_outside_their_set_are_refused() -> None:
    """Below zero F is infinite: an error, never a clipped weight; above one the other weight is below zero."""
    p, _ = problem(16, 1.0, 0.1)
    for value in (-0.1, 1.1):
        with pytest.raises(ParameterError, match="F is infinite"):
            p.solve(np.full(p.u, value))
        with pytest.raises(ParameterError, match="one per unlabelled point"):
            p.checked_weights(np.full(p.u, value))
