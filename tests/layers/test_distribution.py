"""The Gibbs distribution over outputs, held by enumeration."""

import numpy as np
import pytest

from structpred.errors import MissingCapabilityError, OracleError, ParameterError
from structpred.layers import Distribution, Scores
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.knapsack import KnapsackOracle, knapsack_shape
from structpred.oracles.projective import ProjectiveOracle
from structpred.oracles.shortest_path import ShortestPathOracle
from structpred.oracles.travelling_salesman import TravellingSalesmanOracle

CASES = [(ChainOracle(), [(3, 2), (1, 3)]), (ArborescenceOracle(), [(3,), (2,)]), (ProjectiveOracle(), [(3,), (1,)])]
#: without label_grid: drawn part after part
DECISIONS = [
    (KnapsackOracle(), [knapsack_shape([[3.0, 2.0, 2.0], [1.0, 4.0, 1.0]], [4.0, 5.0]), knapsack_shape([1.0, 2.0], [2.0])]),
    (ShortestPathOracle(), [(3, 2), (1, 2)]),
    (TravellingSalesmanOracle(), [(4,), (3,)]),
]


def probabilities(batch, theta):
    """For each instance its outputs with their probabilities, listed."""
    found = []
    for own, shape in zip(batch.split(theta), batch.shapes, strict=True):
        outputs = [tuple(y.tolist()) for y in batch.oracle.enumerate(shape)]
        scores = np.array([own[batch.oracle.parts(np.array(y), shape)].sum() for y in outputs])
        weights = np.exp(scores - scores.max())
        found.append(dict(zip(outputs, (weights / weights.sum()).tolist(), strict=True)))
    return found


@pytest.mark.parametrize(("oracle", "shapes"), CASES)
def test_entropy_probabilities_and_the_k_best_are_those_of_enumeration(oracle, shapes):
    """Entropy and log probabilities agree with sums over all outputs to 1e-10; the k best come in order."""
    batch = Scores.of(oracle, shapes)
    theta = np.random.default_rng(0).normal(size=batch.size)
    found = Distribution(batch, theta)
    for i, listed in enumerate(probabilities(batch, theta)):
        p = np.array(list(listed.values()))
        assert found.entropy[i] == pytest.approx(-(p * np.log(p)).sum(), abs=1e-10)
        best = [tuple(y.tolist()) for y in found.kbest(3)[i]]
        np.testing.assert_allclose([listed[y] for y in best], np.sort(p)[::-1][:3], rtol=1e-10)
    outputs = found.decisions()
    expected = [max(listed.values()) for listed in probabilities(batch, theta)]
    np.testing.assert_allclose(np.exp(found.log_prob(outputs)), expected, rtol=1e-10)


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("oracle", "shapes"), CASES + DECISIONS)
def test_samples_have_the_frequencies_of_enumeration(oracle, shapes):
    """Of 4,000 samples each output has its share to within 5 standard errors; the same seed draws the same ones."""
    batch, n = Scores.of(oracle, shapes), 4000
    theta = np.random.default_rng(1).normal(size=batch.size)
    drawn = Distribution(batch, theta).samples(n, seed=3)
    for own, listed in zip(drawn, probabilities(batch, theta), strict=True):
        keys = [tuple(y.tolist()) for y in own]
        assert set(keys) <= set(listed)
        for output, p in listed.items():
            assert abs(keys.count(output) / n - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12
    few = Distribution(batch, theta).samples(5, seed=3)
    again = Distribution(batch, theta).samples(5, seed=3)
    assert [[y.tolist() for y in own] for own in few] == [[y.tolist() for y in own] for own in again]


@pytest.mark.parametrize(("oracle", "shapes"), DECISIONS)
def test_expected_costs_and_entropies_of_decisions_are_those_of_enumeration(oracle, shapes):
    """For sums over sets of items, paths and tours: E[costs . mu] and the entropy agree with all outputs to 1e-10."""
    batch, rng = Scores.of(oracle, shapes), np.random.default_rng(2)
    theta, costs = rng.normal(size=batch.size), rng.normal(size=batch.size)
    found = Distribution(batch, theta)
    expected = batch.dots(costs, found.marginals)
    for i, (listed, own) in enumerate(zip(probabilities(batch, theta), batch.split(costs), strict=True)):
        p = np.array(list(listed.values()))
        values = [own[oracle.parts(np.array(y, dtype=np.int64), shapes[i])].sum() for y in listed]
        assert expected[i] == pytest.approx(p @ values, abs=1e-10)
        assert found.entropy[i] == pytest.approx(-(p * np.log(p)).sum(), abs=1e-10)


def test_parts_that_count_twice_cannot_be_drawn():
    """Where a part counts twice in one output and once in another, drawing part after part says so."""

    def listed(shape):
        return [np.full(1, k) for k in range(3)]

    def parts(labels, shape):
        return np.zeros(labels[0], np.int64)

    oracle = EnumeratedOracle(listed, parts, lambda shape: 1, example_shapes=[(1,)])
    with pytest.raises(OracleError, match="needs label_grid"):
        Distribution(Scores.of(oracle, [(1,)]), [0.3]).samples(20)


def test_what_lacks_is_named():
    """Matchings have no marginals; zero samples are refused."""
    with pytest.raises(MissingCapabilityError, match="marginals"):
        Distribution(Scores.of(AssignmentOracle(), [(2,)]), np.zeros(4))
    with pytest.raises(ParameterError, match="n must be"):
        Distribution(Scores.of(ChainOracle(), [(2, 2)]), np.zeros(8)).samples(0)
