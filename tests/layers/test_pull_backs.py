"""What the pull-backs of layers are derivatives of."""

from math import sqrt

import numpy as np
import pytest
from layer_cases import STRUCTURES, WITH_MARGINALS, structure
from scipy.special import ndtr

from structpred import layers
from structpred.layers.record import Scores
from structpred.oracles.multiclass import MulticlassOracle


@pytest.mark.parametrize("temperature", [0.5, 2.0])
@pytest.mark.parametrize("name", WITH_MARGINALS)
def test_soft_layers_pull_back_by_the_covariance(name: str, temperature: float) -> None:
    """Marginals and their pull-back are the mean and the covariance of part counts over t, by enumeration."""
    rng, whole = np.random.default_rng(0), structure(name)
    batch = whole.batch()
    theta, gradient = rng.normal(size=(2, batch.size))
    mu, pull = layers.SoftLayer(batch.oracle, temperature=temperature)(batch, theta)
    back = pull(gradient)
    for shape, own, mean, g, found in zip(batch.shapes, *map(batch.split, (theta, mu, gradient, back)), strict=True):
        vertices = whole.vertices(shape)
        logs = vertices @ own / temperature
        p = np.exp(logs - logs.max())
        p /= p.sum()
        np.testing.assert_allclose(mean, p @ vertices, atol=1e-12)
        covariance = (vertices.T * p) @ vertices - np.outer(p @ vertices, p @ vertices)
        np.testing.assert_allclose(found, covariance @ g / temperature, atol=1e-8)


def test_a_soft_pull_back_does_not_depend_on_the_size_of_the_gradient() -> None:
    """It is linear over twelve orders of magnitude, and zero for a zero gradient."""
    rng, batch = np.random.default_rng(1), structure("chain").batch()
    theta, gradient = rng.normal(size=(2, batch.size))
    _, pull = layers.SoftLayer(batch.oracle)(batch, theta)
    for size in (1e-6, 1e6):
        np.testing.assert_allclose(pull(size * gradient) / size, pull(gradient), atol=1e-9)
    assert not pull(np.zeros(batch.size)).any()


@pytest.mark.parametrize("antithetic", [True, False])
def test_perturbed_layers_meet_the_closed_form(antithetic: bool) -> None:
    """For two labels mu_1 = Phi((theta_1 - theta_2) / sigma sqrt 2); mu and the pull-back meet it and its derivative within four
    standard errors over many instances, with pairs of noise and without.
    """
    n, sigma, theta = 4000, 0.7, np.array([0.4, 0.1])
    batch = Scores.of(MulticlassOracle(), [(2,)] * n)
    layer = layers.PerturbedLayer(batch.oracle, samples=4, sigma=sigma, antithetic=antithetic)
    mu, pull = layer(batch, np.tile(theta, n))
    back = pull(np.tile([1.0, 0.0], n)).reshape(n, 2)
    at = (theta[0] - theta[1]) / (sigma * sqrt(2))
    slope = np.exp(-(at**2) / 2) / sqrt(2 * np.pi) / (sigma * sqrt(2))
    for draws, exact in ((mu.reshape(n, 2)[:, 0], ndtr(at)), (back[:, 0], slope), (back[:, 1], -slope)):
        assert abs(draws.mean() - exact) <= 4 * draws.std() / sqrt(n)


def test_multiplicative_pull_backs_are_unbiased() -> None:
    """With theta * exp(sigma z - sigma^2 / 2) mu_1 = Phi(log(theta_1 / theta_2) / sigma sqrt 2) for positive scores; the
    pull-back meets its derivative within four standard errors.
    """
    n, sigma, theta = 4000, 0.6, np.array([1.3, 0.9])
    batch = Scores.of(MulticlassOracle(), [(2,)] * n)
    mu, pull = layers.PerturbedLayer(batch.oracle, samples=4, sigma=sigma, multiplicative=True)(batch, np.tile(theta, n))
    back = pull(np.tile([1.0, 0.0], n)).reshape(n, 2)
    at = np.log(theta[0] / theta[1]) / (sigma * sqrt(2))
    slope = np.exp(-(at**2) / 2) / sqrt(2 * np.pi) / (sigma * sqrt(2))
    for draws, exact in ((mu.reshape(n, 2)[:, 0], ndtr(at)), (back[:, 0], slope / theta[0]), (back[:, 1], -slope / theta[1])):
        assert abs(draws.mean() - exact) <= 4 * draws.std() / sqrt(n)


@pytest.mark.parametrize("antithetic", [True, False])
def test_expected_costs_are_unbiased(antithetic: bool) -> None:
    """The value and the gradient of an expected cost meet the closed form of two labels within four standard errors."""
    n, sigma, theta = 4000, 0.7, np.array([0.4, 0.1])
    batch = Scores.of(MulticlassOracle(), [(2,)] * n)
    loss = layers.ExpectedCost(
        batch.oracle, lambda labels, i: 5.0 - 2.0 * labels[0], samples=4, sigma=sigma, antithetic=antithetic
    )
    found = loss(batch, np.tile(theta, n))
    at = (theta[0] - theta[1]) / (sigma * sqrt(2))
    slope = 2.0 * np.exp(-(at**2) / 2) / sqrt(2 * np.pi) / (sigma * sqrt(2))
    gradient = found.gradient.reshape(n, 2)
    for draws, exact in ((found.values, 3.0 + 2.0 * ndtr(at)), (gradient[:, 0], slope), (gradient[:, 1], -slope)):
        assert abs(draws.mean() - exact) <= 4 * draws.std() / sqrt(n)


@pytest.mark.parametrize("name", STRUCTURES)
def test_black_boxes_differentiate_their_interpolation(name: str) -> None:
    """The black-box pull-back is the gradient of [S(theta) - S(theta - lam g)] / lam for fixed g, by differences."""
    rng, batch = np.random.default_rng(2), structure(name).batch()
    theta, gradient, direction = rng.normal(size=(3, batch.size))
    lam, h = 1.5, 1e-6

    def interpolated(scores: np.ndarray) -> np.ndarray:
        return (batch.best(scores).values - batch.best(scores - lam * gradient).values) / lam

    _, pull = layers.BlackBoxLayer(batch.oracle, lam=lam)(batch, theta)
    differences = (interpolated(theta + h * direction) - interpolated(theta - h * direction)) / (2 * h)
    np.testing.assert_allclose(differences, batch.dots(pull(gradient), direction), atol=1e-7)


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_smoothed_difference_is_the_black_box_of_the_noisy_scores(name: str) -> None:
    """I-MLE is the mean over the noise of black-box pull-backs, and almost no noise gives the black box itself."""
    rng, batch = np.random.default_rng(3), structure(name).batch()
    theta, gradient = rng.normal(size=(2, batch.size))
    layer = layers.SmoothedDifferenceLayer(batch.oracle, lam=0.8, samples=4, sigma=0.5)
    mu, pull = layer(batch, theta, step=3)
    black = layers.BlackBoxLayer(batch.oracle, lam=0.8)
    noisy = theta + 0.5 * layer.noise.draw(batch, np.arange(len(batch)), 3)
    singles = [black(batch, one) for one in noisy]
    np.testing.assert_allclose(mu, np.mean([one.mu for one in singles], axis=0), atol=1e-14)
    np.testing.assert_allclose(pull(gradient), np.mean([one.pull(gradient) for one in singles], axis=0), atol=1e-13)
    still = layers.SmoothedDifferenceLayer(batch.oracle, lam=0.8, samples=2, sigma=1e-9)
    np.testing.assert_allclose(still(batch, theta).pull(gradient), black(batch, theta).pull(gradient), atol=1e-14)


def test_a_small_smoothed_difference_tends_to_the_perturbed_layer() -> None:
    """As lam shrinks the mean I-MLE pull-back nears that of the perturbed layer, the derivative of the mean output."""
    n, theta = 4000, np.array([0.4, 0.1, 0.2])
    batch = Scores.of(MulticlassOracle(), [(3,)] * n)
    gradient = np.tile([1.0, -0.5, 0.0], n)
    exact = layers.PerturbedLayer(batch.oracle, samples=40)(batch, np.tile(theta, n)).pull(gradient).reshape(n, 3)
    for lam, tolerance in ((0.1, 0.03), (5.0, np.inf)):
        layer = layers.SmoothedDifferenceLayer(batch.oracle, samples=10, lam=lam)
        off = layer(batch, np.tile(theta, n)).pull(gradient).reshape(n, 3).mean(axis=0) - exact.mean(axis=0)
        assert np.abs(off).max() <= tolerance
    assert np.abs(off).max() > 0.05  # a large lam is biased


def test_adaptive_steps_reach_their_target() -> None:
    """alpha starts at 0 with empty pull-backs, does not depend on the scale of the gradient, and settles where about as many
    entries as wished are not zero; another layer has its own.
    """
    rng, n = np.random.default_rng(4), 20
    batch = Scores.of(MulticlassOracle(), [(10,)] * n)
    layer = layers.AdaptiveSmoothedDifferenceLayer(batch.oracle, rate=0.02, target=1.0, samples=2)
    theta, gradient = rng.normal(size=(2, batch.size))
    assert not layer(batch, theta).pull(gradient).any()
    counts = []
    for step in range(300):
        found = layer(batch, theta, step=step).pull(1e-3 * gradient)
        counts.append(np.count_nonzero(found) / n)
    assert 0.7 < np.mean(counts[150:]) < 1.3
    assert layers.AdaptiveSmoothedDifferenceLayer(batch.oracle).alpha == 0.0
    alpha, small = layer.alpha, layer(batch, theta).pull(gradient)
    layer.alpha = alpha
    np.testing.assert_allclose(1e3 * layer(batch, theta).pull(1e3 * gradient), 1e3 * small * 1e3, rtol=1e-9)


def test_straight_through_returns_the_gradient() -> None:
    """It gives the decision forward and the very gradient backward, in an array of its own."""
    rng, batch = np.random.default_rng(5), structure("tree").batch()
    theta, gradient = rng.normal(size=(2, batch.size))
    found = layers.StraightThroughLayer(batch.oracle)(batch, theta)
    np.testing.assert_array_equal(found.mu, batch.points(batch.decide(theta)))
    back = found.pull(gradient)
    np.testing.assert_array_equal(back, gradient)
    assert not np.shares_memory(back, gradient)
