"""Losses of one label out of many: values, subgradients, conjugates and column steps agree with their definitions."""

import numpy as np
import pytest
from scipy.special import logsumexp

from structpred.errors import DataError, ParameterError
from structpred.objectives.scalar.classes import MaxHinge, SignedTopK, Softmax, TopK
from structpred.projections.simplex import project_onto_capped_simplex, project_onto_simplex, project_onto_topk_simplex
from structpred.rows.multiclass_loss import MulticlassLoss

LOSSES = [Softmax(), MaxHinge(), TopK(1), TopK(2), TopK(3), SignedTopK(2), SignedTopK(3)]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{type(loss).__name__}{loss.k}")


def defined(loss: MulticlassLoss, z: np.ndarray, y: int) -> float:
    """The value as it is written in the paper."""
    if isinstance(loss, Softmax):
        return float(logsumexp(z - z[y]))
    terms = np.sort(z - z[y] + (np.arange(len(z)) != y))[::-1]
    mean = float(terms[: loss.k].mean())
    return max(mean, 0.0) if isinstance(loss, TopK) else mean


def points(n: int, seed: int = 0) -> list[tuple[np.ndarray, int]]:
    """Random scores of four to six classes, some of them equal, and a true class."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 7, n)
    return [(np.round(rng.normal(size=m) * rng.choice([0.3, 3.0]), 1), int(rng.integers(m))) for m in sizes]


def some_alpha(loss: MulticlassLoss, m: int, y: int, rng: np.random.Generator) -> np.ndarray:
    """A dual variable of the loss, reached by steps from its start."""
    alpha = -loss.start(m, y)
    alpha[y] += 1.0
    for q in (0.3, 3.0):
        alpha = loss.dual_step(alpha, rng.normal(size=m), q, y)
    return alpha


@each_loss
def test_values_and_subgradients_are_those_of_the_definition(loss: MulticlassLoss) -> None:
    """The value everywhere, and a subgradient below the loss at all other points; it is its own conjugate's partner."""
    for z, y in points(40):
        value, slope = loss.value(z, y), loss.subgradient(z, y)
        assert value == pytest.approx(defined(loss, z, y), abs=1e-12)
        assert slope.sum() == pytest.approx(0.0, abs=1e-12)
        assert value + loss.conjugate(-slope, y) - z @ slope == pytest.approx(0.0, abs=1e-12)
        for other in np.random.default_rng(1).normal(size=(5, len(z))) * 3:
            assert defined(loss, other, y) >= value + slope @ (other - z) - 1e-12


@each_loss
def test_fenchel_and_young(loss: MulticlassLoss) -> None:
    """phi(z) + phi*(-alpha) + <z, alpha> >= 0 for every alpha that has a conjugate; others have none."""
    rng = np.random.default_rng(2)
    for z, y in points(40):
        alpha = some_alpha(loss, len(z), y, rng)
        assert np.isfinite(loss.conjugate(alpha, y))
        assert loss.value(z, y) + loss.conjugate(alpha, y) + z @ alpha >= -1e-12
        assert loss.conjugate(alpha + np.eye(len(z))[y], y) == np.inf
        assert loss.conjugate(2.0 * np.eye(len(z))[y] - np.full(len(z), 2.0 / len(z)), y) == np.inf


@pytest.mark.mostly_slow
@each_loss
def test_a_column_step_is_the_best_one(loss: MulticlassLoss) -> None:
    """No other dual variable, reached by steps, has a larger value of the dual's lower bound, for any curvature."""
    rng = np.random.default_rng(3)
    for z, y in points(30, seed=4):
        alpha = some_alpha(loss, len(z), y, rng)
        for q in (0.0, 0.02, 1.0, 50.0):
            new = loss.dual_step(alpha, z, q, y)

            def value(a: np.ndarray, old: np.ndarray = alpha, q: float = q, z: np.ndarray = z, y: int = y) -> float:
                return -loss.conjugate(a, y) - z @ (a - old) - q / 2 * np.sum((a - old) ** 2)

            best = value(new)
            for _ in range(20):
                other = some_alpha(loss, len(z), y, rng)
                for share in (1.0, 0.1, 1e-3):
                    assert value(new + share * (other - new)) <= best + 1e-11


def test_steps_are_projections() -> None:
    """Onto the simplex, the capped one, and, where no entry of the truth is pulled at, the top-k simplex of all entries."""
    z, q = np.array([0.3, -0.2, 0.9, 0.4]), 0.7
    start = np.eye(4)[0]
    target = start + (z + 1.0 - start) / q
    for loss, nearest in (
        (MaxHinge(), project_onto_simplex(target)),
        (SignedTopK(2), project_onto_capped_simplex(target, 0.5)),
    ):
        np.testing.assert_allclose(start - loss.dual_step(0.0 * z, z, q, 0), nearest, atol=1e-14)
    for k in (2, 3):  # whatever the step gives is a point of the top-k simplex, with the entry of the truth free
        for scores, y in points(40, seed=5):
            v = -TopK(k).dual_step(np.zeros(len(scores)), scores, 0.5, y)
            v[y] = 0.0
            v[y] = min(v.sum() / (k - 1.0), 1.0 - v.sum())
            np.testing.assert_allclose(project_onto_topk_simplex(v, k), v, atol=1e-12)


def test_the_soft_max_step_does_not_overflow() -> None:
    """Scores of a thousand, curvatures from 1e-30 to 1e9: finite, in the simplex, and stationary."""
    for z in (np.array([700.0, -700.0, 0.0, 3.0]), np.array([-1e4, 1e4, 1e4, 0.0])):
        for q in (1e-30, 1e-3, 1.0, 1e3, 1e9):
            p = np.eye(4)[0] - Softmax().dual_step(np.zeros(4), z, q, 0)
            assert p.min() >= 0.0
            assert p.sum() == pytest.approx(1.0, abs=1e-14)
            with np.errstate(divide="ignore"):
                nu = z + q * np.eye(4)[0] - q * p - np.log(p)
            assert np.ptp(nu[p > 1e-200]) <= 1e-6 * max(1.0, q)


def test_what_is_said_of_them_is_true() -> None:
    """r_loss is log m or 1 or, of the printed top k, below it; the soft-max is 1/2-smooth and no less; k is checked."""
    assert Softmax().r_loss(5) == pytest.approx(np.log(5))
    assert MaxHinge().r_loss(5) == TopK(3).r_loss(5) == SignedTopK(3).r_loss(5) == 1.0
    near = np.array([1e-4, -1e-4, -40.0])
    bend = Softmax().subgradient(near, 0) - Softmax().subgradient(0.0 * near - [0, 0, 40.0], 0)
    assert np.linalg.norm(bend) / np.linalg.norm(near[:2]) == pytest.approx(1.0 / Softmax().gamma, rel=1e-6)
    for bad in (0, -1, 1.5, True, "2"):
        with pytest.raises(ParameterError, match="k must be a whole number >= 1"):
            TopK(bad)
    with pytest.raises(ParameterError, match="SignedTopK: k must be below the number of classes, got k=3 for 3 classes"):
        SignedTopK(3).value(np.zeros(3), 0)
    with pytest.raises(DataError, match=r"expected the scores \(m,\) of all classes"):
        MaxHinge().value(np.zeros(3), 3)
