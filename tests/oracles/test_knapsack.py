"""Knapsacks of several rows: larger ones than the contract lists, decimal weights, limits, what is refused."""

import numpy as np
import pytest

from structpred.core.packing import argmax_batch
from structpred.errors import ConvergenceError, DataError
from structpred.oracles.knapsack import KnapsackOracle, knapsack_shape


@pytest.mark.parametrize(("n", "m", "filled"), [(32, 2, 0.12), (20, 3, 0.5), (60, 1, 0.3)])
def test_the_best_set_is_that_of_integer_programming(n: int, m: int, filled: float) -> None:
    """Few items or many in one row to three: as good as HiGHS's proven optimum, for scores of both signs."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    rng = np.random.default_rng(n)
    weights, oracle = rng.integers(300, 800, (m, n)) / 100.0, KnapsackOracle()
    capacities = np.round(filled * weights.sum(axis=1), 2)
    shape = knapsack_shape(weights, capacities)
    for _ in range(3):
        scores = rng.normal(0.7, 1.0, n)
        found = oracle.argmax(scores, shape)
        assert len(oracle.parts(found, shape)) == found.sum()
        best = milp(-scores, constraints=LinearConstraint(weights, ub=capacities), integrality=np.ones(n), bounds=Bounds(0, 1))
        assert scores @ found == pytest.approx(-best.fun, abs=1e-6)


def test_decimal_weights_fill_a_capacity() -> None:
    """0.1 + 0.2 keeps the capacity 0.3, though not in binary arithmetic; 0.31 does not."""
    oracle = KnapsackOracle()
    assert oracle.argmax(np.ones(2), knapsack_shape([0.1, 0.2], 0.3)).tolist() == [1, 1]
    assert oracle.argmax(np.array([1.0, 2.0]), knapsack_shape([0.1, 0.21], 0.3)).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"weigh 0\.31 in row 0"):
        oracle.parts(np.ones(2, np.int64), knapsack_shape([0.1, 0.21], 0.3))


def test_a_search_that_is_cut_short_says_so() -> None:
    """What cannot be proven best is no answer: the error names the sample of a batch and what to raise."""
    shape = knapsack_shape(np.arange(20.0) + 10.0, 100.0)
    with pytest.raises(ConvergenceError, match=r"sample 1: not finished after 5 partial sets"):
        argmax_batch(KnapsackOracle(max_nodes=5), np.append(np.zeros(20), np.ones(20)), np.array([0, 20, 40]), [shape] * 2)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (((1.0,), ((1.0, 2.0), (1.0, 2.0))), "do not fit weights"),
        (((-1.0,), ((1.0, 2.0),)), "finite and >= 0"),
        (((1.0,), ((1.0, 2.0), (1.0,))), "expected a shape of knapsack_shape"),
        ((3,), "expected a shape of knapsack_shape"),
    ],
)
def test_what_is_no_knapsack_is_refused(shape: object, message: str) -> None:
    """Shapes of another kind raise a clear error."""
    with pytest.raises(DataError, match=message):
        KnapsackOracle().n_parts(shape)
