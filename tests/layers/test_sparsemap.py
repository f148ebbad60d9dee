"""SparseMAP: loss and layer, over any oracle."""

import numpy as np
import pytest

from structpred.errors import ConvergenceError, DataError, InfeasibleError, ParameterError
from structpred.layers import Scores, SparseMAP, SparseMAPLoss
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle

CASES = [
    (MulticlassOracle(), [(3,), (5,)]),
    (ChainOracle(), [(3, 2), (1, 3)]),
    (ArborescenceOracle(), [(3,), (2,)]),
    (AssignmentOracle(), [(3,), (2,)]),
]


def drawn(oracle, shapes, seed=0):
    """A batch, random scores, and random gold outputs."""
    rng = np.random.default_rng(seed)
    batch = Scores.of(oracle, shapes)
    return batch, rng.normal(size=batch.size), batch.decide(rng.normal(size=batch.size)), rng


@pytest.mark.parametrize(("oracle", "shapes"), CASES)
@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_the_gradient_is_the_derivative(oracle, shapes, temperature):
    """The loss agrees with central differences to 1e-7, relative, and is never negative."""
    batch, theta, gold, rng = drawn(oracle, shapes)
    loss = SparseMAPLoss(oracle, temperature=temperature)
    found = loss(batch, theta, gold=gold)
    assert (found.values >= 0).all()
    for _ in range(3):
        way, step = rng.normal(size=batch.size), 1e-5
        ahead, behind = (loss(batch, theta + s * way, gold=gold).values.sum() for s in (step, -step))
        slope = found.gradient @ way
        assert abs((ahead - behind) / (2 * step) - slope) <= 1e-7 * max(1.0, abs(slope))


@pytest.mark.parametrize(("oracle", "shapes"), CASES)
def test_the_loss_is_zero_exactly_beyond_its_margin(oracle, shapes):
    """Where gold scores above each output by t g . (g - mu(y)) the loss is 0 and the point is gold; just below it is not."""
    batch, _, gold, _ = drawn(oracle, shapes, seed=2)
    loss, g = SparseMAPLoss(oracle, temperature=2.0), batch.points(gold)
    beyond = loss(batch, 2.0 * g, gold=gold)  # theta = t g: <theta, g - mu> = t g . (g - mu)
    np.testing.assert_allclose(beyond.values, 0.0, atol=1e-12)
    np.testing.assert_allclose(beyond.gradient, 0.0, atol=1e-9)
    below = loss(batch, 1.9 * g, gold=gold)
    several = np.array([len(list(oracle.enumerate(shape))) > 1 for shape in shapes])
    assert (below.values[several] > 1e-6).all()


def test_metric_zero_on_transitions_regularises_labels_alone():
    """The value is that of enumeration over a fine grid of mixtures, and gold beyond the margin of the labels has loss 0."""
    oracle, shape = ChainOracle(), (2, 2)
    batch = Scores.of(oracle, [shape])
    labels_alone = lambda shape: (np.arange(batch.size) < shape[0] * shape[1]).astype(float)  # noqa: E731
    theta = np.random.default_rng(1).normal(size=batch.size)
    found = SparseMAPLoss(oracle, metric=labels_alone)(batch, theta, gold=[[0, 1]])
    vertices = np.array([batch.points([y]) for y in oracle.enumerate(shape)])
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 41)] * 3), axis=-1).reshape(-1, 3)
    grid = np.column_stack((grid, 1 - grid.sum(axis=1)))[grid.sum(axis=1) <= 1]
    mu, d = grid @ vertices, labels_alone(shape)
    gold = batch.points([[0, 1]])
    listed = (mu @ theta - 0.5 * (mu**2 @ d)).max() + 0.5 * gold**2 @ d - theta @ gold
    assert listed - 1e-12 <= found.values[0] <= listed + 2e-3


def test_the_layer_pulls_gradients_back():
    """The pull-back agrees with differences of mu, warm starts agree with cold ones, and `ids` make later calls cheaper."""
    oracle, shapes = CASES[1]
    batch, theta, _, rng = drawn(oracle, shapes, seed=4)
    layer = SparseMAP(oracle, temperature=0.7)
    given, way, step = rng.normal(size=batch.size), rng.normal(size=batch.size), 1e-6
    ahead, behind = (layer(batch, theta + s * way).mu for s in (step, -step))
    assert abs(layer(batch, theta).pull(given) @ way - given @ (ahead - behind) / (2 * step)) <= 1e-7
    layer(batch, theta, ids=[7, 8])
    warm, cold = layer(batch, 1.01 * theta, ids=[7, 8]), layer(batch, 1.01 * theta)
    np.testing.assert_allclose(warm.mu, cold.mu, atol=1e-10)
    assert len(layer.sets) == 2
    assert (cold.gap >= 0).all()
    assert cold.gap.max() <= 1e-10
    bits = SparseMAP(oracle, temperature=0.7, warm=False)
    assert bits(batch, theta, ids=[7, 8]).mu.tobytes() == bits(batch, theta, ids=[7, 8]).mu.tobytes()


def test_multiclass_gives_sparsemax():
    """One label out of many: the projection onto the simplex, zeros included."""
    theta = np.array([1.0, 0.8, 0.1, -3.0])
    oracle = MulticlassOracle()
    mu, _ = SparseMAP(oracle)(Scores.of(oracle, [(4,)]), theta)
    np.testing.assert_allclose(mu, [0.6, 0.4, 0.0, 0.0], atol=1e-12)


def test_bad_input_is_refused_with_the_sample():
    """Temperature, metric, gold outside the hull, forbidden parts, answers that are not reached: one clear error each."""
    oracle = ChainOracle()
    batch = Scores.of(oracle, [(2, 2), (3, 2)])
    theta = np.zeros(batch.size)
    with pytest.raises(ParameterError, match="temperature"):
        SparseMAPLoss(oracle, temperature=0.0)
    with pytest.raises(DataError, match="sample 1: the metric"):
        SparseMAPLoss(oracle, metric=lambda shape: np.ones(8))(batch, theta, gold=[[0, 0], [0, 0, 0]])
    outside = 3.0 * batch.points([[0, 0], [0, 0, 0]])
    with pytest.raises(DataError, match=r"sample 0: SparseMAPLoss is .* gold is not a mixture"):
        SparseMAPLoss(oracle)(batch, 3.0 * outside, gold=outside)
    mask = np.arange(batch.size) < 2
    with pytest.raises(InfeasibleError, match="sample 0"):
        SparseMAP(oracle)(Scores.of(oracle, batch.shapes, fixed=(mask, np.where(mask, -1e30, 0.0))), theta)
    long = Scores.of(oracle, [(12, 4)])
    with pytest.raises(ConvergenceError, match="sample"):
        SparseMAP(oracle, tol=1e-30)(long, np.random.default_rng(0).normal(size=long.size))


def test_an_inexact_oracle_proves_nothing():
    """An oracle that may miss the maximum gives values whose gap is infinite: nothing is called proven."""

    class Rough(EnumeratedOracle):
        exact = False

    oracle = Rough(lambda s: [[0], [1]], lambda y, s: y, lambda s: 2, example_shapes=[()])
    found = SparseMAPLoss(oracle)(Scores.of(oracle, [()]), [0.3, 0.1], gold=[[0]])
    assert not found.proven
