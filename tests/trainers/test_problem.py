"""The problem: shares, the primal value, and states as flat arrays."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from training_cases import TASKS, chain_task, multiclass_task, problem

from structpred.errors import ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l2 import L2
from structpred.trainers.problem import Problem, once_per_problem
from structpred.trainers.states import flatten, rebuild


@pytest.mark.parametrize("structure", TASKS)
def test_primal_is_the_objective_over_all_outputs(structure) -> None:
    """lam/2 |w|^2 + sum p_i max_y (loss - <w, difference>), by enumeration, with sample weights."""
    task = TASKS[structure](1, n=5)
    task.sample_weight = np.array([1.0, 0.0, 2.0, 0.5, 3.0])
    w = np.random.default_rng(0).normal(size=task.dim)
    total = 0.15 * w @ w
    for i, shape in enumerate(task.shapes):
        constant, ell = task.costs(i)
        worst = max(
            constant + ell[task.oracle.parts(y, shape)].sum() - w @ task.difference(i, y).dense(task.dim)
            for y in task.oracle.enumerate(shape)
        )
        total += task.sample_weight[i] / task.sample_weight.sum() * worst
    assert problem(task, 0.3).primal(w) == pytest.approx(total, rel=1e-10)


def test_shares_are_exactly_one_without_weights() -> None:
    """n p_i = 1 to the last bit, whatever n, so that unweighted runs have no rounding of their own."""
    for n in (3, 7, 49, 14):
        prob = problem(chain_task(0, n=n))
        assert [prob.share(i) for i in range(n)] == [1.0] * n
        assert prob.p.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan, np.inf])
def test_lam_is_checked(lam) -> None:
    """The regulariser must be positive and finite."""
    with pytest.raises(ParameterError, match="lam must be positive"):
        problem(chain_task(0), lam)


class Inner(NamedTuple):
    """A state within a state."""

    a: Any
    b: Any


class Outer(NamedTuple):
    """A nested state."""

    inner: Inner
    c: Any


def test_states_survive_flattening() -> None:
    """rebuild(flatten(state)) is an equal state of its own arrays, with their types."""
    state = Outer(Inner(np.arange(3, dtype=np.float32), np.zeros(0)), np.array([7]))
    flat = flatten(state)
    assert sorted(flat) == ["c", "inner.a", "inner.b"]
    again = rebuild(state, flat, 3)
    again.inner.a[0] = 9.0
    assert (state.inner.a[0], again.inner.a.dtype, again.c.tolist()) == (0.0, np.float32, [7])
    assert isinstance(again, Outer)
    assert isinstance(again.inner, Inner)


def test_squared_norm_is_summed_in_float64() -> None:
    """Long float32 vectors lose nothing to rounding."""
    w = np.full(600_001, 0.1, np.float32)
    assert L2().squared_norm(w) == pytest.approx(600_001 * float(np.float32(0.1)) ** 2, rel=1e-12)
    assert L2().squared_norm(np.empty(0)) == 0.0


def test_what_a_problem_needs_is_made_once() -> None:
    """Each problem has its own, also where its regulariser cannot be hashed."""

    class Unhashable(L2):
        __hash__ = None  # type: ignore[assignment]

    made: list[Problem] = []
    keep = once_per_problem(lambda problem: made.append(problem) or len(made))  # type: ignore[func-returns-value]
    first, second = (Problem(multiclass_task(), MarginRescaling(), 0.1, regulariser=Unhashable()) for _ in range(2))
    assert [keep(first), keep(second), keep(first)] == [1, 2, 1]
    assert len(made) == 2
