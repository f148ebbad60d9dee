"""A trainer from outside the package is judged by the plain methods: after a first step, and by one sweep where the run ends."""

import hashlib
from typing import Any

import numpy as np

from structpred.core.own_code import own_code, raised
from structpred.core.result import Result
from structpred.errors import OracleError, ParameterError, StructpredError
from structpred.task.steps import TaskLike
from structpred.trainers.problem import Problem, Trainer


def is_own(trainer: Trainer) -> bool:
    """Whether its class, or that of the trainer inside it, is from outside."""
    return bool(own_code(type(trainer)) or own_code(type(vars(trainer).get("trainer"))))


def data_of(task: TaskLike) -> str | None:
    """A digest of the data of a feature map from outside; None for one of ours, which keeps its own copy."""
    features: Any = getattr(task, "features", None)
    if not own_code(type(features)):
        return None
    digest = hashlib.blake2b()
    for array in features.arrays():
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def refuse_changed(task: TaskLike, data: str | None) -> None:
    """OracleError where the data of a feature map from outside are others than when training began."""
    if data != data_of(task):
        name = type(getattr(task, "features", None)).__name__
        raise OracleError(
            f"{name}: the arrays of the feature map changed while it was trained on, so the objective is that of no data: does "
            "something write into them? Give the map a copy"
        )


def try_step(problem: Problem, trainer: Trainer) -> None:
    """ParameterError unless a first step, on a state of its own, leads to weights that can be returned."""
    try:
        state = trainer.init_state(problem)
        _insist(isinstance(state, tuple), trainer, "init_state", "a NamedTuple of arrays", state)
        item = trainer.order(problem, state, np.random.default_rng(0), 0)[0]
        found = trainer.update(problem, state, int(item))
        pair = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], tuple)
        _insist(pair, trainer, "update", "(state, whether the weights changed)", found)
        weights = trainer.weights(problem, found[0])
    except StructpredError:
        raise
    except Exception as error:
        raise ParameterError(
            f"trainer: {type(trainer).__name__} raised {raised(error)} in its first step; check_trainer says more"
        ) from error
    _check_weights(problem, trainer, weights)


def judged(problem: Problem, trainer: Trainer, result: Result) -> Result:
    """The result; ParameterError where the objective at the weights returned is not what the certificate says."""
    _check_weights(problem, trainer, result.weights)
    stated = result.certificate.primal
    if stated is None or not problem.certified:
        return result
    ours = not own_code(type(trainer).primal)  # some add terms
    found = trainer.primal(problem, result.weights) if ours else problem.primal(result.weights)
    if not abs(found - stated) <= 1e-6 * (1.0 + abs(found)):
        raise ParameterError(
            f"trainer: {type(trainer).__name__} says that the objective at the weights it returns is {stated:.9g}, and there "
            f"it is {found:.9g}: are they the weights that its `objective` judged, and is it problem.primal of them?"
        )
    return result


def _insist(right: bool, trainer: Trainer, method: str, expected: str, found: object) -> None:
    if not right:
        came = "None: is a `return` missing?" if found is None else type(found).__name__
        raise ParameterError(f"trainer: {type(trainer).__name__}.{method} must give {expected}, got {came}")


def _check_weights(problem: Problem, trainer: Trainer, weights: Any) -> None:
    shape = getattr(weights, "shape", type(weights).__name__)
    if shape != (problem.task.dim,) or not np.isfinite(weights).all():
        raise ParameterError(
            f"trainer: expected {type(trainer).__name__}.weights to give {problem.task.dim} finite numbers, one a weight, got "
            f"{'numbers that are not' if shape == (problem.task.dim,) else shape}"
        )
