"""Any oracle goes through every loss and layer that needs argmax alone: one of three methods, and all those of the package."""

import inspect

import numpy as np
import pytest
from layer_cases import LAYERS, LOSSES, Pairs, given

from structpred import layers
from structpred.core.oracle import Oracle, capabilities
from structpred.layers.names import layers as named_layers
from structpred.layers.names import losses as named_losses
from structpred.layers.record import Scores
from structpred.runtime.discovery import public_subclasses

#: one compiled for most of a minute, and ones that call a solver for milliseconds
SLOW = ("BranchAndBoundMRF", "CpSatMRF")


def discovered() -> list[object]:
    """Every exact oracle of the package that can be made without arguments."""
    found = []
    for kind in public_subclasses("structpred.oracles", Oracle):
        parameters = inspect.signature(kind).parameters.values()
        if kind.exact and all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
            found.append(pytest.param(kind, marks=pytest.mark.slow) if kind.__name__ in SLOW else kind)
    return found


def small_batch(oracle: Oracle) -> Scores:
    """Its three smallest example shapes that have more than one part."""
    shapes = sorted((shape for shape in oracle.example_shapes() if oracle.n_parts(shape) > 1), key=oracle.n_parts)
    return Scores.of(oracle, shapes[:3])


@pytest.mark.parametrize("kind", discovered(), ids=lambda kind: kind.__name__)
def test_all_oracles_of_the_package_have_all_losses(kind: type[Oracle]) -> None:
    """SPO+ bounds the regret, the perturbed loss is >= 0 with a gradient that is a mixture less gold, the black box returns
    decisions; where there are marginals, the CRF loss is at least the perceptron's.
    """
    rng, oracle = np.random.default_rng(0), kind()
    batch = small_batch(oracle)
    theta, truth = rng.normal(size=(2, batch.size))
    gold = batch.points(batch.decide(truth))
    regret = batch.dots(truth, gold - batch.points(batch.decide(theta)))
    assert (layers.SPOPlus(oracle).regret_bound(batch, theta, true_scores=truth) >= regret - 1e-9).all()
    noisy = layers.PerturbedLoss(oracle, samples=2)(batch, theta, gold=gold)
    assert (noisy.values >= -1e-9).all()
    np.testing.assert_allclose(
        noisy.gradient + gold, layers.PerturbedLayer(oracle, samples=2)(batch, theta).mu, rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(layers.BlackBoxLayer(oracle)(batch, theta).mu, batch.points(batch.decide(theta)))
    if "marginals" in capabilities(oracle):
        hard = layers.Perceptron(oracle)(batch, theta, gold=gold).values
        assert (layers.CRF(oracle)(batch, theta, gold=gold).values >= hard - 1e-9).all()


@pytest.mark.parametrize("kind", LOSSES)
def test_three_methods_are_enough_for_losses(kind: str) -> None:
    """An oracle of three methods goes through the loss: finite values and a gradient of the size of the scores."""
    rng, oracle = np.random.default_rng(1), Pairs()
    batch = Scores.of(oracle, [(3,), (5,)])
    loss = LOSSES[kind](oracle)
    found = loss(batch, rng.normal(size=batch.size), **given(loss, batch, rng))
    assert np.isfinite(found.values).all()
    assert found.gradient.shape == (batch.size,)
    assert [len(own) for own in found.labels] == [2, 2]
    assert found.proven


@pytest.mark.parametrize("kind", LAYERS)
def test_three_methods_are_enough_for_layers(kind: str) -> None:
    """So it does through the layer: a point with as many parts on as an output has, and a pull-back."""
    rng, oracle = np.random.default_rng(2), Pairs()
    batch = Scores.of(oracle, [(3,), (5,)])
    mu, pull = LAYERS[kind](oracle)(batch, rng.normal(size=batch.size))
    np.testing.assert_allclose([own.sum() for own in batch.split(mu)], 2.0)
    assert np.isfinite(pull(rng.normal(size=batch.size))).all()


def test_the_flip_rate_says_how_strong_the_noise_is() -> None:
    """It is 0 for almost no noise, near 1 for noise that drowns the scores, and there is none for losses without noise."""
    rng, batch = np.random.default_rng(3), Scores.of(Pairs(), [(6,)] * 20)
    theta, gold = rng.normal(size=batch.size), [[0, 1]] * 20
    rates = [layers.PerturbedLoss(batch.oracle, sigma=s)(batch, theta, gold=gold).flip_rate for s in (1e-9, 1.0, 1e6)]
    assert rates[0] == 0.0
    assert 0.1 < rates[1] < rates[2]
    assert rates[2] > 0.85
    assert layers.Perceptron(batch.oracle)(batch, theta, gold=gold).flip_rate is None


class Counting(Pairs):
    """An oracle that counts its calls."""

    calls = 0

    def argmax(self, scores: np.ndarray, shape: tuple[int]) -> np.ndarray:
        """One more."""
        self.calls += 1
        return super().argmax(scores, shape)


def test_the_decision_and_the_flip_rate_cost_a_call_only_where_they_are_asked_for() -> None:
    """A perturbed loss and layer take a call a sample; the flip rate takes one more an instance, once."""
    for call in (
        lambda batch: layers.PerturbedLoss(batch.oracle, samples=2)(batch, np.arange(12.0), gold=[[0, 1]] * 3),
        lambda batch: layers.PerturbedLayer(batch.oracle, samples=2)(batch, np.arange(12.0)),
    ):
        oracle = Counting()
        found = call(Scores.of(oracle, [(4,)] * 3))
        assert oracle.calls == 6
        assert 0.0 <= found.flip_rate <= 1.0
        assert [own.tolist() for own in found.labels] == [[2, 3]] * 3
        assert oracle.calls == 9


def test_losses_and_layers_are_found_by_name() -> None:
    """Names are found by walking the package, and are all different."""
    assert {"spo+", "pg", "perceptron", "hinge", "crf", "perturbed", "nce", "pairwise", "cone"} <= set(named_losses())
    assert {"soft", "perturbed", "imle", "adaptive_imle", "blackbox", "straight_through"} <= set(named_layers())
    assert named_losses()["spo+"] is layers.SPOPlus
    for name in layers.__all__:
        assert getattr(layers, name).__name__ == name
