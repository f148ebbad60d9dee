"""Every proximal operator: its contract, Moreau's identity, cvxpy, what is known in closed form, and what it refuses."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

from structpred.contracts.projections import check_prox
from structpred.errors import DataError, ParameterError
from structpred.projections.balls import project_onto_group_ball
from structpred.projections.prox.entries import prox_elastic_net, prox_l1, prox_lq
from structpred.projections.prox.groups import (
    group_norms,
    prox_chain,
    prox_l21,
    prox_of_group_norms,
    prox_sparse_group,
    prox_subset,
)
from structpred.projections.prox.squares import (
    prox_squared_l1,
    prox_squared_l2p,
    prox_squared_l21,
    prox_squared_lp,
    prox_weighted_squared_l1,
)

CUTS = np.array([0, 2, 2, 3, 7])
WEIGHTS = np.array([0.1, 1.0, 2.0, 5.0, 0.5, 1.0, 3.0])
NESTED = ([2], [3, 4], [2, 3, 4], [0, 1, 2, 3, 4, 5, 6])  # the inner ones first


def norms(x):
    """Those of the groups."""
    return group_norms(x, CUTS)


def lp(x, p):
    """The l_p norm, without overflow on the way."""
    top = np.abs(x).max()
    return float(top * ((np.abs(x) / top) ** p).sum() ** (1.0 / p)) if top else 0.0


def capped(v, step, weights=1.0, total=0.0):
    """argmin |u - v|^2 / 2 + step/2 (max |u_i| / d_i)^2, or with total for step/2 (...)^2: total * max |u_i| / d_i.

    It is clip(v, -d M, d M) where step M + total = sum d_i (|v_i| - d_i M)_+, and that M is the largest over all first entries.
    """
    d = np.broadcast_to(weights, v.shape)
    order = np.argsort(-np.abs(v) / d)
    roots = (np.cumsum((d * np.abs(v))[order]) - total) / (step + np.cumsum((d * d)[order]))
    cap = max(float(roots.max()), 0.0)
    return np.clip(v, -d * cap, d * cap)


def within(x, radius=1.0):
    """0 where no entry is larger, else inf."""
    return 0.0 if np.abs(x).max() <= radius * (1.0 + 1e-9) else np.inf


def of_groups(prox):
    """The operator over groups."""
    return lambda v, s: prox_of_group_norms(prox, v, CUTS, s)


def group_terms(cp, x):
    """The norms for cvxpy."""
    return [cp.norm2(x[a:b]) for a, b in pairwise(CUTS.tolist()) if b > a]


def power_conjugate(q):
    """(f*, prox of f*) of f = sum |x_i|^q: q' = q / (q - 1), f* = (q - 1) sum (|u_i| / q)^q'."""
    other = q / (q - 1.0)
    factor = (q - 1.0) * q**-other
    return lambda u: factor * float((np.abs(u) ** other).sum()), lambda v, s: prox_lq(v, s * factor, other)


class Operator(NamedTuple):
    """A prox with its function twice, for numbers and for cvxpy; its conjugate, and the prox of that, made independently."""

    prox: Callable[[Any, float], Any]
    value: Callable[[Any], float]
    told: Callable[[Any, Any], Any]
    conjugate: Callable[[Any], float] | None = None
    conjugate_prox: Callable[[Any, float], Any] | None = None
    sizes: tuple[int, ...] = (7,)


ANY = (1, 2, 7, 40)
OPERATORS = {
    "squared l1": Operator(
        prox_squared_l1,
        lambda x: 0.5 * float(np.abs(x).sum()) ** 2,
        lambda cp, x: cp.square(cp.norm1(x)) / 2,
        lambda u: 0.5 * float(np.abs(u).max()) ** 2,
        capped,
        ANY,
    ),
    "weighted squared l1": Operator(
        lambda x, s: prox_weighted_squared_l1(x, s, WEIGHTS),
        lambda x: 0.5 * float((WEIGHTS * np.abs(x)).sum()) ** 2,
        lambda cp, x: cp.square(cp.norm1(cp.multiply(WEIGHTS, x))) / 2,
        lambda u: 0.5 * float((np.abs(u) / WEIGHTS).max()) ** 2,
        lambda v, s: capped(v, s, WEIGHTS),
    ),
    "l1": Operator(
        prox_l1, lambda x: float(np.abs(x).sum()), lambda cp, x: cp.norm1(x), within, lambda v, s: np.clip(v, -1.0, 1.0), ANY
    ),
    "l21": Operator(
        lambda x, s: prox_l21(x, s, CUTS),
        lambda x: float(norms(x).sum()),
        lambda cp, x: sum(group_terms(cp, x)),
        lambda u: within(norms(u)),
        of_groups(lambda v, s: np.minimum(v, 1.0)),
    ),
    "squared l21": Operator(
        lambda x, s: prox_squared_l21(x, s, CUTS),
        lambda x: 0.5 * float(norms(x).sum()) ** 2,
        lambda cp, x: cp.square(sum(group_terms(cp, x))) / 2,
        lambda u: 0.5 * float(norms(u).max()) ** 2,
        of_groups(capped),
    ),
    "elastic net": Operator(
        lambda x, s: prox_elastic_net(x, s, 0.3),
        lambda x: 0.7 * float(np.abs(x).sum()) + 0.15 * float(x @ x),
        lambda cp, x: 0.7 * cp.norm1(x) + 0.15 * cp.sum_squares(x),
        lambda u: float((np.maximum(np.abs(u) - 0.7, 0.0) ** 2).sum()) / 0.6,
        lambda v, s: np.sign(v) * np.minimum(np.abs(v), (np.abs(v) + s * 0.7 / 0.3) / (1.0 + s / 0.3)),
        ANY,
    ),
    "l1.5": Operator(
        lambda x, s: prox_lq(x, s, 1.5),
        lambda x: float((np.abs(x) ** 1.5).sum()),
        lambda cp, x: cp.sum(cp.power(cp.abs(x), 1.5)),
        *power_conjugate(1.5),
        ANY,
    ),
    "l3": Operator(
        lambda x, s: prox_lq(x, s, 3.0),
        lambda x: float((np.abs(x) ** 3).sum()),
        lambda cp, x: cp.sum(cp.power(cp.abs(x), 3)),
        *power_conjugate(3.0),
        ANY,
    ),
    "squared l1.2": Operator(
        lambda x, s: prox_squared_lp(x, s, 1.2),
        lambda x: 0.5 * lp(x, 1.2) ** 2,
        lambda cp, x: cp.square(cp.pnorm(x, 1.2)) / 2,
        lambda u: 0.5 * lp(u, 6.0) ** 2,
        lambda v, s: prox_squared_lp(v, s, 6.0),
        ANY,
    ),
    "squared l4": Operator(
        lambda x, s: prox_squared_lp(x, s, 4.0),
        lambda x: 0.5 * lp(x, 4.0) ** 2,
        lambda cp, x: cp.square(cp.pnorm(x, 4)) / 2,
        lambda u: 0.5 * lp(u, 4.0 / 3.0) ** 2,
        lambda v, s: prox_squared_lp(v, s, 4.0 / 3.0),
        ANY,
    ),
    "squared l2p": Operator(
        lambda x, s: prox_squared_l2p(x, s, CUTS, 1.5),
        lambda x: 0.5 * lp(norms(x), 1.5) ** 2,
        lambda cp, x: cp.square(cp.pnorm(cp.hstack(group_terms(cp, x)), 1.5)) / 2,
        lambda u: 0.5 * lp(norms(u), 3.0) ** 2,
        of_groups(lambda v, s: prox_squared_lp(v, s, 3.0)),
    ),
    "sparse group": Operator(
        lambda x, s: prox_sparse_group(x, s, CUTS, 0.4),
        lambda x: 0.4 * float(norms(x).sum()) + 0.6 * float(np.abs(x).sum()),
        lambda cp, x: 0.4 * sum(group_terms(cp, x)) + 0.6 * cp.norm1(x),
    ),
    "nested groups": Operator(
        lambda x, s: prox_chain([partial(prox_subset, members=members) for members in NESTED], x, s),
        lambda x: sum(float(np.linalg.norm(x[members])) for members in NESTED),
        lambda cp, x: sum(cp.norm2(x[members]) for members in NESTED),
    ),
    "ball of group norms": Operator(
        lambda x, s: project_onto_group_ball(x, CUTS, 1.5) if s >= 0.0 else prox_l1(x, s),
        lambda x: within(norms(x).sum(), 1.5),
        lambda cp, x: cp.transforms.indicator([sum(group_terms(cp, x)) <= 1.5]),
        lambda u: 1.5 * float(norms(u).max()),
        of_groups(lambda v, s: capped(v, 0.0, total=1.5 * s)),
    ),
}
every_operator = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)


@pytest.mark.mostly_slow
@every_operator
def test_it_keeps_its_contract(operator) -> None:
    """It is the argmin, firmly non-expansive, the identity for step 0, and agrees with its conjugate and Moreau's identity."""
    report = check_prox(
        operator.prox,
        operator.value,
        conjugate=operator.conjugate,
        conjugate_prox=operator.conjugate_prox,
        sizes=operator.sizes,
        n_random=10,
    )
    assert {"prox", "non-expansive", "step 0", "bad points"} <= set(report.checked)
    assert ("Moreau" in report.checked) == (operator.conjugate_prox is not None)


@every_operator
def test_it_is_the_solution_of_the_convex_program(operator) -> None:
    """Clarabel's to 1e-4, on random points, ties and zeros, and never a larger objective by more than 1e-7."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    x, point, step = cp.Variable(7), cp.Parameter(7), cp.Parameter(nonneg=True)
    function = operator.told(cp, x)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - point) / 2 + step * function))
    for m, s in ((rng.normal(size=7), 0.1), (5.0 * rng.normal(size=7), 1.0), (rng.integers(-1, 2, 7).astype(float), 0.3)):
        point.value, step.value = m, s
        problem.solve(solver=cp.CLARABEL, **{name: 1e-8 for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")})
        found = operator.prox(m, s)
        np.testing.assert_allclose(found, x.value, atol=1e-4)
        ours = 0.5 * float((found - m) @ (found - m)) + s * operator.value(found)
        assert ours <= problem.value + 1e-7 * (1.0 + abs(problem.value))


def test_thresholds_solve_their_equation() -> None:
    """Any step, ties, zeros, weights of zero, long points: step sum_i d_i (|x_i| - d_i tau)_+ = tau, as halving finds it."""
    rng = np.random.default_rng(1)

    def by_halving(x, step, d):
        low, high = 0.0, step * float((d * np.abs(x)).sum())
        for _ in range(2000):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            rises = step * float((d * np.maximum(np.abs(x) - d * middle, 0.0)).sum()) > middle
            low, high = (middle, high) if rises else (low, middle)
        return np.sign(x) * np.maximum(np.abs(x) - d * low, 0.0)

    for k in range(400):
        n = int(rng.integers(1, 40))
        x = rng.integers(-3, 4, n).astype(np.float64) if k % 2 else rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)
        step, d = float(rng.choice([0.0, 1e-300, 1e-3, 0.1, 1.0, 10.0, 1e300])), rng.choice([0.0, 0.3, 1.0, 2.0], n)
        near = {"rtol": 0.0, "atol": 1e-12 * max(1.0, float(np.abs(x).max()))}
        np.testing.assert_allclose(prox_squared_l1(x, step), by_halving(x, step, np.ones(n)), **near)
        np.testing.assert_allclose(prox_weighted_squared_l1(x, step, d), by_halving(x, step, d), **near)
    long = rng.normal(size=50_000)
    for x in (long, np.sort(long), np.sort(np.abs(long))[::-1]):
        for step in (1e-9, 1e-3, 1.0):
            np.testing.assert_allclose(prox_squared_l1(x, step), by_halving(x, step, np.ones(len(x))), rtol=0.0, atol=1e-11)


def test_what_is_known_in_closed_form() -> None:
    """Ties share the shrinkage; one entry, one group, all zeros, the step 0 and a huge one; a weight of zero moves nothing."""
    np.testing.assert_allclose(prox_squared_l1([3.0, -3.0], 2.0), [0.6, -0.6], atol=1e-15)
    np.testing.assert_allclose(prox_squared_l1([3.0], 1e12), [3.0 / (1.0 + 1e12)], rtol=1e-3)
    np.testing.assert_allclose(prox_squared_l21([3.0, 4.0], 1.0, [0, 2]), [1.5, 2.0], atol=1e-15)
    np.testing.assert_array_equal(prox_weighted_squared_l1([3.0, -1.0], 5.0, [0.0, 0.0]), [3.0, -1.0])
    np.testing.assert_allclose(prox_lq([4.0, -1.0], 1.0, 2.0), [4.0 / 3.0, -1.0 / 3.0], atol=1e-14)
    np.testing.assert_allclose(prox_squared_lp([4.0, -1.0], 1.0, 2.0), [2.0, -0.5], atol=1e-14)
    assert not prox_lq([1.0], 1e300, 1.01).any()  # too small for a number
    for prox in (prox_squared_l1, prox_l1, lambda x, s: prox_lq(x, s, 1.5), lambda x, s: prox_squared_lp(x, s, 1.5)):
        assert not prox(np.zeros(3), 1.0).any()
        np.testing.assert_array_equal(prox([2.0, -7.0, 0.0], 0.0), [2.0, -7.0, 0.0])


def test_groups_keep_their_direction() -> None:
    """Proposition 1: turned within its groups, a point leads to the turned result; empty groups and huge entries do no harm."""
    rng = np.random.default_rng(2)
    x, turn = rng.normal(size=7), np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = x.copy()
    turned[3:] = turn @ x[3:]
    for prox in (lambda x: prox_squared_l21(x, 0.3, CUTS), lambda x: prox_squared_l2p(x, 0.3, CUTS, 1.5)):
        wanted = prox(x)
        wanted[3:] = turn @ wanted[3:]
        np.testing.assert_allclose(prox(turned), wanted, atol=1e-14)
    np.testing.assert_allclose(prox_l21([3e200, 4e200], 1e200, [0, 2, 2]), [2.4e200, 3.2e200], rtol=1e-14)


REFUSED = [
    (lambda: prox_squared_l1([], 1.0), DataError, "at least one"),
    (lambda: prox_squared_l1([1.0, np.nan], 1.0), DataError, "finite coordinates"),
    (lambda: prox_squared_l1([1e308, 1e308, 1e308], 1.0), DataError, r"too large to be added up: its largest size is 1e\+308"),
    (lambda: prox_squared_l1([1.0], -1.0), ParameterError, "step must be finite and >= 0, got -1"),
    (lambda: prox_squared_l1([1.0], np.inf), ParameterError, "step must be finite"),
    (lambda: prox_weighted_squared_l1([1.0, 2.0], 1.0, [1.0]), DataError, "expected 2 weights"),
    (lambda: prox_weighted_squared_l1([1.0], 1.0, [-1.0]), DataError, "the least -1"),
    (lambda: prox_l21([1.0, 2.0], 1.0, [0, 1]), DataError, "ends of groups from 0 to 2.*overlap"),
    (lambda: prox_l21([1.0, 2.0], 1.0, [0, 2, 1, 2]), DataError, "ascending ends"),
    (lambda: prox_subset([1.0, 2.0], 1.0, []), DataError, "at least one"),
    (lambda: prox_subset([1.0, 2.0], 1.0, [1, 1]), DataError, "expected different places"),
    (lambda: prox_subset([1.0, 2.0], 1.0, [2]), DataError, r"places in \[0, 2\)"),
    (lambda: prox_lq([1.0], 1.0, 1.0), ParameterError, "q to be a finite number above 1"),
    (lambda: prox_squared_lp([1.0], 1.0, np.inf), ParameterError, "p to be a finite number above 1"),
    (lambda: prox_elastic_net([1.0], 1.0, 1.5), ParameterError, "share to be a number from 0 to 1, got 1.5"),
    (lambda: prox_sparse_group([1.0], 1.0, [0, 1], -0.1), ParameterError, "share to be a number from 0 to 1"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[f"{e.__name__}: {w}" for _, e, w in REFUSED])
def test_what_cannot_be_done_is_said(call, error, words) -> None:
    """Empty points, NaN, steps below 0, groups that overlap or do not cover, exponents and shares out of range."""
    with pytest.raises(error, match=words):
        call()
