"""F along a segment of weights, and how it differs between neighbouring regions."""

from itertools import pairwise

import numpy as np
import pytest
from moons import problem

from structpred.nonconvex.regions import along


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_pieces_are_the_function(seed: int) -> None:
    """From end to end, without a gap, each concave; at points of each piece the value is that of the inner problem."""
    made, _ = problem(20, 1.0, 0.3, seed, balance=False)
    rng = np.random.default_rng(seed)
    p, q = rng.uniform(0.05, 0.95, (2, made.u))
    pieces = list(along(made, p, q))
    assert (pieces[0].start, pieces[-1].end) == (0.0, 1.0)
    assert all(one.end == after.start for one, after in pairwise(pieces))
    for one in pieces:
        assert one.c <= 1e-6
        for t in np.linspace(one.start, one.end, 4):
            assert one.value(t) == pytest.approx(made.solve((1 - t) * p + t * q, tol=1e-10).objective, abs=1e-6)


def test_neighbouring_regions_differ_by_rank_one() -> None:
    """Theorem 2 (3), (4): the second derivatives differ by a semidefinite matrix of rank one, the values not where they meet;
    along the segment the second derivative of each piece is that of its region."""
    made, _ = problem(20, 1.0, 0.3, 0, balance=False)
    rng = np.random.default_rng(5)
    p, q = rng.uniform(0.05, 0.95, (2, made.u))
    pieces = list(along(made, p, q))
    assert len(pieces) > 2
    for one in pieces:
        assert np.linalg.eigvalsh(one.region.hessian()).min() > -1e-8
        if one.end - one.start > 1e-3:
            assert -2.0 * one.c == pytest.approx((q - p) @ one.region.hessian() @ (q - p), rel=1e-3, abs=1e-4)
    for one, after in pairwise(pieces):
        assert one.value(one.end) == pytest.approx(after.value(after.start), abs=1e-7)
        values = np.sort(np.abs(np.linalg.eigvalsh(one.region.hessian() - after.region.hessian())))
        assert values[-2] < 1e-6 * max(values[-1], 1e-3)


def test_the_weight_of_unlabelled_points_is_a_segment() -> None:
    """From s (p, 1 - p) to (p, 1 - p): at each t the value and h are those of the problem with that C2."""
    made, _ = problem(20, 2.0, 0.3, 1, balance=False)
    p = np.random.default_rng(1).integers(0, 2, made.u).astype(float)
    weights = np.stack([p, 1.0 - p])
    for one in along(made, 0.01 * weights, weights):
        for k, t in enumerate((one.start, one.end)):
            inner = made.with_C2(2.0 * (0.01 + 0.99 * t)).solve(p, tol=1e-10)
            assert one.value(t) == pytest.approx(inner.objective, abs=1e-6)
            np.testing.assert_allclose(one.h[k], inner.h, atol=1e-4)
