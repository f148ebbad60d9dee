"""Cone alignment: the projection on the cone of scores for which gold is best."""

import numpy as np
import pytest
from layer_cases import STRUCTURES, mixture, random_outputs, structure

from structpred import layers


@pytest.mark.parametrize("name", STRUCTURES)
def test_cone_projections_meet_their_optimality_conditions(name: str) -> None:
    """By enumeration p lies in the cone, theta - p is orthogonal to p, and no output has a positive product with p against gold;
    theta - p is a mixture of the rays: with scores of the cone it has no positive product (Moreau).
    """
    rng, whole = np.random.default_rng(0), structure(name)
    batch = whole.batch()
    loss = layers.ConeAlignment(batch.oracle)
    for gold in (batch.points(random_outputs(batch, rng)), mixture(batch, rng)):
        theta = rng.normal(size=batch.size)
        point = loss.project(batch, theta, gold)
        np.testing.assert_allclose(batch.dots(theta - point, point), 0.0, atol=1e-8)
        for shape, g, p, own in zip(batch.shapes, *map(batch.split, (gold, point, theta)), strict=True):
            rays = whole.vertices(shape) - g
            assert (rays @ p <= 1e-8 * np.abs(rays) @ np.abs(own) + 1e-12).all()
            for _ in range(20):
                other = _inside(rays, rng)
                assert (own - p) @ other <= 1e-8


def _inside(rays: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Scores of the cone, by SciPy's solution of the same problem over all rays."""
    from scipy.optimize import nnls

    theta = rng.normal(size=rays.shape[1])
    return theta - rays.T @ nnls(rays.T, theta)[0]


def test_cone_alignment_is_an_angle() -> None:
    """It is 0 inside the cone, does not depend on the length of scores, and is 1 with a zero gradient where only 0 is left."""
    rng, whole = np.random.default_rng(1), structure("assignment")
    batch = whole.batch()
    loss, gold = layers.ConeAlignment(batch.oracle), random_outputs(batch, rng)
    theta = rng.normal(size=batch.size)
    once, longer = loss(batch, theta, gold=gold), loss(batch, 7.0 * theta, gold=gold)
    np.testing.assert_allclose(longer.values, once.values, atol=1e-9)
    np.testing.assert_allclose(longer.gradient, once.gradient / 7.0, atol=1e-9)
    np.testing.assert_allclose(batch.dots(once.gradient, theta), 0.0, atol=1e-9)
    assert ((once.values >= -1e-12) & (once.values <= 1.0)).all()
    against = loss(batch, np.zeros(batch.size), gold=gold)
    np.testing.assert_array_equal(against.values, 1.0)
    assert not against.gradient.any()
