"""The gradient of a loss is the derivative of its value."""

import numpy as np
import pytest
from layer_cases import LOSSES, SOFT_LOSSES, STRUCTURES, WITH_MARGINALS, given, mixture, structure

from structpred.layers.loss import Loss
from structpred.layers.record import Scores


def check_gradient(loss: Loss, batch: Scores, rng: np.random.Generator, h: float, **options: object) -> None:
    """Directional differences of each instance's value against its gradient, in one direction drawn at random."""
    theta, direction = 3.0 * rng.normal(size=(2, batch.size))
    gradient = loss(batch, theta, **options).gradient
    ahead, behind = (loss(batch, theta + t * direction, **options).values for t in (h, -h))
    expected = batch.dots(gradient, direction)
    np.testing.assert_allclose((ahead - behind) / (2 * h), expected, rtol=1e-7, atol=1e-7 * np.abs(direction).max())


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("kind", LOSSES)
def test_gradients_are_derivatives(kind: str, name: str) -> None:
    """Each loss over argmax agrees with differences along a random direction, on ragged batches, away from ties."""
    rng, batch = np.random.default_rng(1), structure(name).batch()
    loss = LOSSES[kind](batch.oracle)
    check_gradient(loss, batch, rng, 1e-7 if kind == "cone" else 1e-6, **given(loss, batch, rng))


@pytest.mark.parametrize("name", WITH_MARGINALS)
@pytest.mark.parametrize("kind", SOFT_LOSSES)
def test_gradients_of_soft_losses_are_derivatives(kind: str, name: str) -> None:
    """So do the losses over marginals."""
    rng, batch = np.random.default_rng(2), structure(name).batch()
    loss = SOFT_LOSSES[kind](batch.oracle)
    check_gradient(loss, batch, rng, 1e-5, **given(loss, batch, rng))


@pytest.mark.parametrize("kind", ["spo+", "perceptron", "perturbed", "cone", "imitation"])
def test_gold_may_be_a_mixture(kind: str) -> None:
    """With a dense gold inside the hull gradients are derivatives, too."""
    rng, batch = np.random.default_rng(3), structure("assignment").batch()
    loss = LOSSES[kind](batch.oracle)
    check_gradient(loss, batch, rng, 1e-6, **given(loss, batch, rng) | {"gold": mixture(batch, rng)})


@pytest.mark.parametrize("kind", [*LOSSES, *SOFT_LOSSES])
def test_fixed_scores_have_no_gradient(kind: str) -> None:
    """Where scores are fixed, predictions do not matter and gradients are 0; elsewhere they are derivatives still."""
    if kind == "cone":  # refuses them: see test_layer_errors
        return
    rng, whole = np.random.default_rng(4), structure("chain")
    size = whole.batch().size
    mask = rng.random(size) < 0.4
    batch = whole.batch(fixed=(mask, rng.normal(size=size)))
    loss = (LOSSES | SOFT_LOSSES)[kind](batch.oracle)
    options = given(loss, batch, rng)
    theta = rng.normal(size=size)
    found, other = loss(batch, theta, **options), loss(batch, np.where(mask, 7.0, theta), **options)
    assert not found.gradient[mask].any()
    assert found.gradient.any()
    np.testing.assert_array_equal(found.values, other.values)
    check_gradient(loss, batch, rng, 1e-5 if kind in SOFT_LOSSES else 1e-6, **options)
