"""Every projection operator: its contract, cvxpy on random and edge cases, and what it refuses."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

from structpred.contracts.projections import check_projection
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.projections.balls import project_onto_group_ball, project_onto_l1_ball, project_onto_l2_ball
from structpred.projections.box import nearest_in_box, project_onto_box
from structpred.projections.cones import project_onto_monotone_cone, project_onto_sign_cone
from structpred.projections.simplex import project_onto_capped_simplex, project_onto_simplex, project_onto_topk_simplex
from structpred.projections.tree_marginals import project_onto_chain_marginals, project_onto_tree_marginals

TREE = [(0, 2), (1, 2), (2, 3)]
CUTS = [0, 2, 2, 3, 7]
SIGNS = np.array([1, -1, 0, 1, 1, -1, 0])
NORMAL = np.array([1.0, -2.0, 0.0, 0.5, 1.0, -1.0, 3.0])
METRIC = np.array([0.1, 1.0, 2.0, 5.0, 0.5, 1.0, 3.0])
LOW = np.array([-np.inf, 0.0, -1.0, 0.3, -2.0, -1.0, 0.0])
HIGH = np.array([np.inf, 1.0, 1.0, 0.3, 0.5, np.inf, 2.0])


class Operator(NamedTuple):
    """A projection of points (7,), or another shape, with its set twice: as rules for cvxpy, and as a distance."""

    project: Callable[[Any], Any]
    rules: Callable[[Any, Any], list[Any]]
    outside: Callable[[Any], float]
    shape: tuple[int, ...] = (7,)
    metric: Any = 1.0


def tables_agree(x):
    """How far the margins of a chain's tables (3, 2, 2) are from one another and from a distribution."""
    sums = np.abs(x.sum(axis=(1, 2)) - 1.0).max(), np.abs(x[:-1].sum(axis=1) - x[1:].sum(axis=2)).max()
    return max(*sums, -x.min())


def chain_rules(cp, x):
    """The same for cvxpy, where points are flat."""
    tables = [cp.reshape(x[4 * t : 4 * t + 4], (2, 2), order="C") for t in range(3)]
    rules = [x >= 0, *(cp.sum(table) == 1 for table in tables)]
    return rules + [cp.sum(tables[t], axis=0) == cp.sum(tables[t + 1], axis=1) for t in range(2)]


def tree_rules(cp, x):
    """Four nodes with two states, three tables."""
    rules = [x >= 0, *(x[2 * i] + x[2 * i + 1] == 1 for i in range(4))]
    for e, (i, j) in enumerate(TREE):
        table = cp.reshape(x[8 + 4 * e : 12 + 4 * e], (2, 2), order="C")
        rules += [cp.sum(table, axis=1) == x[2 * i : 2 * i + 2], cp.sum(table, axis=0) == x[2 * j : 2 * j + 2]]
    return rules


def tree_outside(x):
    """How far from these rules."""
    off = [-x.min(), np.abs(x[:8].reshape(4, 2).sum(axis=1) - 1.0).max()]
    for e, (i, j) in enumerate(TREE):
        table = x[8 + 4 * e : 12 + 4 * e].reshape(2, 2)
        off += [np.abs(table.sum(axis=1) - x[2 * i : 2 * i + 2]).max(), np.abs(table.sum(axis=0) - x[2 * j : 2 * j + 2]).max()]
    return float(max(off))


def group_norms(x):
    """The sum of the norms of the groups."""
    return sum(np.linalg.norm(x[a:b]) for a, b in pairwise(CUTS))


OPERATORS = {
    "simplex": Operator(project_onto_simplex, lambda cp, x: [x >= 0, cp.sum(x) == 1], lambda x: max(-x.min(), abs(x.sum() - 1))),
    "box with equality": Operator(
        lambda m: project_onto_box(m, LOW, HIGH, NORMAL, 0.7, METRIC),
        lambda cp, x: [x[1:] >= LOW[1:], x[[1, 2, 3, 4, 6]] <= HIGH[[1, 2, 3, 4, 6]], NORMAL @ x == 0.7],
        lambda x: max((LOW - x).max(), (x - HIGH).max(), abs(NORMAL @ x - 0.7)),
        metric=METRIC,
    ),
    "capped simplex": Operator(
        lambda m: project_onto_capped_simplex(m, 0.25),
        lambda cp, x: [x >= 0, x <= 0.25, cp.sum(x) == 1],
        lambda x: max(-x.min(), x.max() - 0.25, abs(x.sum() - 1)),
    ),
    "top-k simplex": Operator(
        lambda m: project_onto_topk_simplex(m, 3),
        lambda cp, x: [x >= 0, cp.sum(x) <= 1, x <= cp.sum(x) / 3],
        lambda x: max(-x.min(), x.sum() - 1, x.max() - x.sum() / 3),
    ),
    "top-1 simplex": Operator(
        lambda m: project_onto_topk_simplex(m, 1, 2.0),
        lambda cp, x: [x >= 0, cp.sum(x) <= 2],
        lambda x: max(-x.min(), x.sum() - 2),
    ),
    "l1 ball": Operator(
        lambda m: project_onto_l1_ball(m, 1.5), lambda cp, x: [cp.norm1(x) <= 1.5], lambda x: np.abs(x).sum() - 1.5
    ),
    "l2 ball": Operator(
        lambda m: project_onto_l2_ball(m, 1.5), lambda cp, x: [cp.norm(x) <= 1.5], lambda x: np.linalg.norm(x) - 1.5
    ),
    "group ball": Operator(
        lambda m: project_onto_group_ball(m, CUTS, 1.5),
        lambda cp, x: [cp.norm(x[:2]) + cp.abs(x[2]) + cp.norm(x[3:]) <= 1.5],
        lambda x: group_norms(x) - 1.5,
    ),
    "sign cone": Operator(
        lambda m: project_onto_sign_cone(m, SIGNS),
        lambda cp, x: [cp.multiply(SIGNS, x) >= 0],
        lambda x: float((-SIGNS * x).max()),
    ),
    "monotone cone": Operator(project_onto_monotone_cone, lambda cp, x: [cp.diff(x) >= 0], lambda x: float(-np.diff(x).min())),
    "weighted monotone cone": Operator(
        lambda m: project_onto_monotone_cone(m, METRIC**0.5),
        lambda cp, x: [cp.diff(x) >= 0],
        lambda x: float(-np.diff(x).min()),
        metric=METRIC**0.25,
    ),
    "chain marginals": Operator(project_onto_chain_marginals, chain_rules, tables_agree, (3, 2, 2)),
    "tree marginals": Operator(lambda m: project_onto_tree_marginals(m, 4, 2, TREE), tree_rules, tree_outside, (20,)),
}
every_operator = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)


@every_operator
def test_it_keeps_its_contract(operator) -> None:
    """Idempotent, the identity inside, nearest to 1e-8, non-expansive, in the set, and bad points are refused."""
    report = check_projection(
        operator.project, shapes=[operator.shape], outside=operator.outside, metric=operator.metric, n_random=15
    )
    assert {"idempotent", "identity inside", "nearest", "non-expansive", "in the set", "bad points"} <= set(report.checked)


@every_operator
def test_it_is_the_solution_of_the_quadratic_program(operator) -> None:
    """Clarabel's to 1e-4, on random points and ties: no better where bounds just touch; and at most as far away, to 1e-7."""
    cp = pytest.importorskip("cvxpy")
    rng, n = np.random.default_rng(0), int(np.prod(operator.shape))
    x, point = cp.Variable(n), cp.Parameter(n)
    weights = np.broadcast_to(np.asarray(operator.metric, dtype=np.float64), n)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.multiply(weights, x - point))), operator.rules(cp, x))
    for m in (0.1 * rng.normal(size=n), rng.normal(size=n), 5.0 * rng.normal(size=n), rng.integers(-1, 2, n).astype(np.float64)):
        point.value = m
        problem.solve(solver=cp.CLARABEL, **{name: 1e-9 for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")})
        found = operator.project(m.reshape(operator.shape)).ravel()
        np.testing.assert_allclose(weights * found, weights * x.value, atol=1e-4)
        ours, theirs = (float(np.linalg.norm(weights * (z - m))) for z in (found, x.value))
        assert ours <= theirs + 1e-7 * (1.0 + theirs)


def test_boxes_with_a_known_projection() -> None:
    """Ends of the range, fixed entries, zero normals, kinks that all coincide: to rounding."""
    free, zeros = np.inf, np.zeros(3)
    known = [
        ((zeros, 0.0, 1.0, 1.0, 0.0), [0.0, 0.0, 0.0]),  # the total is the lower end
        ((zeros, 0.0, 1.0, 1.0, 3.0), [1.0, 1.0, 1.0]),
        (([3.0, 1.0, -1.0], 0.0, free, 1.0, 1.0), [1.0, 0.0, 0.0]),
        (([0.5, 0.5, 0.5], 0.0, 1.0, [1.0, 1.0, -1.0], 0.0), [1 / 3, 1 / 3, 2 / 3]),
        ((np.zeros(10), 0.0, 1.0, 1.0, 5.0), [0.5] * 10),
        (([2.0, 5.0, -3.0], [0.0, 0.0, -1.0], [1.0, 9.0, -1.0], [1.0, 0.0, 1.0], -0.5), [0.5, 5.0, -1.0]),
        (([7.0], -free, free, [2.0], 3.0), [1.5]),
    ]
    for arguments, wanted in known:
        np.testing.assert_allclose(project_onto_box(*arguments), wanted, atol=1e-14)


def test_boxes_of_all_kinds() -> None:
    """The form of the solution and the equality to 1e-12: ties, kinks at the start, infinite bounds, metrics 1e-3 to 1e3. The
    kink search alone comes to the same points, and the order of the entries does not matter."""
    from structpred.projections._box_kernels import by_kinks

    rng = np.random.default_rng(1)
    for k in range(600):
        n, whole = int(rng.integers(1, 12)), k % 2 == 0
        m = rng.integers(-3, 4, n).astype(np.float64) if whole else rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)
        low = np.where(rng.random(n) < 0.15, -np.inf, rng.integers(-3, 1, n))
        high = np.where(rng.random(n) < 0.15, np.inf, np.maximum(low, -3.0) + rng.integers(0, 4, n))
        s = rng.choice([-1.0, 1.0, 0.0, 2.0], n) if whole else rng.normal(size=n)
        d = np.ones(n) if whole else 10.0 ** rng.uniform(-3, 3, n)
        total = float(s @ np.clip(rng.integers(-3, 4, n), low, high))
        found, lam = nearest_in_box(m, low, high, s, total, d, start=None if k % 3 else float(rng.integers(-2, 3)))
        size = (np.abs(s) * (np.abs(found) + np.abs(m))).sum() + abs(total)
        np.testing.assert_allclose(found, np.clip(m + s * lam / d**2, low, high), atol=1e-12 * max(1.0, np.abs(m).max()))
        assert abs(s @ found - total) <= 1e-12 * size
        other, missing = by_kinks(m, s, s / d**2, low, high, total)
        np.testing.assert_allclose(np.clip(m + s * other / d**2, low, high), found, atol=1e-9 * max(1.0, np.abs(m).max()))
        assert abs(missing) <= 1e-12 * size
        turned = rng.permutation(n)
        again = project_onto_box(m[turned], low[turned], high[turned], s[turned], total, d[turned])
        np.testing.assert_allclose(again, found[turned], atol=1e-9 * max(1.0, np.abs(m).max()))


@pytest.mark.parametrize("n", [3, 31, 32, 200])
def test_newton_goes_along_the_true_slope(n: int) -> None:
    """The slope of f is its difference quotient between kinks, and where no bound is active one step of Newton finds the root."""
    from structpred.projections._box_kernels import LANES, evaluate, newton

    rng = np.random.default_rng(n)
    m, s = rng.normal(size=n), rng.choice([-2.0, 0.5, 1.0, 3.0], n)
    t = s / rng.uniform(0.5, 2.0, n) ** 2
    for stride in (1, 2):
        for low, high in ((np.full(n, -0.5), np.full(n, 0.6)), (np.full(n, -1e9), np.full(n, 1e9))):
            (before, slope, _), (after, _, _) = (
                evaluate(m, s, t, low, high, stride, lam, np.empty((3, LANES))) for lam in (0.1, 0.1 + 1e-7)
            )
            assert slope == pytest.approx((after - before) / 1e-7, rel=1e-5)
    _, left = newton(m, s, t, low, high, 1.5, 1, 40.0, 2, 1e-12)  # one step, and the look at where it ended
    assert left <= 1e-12


def test_a_long_box() -> None:
    """A hundred thousand entries, whose search starts from a sample: the equality holds to 1e-12 of its terms."""
    rng = np.random.default_rng(2)
    m, s = rng.normal(size=100_000), np.where(rng.random(100_000) < 0.5, -1.0, 1.0)
    found, lam = nearest_in_box(m, 0.0, 1.0, s, 0.0)
    np.testing.assert_allclose(found, np.clip(m + s * lam, 0.0, 1.0), atol=1e-15)
    assert abs(s @ found) <= 1e-12 * found.sum()


def test_topk_simplex_of_lapin() -> None:
    """All at the cap, none, and the capped simplex where the radius counts; k above n leaves only 0."""
    np.testing.assert_allclose(project_onto_topk_simplex([0.3, 0.2, -1.0], 2), [0.25, 0.25, 0.0], atol=1e-15)
    np.testing.assert_array_equal(project_onto_topk_simplex([0.3, -0.4, -1.0], 2), np.zeros(3))
    np.testing.assert_array_equal(project_onto_topk_simplex([5.0, 4.0], 3), np.zeros(2))
    np.testing.assert_allclose(
        project_onto_topk_simplex([5.0, 4.0, 3.9], 2), project_onto_capped_simplex([5.0, 4.0, 3.9], 0.5), atol=1e-15
    )


REFUSED = [
    (lambda: project_onto_box(np.zeros(3), 0.0, 1.0, 1.0, 4.0), InfeasibleError, "largest value is 3"),
    (lambda: project_onto_box(np.zeros(3), 1.0, 2.0, 1.0, 2.9), InfeasibleError, "smallest value is 3"),
    (lambda: project_onto_box(np.ones(2), 0.0, 1.0, 0.0, 1.0), InfeasibleError, "largest value is 0"),
    (lambda: project_onto_box(np.zeros(3), 1.0, 0.0, 1.0, 1.0), DataError, "lower <= upper; entry 0"),
    (lambda: project_onto_box([0.0, np.nan], 0.0, 1.0, 1.0, 1.0), DataError, "finite point.*entry 1"),
    (lambda: project_onto_box([0.0, 1.0], [np.nan, 0.0], 1.0, 1.0, 1.0), DataError, "entry 0"),
    (lambda: project_onto_box([], 0.0, 1.0, 1.0, 1.0), DataError, "at least one entry"),
    (lambda: project_onto_box(np.zeros(3), np.zeros(2), 1.0, 1.0, 1.0), DataError, r"expected lower to be.*\(3,\)"),
    (lambda: project_onto_box(np.zeros(3), 0.0, 1.0, 1.0, np.nan), ParameterError, "finite total"),
    (lambda: project_onto_box(np.zeros(3), 0.0, 1.0, 1.0, 1.0, [1.0, 0.0, 1.0]), ParameterError, "metrics > 0.*entry 1"),
    (lambda: project_onto_capped_simplex(np.zeros(3), 0.3), InfeasibleError, "3 entries of at most 0.3 cannot"),
    (lambda: project_onto_capped_simplex(np.zeros(3), 0.0), ParameterError, "cap must be a positive number, got 0.0"),
    (lambda: project_onto_topk_simplex(np.zeros(3), 0), ParameterError, "k must be a whole number >= 1"),
    (lambda: project_onto_topk_simplex(np.zeros(3), 2, -1.0), ParameterError, "radius must be a positive number"),
    (lambda: project_onto_l1_ball(np.zeros(3), 0.0), ParameterError, "radius must be a positive number"),
    (lambda: project_onto_l2_ball(np.zeros(3), np.nan), ParameterError, "radius must be a positive number"),
    (lambda: project_onto_group_ball(np.zeros(3), [0, 3], -1.0), ParameterError, "radius must be a positive number"),
    (lambda: project_onto_group_ball(np.zeros(3), [0, 2], 1.0), DataError, "ends of groups from 0 to 3"),
    (lambda: project_onto_sign_cone(np.zeros(3), [1, 2, 0]), DataError, "expected signs -1, 0 or 1"),
    (lambda: project_onto_monotone_cone(np.zeros(3), [1.0, 0.0, 1.0]), DataError, "expected 3 weights"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[f"{e.__name__}: {w}" for _, e, w in REFUSED])
def test_what_cannot_be_done_is_said(call, error, words) -> None:
    """Infeasible totals, NaN, crossing bounds, radii that are not above 0, arrays that do not fit."""
    with pytest.raises(error, match=words):
        call()
