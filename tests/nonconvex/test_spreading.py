"""Labels along paths: the lengths, and what they do where the nearest labelled point is the wrong one."""

import numpy as np
import pytest
from moons import problem

from structpred.nonconvex.problem import SemiSupervisedProblem
from structpred.nonconvex.spreading import path_lengths, spread_labels


def test_path_lengths_are_the_least_over_all_paths() -> None:
    """On random steps of either direction's length they are what relaxing all steps again and again ends with."""
    rng = np.random.default_rng(0)
    steps = rng.exponential(size=(12, 12))
    steps = np.minimum(steps, steps.T)
    expected = np.full(12, np.inf)
    expected[[3, 7]] = 0.0
    for _ in range(12):
        expected = np.minimum(expected, (expected[:, None] + steps).min(axis=0))
    assert path_lengths(steps, np.array([3, 7])).tolist() == pytest.approx(expected.tolist())


@pytest.mark.parametrize("inner", [False, True])
def test_labels_follow_the_moons(inner: bool) -> None:
    """They are the true ones for one of the powers at least, within the balance, from outer and from inner tips."""
    p, truth = problem(200, 1.0, 0.1, inner=inner)
    found = list(spread_labels(p))
    assert [labels.sum() for labels in found] == [p.positives] * len(found)
    assert min((np.where(labels > 0.5, 1, -1) != truth).mean() for labels in found) == 0.0


def test_copies_of_points_and_no_balance() -> None:
    """Copies have no distance to each other: they take one label, without a balance as well, and where all points are one."""
    gram = np.kron(np.eye(2), np.ones((3, 3)))
    y = np.array([1, 0, 0, -1, 0, 0])
    for labels in spread_labels(SemiSupervisedProblem(gram, y, 1.0, 1.0)):
        assert labels.tolist() == [1.0, 1.0, 0.0, 0.0]
    for labels in spread_labels(SemiSupervisedProblem(np.ones((6, 6)), y, 1.0, 1.0, positives=2)):
        assert labels.sum() == 2.0
