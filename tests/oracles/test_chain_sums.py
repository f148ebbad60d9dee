"""Sums over all label sequences: log Z and marginals against enumeration, differences, and a second, unlike implementation."""

import numpy as np
import pytest
from scipy.special import logsumexp

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import InfeasibleError
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle

CHAIN = ChainOracle()
LISTED = EnumeratedOracle.of(CHAIN)


def log_matmul(a, b):
    """(a b)[i, j] = log sum_k exp(a[i, k] + b[k, j])."""
    with np.errstate(divide="ignore"):
        return logsumexp(a[:, :, None] + b[None, :, :], axis=1)


def scan_marginals(theta, shape):
    """log Z and marginals by products of matrices in the log semiring: no forward variables, no scaling, no recursion shared."""
    length, n_labels = shape
    scores = np.where(theta <= -1e29, -np.inf, theta)
    node, edge = scores[: length * n_labels].reshape(shape), scores[length * n_labels :].reshape(n_labels, n_labels)
    identity = np.where(np.eye(n_labels, dtype=bool), 0.0, -np.inf)
    steps = [edge + node[t] for t in range(1, length)]
    before, after = [identity], [identity]
    for step in steps:
        before.append(log_matmul(before[-1], step))
    for step in reversed(steps):
        after.append(log_matmul(step, after[-1]))
    after.reverse()
    log_z = float(logsumexp(node[0][:, None] + before[-1]))
    heads = [logsumexp(node[0][:, None] + prefix, axis=0) for prefix in before]
    tails = [logsumexp(suffix, axis=1) for suffix in after]
    nodes = np.array([np.exp(heads[t] + tails[t] - log_z) for t in range(length)])
    edges = sum((np.exp(heads[t][:, None] + steps[t] + tails[t + 1] - log_z) for t in range(length - 1)), np.zeros_like(edge))
    return log_z, np.concatenate((nodes.ravel(), edges.ravel()))


def random_scores(rng, shape, scale, edge_scale=None, forbidden=0.0):
    """Normal scores; each part forbidden with the given probability."""
    length, n_labels = shape
    nodes = scale * rng.normal(size=length * n_labels)
    theta = np.concatenate((nodes, (edge_scale or scale) * rng.normal(size=n_labels**2)))
    theta[rng.random(len(theta)) < forbidden] = FORBIDDEN
    return theta


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e3, 1e6])
def test_sums_equal_enumeration(scale: float) -> None:
    """log Z to 1e-12 of the scores' size, marginals to 1e-6, for scores of any size, on 200 small chains."""
    rng = np.random.default_rng(int(scale))
    for _ in range(200):
        shape = (int(rng.integers(1, 6)), int(rng.integers(1, 4)))
        theta = random_scores(rng, shape, scale, edge_scale=10 ** rng.uniform(-2, 6) if scale else None)
        log_z, mu = CHAIN.marginals(theta, shape)
        true_log_z, true_mu = LISTED.marginals(theta, shape)
        size = max(1.0, float(np.abs(theta).max()))
        assert abs(log_z - true_log_z) <= 1e-12 * shape[0] * size
        np.testing.assert_allclose(mu, true_mu, atol=1e-10 if size < 1e3 else 1e-6)


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e4, 1e6])
@pytest.mark.parametrize("length", [1, 2, 7, 50])
def test_sums_equal_matrix_products_in_the_log_semiring(length: int, scale: float) -> None:
    """Longer chains against an implementation of another kind, with the scores of edges in the same and in a small range."""
    rng = np.random.default_rng(length)
    for n_labels, edge_scale, forbidden in [(2, 1.0, 0.0), (5, scale, 0.0), (9, 20.0, 0.0), (5, 3.0, 0.1)]:
        shape = (length, n_labels)
        theta = random_scores(rng, shape, scale, edge_scale, forbidden)
        theta[np.arange(length) * n_labels] = np.maximum(theta[np.arange(length) * n_labels], -scale)  # label 0 is possible
        theta[length * n_labels] = 0.0
        log_z, mu = CHAIN.marginals(theta, shape)
        true_log_z, true_mu = scan_marginals(theta, shape)
        assert log_z == pytest.approx(true_log_z, rel=1e-11, abs=1e-9)
        np.testing.assert_allclose(mu, true_mu, atol=1e-9 if scale < 1e3 else 1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_marginals_are_probabilities(scale: float) -> None:
    """Each position's sum is 1 to 1e-9, all transitions together T - 1, nothing lies outside [0, count], at any size."""
    rng = np.random.default_rng(1)
    for shape, edge_scale in [((1, 3), 1.0), ((40, 5), 1.0), ((40, 5), scale), ((3000, 7), 5.0), ((500, 4), scale)]:
        theta = random_scores(rng, shape, scale, edge_scale)
        log_z, mu = CHAIN.marginals(theta, shape)
        length, n_labels = shape
        nodes, edges = mu[: length * n_labels].reshape(shape), mu[length * n_labels :]
        assert np.isfinite(log_z)
        np.testing.assert_allclose(nodes.sum(axis=1), 1.0, atol=1e-9)
        assert edges.sum() == pytest.approx(length - 1, abs=1e-9 * max(1.0, 1e-3 * scale) * length)
        assert mu.min() >= 0.0
        assert nodes.max() <= 1.0 + 1e-9
        assert log_z >= theta[CHAIN.parts(CHAIN.argmax(theta, shape), shape)].sum() - 1e-9 * scale * length


def test_marginals_are_the_gradient_of_log_z() -> None:
    """Central differences of log Z by every part score, on chains of one to thirty positions."""
    rng = np.random.default_rng(2)
    for shape in [(1, 2), (2, 3), (9, 3), (30, 2)]:
        theta = random_scores(rng, shape, 2.0)
        mu = CHAIN.marginals(theta, shape)[1]
        for j in range(len(theta)):
            shift = np.zeros(len(theta))
            shift[j] = 1e-5
            slope = (CHAIN.marginals(theta + shift, shape)[0] - CHAIN.marginals(theta - shift, shape)[0]) / 2e-5
            assert mu[j] == pytest.approx(slope, abs=1e-7 * max(1.0, slope))


def test_a_constant_moves_log_z_alone() -> None:
    """Added to all labels of one position, or to all transitions, it leaves the marginals as they are."""
    rng, shape = np.random.default_rng(3), (6, 4)
    theta = random_scores(rng, shape, 3.0)
    log_z, mu = CHAIN.marginals(theta, shape)
    moved = theta.copy()
    moved[8:12] += 1000.0
    moved[24:] -= 7.0
    log_z2, mu2 = CHAIN.marginals(moved, shape)
    assert log_z2 == pytest.approx(log_z + 1000.0 - 5 * 7.0, abs=1e-9)
    np.testing.assert_allclose(mu2, mu, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 300.0, 2000.0, 1e6])
def test_forbidden_parts_have_no_probability(scale: float) -> None:
    """With parts at -1e30: sums over what is left, exact zeros elsewhere; InfeasibleError where nothing is left.

    Scores of hundreds matter: then what a forbidden transition leaves can be so improbable that scaled sums would lose it.
    """
    rng = np.random.default_rng(4)
    possible = impossible = 0
    for _ in range(400):
        shape = (int(rng.integers(1, 6)), int(rng.integers(1, 4)))
        theta = random_scores(rng, shape, scale, edge_scale=10 ** rng.uniform(-1, 2), forbidden=float(rng.choice([0.1, 0.4])))
        counts = LISTED.table(shape).counts
        if (counts @ theta).max() <= 0.5 * FORBIDDEN:
            impossible += 1
            with pytest.raises(InfeasibleError, match="forbidden part"):
                CHAIN.marginals(theta, shape)
            continue
        possible += 1
        log_z, mu = CHAIN.marginals(theta, shape)
        true_log_z, true_mu = LISTED.marginals(theta, shape)
        assert log_z == pytest.approx(true_log_z, rel=1e-11, abs=1e-9)
        np.testing.assert_allclose(mu, true_mu, atol=1e-9 if scale < 1e3 else 1e-6)
        assert not mu[theta <= FORBIDDEN].any()
    assert possible > 50
    assert impossible > 10


def test_what_cannot_be_reached_may_look_as_good_as_it_likes() -> None:
    """A label ruled out by a transition, with scores that grow ever better after it, neither overflows nor leaks in."""
    length = 40
    theta = np.zeros(2 * length + 4)
    theta[1 : 2 * length : 2] = 400.0
    theta[1] = theta[2 * length + 1] = FORBIDDEN  # neither first nor after label 0
    log_z, mu = CHAIN.marginals(theta, (length, 2))
    assert log_z == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(mu[0 : 2 * length : 2], 1.0)
    assert mu[2 * length] == pytest.approx(length - 1)
