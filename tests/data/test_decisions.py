"""Synthetic decision problems: the published formulas, the seed, shapes that fit the oracles."""

import numpy as np
import pytest

from structpred.data.decisions import knapsack_data, portfolio_data, shortest_path_data, travelling_salesman_data
from structpred.errors import ParameterError
from structpred.oracles.knapsack import KnapsackOracle
from structpred.oracles.portfolio import PortfolioOracle
from structpred.oracles.shortest_path import ShortestPathOracle
from structpred.oracles.travelling_salesman import TravellingSalesmanOracle

MAKERS = [shortest_path_data, knapsack_data, travelling_salesman_data, portfolio_data]


@pytest.mark.parametrize("make", MAKERS)
def test_a_seed_is_a_data_set(make) -> None:
    """The same seed gives the same numbers, another one others."""
    for one, same, other in zip(make(4, seed=3), make(4, seed=3), make(4, seed=4), strict=True):
        if not isinstance(one, np.ndarray):
            assert one == same
            continue
        assert np.array_equal(one, same)
        assert not np.array_equal(one, other)


def linear(features: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """The coefficients (p + 1, parts) of a kernel that is linear in the features; the fit must be exact."""
    columns = np.column_stack((features, np.ones(len(features))))
    found, *_ = np.linalg.lstsq(columns, kernel, rcond=None)
    assert columns @ found == pytest.approx(kernel, abs=1e-9)
    return found


@pytest.mark.parametrize("degree", [1, 4])
def test_costs_are_the_published_polynomial(degree: int) -> None:
    """Undone, the costs of paths are 3 plus a linear function of the features with coefficients 0 or 1 / sqrt(p)."""
    data = shortest_path_data(30, n_features=4, grid=(3, 4), degree=degree, seed=5)
    assert data.costs.shape == (30, 17)
    assert data.shape == (3, 4)
    found = linear(data.features, np.abs(data.costs * 3.5**degree - 1.0) ** (1.0 / degree))
    assert found[-1] == pytest.approx(3.0)
    assert set(np.round(found[:-1] * 2.0, 6).ravel().tolist()) == {0.0, 1.0}
    noisy = shortest_path_data(30, n_features=4, grid=(3, 4), degree=degree, noise=0.5, seed=5)
    ratio = noisy.costs / data.costs
    assert 0.5 <= ratio.min() < 0.55
    assert 1.45 < ratio.max() <= 1.5


def test_knapsacks_are_whole_values_and_decimal_weights() -> None:
    """Values are whole and rounded up from the polynomial, weights lie in 3..7.99 with two digits, rows share a capacity."""
    data = knapsack_data(50, n_items=6, n_rows=3, capacity=15.0, degree=1, seed=6)
    assert data.values.shape == (50, 6)
    assert (data.values == np.ceil(data.values)).all()
    columns = np.column_stack((data.features, np.ones(50)))
    b = np.array([[(k >> i) & 1 for i in range(5)] for k in range(32)]).T / np.sqrt(5.0)
    for j in range(6):  # one of the 2^5 possible vectors gives exactly these values
        assert (np.ceil(5.0 / 3.5 * (data.features @ b + 4.0)) == data.values[:, j, None]).all(axis=0).any()
    capacities, weights = data.shape
    assert capacities == (15.0,) * 3
    assert columns.shape == (50, 6)
    assert np.round(np.array(weights) * 100).tolist() == (np.array(weights) * 100).round(9).tolist()
    assert np.min(weights) >= 3.0
    assert np.max(weights) < 8.0


def test_portfolios_have_the_published_covariance() -> None:
    """Without noise returns are the polynomial; with noise their covariance is L L' + (0.01 noise)^2 I, and the risk follows."""
    still = portfolio_data(30, n_assets=4, degree=2, noise=0.0, seed=7)
    found = linear(still.features, np.sqrt(still.values))  # 0.05 b . x / sqrt(5) + 0.1^(1/2), which is > 0
    assert found[-1] == pytest.approx(np.sqrt(0.1))
    data = portfolio_data(20_000, n_assets=4, degree=1, noise=2.0, seed=7)
    rest = (
        data.values
        - np.column_stack((data.features, np.ones(20_000)))
        @ np.linalg.lstsq(np.column_stack((data.features, np.ones(20_000))), data.values, rcond=None)[0]
    )
    risk, covariance = data.shape
    assert np.cov(rest.T) == pytest.approx(np.array(covariance), abs=2e-5)
    assert risk == pytest.approx(2.25 * np.full(4, 0.25) @ np.array(covariance) @ np.full(4, 0.25))


def test_the_oracles_take_the_shapes() -> None:
    """Each generator's shape and numbers are what the oracle of its problem takes."""
    for make, oracle in ((shortest_path_data, ShortestPathOracle()), (knapsack_data, KnapsackOracle())):
        data = make(3, degree=3, noise=0.5)
        scores = data.values if data.costs is None else -data.costs
        assert len(oracle.argmax(scores[0], data.shape)) > 0
    data = travelling_salesman_data(2, n_nodes=6)
    assert sorted(TravellingSalesmanOracle().argmax(-data.costs[0], data.shape).tolist()) == list(range(6))
    assert data.rows(slice(1)).features.shape == (1, 5)
    data = portfolio_data(1, n_assets=5, degree=2, seed=8)
    shares = PortfolioOracle().point(PortfolioOracle().argmax(data.values[0], data.shape), data.shape)
    assert shares @ data.values[0] >= data.values[0].mean() - 1e-9  # equal shares keep the risk


@pytest.mark.parametrize("settings", [{"degree": 0}, {"noise": 1.0}, {"n_features": 0}, {"degree": 1.5}])
def test_numbers_out_of_range_are_refused(settings: dict) -> None:
    """A degree below 1, noise that could make costs negative, no features: ParameterError."""
    with pytest.raises(ParameterError, match="must be"):
        shortest_path_data(3, **settings)
