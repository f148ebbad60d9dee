"""check_callbacks names what is wrong with three functions, and passes those that are right."""

from itertools import combinations

import numpy as np
import pytest

import structpred
from structpred.errors import OracleError
from structpred.task.callback_task import CallbackTask

EYE = np.eye(4)


def phi(x, y):
    """The block of class y holds x."""
    return np.kron(EYE[y], x)


def loss(y, other):
    """One for every wrong class."""
    return float(y != other)


def scores(w, x, y, weight):
    """Of all classes."""
    return w.reshape(4, 3) @ x + weight * (np.arange(4) != y)


def best(w, x, y, weight):
    """All classes are tried."""
    return int(scores(w, x, y, weight).argmax())


def task_of(**changes):
    """The task, with some of its functions replaced."""
    rng = np.random.default_rng(0)
    functions = {"joint_feature": phi, "loss": loss, "argmax": best, **changes}
    return CallbackTask(list(rng.normal(size=(30, 3))), rng.integers(0, 4, 30).tolist(), 12, **functions)


def test_right_functions_pass() -> None:
    """No false alarm, for all outputs alike and for a heuristic that says so."""
    assert structpred.check_callbacks(task_of()).checked["wrong argmax"] == 75
    report = structpred.check_callbacks(task_of(argmax=lambda w, x, y, weight: 0, exact=False))
    assert "exact=False" in report.skipped["wrong argmax"]


WRONG = {
    "minimises": lambda w, x, y, weight: int(scores(w, x, y, weight).argmin()),
    "the truth": lambda w, x, y, weight: y,
    "without the loss": lambda w, x, y, weight: int(scores(w, x, y, 0.0).argmax()),
    "never the last": lambda w, x, y, weight: int(scores(w, x, y, weight)[:3].argmax()),
    "always the same": lambda w, x, y, weight: 1,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argmax_is_named(name: str) -> None:
    """With the sample, the weights, and an output that is better."""
    task = task_of(argmax=WRONG[name], exact=False)  # some are found when a task is made that is said to be exact
    task.certified = True
    with pytest.raises(OracleError, match=r"CallbackTask breaks(.|\n)*- wrong argmax, at sample \d+, .*loss_weight = "):
        structpred.check_callbacks(task)


def test_wrong_features_and_losses_are_named() -> None:
    """Random features, and a loss that is a similarity for what argmax finds."""
    rng = np.random.default_rng(0)
    with pytest.raises(OracleError, match="nondeterminism, at sample"):
        structpred.check_callbacks(task_of(joint_feature=lambda x, y: phi(x, y) * (1.0 + rng.random())))
    with pytest.raises(OracleError, match="loss must be finite and >= 0"):
        structpred.check_callbacks(task_of(loss=lambda y, other: float(other) - float(y)))


def test_outputs_that_depend_on_the_input_are_no_fault() -> None:
    """Summaries of at most as many sentences as the input allows: `shared=False` compares what argmax found alone."""
    rng = np.random.default_rng(0)
    inputs = [(rng.normal(size=(4, 3)), int(k)) for k in rng.integers(1, 4, 12)]

    def outputs(x):
        return [chosen for size in range(x[1] + 1) for chosen in combinations(range(4), size)]

    def features(x, y):
        return x[0][list(y)].sum(axis=0)

    def cost(y, other):
        return float(len(set(y) ^ set(other)))

    def search(w, x, y, weight):
        return max(outputs(x), key=lambda other: w @ features(x, other) + weight * cost(y, other))

    task = CallbackTask(inputs, [outputs(x)[-1] for x in inputs], 3, features, cost, search)
    assert structpred.check_callbacks(task, shared=False).checked["wrong argmax"] == 75
    with pytest.raises(OracleError, match="shared=False"):
        structpred.check_callbacks(task)
