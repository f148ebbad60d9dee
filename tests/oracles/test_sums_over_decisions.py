"""Sums over sets of items and over tours: sizes that the contract does not list, scores that are far apart, what is refused."""

import numpy as np
import pytest

from structpred.core.fixed_scores import FORBIDDEN
from structpred.data.decisions import knapsack_data, travelling_salesman_data
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.layers import CRF, Scores
from structpred.models import DecisionModel
from structpred.oracles.knapsack import KnapsackOracle, knapsack_shape
from structpred.oracles.travelling_salesman import TravellingSalesmanOracle

KNAPSACKS = [
    knapsack_shape([[0.1, 0.2, 0.3, 0.0, 0.7, 0.1, 0.4, 0.2]], [0.9]),  # decimal fractions that fill the capacity
    knapsack_shape(np.random.default_rng(0).uniform(1.0, 5.0, (3, 9)), [12.0, 9.0, 15.0]),  # no two sums alike
    knapsack_shape([[1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 0.0, 0.0, 0.0]], [100.0, 0.0]),  # everything fits
    knapsack_shape([[3.0, 1.0, 2.0, 9.0], [1.0, 1.0, 0.0, 0.0]], [5.0, 0.0]),  # a row without capacity
]


def differences(oracle, theta: np.ndarray, shape: object) -> np.ndarray:
    """The slopes of log Z by central differences."""
    steps = 1e-5 * np.eye(len(theta))
    return np.array([oracle.marginals(theta + d, shape)[0] - oracle.marginals(theta - d, shape)[0] for d in steps]) / 2e-5


@pytest.mark.parametrize("shape", [*KNAPSACKS, (7,)], ids=["decimals", "three rows", "loose", "no capacity", "tours of 7"])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_sums_are_those_of_enumeration(shape: tuple, scale: float) -> None:
    """log Z and the probabilities of all parts agree with all outputs to 1e-10, and with differences of log Z."""
    oracle = TravellingSalesmanOracle() if shape == (7,) else KnapsackOracle()
    theta = scale * np.random.default_rng(1).normal(size=oracle.n_parts(shape))
    counts = np.array([np.bincount(oracle.parts(y, shape), minlength=len(theta)) for y in oracle.enumerate(shape)])
    values = counts @ theta
    log_z = values.max() + np.log(np.exp(values - values.max()).sum())
    found, mu = oracle.marginals(theta, shape)
    assert found == pytest.approx(log_z, abs=1e-10 * scale)
    np.testing.assert_allclose(mu, np.exp(values - log_z) @ counts, atol=1e-10)
    np.testing.assert_allclose(mu, differences(oracle, theta, shape), atol=1e-6)


def test_a_knapsack_of_the_published_size_has_sums() -> None:
    """32 items in two rows: the probabilities are the slopes of log Z, a forbidden item has none, and the CRF loss is >= 0."""
    data, oracle = knapsack_data(3, seed=1), KnapsackOracle()
    theta = data.values[0] / 3.0
    theta[4] = FORBIDDEN
    _, mu = oracle.marginals(theta, data.shape)
    assert mu[4] == 0.0
    steps = 1e-5 * np.eye(32)[[0, 9, 31]]
    slopes = [oracle.marginals(theta + d, data.shape)[0] - oracle.marginals(theta - d, data.shape)[0] for d in steps]
    np.testing.assert_allclose(mu[[0, 9, 31]], np.array(slopes) / 2e-5, atol=1e-6)
    batch = Scores.of(oracle, [data.shape] * 3)
    loss = CRF(oracle)(batch, data.values, gold=batch.decide(data.values))
    assert (loss.values >= 0.0).all()
    assert np.abs(loss.gradient).max() <= 1.0


@pytest.mark.parametrize("problem", ["knapsacks", "tours"])
def test_models_are_trained_by_the_log_loss(problem: str) -> None:
    """A DecisionModel with loss="crf" lowers its loss from the first pass to the last, and decides better than the means do."""
    data = (
        knapsack_data(60, n_items=8, degree=4, seed=2)
        if problem == "knapsacks"
        else travelling_salesman_data(60, n_nodes=5, seed=2)
    )
    oracle = KnapsackOracle() if problem == "knapsacks" else TravellingSalesmanOracle()
    given = {"costs": data.costs, "values": data.values}
    model, means = (DecisionModel(oracle, shape=data.shape, loss="crf", max_iter=10) for _ in range(2))
    model.fit(data.features, **given)
    means.fit(np.zeros((60, 1)), **given)
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    assert model.score(data.features, **given) > means.score(np.zeros((60, 1)), **given)


def test_all_tours_of_equal_length_are_counted() -> None:
    """With scores of 0 log Z is the log of (n - 1)! / 2, and each edge is in 2 / (n - 1) of the tours."""
    log_z, mu = TravellingSalesmanOracle().marginals(np.zeros(66), (12,))
    assert log_z == pytest.approx(np.log(np.arange(1.0, 12.0)).sum() - np.log(2.0), abs=1e-10)
    np.testing.assert_allclose(mu, 2.0 / 11.0, rtol=1e-10)


def test_tours_without_forbidden_edges() -> None:
    """Forbidden edges leave one tour of four nodes, which is certain; where they leave none, InfeasibleError names the sample."""
    oracle, theta = TravellingSalesmanOracle(), np.zeros(6)
    theta[[1, 4]] = FORBIDDEN  # the edges 02 and 13
    log_z, mu = oracle.marginals(theta, (4,))
    assert (log_z, mu.tolist()) == (0.0, [1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    theta[0] = FORBIDDEN
    with pytest.raises(InfeasibleError, match="sample 1: every tour uses a forbidden edge"):
        oracle.marginals_batch(np.append(np.zeros(6), theta), np.array([0, 6, 12]), [(4,), (4,)])


def test_too_many_states_are_refused() -> None:
    """Sums that would keep too many remainders are refused with their number, naming the sample; argmax still works."""
    shape = knapsack_shape(np.random.default_rng(3).uniform(1.0, 2.0, (2, 16)), [12.0, 12.0])
    oracle = KnapsackOracle(max_states=1000)
    assert len(oracle.argmax(np.ones(16), shape)) == 16
    with pytest.raises(DataError, match=r"sample 0: sums over sets of items need more than max_states=1,000 nodes.*raise"):
        oracle.marginals(np.ones(16), shape)
    with pytest.raises(ParameterError, match="max_states must be a whole number >= 1"):
        KnapsackOracle(max_states=0)
