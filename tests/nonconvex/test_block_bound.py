"""A lower bound from blocks of points."""

import numpy as np
import pytest
from moons import best_of_all, problem

from structpred.errors import ParameterError
from structpred.nonconvex.branch_and_bound import BranchAndBound, block_bound
from structpred.nonconvex.pdm import PDM
from structpred.nonconvex.ramp import RampLossProblem
from structpred.nonconvex.staged import StagedSearch


@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_labels_are_below_it(balance: bool, seed: int) -> None:
    """Against all labels of eight points: one block gives the least objective, more blocks less, and never less than without any
    label."""
    made, _ = problem(10, 1.0, 0.1, seed, balance)
    least, nothing = best_of_all(made), made.solve(np.zeros(8), np.zeros(8), tol=1e-8).objective
    bounds = [block_bound(made, m, seed=seed) for m in (1, 2, 4, 8)]
    assert all(one.closed for one in bounds)
    assert bounds[0].value == pytest.approx(least, rel=2e-6)
    assert nothing < min(one.value for one in bounds[1:])
    assert max(one.value for one in bounds[1:]) < least * (1.0 + 1e-6)
    assert bounds[1].value > 0.4 * least


def test_it_bounds_where_branch_and_bound_cannot() -> None:
    """Forty points and C2 = 1: nearly twice the bound of twice as many inner problems of branch and bound."""
    made, _ = problem(40, 1.0, 0.1)
    found = block_bound(made, 6)
    tree = BranchAndBound(2 * found.n_inner).solve(made)
    assert tree.level == "local"
    assert found.value > 1.7 * tree.lower_bound
    assert found.value < PDM(max_inner=500).solve(made).objective
    without, given = (StagedSearch(max_inner=200, blocks=blocks).solve(made) for blocks in (0, 6))
    assert (given.lower_bound, given.objective) == (found.value, without.objective)
    assert without.lower_bound < given.lower_bound


def test_a_small_budget_gives_a_true_bound() -> None:
    """Trees that stay open count with their own bounds; no blocks, and more than points, are refused."""
    made, _ = problem(12, 1.0, 0.1)
    found = block_bound(made, 2, max_inner=3)
    assert not found.closed
    assert 0.0 < found.value <= block_bound(made, 2).value
    for blocks in (0, 11):
        with pytest.raises(ParameterError, match="n_blocks: expected 1 to 10"):
            block_bound(made, blocks)
    with pytest.raises(ParameterError, match="expected unlabelled points, got the ramp loss"):
        block_bound(RampLossProblem(np.eye(2), np.array([1, -1]), 1.0, 2.0), 1)
