"""Perturbed losses: unbiased for the smoothed maximum, and less noisy in pairs."""

from math import sqrt

import numpy as np
import pytest
from layer_cases import structure
from scipy.special import ndtr

from structpred import layers
from structpred.layers.record import Scores
from structpred.oracles.multiclass import MulticlassOracle


def repeated(name: str, at: int, n: int) -> tuple[Scores, np.ndarray]:
    """A batch of n times one shape of a structure, and its vertices."""
    whole = structure(name)
    return Scores.of(whole.oracle, [whole.shapes[at]] * n), whole.vertices(whole.shapes[at])


@pytest.mark.parametrize("antithetic", [True, False])
def test_two_labels_have_a_closed_form(antithetic: bool) -> None:
    """The mean of the larger of two normals is known (Clark 1961): the loss meets it within four standard errors."""
    n, sigma, theta = 4000, 0.7, np.array([0.4, 0.1])
    batch = Scores.of(MulticlassOracle(), [(2,)] * n)
    loss = layers.PerturbedLoss(batch.oracle, samples=2, sigma=sigma, antithetic=antithetic)
    values = loss(batch, np.tile(theta, n), gold=np.tile([0.0, 1.0], n)).values
    s = sigma * sqrt(2)
    a = (theta[0] - theta[1]) / s
    exact = theta[0] * ndtr(a) + theta[1] * ndtr(-a) + s * np.exp(-(a**2) / 2) / sqrt(2 * np.pi) - theta[1]
    assert abs(values.mean() - exact) <= 4 * values.std() / sqrt(n)


@pytest.mark.parametrize("multiplicative", [False, True])
@pytest.mark.parametrize("name", ["tree", "pairs", "chain"])
def test_losses_and_gradients_are_unbiased(name: str, multiplicative: bool) -> None:
    """Over 1,500 ids values and gradients meet those of independent noise over all outputs, within four standard errors."""
    rng, n, sigma = np.random.default_rng(0), 1500, 0.8
    batch, vertices = repeated(name, 0, n)
    theta, gold = rng.normal(size=vertices.shape[1]), vertices[0]
    loss = layers.PerturbedLoss(batch.oracle, samples=2, sigma=sigma, multiplicative=multiplicative)
    found = loss(batch, np.tile(theta, n), gold=np.tile(gold, n))
    z = rng.normal(size=(20_000, len(theta)))
    factors = np.exp(sigma * z - sigma**2 / 2) if multiplicative else np.ones_like(z)
    scores = (theta * factors if multiplicative else theta + sigma * z) @ vertices.T
    means = [(scores.max(axis=1)[:, None], found.values[:, None] + theta @ gold)]
    means.append((factors * vertices[scores.argmax(axis=1)], found.gradient.reshape(n, -1) + gold))
    for listed, ours in means:
        error = np.sqrt(listed.var(axis=0) / len(listed) + ours.var(axis=0) / n)
        assert (np.abs(listed.mean(axis=0) - ours.mean(axis=0)) <= 4 * error + 1e-12).all()


@pytest.mark.parametrize("name", ["tree", "assignment"])
def test_pairs_of_noise_lower_the_variance(name: str) -> None:
    """With as many samples, pairs z and -z give values and gradients of clearly less variance, and the same mean."""
    rng, n = np.random.default_rng(1), 1000
    batch, vertices = repeated(name, 0, n)
    theta, gold = rng.normal(size=vertices.shape[1]), vertices[0]
    pairs, plain = (
        layers.PerturbedLoss(batch.oracle, samples=4, antithetic=kind)(batch, np.tile(theta, n), gold=np.tile(gold, n))
        for kind in (True, False)
    )
    error = sqrt((pairs.values.var() + plain.values.var()) / n)
    assert abs(pairs.values.mean() - plain.values.mean()) <= 4 * error
    assert plain.values.var() > 1.3 * pairs.values.var()
    spread = [found.gradient.reshape(n, -1).var(axis=0).sum() for found in (pairs, plain)]
    assert spread[1] > 1.1 * spread[0]
