"""The likelihood of what is known: value and gradient against enumeration and finite differences, compiled against plain."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "core"))
from partial_cases import STRUCTURES, listed_value, partial

from structpred.errors import ParameterError
from structpred.objectives.log_loss import LogLoss, MarginalLogLoss
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.problem import Problem


@pytest.mark.parametrize("name", STRUCTURES)
def test_value_and_gradient(name):
    """H_i is log Z less the log of the sum over the outputs of the set, both listed; the gradient is that of differences."""
    task, sets = partial(name)
    surrogate, rng = MarginalLogLoss(), np.random.default_rng(5)
    w, shares = rng.normal(size=task.dim), rng.uniform(0.5, 1.5, len(task))
    values, gradient = surrogate.gradient(task, w, shares)
    np.testing.assert_allclose(values, [listed_value(task, sets, w, i) for i in range(len(task))], rtol=1e-9)
    for k in range(0, task.dim, max(task.dim // 12, 1)):
        step = np.zeros(task.dim)
        step[k] = 1e-5
        rise = (surrogate.values(task, w + step) - surrogate.values(task, w - step)) @ shares / 2e-5
        assert gradient[k] == pytest.approx(rise, abs=2e-8)


@pytest.mark.parametrize("name", STRUCTURES)
def test_single_terms_and_plain_calls(name):
    """Single terms add up to the sweep, and so do plain calls."""
    task, _ = partial(name)
    surrogate, w = MarginalLogLoss(), np.random.default_rng(5).normal(size=task.dim)
    values, gradient = surrogate.gradient(task, w, np.ones(len(task)))
    steps = [surrogate.term(task, w, i) for i in range(len(task))]
    np.testing.assert_allclose([step.violation for step in steps], values, atol=1e-12)
    np.testing.assert_allclose(-sum(step.difference.dense(task.dim) for step in steps), gradient, atol=1e-12)
    plain, _ = partial(name, compiled=False)
    np.testing.assert_allclose(surrogate.gradient(plain, w, np.ones(len(task)))[1], gradient, atol=1e-12)


def test_where_all_is_known_it_is_the_log_loss():
    """On a task without missing labels value and gradient are those of the log loss, to the last bit."""
    task, _ = partial("chain")
    full, w = task.with_labels(task.completed(np.zeros(task.dim))), np.random.default_rng(5).normal(size=task.dim)
    for one, other in zip(*(s.gradient(full, w, np.ones(len(full))) for s in (MarginalLogLoss(), LogLoss())), strict=True):
        np.testing.assert_array_equal(one, other)
    assert MarginalLogLoss().certified(full)


def test_no_bound_is_claimed():
    """L-BFGS descends, and its certificate says that the optimum is local; a trainer of convex functions refuses."""
    task, _ = partial("chain")
    problem = Problem(task, MarginalLogLoss(), 0.1)
    result = train(problem, LBFGS(), RunSettings(max_iter=60, check_every=1))
    primals = [row["primal"] for row in result.history]
    assert primals == sorted(primals, reverse=True)
    assert (result.certificate.dual, result.certificate.proven, result.certificate.local) == (None, False, True)
    assert "not convex" in str(result.certificate)
    with pytest.raises(ParameterError, match="OnlineEG cannot minimise MarginalLogLoss"):
        train(problem, OnlineEG())
    with pytest.raises(ParameterError, match="some outputs are known in part"):
        train(Problem(task, LogLoss(), 0.1), LBFGS())
