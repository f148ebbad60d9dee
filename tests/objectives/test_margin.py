"""The margin surrogate: its difference is a subgradient, its value an upper bound of the loss."""

import numpy as np
import pytest

from structpred.errors import ParameterError
from structpred.features.parts import PartFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.assignment import AssignmentOracle
from structpred.task.task import Task


@pytest.fixture
def task() -> Task:
    """Matchings of four pairs, five samples."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(16, 6)) for _ in range(5)]
    return Task(PartFeatures(rows), AssignmentOracle(), [rng.permutation(4) for _ in range(5)], [(4,)] * 5, Hamming())


@pytest.mark.parametrize("loss_weight", [0.0, 0.5, 1.0])
def test_the_slope_is_the_gradient_where_it_is_unique(task, loss_weight) -> None:
    """Central differences of H_i at random weights equal -difference."""
    surrogate, rng = MarginRescaling(loss_weight), np.random.default_rng(1)
    for i in range(len(task)):
        w = rng.normal(size=task.dim)
        gradient = -surrogate.term(task, w, i).difference.dense(task.dim)
        for j in range(task.dim):
            step = 1e-6 * np.eye(task.dim)[j]
            up, down = (surrogate.term(task, w + s, i).violation for s in (step, -step))
            assert (up - down) / 2e-6 == pytest.approx(gradient[j], abs=1e-6)


@pytest.mark.parametrize("loss_weight", [0.0, 1.0])
def test_the_slope_is_a_subgradient_everywhere(task, loss_weight) -> None:
    """H_i(v) >= H_i(w) + <slope, v - w> for all v, also at w = 0, where many outputs tie."""
    surrogate, rng = MarginRescaling(loss_weight), np.random.default_rng(2)
    for w in (np.zeros(task.dim), rng.normal(size=task.dim)):
        for i in range(len(task)):
            step = surrogate.term(task, w, i)
            for _ in range(20):
                v = rng.normal(size=task.dim) * rng.choice([0.01, 1.0, 10.0])
                line = step.violation - step.difference.dense(task.dim) @ (v - w)
                assert surrogate.term(task, v, i).violation >= line - 1e-10


def test_the_hinge_bounds_the_loss(task) -> None:
    """H_i(w) >= loss of the prediction at w, and >= 0; the values of all samples are those of the terms."""
    surrogate, rng = MarginRescaling(), np.random.default_rng(3)
    for _ in range(10):
        w = rng.normal(size=task.dim)
        values = surrogate.values(task, w)
        for i in range(len(task)):
            constant, ell = task.costs(i)
            predicted = task.argmax(w, i)
            assert values[i] >= constant + ell[task.oracle.parts(predicted, task.shapes[i])].sum() - 1e-12
            assert values[i] == pytest.approx(surrogate.term(task, w, i).violation, abs=1e-12)


def test_the_offset_is_the_piece_at_zero(task) -> None:
    """violation = offset - <w, difference>."""
    surrogate, w = MarginRescaling(0.7), np.random.default_rng(4).normal(size=task.dim)
    step = surrogate.term(task, w, 0)
    assert step.violation == pytest.approx(surrogate.offset(step) - step.difference.dense(task.dim) @ w, abs=1e-12)


@pytest.mark.parametrize("loss_weight", [-1.0, np.nan, np.inf])
def test_loss_weight_is_checked(loss_weight) -> None:
    """It must be finite and not negative."""
    with pytest.raises(ParameterError, match="loss_weight must be finite and >= 0"):
        MarginRescaling(loss_weight)
