"""L-BFGS: compared with SciPy's, its bound, its line search, and what it refuses. The optimum itself is held in test_oeg.py."""

import numpy as np
import pytest
from scipy.optimize import minimize
from training_cases import chain_task, log_optimum, log_problem, multiclass_task, problem

from structpred.core.products import dot
from structpred.errors import ParameterError, StructpredWarning
from structpred.objectives.scalar.margins import Logistic
from structpred.rows.linear_task import LinearTask
from structpred.trainers.lbfgs import LBFGS, Tangent, objective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.owlqn import OWLQN
from structpred.trainers.problem import Problem


@pytest.mark.parametrize("lam", [1.0, 0.05, 0.003])
def test_scipys_lbfgs_needs_no_fewer_evaluations(lam) -> None:
    """From zero to within 1e-6 of the optimum: at most a third more evaluations of the objective than SciPy's."""
    prob = log_problem(chain_task(0, n=30), lam)
    best = minimize(lambda w: objective(prob, w), np.zeros(prob.task.dim), jac=True, method="L-BFGS-B", tol=1e-15).fun
    theirs: list[float] = []

    def watched(w):
        value, gradient = objective(prob, w)
        theirs.append(value)
        return value, gradient

    minimize(watched, np.zeros(prob.task.dim), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12, "maxcor": 6})
    needed = 1 + next(k for k, value in enumerate(theirs) if value <= best + 1e-6 * abs(best))
    trainer = LBFGS()
    state = trainer.init_state(prob)
    while state.value > best + 1e-6 * abs(best):
        state, changed = trainer.update(prob, state, 0)
        assert changed
    assert state.evaluations <= 4 * needed / 3 + 2


def test_the_bound_of_all_tangents_is_above_that_of_the_last() -> None:
    """The dual value never falls, is nowhere below that of the present gradient, and is above it on the whole."""
    prob, trainer = log_problem(chain_task(0, n=30), 0.003), LBFGS()
    state, duals, alone, primals = trainer.init_state(prob), [], [], []
    for _ in range(40):
        state, _ = trainer.update(prob, state, 0)
        primal, dual = trainer.objective(prob, state)
        primals.append(primal)
        duals.append(dual)
        alone.append(primal - float(state.gradient @ state.gradient) / (2.0 * prob.lam))
    assert (np.diff(duals) >= -1e-12).all()
    assert (np.array(duals) >= np.array(alone) - 1e-12).all()
    assert sum(duals) > sum(alone) + 1e-3


def test_tangents_of_one_slope_keep_the_higher_one() -> None:
    """Where nothing bends, as on a plateau of the loss, the mean is the better of both."""
    slope, origin = np.array([1.0, -2.0]), np.zeros(2)
    for first, second in ((0.5, 0.7), (0.7, 0.5), (0.7, 0.7)):
        one = Tangent(slope.copy(), np.array(first))
        assert one.mixed(origin, second, slope, 0.1).bound(0.1) == Tangent(slope, np.array(0.7)).bound(0.1)


@pytest.mark.parametrize("n", [1, 64, 1003])
def test_the_mean_of_two_tangents_has_the_largest_bound(n) -> None:
    """No other mean of the two is above it, and its numbers are those of its definition, to the last bit."""
    rng = np.random.default_rng(n)
    w, gradient, slope = rng.normal(size=(3, n))
    one, new = Tangent(slope.copy(), np.array(0.3)), Tangent.at(w, 0.4, gradient, 0.5)
    mixed = one.mixed(w, 0.4, gradient, 0.5)
    direction = new.slope - slope
    rise, bend = float(new.height) - 0.3 - dot(slope, direction) / 0.5, dot(direction, direction) / 0.5
    share = min(max(rise / bend, 0.0), 1.0)
    assert mixed.slope.tobytes() == (slope + share * direction).tobytes()
    assert float(mixed.height) == (1.0 - share) * 0.3 + share * float(new.height)
    others = [Tangent(slope + s * direction, (1 - s) * np.array(0.3) + s * new.height) for s in np.linspace(0.0, 1.0, 11)]
    assert mixed.bound(0.5) >= max(other.bound(0.5) for other in others) - 1e-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lam", [1.0, 0.01])
def test_the_primal_falls_and_the_bound_holds(dtype, lam) -> None:
    """At every iteration: the objective is not larger than before (to rounding), and the bound not larger than the optimum."""
    task = chain_task(1, n=8, longest=4, dtype=dtype)
    value, _ = log_optimum(chain_task(1, n=8, longest=4), lam)
    rows = train(log_problem(task, lam), LBFGS(), RunSettings(max_iter=40, check_every=1)).history
    primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
    assert (np.diff(primal) <= 1e-14 * primal[1:]).all()
    assert (dual <= value + 1e-9).all()
    assert (primal >= value - 1e-9).all()
    assert primal[-1] == pytest.approx(value, rel=1e-6)


@pytest.mark.slow
def test_at_the_optimum_it_stays() -> None:
    """Once rounding hides every decrease, further iterations leave the objective and the weights where they are."""
    prob, trainer = log_problem(multiclass_task(0), 0.1), LBFGS()
    state = trainer.init_state(prob)
    for _ in range(60):
        state, _ = trainer.update(prob, state, 0)
    value, w = float(state.value), state.w.copy()
    for _ in range(100):
        state, _ = trainer.update(prob, state, 0)
        assert state.value == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(state.w, w, atol=1e-6)
    assert np.linalg.norm(state.gradient) < 1e-6


@pytest.mark.parametrize("memory", [1, 2, 20])
def test_any_memory_reaches_the_optimum(memory) -> None:
    """One pair or twenty: the same objective."""
    prob = log_problem(multiclass_task(1), 0.1)
    result = train(prob, LBFGS(memory=memory), RunSettings(max_iter=300, tol=1e-9))
    assert result.stop_reason == "tol"
    assert result.certificate.primal == pytest.approx(log_optimum(prob.task, 0.1)[0], rel=1e-8)


def test_what_it_cannot_do_is_refused() -> None:
    """A surrogate with kinks, and settings out of range."""
    with pytest.raises(ParameterError, match="LBFGS cannot minimise MarginRescaling"):
        train(problem(chain_task(0)), LBFGS())
    for options in ({"memory": 0}, {"max_trials": 0}):
        with pytest.raises(ParameterError, match="must be a whole number >= 1"):
            LBFGS(**options)


@pytest.mark.parametrize("trainer", [LBFGS(), OWLQN(), OWLQN(l1=0.01)], ids=["lbfgs", "owlqn", "owlqn with l1"])
def test_a_line_search_that_fails_says_so(trainer: LBFGS) -> None:
    """Features of 1e12 make the shortest step too long: that is said, in place of a doubt about the oracle, and what helps."""
    rng = np.random.default_rng(0)
    X = 1e12 * rng.normal(size=(40, 3))
    problem = Problem(LinearTask(X, np.where(X[:, 0] > 0.0, 1, -1)), Logistic(), 0.1)
    with pytest.warns(StructpredWarning) as found:
        train(problem, trainer, RunSettings(max_iter=3))
    assert [str(w.message).partition(":")[0] for w in found] == [trainer.name]
    assert "the line search failed: none of 20 steps, down to " in str(found[0].message)
    trainer.max_trials = 80
    result = train(problem, trainer, RunSettings(max_iter=3))
    assert result.certificate.primal is not None
    assert result.certificate.primal < 0.5 * np.log(2.0)
