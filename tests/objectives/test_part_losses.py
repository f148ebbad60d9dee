"""Part losses: constant + costs . mu(y) is the loss, for every output."""

import numpy as np
import pytest

from structpred.core.costs import TaskCosts
from structpred.errors import ParameterError
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle

CASES = [(ChainOracle(), (4, 3)), (ChainOracle(), (1, 1)), (AssignmentOracle(), (4,)), (MulticlassOracle(), (5,))]


def costs_of(loss, oracle, shape, truth, weights=None):
    """(constant, costs) as a task of one instance keeps them."""
    parts, token_weights = [oracle.parts(truth, shape)], None if weights is None else [weights]
    return TaskCosts(loss, oracle, [truth], [shape], parts, [oracle.n_parts(shape)], token_weights).of(0)


def losses(loss, oracle, shape, truth, weights=None):
    """Each output with its loss as the parts have it."""
    constant, costs = costs_of(loss, oracle, shape, truth, weights)
    assert costs.shape == (oracle.n_parts(shape),)
    return [(y, constant + costs[oracle.parts(y, shape)].sum()) for y in oracle.enumerate(shape)]


@pytest.mark.parametrize(("oracle", "shape"), CASES)
def test_hamming_counts_wrong_positions(oracle, shape) -> None:
    """The number of positions that differ, and its weighted sum with token weights; zero for the truth only."""
    truth = oracle.argmax(np.random.default_rng(0).normal(size=oracle.n_parts(shape)), shape)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(truth))
    for y, loss in losses(Hamming(), oracle, shape, truth):
        assert loss == (y != truth).sum()
    for y, loss in losses(Hamming(), oracle, shape, truth, weights):
        assert loss == pytest.approx(weights @ (y != truth), abs=1e-12)


@pytest.mark.parametrize(("oracle", "shape"), CASES)
def test_label_costs_add_up(oracle, shape) -> None:
    """The sum of costs[truth, label] over positions, weighed where there are weights."""
    rng = np.random.default_rng(2)
    n_labels = oracle.label_grid(shape)[1]
    costs = rng.uniform(0.0, 3.0, (n_labels, n_labels))
    np.fill_diagonal(costs, 0.0)
    truth = oracle.argmax(rng.normal(size=oracle.n_parts(shape)), shape)
    weights = rng.uniform(0.5, 2.0, len(truth))
    for y, loss in losses(LabelCosts(costs), oracle, shape, truth, weights):
        assert loss == pytest.approx(weights @ costs[truth, y], abs=1e-12)


@pytest.mark.parametrize(("oracle", "shape"), [(ChainOracle(), (4, 2)), (AssignmentOracle(), (4,))])
def test_without_a_grid_hamming_counts_missed_parts(oracle, shape) -> None:
    """The number of true parts that an output misses; token weights are then refused."""
    bare = EnumeratedOracle(oracle.enumerate, oracle.parts, oracle.n_parts, example_shapes=[shape])
    assert not hasattr(bare, "label_grid")
    truth = oracle.argmax(np.random.default_rng(0).normal(size=oracle.n_parts(shape)), shape)
    if isinstance(oracle, AssignmentOracle):  # each part at most once
        true_parts = set(oracle.parts(truth, shape).tolist())
        for y, loss in losses(Hamming(), bare, shape, truth):
            assert loss == len(true_parts - set(oracle.parts(y, shape).tolist()))
    with pytest.raises(ParameterError, match="token weights need positions"):
        costs_of(Hamming(), bare, shape, truth, np.ones(4))
    with pytest.raises(ParameterError, match="has no label_grid"):
        costs_of(LabelCosts([[0.0]]), bare, shape, truth)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0.0, 1.0]], "square"),
        ([0.0], "square"),
        ([[0.0, -1.0], [1.0, 0.0]], ">= 0"),
        ([[0.0, np.nan], [1.0, 0.0]], "finite"),
        ([[1.0, 1.0], [1.0, 0.0]], "zero on the diagonal"),
    ],
)
def test_bad_costs_are_refused(costs, message) -> None:
    """A cost matrix is square, finite, not negative, and zero for the truth."""
    with pytest.raises(ParameterError, match=message):
        LabelCosts(costs)


def test_costs_of_another_size_are_refused() -> None:
    """As many labels as the oracle has."""
    with pytest.raises(ParameterError, match=r"\(2, 2\), but there are 3 labels"):
        costs_of(LabelCosts([[0.0, 1.0], [1.0, 0.0]]), MulticlassOracle(), (3,), np.array([0]))
