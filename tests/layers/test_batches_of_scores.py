"""Batches: an instance gets the same answer alone, in any order and on any number of threads, whatever form the arrays have."""

from typing import Any

import numpy as np
import pytest
from layer_cases import LAYERS, LOSSES, SOFT_LOSSES, STRUCTURES, given, random_outputs, structure

from structpred import layers
from structpred.layers.record import Outputs, Scores
from structpred.oracles.chain import ChainOracle


def taken(batch: Scores, options: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """What is given of some instances."""
    places = batch.take(rows)[1]
    flat = {"true_scores", "costs"}
    return {name: value[places] if name in flat else [value[i] for i in rows] for name, value in options.items()}


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("kind", LOSSES)
def test_losses_of_an_instance_do_not_depend_on_its_batch(kind: str, name: str) -> None:
    """Values and gradients are bit for bit the same for an instance alone, and for the batch turned round on two threads."""
    rng, whole = np.random.default_rng(0), structure(name)
    batch, ids = whole.batch(), np.array([7, 3, 5])
    loss = LOSSES[kind](batch.oracle)
    options, theta = given(loss, batch, rng), rng.normal(size=batch.size)
    found = loss(batch, theta, ids=ids, step=2, **options)
    for rows in (np.array([1]), np.array([2, 0, 1])):
        some, places = batch.take(rows)
        some.n_jobs = len(rows)
        own = loss(some, theta[places], ids=ids[rows], step=2, **taken(batch, options, rows))
        np.testing.assert_array_equal(own.values, found.values[rows])
        np.testing.assert_array_equal(own.gradient, found.gradient[places])
        assert all(np.array_equal(a, found.labels[i]) for a, i in zip(own.labels, rows, strict=True))


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("kind", LAYERS)
def test_layers_of_an_instance_do_not_depend_on_its_batch(kind: str, name: str) -> None:
    """So do points and pull-backs of layers."""
    rng, whole = np.random.default_rng(1), structure(name)
    batch, ids = whole.batch(), np.array([7, 3, 5])
    layer = LAYERS[kind](batch.oracle)
    theta, gradient = rng.normal(size=(2, batch.size))
    found = layer(batch, theta, ids=ids, step=2)
    for rows in (np.array([1]), np.array([2, 0, 1])):
        some, places = batch.take(rows)
        some.n_jobs = len(rows)
        mu, pull = layer(some, theta[places], ids=ids[rows], step=2)
        np.testing.assert_array_equal(mu, found.mu[places])
        np.testing.assert_array_equal(pull(gradient[places]), found.pull(gradient)[places])


@pytest.mark.parametrize("kind", SOFT_LOSSES)
def test_soft_losses_of_an_instance_do_not_depend_on_its_batch(kind: str) -> None:
    """Losses over marginals agree to rounding."""
    rng, batch = np.random.default_rng(2), structure("chain").batch()
    loss = SOFT_LOSSES[kind](batch.oracle)
    options, theta = given(loss, batch, rng), rng.normal(size=batch.size)
    found = loss(batch, theta, **options)
    for i in range(len(batch)):
        some, places = batch.take(np.array([i]))
        own = loss(some, theta[places], **taken(batch, options, np.array([i])))
        np.testing.assert_allclose(own.values, found.values[i], rtol=1e-12)
        np.testing.assert_allclose(own.gradient, found.gradient[places], atol=1e-12)


def test_noise_changes_with_the_step_and_the_seed_alone() -> None:
    """The same step gives the same bits again, for line searches; another step, seed or id gives other noise."""
    rng, batch = np.random.default_rng(3), structure("pairs").batch()
    theta, gold = rng.normal(size=batch.size), random_outputs(batch, rng)
    loss = layers.PerturbedLoss(batch.oracle, samples=4)
    first = loss(batch, theta, gold=gold, step=1).values
    np.testing.assert_array_equal(loss(batch, theta, gold=gold, step=1).values, first)
    other = layers.PerturbedLoss(batch.oracle, samples=4, seed=1)
    assert not np.array_equal(loss(batch, theta, gold=gold, step=2).values, first)
    assert not np.array_equal(loss(batch, theta, gold=gold, step=1, ids=[5, 6, 7]).values, first)
    assert not np.array_equal(other(batch, theta, gold=gold, step=1).values, first)


def test_scores_come_in_several_forms() -> None:
    """Flat, in rows, as float32 and as a list, scores give the same answer, and are never changed."""
    rng = np.random.default_rng(4)
    batch = Scores.of(ChainOracle(), [(2, 2)] * 3)
    theta = rng.normal(size=batch.size).astype(np.float32)
    theta.flags.writeable = False
    gold = random_outputs(batch, rng)
    loss = layers.PerturbedLoss(batch.oracle)
    values = loss(batch, theta.astype(np.float64), gold=gold).values
    for form in (theta, theta.reshape(3, -1), theta.tolist()):
        np.testing.assert_array_equal(loss(batch, form, gold=gold).values, values)


def test_gold_comes_in_several_forms() -> None:
    """Lists of labels, rows of an array, a record's outputs, part counts, and true scores give the same gold."""
    rng = np.random.default_rng(5)
    batch = Scores.of(ChainOracle(), [(2, 2)] * 3)
    theta, truth = rng.normal(size=(2, batch.size))
    outputs = batch.decide(truth)
    loss = layers.Perceptron(batch.oracle)
    values = loss(batch, theta, true_scores=truth).values
    for gold in (outputs, list(outputs), np.array(list(outputs)), [own.tolist() for own in outputs], batch.points(outputs)):
        np.testing.assert_array_equal(loss(batch, theta, gold=gold).values, values)
    assert isinstance(outputs, Outputs)
    assert [own.tolist() for own in outputs[1:]] == [outputs[1].tolist(), outputs[-1].tolist()]
    with pytest.raises(IndexError):
        outputs[3]


class Counting(ChainOracle):
    """A chain that counts its calls of argmax for true scores."""

    calls = 0

    def argmax(self, scores: np.ndarray, shape: Any) -> np.ndarray:
        """Count, and decode."""
        self.calls += 1
        return super().argmax(scores, shape)


def test_gold_is_found_once_for_an_id() -> None:
    """With ids gold is solved for once, even in another order; other true scores under the same id are solved for again."""
    rng, oracle = np.random.default_rng(6), Counting()
    batch = Scores.of(oracle, [(2, 2), (3, 2)])
    theta, truth = rng.normal(size=(2, batch.size))
    loss = layers.SPOPlus(oracle)
    first = loss(batch, theta, true_scores=truth, ids=[4, 9]).values
    assert oracle.calls == 4
    np.testing.assert_array_equal(loss(batch, theta, true_scores=truth, ids=[4, 9]).values, first)
    some, places = batch.take(np.array([1, 0]))
    np.testing.assert_array_equal(loss(some, theta[places], true_scores=truth[places], ids=[9, 4]).values, first[::-1])
    assert oracle.calls == 8
    np.testing.assert_array_equal(
        loss(batch, theta, true_scores=-truth, ids=[4, 9]).values, loss(batch, theta, true_scores=-truth).values
    )


def test_the_decision_is_found_when_asked_for() -> None:
    """A record finds the best outputs at the scores it was made with, whatever becomes of the array since, and once."""
    rng, oracle = np.random.default_rng(7), Counting()
    batch = Scores.of(oracle, [(2, 2), (3, 2)])
    theta, truth = rng.normal(size=(2, batch.size))
    found = layers.SPOPlus(oracle)(batch, theta, true_scores=truth, gold=batch.points(batch.decide(truth)))
    decision, before = batch.decide(theta), oracle.calls
    theta[:] = -theta
    assert all(np.array_equal(a, b) for a, b in zip(found.labels, decision, strict=True))
    assert found.labels is found.labels
    assert oracle.calls == before + 2


def test_an_empty_batch_is_a_batch() -> None:
    """No instances give no values."""
    batch = Scores.of(ChainOracle(), [])
    found = layers.PerturbedLoss(batch.oracle)(batch, [], gold=[])
    assert (found.values.shape, found.gradient.shape, len(found.labels)) == ((0,), (0,), 0)
    assert layers.PerturbedLayer(batch.oracle)(batch, []).pull([]).shape == (0,)
