"""What the proofs of sign constraints rest on, repaired (Kato, Kobayashi and Sano 2018, appendix A); as printed it fails."""

import numpy as np
import numpy.typing as npt
import pytest

from structpred.objectives.regularisers.l2 import SignConstraints
from structpred.objectives.scalar.margins import SmoothedHinge

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(7)
SIGNS = np.array([1, -1, 0])[RNG.integers(0, 3, 50)]
CONE = SignConstraints(SIGNS).dual_map()


def positive(x: Floats) -> Floats:
    """(x)_+."""
    found: Floats = np.maximum(x, 0.0)
    return found


def test_the_ball_and_its_dual() -> None:
    """(38): the nearest point of cone and ball is the projection on the cone, shortened to sqrt(r / lam), not r / sqrt(lam).

    (42) with eta r / (2 lam) subtracted has its maximum at half the squared distance; as printed it has another one.
    """
    lam, r, z = 0.3, 0.4, RNG.normal(size=50)
    cone = CONE.weights(z)
    radius = np.sqrt(r / lam)
    near = min(1.0, radius / np.linalg.norm(cone)) * cone
    assert np.linalg.norm(near) == pytest.approx(radius)
    for _ in range(200):  # nearest: z - near makes no acute angle with any direction into the set
        other = CONE.weights(RNG.normal(size=50))
        other *= min(1.0, radius / np.linalg.norm(other))
        assert (z - near) @ (other - near) <= 1e-9
    assert r / np.sqrt(lam) != pytest.approx(radius)
    beta, eta = positive(-SIGNS * z), np.linalg.norm(cone) / radius - 1.0
    rest = -0.5 / (eta + 1.0) * np.sum((z + SIGNS * beta) ** 2) + 0.5 * z @ z
    assert rest - eta * r / (2.0 * lam) == pytest.approx(0.5 * np.sum((near - z) ** 2))
    assert rest + eta / (2.0 * lam) != pytest.approx(0.5 * np.sum((near - z) ** 2), rel=0.1)


def test_moving_before_projecting_is_never_longer() -> None:
    """(55), coordinate by coordinate (62) with (58) repaired for non-positive weights; as printed it is another number."""
    printed_fails = 0
    for _ in range(200):
        v, d = RNG.normal(size=(2, 50))
        left = CONE.weights(v) + d
        assert (left**2 >= CONE.weights(v + d) ** 2 - 1e-12).all()
        below = SIGNS < 0
        np.testing.assert_allclose((d - positive(-v))[below] ** 2, left[below] ** 2)
        printed_fails += not np.allclose((d + positive(-v))[below] ** 2, left[below] ** 2)
    assert printed_fails == 200


def test_what_a_step_gains() -> None:
    """(56) with phi* in its third line bounds what a step gains in the dual from below; with phi it does not."""
    n, lam, gamma = 20, 0.1, 0.5
    X, loss, ones = RNG.normal(size=(n, 50)), SmoothedHinge(gamma), np.ones(20)
    printed_fails = False
    for _ in range(100):
        alpha, i = RNG.random(n), RNG.integers(n)
        w = CONE.weights(X.T @ alpha / (lam * n))
        z = X @ w
        u = -loss.derivative(z, ones)
        q, R2 = u[i] - alpha[i], X[i] @ X[i]
        conjugate, of_u = loss.conjugate(alpha, ones)[i], loss.conjugate(u, ones)[i]
        for s in (0.01, 0.3, 1.0):
            moved = alpha + s * q * (np.arange(n) == i)
            new = CONE.weights(X.T @ moved / (lam * n))
            gain = -0.5 * lam * (new @ new - w @ w) - (loss.conjugate(moved, ones) - loss.conjugate(alpha, ones))[i] / n
            square = (1.0 - s) * s * gamma / (2.0 * n) * q**2 - (s / n) ** 2 * R2 * q**2 / (2.0 * lam)
            assert gain >= square + s / n * (z[i] * alpha[i] + conjugate - of_u - z[i] * u[i]) - 1e-12
            value_of_u = loss.value(-u, ones)[i]
            printed_fails |= gain < square + s / n * (z[i] * alpha[i] + loss.value(-alpha, ones)[i] - value_of_u - z[i] * u[i])
    assert printed_fails
