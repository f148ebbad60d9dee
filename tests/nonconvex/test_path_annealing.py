"""Annealing without steps."""

import numpy as np
import pytest
from moons import problem

from structpred.errors import ParameterError
from structpred.nonconvex.annealing import Annealing
from structpred.nonconvex.path_annealing import PathAnnealing
from structpred.nonconvex.problem import FeatureProblem


@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_ends_where_small_steps_do(balance: bool, seed: int) -> None:
    """The labels of a thousand steps, for a tenth of their inner problems, and these are a local optimum."""
    made, _ = problem(30, 1.0, 0.1, seed, balance)
    found, steps = PathAnnealing().solve(made), Annealing(steps=1_000).solve(made)
    assert (found.labels == steps.labels).all()
    assert found.n_inner < 0.1 * steps.n_inner
    assert found.report["regions"] > 10
    assert balance or found.report["changes"] > 0
    better = made.best_vertex(made.gradient(found.inner))
    assert (better == found.p).all()


def test_wrong_settings_are_refused() -> None:
    """A first share outside (0, 1], and features in place of the kernel matrix."""
    made, _ = problem(10, 1.0, 0.1)
    with pytest.raises(ParameterError, match="first in"):
        PathAnnealing(first=0.0).solve(made)
    rows = FeatureProblem(np.array([[1.0], [-1.0], [0.5]]), np.array([1, -1, 0]), 10.0, 1.0)
    with pytest.raises(ParameterError, match="it needs the kernel matrix"):
        PathAnnealing().solve(rows)
