"""Saha, Zhang and Vishwanathan 2009, Algorithm 3, for chains, with its formulas repaired: slow, and written for reading.

Repaired: (35a) is dD/dxi = d^-2 (lam + xi + mu) + m; (38) weighs squares by d^-2; in the gradient for mu_t the terms of table
t + 1 are subtracted. The start is zero, not random. Line 3's system is singular but consistent: conjugate gradients solve it.
"""

from typing import NamedTuple

import numpy as np


class Found(NamedTuple):
    """marginals: (T - 1, m, m). steps: rounds of the outer loop. violation: the largest mismatch or negative entry."""

    marginals: np.ndarray
    steps: int
    violation: float


def project_by_algorithm_3(point, weights=None, tol=1e-9, max_steps=3000) -> Found:
    """min sum_t weights[t]^2 |a_t - point[t]|^2 over consistent tables a_t."""
    n, m, _ = point.shape
    d2 = np.ones(n) if weights is None else np.asarray(weights) ** 2
    xi, z = np.zeros_like(point), np.zeros(n + (n - 1) * m)  # line 1
    steps, violation = 0, np.inf
    while violation > tol and steps < max_steps:  # line 2
        base = point + xi / d2[:, None, None]
        z = _conjugate_gradients(base, d2, z, 0.01 * tol)  # line 3
        shift = _shift(z, n, m)
        xi = np.maximum(-d2[:, None, None] * point - shift, 0.0)  # line 4, (36)
        found = point + (shift + xi) / d2[:, None, None]  # line 6, (33)
        steps, violation = steps + 1, float(np.abs(_margins(found, 1.0)).max())
    return Found(found, steps, violation)


def _shift(z, n, m):
    """lam_t + mu_t(j) - mu_t-1(i), with mu_0 = mu_n = 0."""
    mu = np.zeros((n + 1, m))
    mu[1:n] = z[n:].reshape(n - 1, m)
    return z[:n, None, None] + mu[1:, None, :] - mu[:-1, :, None]


def _margins(tables, total):
    """The gradient: (35b), and (35c) with the same of the next table subtracted."""
    between = tables[:-1].sum(axis=1) - tables[1:].sum(axis=2)
    return np.concatenate((tables.sum(axis=(1, 2)) - total, between.ravel()))


def _conjugate_gradients(base, d2, z, tol):
    """Solve _margins(base + shift(z) / d2) = 0."""
    n, m, _ = base.shape

    def apply(v):
        return _margins(_shift(v, n, m) / d2[:, None, None], 0.0)

    residual = -_margins(base, 1.0) - apply(z)
    direction, square = residual.copy(), residual @ residual
    for _ in range(20 * len(z)):
        if np.sqrt(square) <= tol:
            break
        image = apply(direction)
        length = square / (direction @ image)
        z, residual = z + length * direction, residual - length * image
        square, before = residual @ residual, square
        direction = residual + square / before * direction
    return z
