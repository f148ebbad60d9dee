"""The ramp loss: which points to keep is found by the solvers of semi-supervised problems."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError, ParameterError
from structpred.nonconvex.alternating import AlternatingOptimisation
from structpred.nonconvex.branch_and_bound import BranchAndBound
from structpred.nonconvex.cccp import CCCP
from structpred.nonconvex.pdm import PDM
from structpred.nonconvex.ramp import RampFeatureProblem, RampLossProblem
from structpred.nonconvex.staged import StagedSearch


def problem(seed: int, cap: float, n: int = 8) -> RampLossProblem:
    """Points on a line with two wrong labels; a linear kernel for odd seeds, so that it has a low rank."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0.0, 1, -1)
    y[:2] *= -1
    gram = X @ X.T if seed % 2 else np.exp(-((X[:, None] - X) ** 2).sum(-1))
    return RampLossProblem(gram, y, 3.0, cap)


@pytest.mark.parametrize("cap", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_branch_and_bound_is_best_of_all_subsets(seed: int, cap: float) -> None:
    """Its proven optimum is that of enumeration over what is kept, and no other solver goes below it."""
    p = problem(seed, cap)
    best = min(p.solve(np.array(kept, float), tol=1e-8).objective for kept in product((0, 1), repeat=p.n))
    found = BranchAndBound().solve(p, start=np.ones(p.n))
    assert found.level == "global"
    assert found.objective == pytest.approx(best, abs=1e-6)
    assert StagedSearch().solve(p).objective == pytest.approx(best, abs=1e-6)
    for solver in (AlternatingOptimisation(), PDM(max_inner=100)):
        assert solver.solve(p, start=np.ones(p.n)).objective >= best - 1e-6


def test_the_optimum_is_that_of_the_capped_losses() -> None:
    """At the solution the objective is 1/2 |w|^2 + C sum min(cap, V), with nothing said of what is kept; history only falls."""
    p = problem(2, 1.0)
    found = BranchAndBound().solve(p)
    losses = np.minimum(p.cap, np.maximum(0.0, 1.0 - p.y * found.inner.h))
    direct = 0.5 * found.inner.beta @ p.gram @ found.inner.beta + p.C * losses.sum()
    assert direct == pytest.approx(found.objective, abs=1e-6)
    objectives = [row["objective"] for row in found.history]
    assert objectives == sorted(objectives, reverse=True)


@pytest.mark.parametrize("cap", [0.6, 2.0])
def test_features_make_the_same_problem(cap: float) -> None:
    """Over features, with the constant one in the kernel in place of b, branch and bound finds the best of all subsets."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(8, 2))
    y = np.where(rows[:, 0] > 0.0, 1, -1) * np.where(np.arange(8) < 2, -1, 1)
    p = RampFeatureProblem(rows, y, 3.0, cap, accuracy=1e-7)
    best = np.inf
    for kept in product((0.0, 1.0), repeat=8):
        inner = p.solve(np.array(kept), tol=1e-8)
        assert inner.objective <= p.primal(inner, np.array(kept)) * (1.0 + 1e-9)
        best = min(best, inner.objective)
    assert BranchAndBound().solve(p).objective == pytest.approx(best, rel=1e-5)
    at, largest = p.anchor()
    assert p.solve(at, tol=1e-8).objective == pytest.approx(largest, rel=1e-3)


@pytest.mark.parametrize("cap", [0.4, 1.5])
def test_the_anchor_is_the_least_f(cap: float) -> None:
    """J at the anchor is what the closed form says, and no other weights have a larger one."""
    p, rng = problem(0, cap), np.random.default_rng(1)
    at, largest = p.anchor(1e-9)
    assert p.solve(at, tol=1e-9).objective == pytest.approx(largest, abs=1e-6)
    assert max(p.solve(rng.random(p.n), tol=1e-6).objective for _ in range(20)) <= largest + 1e-6


def test_the_gradient_is_that_of_the_value() -> None:
    """Central differences of F = -J agree with C (cap - V)."""
    p, rng = problem(0, 0.7), np.random.default_rng(2)
    at, way = rng.uniform(0.3, 0.7, p.n), rng.normal(size=p.n)
    ahead, behind = (p.solve(at + sign * 1e-5 * way, tol=1e-11).objective for sign in (1.0, -1.0))
    assert p.gradient(p.solve(at, tol=1e-11)) @ way == pytest.approx((behind - ahead) / 2e-5, abs=1e-4)


@pytest.mark.parametrize(
    ("y", "cap", "error", "words"),
    [([1, 1], 1.0, DataError, "both there"), ([1, 0], 1.0, DataError, "both there"), ([1, -1], 0.0, ParameterError, "cap must")],
)
def test_what_is_no_problem_is_refused(y: Any, cap: float, error: Any, words: str) -> None:
    """One class, other labels, a cap of zero."""
    with pytest.raises(error, match=words):
        RampLossProblem(np.eye(2), y, 1.0, cap)


def test_solvers_of_unlabelled_losses_refuse_it() -> None:
    """The concave-convex procedure is about the hat loss of unlabelled points."""
    with pytest.raises(ParameterError, match="'cccp' is for unlabelled points, not for the ramp loss"):
        CCCP().solve(problem(0, 1.0))


def test_the_default_solver_goes_on_where_it_cannot_prove() -> None:
    """Cut off before the tree is closed it says local, and has labels no worse than those it was given."""
    p = problem(0, 1.0, 30)
    found = StagedSearch(max_inner=60).solve(p, start=np.ones(p.n))
    assert found.level == "local"
    assert found.objective <= p.solve(np.ones(p.n), tol=1e-8).objective + 1e-6
