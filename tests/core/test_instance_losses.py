"""A loss of its own for each instance: asked with the instance, taken along with rows, checked like any other."""

import numpy as np
import pytest

from structpred import LabelRows, Task
from structpred.errors import LossError
from structpred.objectives.part_losses import Regret
from structpred.oracles.shortest_path import ShortestPathOracle

ORACLE, SHAPE = ShortestPathOracle(), (2, 3)


def task_of(scores: np.ndarray, loss: object = None) -> Task:
    """Instances with these true scores and their best paths."""
    features = LabelRows(np.eye(len(scores)), scores.shape[1])
    best = [ORACLE.argmax(own, SHAPE) for own in scores]
    return Task(features, ORACLE, best, [SHAPE] * len(scores), Regret(scores) if loss is None else loss)


def test_each_instance_has_its_own_regret() -> None:
    """The costs of an instance are those of its own true scores: 0 at its best path, and the regret at all others."""
    scores = np.random.default_rng(0).normal(size=(4, 7))
    task = task_of(scores)
    for i, own in enumerate(scores):
        constant, costs = task.costs(i)
        losses = [constant + costs[path].sum() for path in ORACLE.enumerate(SHAPE)]
        assert losses == pytest.approx([own[task.labels[i]].sum() - own[path].sum() for path in ORACLE.enumerate(SHAPE)])


def test_rows_take_their_losses_along() -> None:
    """A task of some rows, also with labels given again, has the costs of these rows and not of the first ones."""
    scores = np.random.default_rng(1).normal(size=(5, 7))
    some = task_of(scores).take([4, 1])
    for task in (some, some.with_labels(some.labels)):
        assert np.array_equal(task.costs(0)[1], -scores[4])
        assert np.array_equal(task.costs(1)[1], -scores[1])


def test_a_decision_that_is_not_the_best_is_refused() -> None:
    """True outputs that are not best at the true scores leave others with a negative loss, which names the sample."""
    scores = np.random.default_rng(2).normal(size=(3, 7))
    other = scores.copy()
    other[1] = -other[1]
    with pytest.raises(LossError, match="sample 1: Regret: an output costs -"):
        task_of(scores, Regret(other))


def test_scores_that_do_not_fit_are_refused() -> None:
    """Too few instances, or true scores of another length: LossError names the sample."""
    scores = np.zeros((2, 7))
    with pytest.raises(LossError, match="sample 1: there are true scores of 1 instances"):
        task_of(scores, Regret(scores[:1]))
    with pytest.raises(LossError, match=r"expected 7 true scores, one a part, got shape \(6,\)"):
        task_of(scores, Regret(scores[:, :6]))
