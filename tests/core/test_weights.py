"""Weights: the lazily kept average is that of a naive dense implementation."""

import numpy as np
import pytest

from structpred.core.sparse import coalesced
from structpred.core.weights import Weights


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [20, (1 << 18) + 5])
def test_average_and_scale_equal_dense_arithmetic(dtype, dim) -> None:
    """Random additions, changes of scale and inclusions with random weights, in any order; long vectors too."""
    rng = np.random.default_rng(0)
    lazy, v, scale, total, weight = Weights.zeros(dim, dtype, averaged=True), np.zeros(dim), 1.0, np.zeros(dim), 0.0
    for _ in range(60):
        action = rng.integers(3)
        if action == 0:
            delta, coef = coalesced(rng.choice(dim, 8, replace=False), rng.normal(size=8)), float(rng.normal())
            lazy.add(delta, coef)
            v += coef * delta.dense(dim)
        elif action == 1:
            scale = float(rng.uniform(0.2, 2.0))
            lazy.set_scale(scale)
        else:
            rho = float(rng.uniform(0.0, 3.0))
            lazy.include(rho)
            total, weight = total + rho * scale * v, weight + rho
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(lazy.current(), scale * v, atol=tolerance)
    np.testing.assert_allclose(lazy.average(), total / weight, atol=tolerance)
    assert lazy.current().dtype == lazy.average().dtype == dtype
    assert lazy.scale == scale


def test_without_an_average_the_present_weights_are_given() -> None:
    """Nothing included yet, or no accumulator at all: average() is current(), a new array."""
    for averaged in (True, False):
        weights = Weights.zeros(3, averaged=averaged)
        weights.add(coalesced([1], [2.0]), 1.5)
        weights.set_scale(2.0)
        assert weights.average().tolist() == weights.current().tolist() == [0.0, 6.0, 0.0]
        weights.average()[:] = 9.0
        assert weights.v.tolist() == [0.0, 3.0, 0.0]
