"""Hidden states: the inner problem, its convex function of weights of states, and the solvers."""

from itertools import product
from typing import Any

import cvxpy
import numpy as np
import pytest

from structpred.errors import DataError, ParameterError
from structpred.nonconvex import latent_search
from structpred.nonconvex._latent_kernels import project
from structpred.nonconvex.latent import FeatureSpace, GramSpace, LatentProblem
from structpred.nonconvex.latent_search import (
    Alternation,
    DeterministicAnnealing,
    LatentBranchAndBound,
    LatentGradientDescent,
    LatentPDM,
    LatentSearch,
    SingleChanges,
    propose,
)
from structpred.nonconvex.search import solvers

SOLVERS = [
    LatentPDM(max_inner=100),
    LatentGradientDescent(),
    Alternation(starts=3),
    DeterministicAnnealing(steps=5),
    SingleChanges(max_inner=100),
]


def problem(seed: int = 0, n: int = 8, gram: bool = False) -> LatentProblem:
    """Two groups of two states each, of random rows with a constant."""
    rows = np.c_[np.random.default_rng(seed).normal(size=(n, 2)), np.ones(n)]
    space: Any = GramSpace(rows @ rows.T) if gram else FeatureSpace(rows)
    return LatentProblem(space, np.arange(n) % 2, np.array([0, 0, 1, 1]), 5.0)


def any_weights(p: LatentProblem, seed: int) -> Any:
    """Random weights of states that do not sum to one; the first row has none."""
    found = np.where(p.inside, np.random.default_rng(seed).random(p.shape), 0.0)
    found[0] = 0.0
    return found


@pytest.mark.parametrize("gram", [False, True])
def test_the_inner_problem_is_solved(gram: bool) -> None:
    """The value is that of an independent solver, primal and dual, for any weights of states, cold and warm."""
    p, rows = problem(gram=gram), problem().space.rows  # type: ignore[attr-defined]
    start = p.solve(p.best_vertex(np.random.default_rng(5).normal(size=p.shape)))
    for seed in range(2):
        q = any_weights(p, seed)
        W = cvxpy.Variable((3, 4))
        losses = sum(q[i].sum() * cvxpy.max(rows[i] @ W + p.wrong[i]) - q[i] @ (rows[i] @ W) for i in range(len(q)))
        wanted = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(W) + p.C * losses)).solve(solver=cvxpy.CLARABEL)
        for inner in (p.solve(q, tol=1e-8), p.solve(q, start, 1e-8)):
            assert inner.objective == pytest.approx(wanted, rel=1e-6)
            assert p.primal(inner, q) == pytest.approx(wanted, rel=1e-6)


def test_many_rows_are_kept_to_a_thousandth(monkeypatch: pytest.MonkeyPatch) -> None:
    """The objective that is kept is within a millionth of its dual; of many rows within a thousandth only."""
    p = problem(n=40)
    states = p.best_vertex(np.random.default_rng(0).normal(size=p.shape))
    gaps = []
    for many in (40, 39):
        monkeypatch.setattr(latent_search, "MANY", many)
        search = LatentSearch(p, 10)
        search.offer(states, None, "offered")
        assert search.inner is not None
        gaps.append(1.0 - search.inner.objective / search.objective)
    assert 0.0 <= gaps[0] <= 2e-6 < gaps[1] <= 2e-3


def test_the_function_is_convex_and_has_the_gradient() -> None:
    """F = -J is convex along chords, and central differences agree with the gradient."""
    p = problem()
    a, b = any_weights(p, 0), any_weights(p, 1)
    values = [-p.solve(q, tol=1e-11).objective for q in (a, 0.5 * (a + b), b)]
    assert values[1] <= 0.5 * (values[0] + values[2]) + 1e-9
    way = np.where(a > 0.0, np.random.default_rng(2).normal(size=p.shape), 0.0)
    ahead, behind = (p.solve(a + sign * 1e-5 * way, tol=1e-12).objective for sign in (1.0, -1.0))
    assert (p.gradient(p.solve(a, tol=1e-12)) * way).sum() == pytest.approx((behind - ahead) / 2e-5, abs=1e-3)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("seed", range(3))
def test_branch_and_bound_is_best_of_all_states(seed: int) -> None:
    """The proven optimum is that of enumeration; cut short it says local, with a bound below; others never go below it."""
    p = problem(seed)
    every = (np.array(states) + 2 * p.groups for states in product((0, 1), repeat=len(p.groups)))
    best = min(p.solve(p.vertex(states), tol=1e-7).objective for states in every)
    found, cut = LatentBranchAndBound().solve(p), LatentBranchAndBound(max_inner=8).solve(p)
    assert (found.level, cut.level) == ("global", "local")
    assert found.objective == pytest.approx(best, rel=3e-6)
    assert cut.lower_bound <= best + 1e-6 <= cut.objective + 2e-6
    assert found.lower_bound == pytest.approx(best, rel=3e-6)
    for solver in SOLVERS:
        assert solver.solve(p).objective >= best * (1.0 - 3e-6)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_objectives_only_fall_and_states_are_of_the_group(solver: Any) -> None:
    """History falls, the last row is the result, it is the capped objective of the classifier, the same for the same seed."""
    p = problem(3, 12)
    found = solver.solve(p, seed=1)
    objectives = [row["objective"] for row in found.history]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[-1] == found.objective
    assert (p.group_of_state[found.states] == p.groups).all()
    norm = np.vdot(found.inner.coef, found.inner.scores)
    assert 0.5 * norm + p.C * p.losses(found.inner).sum() <= found.objective + 1e-9
    assert solver.solve(p, seed=1).states.tolist() == found.states.tolist()
    assert found.level == "local"


@pytest.mark.slow
def test_pdm_reaches_the_proven_optimum() -> None:
    """Where branch and bound closes, on ten random problems, the probes reach its optimum at least nine times."""
    hits = 0
    for seed in range(10):
        p = problem(seed, 10)
        hits += LatentPDM(max_inner=200).solve(p).objective <= LatentBranchAndBound().solve(p).objective * (1.0 + 1e-5)
    assert hits >= 9


def test_probes_stay_where_the_problem_is_defined() -> None:
    """Every proposal has weights >= 0 of states of the row's own group."""
    p, rng = problem(0, 20), np.random.default_rng(0)
    q = p.best_vertex(rng.normal(size=p.shape))
    for _ in range(50):
        found = propose(p, q, rng)
        assert found.min() >= 0.0
        assert not found[~p.inside].any()
        assert set(found.sum(axis=1)) <= {0.0, 1.0}


def test_one_state_in_each_group_is_a_convex_problem() -> None:
    """Nothing is hidden: global at once."""
    p = LatentProblem(problem().space, np.arange(8) % 2, np.array([0, 1]), 5.0)
    found = LatentPDM().solve(p)
    assert (found.level, found.n_inner) == ("global", 1)


def test_what_is_no_problem_is_refused() -> None:
    """A group without states, one group only, weights and states of other groups."""
    space, p = problem().space, problem()
    with pytest.raises(DataError, match="row 1: its group 1 has no hidden state"):
        LatentProblem(space, np.arange(8) % 2, np.array([0, 0]), 1.0)
    with pytest.raises(DataError, match="at least two groups"):
        LatentProblem(space, np.zeros(8, int), np.array([0, 0]), 1.0)
    with pytest.raises(ParameterError, match="expected weights >= 0 of the states"):
        p.solve(np.ones(p.shape))
    with pytest.raises(ParameterError, match="row 1 has state 0"):
        LatentPDM().solve(p, start=np.zeros(8, int))
    assert set(solvers(LatentPDM.__base__)) == {"pdm", "cccp", "annealing", "gradient", "local_search", "branch_and_bound"}


def test_an_entry_at_the_threshold_ends_the_projection() -> None:
    """Two entries that rounding puts above the threshold and below it in turn: found in a run that never ended."""
    point = np.array(
        [
            0.19016869202148678,
            0.16689764965736645,
            0.1716092686525607,
            0.19560427746368514,
            0.1751062660427208,
            -0.00017905526270561547,
            0.0019777287038682113,
            0.09738273061937257,
            -0.00017905526270561547,
        ]
    )
    found = np.empty(9)
    project(point, found)
    assert found.sum() == pytest.approx(1.0, abs=1e-15)
    assert np.allclose(found, np.maximum(point + 0.00017905526270561, 0.0), atol=1e-15)
