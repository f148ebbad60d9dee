"""Projection onto the simplex: its optimality conditions, its edge cases, and what it refuses."""

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.projections.simplex import project_onto_simplex


@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.1, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_the_optimality_conditions_hold(n, scale) -> None:
    """mu >= 0 with sum 1, point - mu is one tau where mu > 0 and at most that elsewhere: the unique solution."""
    for seed in range(20):
        point = scale * np.random.default_rng(seed).normal(size=n)
        mu = project_onto_simplex(point)
        residual = point - mu
        tau = residual[mu > 0].max()
        exact = 1e-14 * max(1.0, scale)
        assert mu.min() >= 0
        assert mu.sum() == pytest.approx(1.0, abs=1e-13)
        np.testing.assert_allclose(residual[mu > 0], tau, atol=exact)
        assert residual[mu == 0].max(initial=-np.inf) <= tau + exact


def test_points_with_a_known_projection() -> None:
    """A vertex wins by more than one; ties share; a point of the simplex stays; what is forbidden gets nothing."""
    known = [
        ([3.0, 1.0, -1.0], [1.0, 0.0, 0.0]),
        ([0.5, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]),
        ([0.7, 0.2, 0.1], [0.7, 0.2, 0.1]),
        ([1e9, 1e9, 0.0], [0.5, 0.5, 0.0]),
        ([0.2, -1e30, 0.0], [0.6, 0.0, 0.4]),
        ([1e308, -1e308], [1.0, 0.0]),
        ([-7.0], [1.0]),
    ]
    for point, expected in known:
        np.testing.assert_allclose(project_onto_simplex(np.array(point)), expected, atol=1e-15)


@pytest.mark.parametrize("point", [[], [np.nan, 0.0], [np.inf], [[1.0]]])
def test_what_is_no_point_is_refused(point) -> None:
    """Nothing, NaN, infinity, a matrix: DataError."""
    with pytest.raises(DataError, match="finite coordinates"):
        project_onto_simplex(np.array(point))
