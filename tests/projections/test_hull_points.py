"""Projection onto the hull of an oracle's outputs: against quadratic programs, closed forms, and its own optimality condition."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from structpred.core.oracle import Oracle
from structpred.errors import ConvergenceError, DataError, OracleError, ParameterError
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.oracles.semimarkov import SemiMarkovOracle
from structpred.projections.lockstep import ActiveSets, nearest_in_hulls
from structpred.projections.simplex import project_onto_simplex

#: (5, 2) and longer: transitions that happen several times in one output
CASES = [
    (MulticlassOracle(), (6,)),
    (AssignmentOracle(), (3,)),
    (AssignmentOracle(), (4,)),
    (ChainOracle(), (1, 3)),
    (ChainOracle(), (5, 2)),
    (ChainOracle(), (4, 3)),
    (SemiMarkovOracle(), (4, 2, 2)),
    (SemiMarkovOracle(), (5, 2, 3)),
    (ArborescenceOracle(), (3,)),
    (ArborescenceOracle(single_root=False), (4,)),
    (ProjectiveOracle(), (4,)),
]
IDS = [f"{type(oracle).__name__}{shape}" for oracle, shape in CASES]
every_case = pytest.mark.parametrize(("oracle", "shape"), CASES, ids=IDS)


def vertices(oracle, shape):
    """All mu(y), one per row."""
    return EnumeratedOracle.of(oracle).table(shape).counts.toarray()


class Own(Oracle):
    """An oracle of two functions."""

    def __init__(self, best, on, size):
        self.best, self.on, self.size = best, on, size

    def n_parts(self, shape):
        return self.size

    def argmax(self, scores, shape):
        return self.best(scores)

    def parts(self, labels, shape):
        return self.on(labels)

    @staticmethod
    def example_shapes():
        return [()]


def nearest(oracle, shape, point, **options):
    """The nearest point of one hull, its gap and the number of oracle calls."""
    return nearest_in_hulls(oracle, point, [0, oracle.n_parts(shape)], [shape], **options)


def mixture_of(sets, n_parts):
    """(weights, part counts, a row each) of the active vertices of the only instance that is kept."""
    kept = sets.saved()
    n, width = int(kept["sizes"][0]), int(kept["widths"][0])
    at, _, first = kept["at"][0]
    rows = kept["parts"][first : first + n * width].reshape(n, width)
    counts = [np.bincount(row[:length], minlength=n_parts) for row, length in zip(rows, kept["lengths"][2 * at :], strict=False)]
    return kept["weights"][at : at + n], np.array(counts)


def by_quadratic_program(corners, point):
    """The same by an interior-point solver, over weights of all corners."""
    cp = pytest.importorskip("cvxpy")
    weights = cp.Variable(len(corners), nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(corners.T @ weights - point)), [cp.sum(weights) == 1])
    problem.solve(solver=cp.CLARABEL, **{name: 1e-13 for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")})
    return corners.T @ weights.value


def worst_gap(corners, point, mu):
    """The largest <point - mu, v - mu> of any vertex, and the size of its terms."""
    scores = point - mu
    return float(((corners - mu) @ scores).max()), max(1.0, float((corners @ np.abs(scores)).max()))


@pytest.mark.mostly_slow
@every_case
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 10.0])
def test_it_is_the_solution_of_the_quadratic_program(oracle, shape, scale) -> None:
    """On random points, to 1e-6 (the solver's accuracy); as a distance never longer than the solver's."""
    corners, rng = vertices(oracle, shape), np.random.default_rng(0)
    for _ in range(4):
        point = scale * rng.normal(size=corners.shape[1])
        mu, other = nearest(oracle, shape, point).mu, by_quadratic_program(corners, point)
        np.testing.assert_allclose(mu, other, atol=1e-6)
        assert np.linalg.norm(point - mu) <= np.linalg.norm(point - other) + 1e-9


@pytest.mark.mostly_slow
@every_case
@pytest.mark.parametrize(("t", "exact"), [(1e4, 1e-6), (1e6, 1e-5)])
def test_far_points_go_to_a_face(oracle, shape, t, exact) -> None:
    """P(t c + x) for large t is the projection of x onto the face of the outputs that are best for c, which are many."""
    corners, rng = vertices(oracle, shape), np.random.default_rng(1)
    for _ in range(4):
        c, x = rng.integers(-1, 1, corners.shape[1]).astype(np.float64), rng.normal(size=corners.shape[1])
        values = corners @ c
        mu = nearest(oracle, shape, t * c + x).mu
        face = corners[values == values.max()]
        np.testing.assert_allclose(mu, by_quadratic_program(face, x), atol=exact)


@pytest.mark.mostly_slow
@every_case
@pytest.mark.parametrize("scale", [1e-6, 0.03, 1.0, 30.0, 1e6, 1e12])
def test_no_vertex_is_any_better(oracle, shape, scale) -> None:
    """The optimality condition <point - mu, v - mu> <= 0 for every output, to 1e-13 of the terms; that is the gap reported."""
    corners, rng = vertices(oracle, shape), np.random.default_rng(2)
    points = [scale * rng.normal(size=corners.shape[1]) for _ in range(5)]
    points += [scale * rng.integers(-1, 2, corners.shape[1]).astype(np.float64) for _ in range(5)]
    points += [scale * corners[rng.integers(len(corners))] + rng.normal(size=corners.shape[1]) for _ in range(5)]
    for point in points:
        found = nearest(oracle, shape, point)
        gap, size = worst_gap(corners, point, found.mu)
        assert gap <= 2.1e-13 * size  # tol times <|point - mu|, v + mu>, which is at most twice the size
        assert abs(found.gaps[0] - max(gap, 0.0)) <= 1e-14 * size


@every_case
def test_the_mixture_is_sparse_and_exact(oracle, shape) -> None:
    """mu is the sum of its weighted outputs; weights are positive with sum 1; the vertices are affinely independent."""
    rng = np.random.default_rng(3)
    for scale in (0.05, 1.0):
        sets = ActiveSets()
        found = nearest(oracle, shape, scale * rng.normal(size=oracle.n_parts(shape)), sets=sets, ids=[0])
        weights, rows = mixture_of(sets, len(found.mu))
        np.testing.assert_allclose(weights @ rows, found.mu, atol=1e-15)
        assert weights.min() > 0
        assert weights.sum() == pytest.approx(1.0, abs=1e-15)
        edges = rows[1:] - rows[0]
        assert not len(edges) or np.linalg.matrix_rank(edges) == len(edges)  # NumPy below 2.2 has no rank of no rows


@every_case
def test_points_of_the_hull_and_vertices_stay(oracle, shape) -> None:
    """Mixtures of all outputs and of two, and up to ten outputs come back unchanged."""
    corners, rng = vertices(oracle, shape), np.random.default_rng(4)
    inside = [rng.dirichlet(np.ones(len(corners))) @ corners for _ in range(5)]
    edges = [0.25 * corners[0] + 0.75 * corners[-1]]
    for point in [*inside, *edges]:
        np.testing.assert_allclose(nearest(oracle, shape, point).mu, point, atol=1e-12)
    for point in corners[:10]:
        np.testing.assert_allclose(nearest(oracle, shape, point).mu, point, atol=1e-14)


@every_case
def test_it_is_idempotent_and_does_not_expand(oracle, shape) -> None:
    """P(P(x)) = P(x); |P(x) - P(x')| <= |x - x'|; and P(mu + t (x - mu)) = mu = P(x) for every t >= 0."""
    rng = np.random.default_rng(5)
    n_parts = oracle.n_parts(shape)
    for scale in (0.1, 1.0, 10.0):
        x = scale * rng.normal(size=n_parts)
        mu = nearest(oracle, shape, x).mu
        np.testing.assert_allclose(nearest(oracle, shape, mu).mu, mu, atol=1e-12)
        for step in (1e-6, 0.1, 10.0):
            other = x + step * rng.normal(size=n_parts)
            moved = np.linalg.norm(nearest(oracle, shape, other).mu - mu)
            assert moved <= np.linalg.norm(other - x) + 1e-12
        for t in (0.01, 0.5, 100.0):
            np.testing.assert_allclose(nearest(oracle, shape, mu + t * (x - mu)).mu, mu, atol=1e-10)


@every_case
def test_the_gap_bounds_the_distance(oracle, shape) -> None:
    """Stopped early by a large tol: |mu - mu*|^2 <= gap, and the gap is the one asked for."""
    rng = np.random.default_rng(6)
    for tol in (1e-3, 0.1):
        for _ in range(5):
            point = rng.normal(size=oracle.n_parts(shape))
            early, exact = nearest(oracle, shape, point, tol=tol), nearest(oracle, shape, point)
            assert np.square(early.mu - exact.mu).sum() <= early.gaps[0] + 1e-15
            assert early.gaps[0] <= tol * worst_gap(vertices(oracle, shape), point, early.mu)[1] * 2
            assert early.n_calls <= exact.n_calls


@every_case
def test_an_earlier_answer_is_a_start(oracle, shape) -> None:
    """From its own mixture a point needs one call, a point nearby comes to its own projection; no start changes what is found."""
    rng = np.random.default_rng(16)
    point, sets = 0.3 * rng.normal(size=oracle.n_parts(shape)), ActiveSets()
    found = nearest(oracle, shape, point, sets=sets, ids=[0])
    again = nearest(oracle, shape, point, sets=sets, ids=[0])
    assert again.n_calls[0] == 1
    np.testing.assert_allclose(again.mu, found.mu, atol=1e-13)
    for step in (0.01, 1.0, 100.0):
        other = point + step * rng.normal(size=len(point))
        warm, cold = nearest(oracle, shape, other, sets=sets, ids=[0]), nearest(oracle, shape, other)
        np.testing.assert_allclose(warm.mu, cold.mu, atol=1e-11 * max(1.0, step))


@every_case
def test_the_oracles_project(oracle, shape) -> None:
    """Oracle.project is this projection, as a new array, and leaves the point as it was."""
    for point in (np.random.default_rng(7).normal(size=oracle.n_parts(shape)), np.zeros(oracle.n_parts(shape))):
        kept = point.copy()
        np.testing.assert_allclose(oracle.project(point, shape), nearest(oracle, shape, point).mu, atol=1e-14)
        np.testing.assert_array_equal(point, kept)


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 1e6])
def test_closed_form_of_the_simplex(scale) -> None:
    """One label of 300: equal to projection by sorting."""
    point = scale * np.random.default_rng(8).normal(size=300)
    np.testing.assert_allclose(nearest(MulticlassOracle(), (300,), point).mu, project_onto_simplex(point), atol=1e-12)


@pytest.mark.parametrize("n", [1, 5, 100])
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e3])
def test_closed_form_of_the_cube(n, scale) -> None:
    """Any subset, the empty one too, whose vertex is zero: each coordinate is clipped to [0, 1]."""
    point = scale * np.random.default_rng(9).normal(size=n)
    found = nearest(Own(lambda s: np.flatnonzero(s > 0), lambda y: y, n), (), point)
    np.testing.assert_allclose(found.mu, np.clip(point, 0.0, 1.0), atol=1e-12 * max(1.0, scale))


@pytest.mark.parametrize("n", [2, 6, 60])
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e3])
def test_closed_form_of_orderings(n, scale) -> None:
    """Part i is on as often as i's rank says, up to n - 1 times: the solution is an isotonic regression of the sorted point."""
    point = scale * np.random.default_rng(10).normal(size=n)

    def ranks(s):
        out = np.empty(n, np.int64)
        out[np.argsort(s, kind="stable")] = np.arange(n)
        return out

    found = nearest(Own(ranks, lambda y: np.repeat(np.arange(n), y), n), (), point)
    order = np.argsort(point)
    expected = np.empty(n)
    expected[order] = point[order] - isotonic_regression(point[order] - np.arange(n), increasing=True).x
    np.testing.assert_allclose(found.mu, expected, atol=1e-10 * max(1.0, scale))


def test_a_point_with_forbidden_parts() -> None:
    """-1e30 at a part keeps it off where an output can do without it, and costs no digits of the rest."""
    oracle, shape = ChainOracle(), (4, 2)
    corners, x = vertices(oracle, shape), np.random.default_rng(11).normal(size=12)
    x[[0, 9]] = -1e30
    mu = nearest(oracle, shape, x).mu
    allowed = corners[(corners[:, [0, 9]] == 0).all(axis=1)]
    assert not mu[[0, 9]].any()
    np.testing.assert_allclose(mu, by_quadratic_program(allowed, np.where(x < -1.0e9, 0.0, x)), atol=1e-6)


def test_hundreds_of_active_vertices() -> None:
    """A long chain near the middle of its hull: the gap falls to rounding, with no more than three calls a vertex."""
    oracle, shape = ChainOracle(), (20, 10)
    sets = ActiveSets()
    found = nearest(oracle, shape, 0.05 * np.random.default_rng(12).normal(size=oracle.n_parts(shape)), sets=sets, ids=[0])
    n = len(mixture_of(sets, len(found.mu))[0])
    assert found.gaps[0] <= 1e-11
    assert 100 < n <= found.n_calls[0] <= 3 * n


@pytest.mark.parametrize("k", [0, 3, 6])
def test_a_factor_loses_a_column(k) -> None:
    """The Cholesky factor of the matrix without row and column k, to rounding."""
    from structpred.projections._active_set_kernels import drop_column

    rows = np.random.default_rng(15).normal(size=(9, 7))
    matrix = rows.T @ rows
    factor = np.linalg.cholesky(matrix).T.copy()
    packed = np.concatenate([factor[: j + 1, j] for j in range(7)])  # by columns, as the kernels have it
    drop_column(packed, 7, k)
    smaller = np.linalg.cholesky(np.delete(np.delete(matrix, k, 0), k, 1)).T
    np.testing.assert_allclose(packed[:21], np.concatenate([smaller[: j + 1, j] for j in range(6)]), atol=1e-12)


def test_what_is_not_reached_is_said() -> None:
    """Too few oracle calls, and a tol that rounding does not allow: ConvergenceError with the gap."""
    oracle, shape = ChainOracle(), (8, 4)
    point = 0.05 * np.random.default_rng(13).normal(size=oracle.n_parts(shape))
    with pytest.raises(ConvergenceError, match=r"reached a gap of \d\.\d+ after 10 oracle calls.*raise max_iter \(now 10\)"):
        nearest(oracle, shape, point, max_iter=10)
    with pytest.raises(ConvergenceError, match=r"reached a gap of .*e-1\d.*rounding keeps it there"):
        nearest(oracle, shape, point, tol=1e-18)


def test_parts_out_of_range_are_refused() -> None:
    """They are the oracle's fault: OracleError with the part and the range."""
    with pytest.raises(OracleError, match=r"parts in \[0, 2\), got 5"):
        nearest(Own(lambda s: np.array([5]), lambda y: y, 2), (), np.zeros(2))


@pytest.mark.parametrize("point", [np.zeros(3), np.zeros((1, 4)), np.full(4, np.nan), np.full(4, np.inf)])
def test_bad_points_are_refused(point) -> None:
    """A wrong length, a matrix, NaN, infinity: DataError."""
    with pytest.raises(DataError, match=r"expected the 4 parts of 1 shapes|part 0 has the score"):
        nearest(MulticlassOracle(), (4,), point)


@pytest.mark.parametrize("options", [{"tol": -1.0}, {"tol": float("nan")}, {"max_iter": 1}])
def test_bad_settings_are_refused(options) -> None:
    """A negative tol and fewer than two calls: ParameterError."""
    with pytest.raises(ParameterError, match="tol >= 0 and max_iter >= 2"):
        nearest(MulticlassOracle(), (4,), np.zeros(4), **options)
