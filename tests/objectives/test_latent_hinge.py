"""The hinge of what is known: value and subgradient against listed outputs and finite differences; who minimises it."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "core"))
from partial_cases import STRUCTURES, partial

from structpred.errors import ParameterError
from structpred.objectives.margin import LatentHinge, MarginRescaling
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD


def listed(task, sets, w, i, loss_weight):
    """max over all outputs of weighted loss and score - max over those of the set of the score."""
    theta, shape = task.features.scores(w, i), task.shapes[i]
    constant, costs = task.costs(i)
    outputs = [task.oracle.parts(y, shape) for y in task.oracle.enumerate(shape)]
    known = [task.oracle.parts(y, shape) for y in sets[i]]
    losses = [constant + costs[parts].sum() for parts in outputs]
    scores = [theta[parts].sum() for parts in outputs]
    return max(np.array(scores) + loss_weight * np.array(losses)) - max(theta[parts].sum() for parts in known)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("loss_weight", [1.0, 0.0])
def test_value_and_subgradient(name, loss_weight):
    """Values and single terms are those of listed outputs; the subgradient is that of differences where H is smooth."""
    task, sets = partial(name)
    hinge, rng = LatentHinge(loss_weight), np.random.default_rng(5)
    w = rng.normal(size=task.dim)
    found, slope = np.zeros(len(task)), np.zeros(task.dim)
    for i in range(len(task)):  # a step is valid until the next one
        step = hinge.term(task, w, i)
        found[i] = step.violation
        slope -= step.difference.dense(task.dim)
    expected = [listed(task, sets, w, i, loss_weight) for i in range(len(task))]
    np.testing.assert_allclose(hinge.values(task, w), expected, atol=1e-9)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    direction = rng.normal(size=task.dim)
    rise = (hinge.values(task, w + 1e-6 * direction) - hinge.values(task, w - 1e-6 * direction)).sum() / 2e-6
    assert slope @ direction == pytest.approx(rise, abs=1e-6)


def test_where_all_is_known_it_is_the_hinge():
    """On a task without missing labels steps are those of the hinge, to the last bit."""
    task, _ = partial("chain")
    full, w = task.with_labels(task.completed(np.zeros(task.dim))), np.random.default_rng(5).normal(size=task.dim)
    for i in range(len(full)):
        (one, violation), (other, expected) = (
            (step.difference.values.copy(), step.violation)
            for step in (surrogate.term(full, w, i) for surrogate in (LatentHinge(), MarginRescaling()))
        )
        np.testing.assert_array_equal(one, other)
        assert violation == expected


def test_no_bound_is_claimed():
    """Subgradient steps give no dual value and a local certificate; a trainer of convex functions refuses."""
    task, _ = partial("chain")
    result = train(Problem(task, LatentHinge(), 0.1), SGD(), RunSettings(max_iter=5, check_every=1))
    assert (result.certificate.dual, result.certificate.local) == (None, True)
    assert all(row["dual"] is None for row in result.history)
    with pytest.raises(ParameterError, match="BCFW cannot minimise LatentHinge"):
        train(Problem(task, LatentHinge(), 0.1), BCFW())
