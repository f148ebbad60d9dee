"""What a run refuses: numbers that are not finite, a lower bound above an upper one, and trainers of a user's own that err.

Bounds that cross say that something that took part is wrong. A trainer from outside the package is judged by the plain methods:
after a first step, and by one sweep where the run ends.
"""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.own_code import own_code, raised
from structpred.core.result import Record, Result, crossing
from structpred.core.weights import Vector
from structpred.errors import ConvergenceError, OracleError, ParameterError, StructpredError
from structpred.task.steps import TaskLike
from structpred.trainers.problem import Problem, Trainer

#: after this number of passes one sweep more, at zero weights, is less than 3 % of a run
MANY_PASSES = 34


class Bounds:
    """The least upper bound of a run and its largest lower bound, each with the words that say where it comes from."""

    def __init__(self, problem: Problem, trainer: Trainer) -> None:
        self.problem, self.trainer = problem, trainer
        self.primal, self.dual = (np.inf, ""), (-np.inf, "")

    def checked(
        self, found: tuple[float | None, float | None], passes: int, weights: Callable[[], Vector]
    ) -> tuple[float | None, float | None]:
        """The bounds after a pass as plain numbers; a dual value of minus infinity, which bounds nothing, as None.

        Raises ConvergenceError, saying who gave it, for one that is no finite number, and OracleError for bounds that cross.
        """
        primal, dual = (None if value is None else float(value) for value in found)
        dual = None if dual == -np.inf else dual
        for name, value in (("objective", primal), ("dual value", dual)):
            if value is not None and not np.isfinite(value):
                raise ConvergenceError(
                    f"the {name} after pass {passes} is {value}, though the weights are finite: {self._giver(name, weights())}"
                )
        self.add(primal, dual, f"pass {passes}")
        return primal, dual

    def read(self, history: Iterable[Record]) -> None:
        """Those of earlier rows; OracleError where they cross."""
        for row in history:
            self.add(row["primal"], row["dual"], f"pass {row['passes']}")

    def at_zero(self, passes: int, like: Vector) -> None:
        """The objective at zero weights bounds it, too. It takes a sweep: made where that is little, or where code is foreign."""
        foreign = any(not type(thing).__module__.startswith("structpred.") for thing in self._took_part())
        if self.dual[1] and (passes >= MANY_PASSES or foreign):
            self.add(self.trainer.primal(self.problem, np.zeros_like(like)), None, "zero weights")

    def add(self, primal: float | None, dual: float | None, where: str) -> None:
        """Look at more bounds of the same optimum."""
        self.primal = self.primal if primal is None else min(self.primal, (primal, where))
        self.dual = self.dual if dual is None else max(self.dual, (dual, where))
        if crossing(self.primal[0], self.dual[0]) and self.problem.convex and self.problem.certified:
            (primal, at), (dual, since) = self.primal, self.dual
            names = ", ".join(dict.fromkeys(type(thing).__name__ for thing in self._took_part()))
            raise OracleError(
                f"the bounds cross: the objective of {at} is {primal:.9g}, but the dual value of {since} is {dual:.9g}, and no "
                f"lower bound of the optimum lies above an upper one. One of {names} is wrong: run check_oracle on the oracle, "
                "check_feature_map on the features, check_loss on the loss and check_regulariser on the regulariser"
            )

    def _took_part(self) -> list[Any]:
        problem = self.problem
        of_task = (getattr(problem.task, name, None) for name in ("oracle", "features", "loss"))
        return [thing for thing in (*of_task, problem.surrogate, problem.regulariser, self.trainer) if thing is not None]

    def _giver(self, name: str, w: Vector) -> str:
        """Who gave a number that is not finite, in words."""
        problem, own = self.problem, type(self.trainer).__name__
        if name != "objective":
            return f"{own}.objective gave it, from what {type(problem.regulariser).__name__}.bound says or by itself"
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(problem.regulariser.value(w)):
                return "they are too large for their regulariser; take a smaller C, or scale the features"
            values = np.asarray(problem.surrogate.values(problem.task, w))
        if (wrong := np.flatnonzero(~np.isfinite(values))).size:
            return f"sample {wrong[0]}: {type(problem.surrogate).__name__}.values gave {values[wrong[0]]}"
        return f"{own}.objective gave it"


def check_finite(values: npt.NDArray[Any], trainer: Trainer, lam: float, passes: int) -> None:
    """Raise ConvergenceError where weights are no longer finite numbers."""
    if not all(np.isfinite(values[k : k + (1 << 18)]).all() for k in range(0, len(values), 1 << 18)):  # no byte for each of them
        raise ConvergenceError(
            f"the weights of {type(trainer).__name__} are no longer finite (passes done: {passes}): C is probably too large "
            f"(lam = 1 / (C * n) = {lam:.3g}), or the features are; take a smaller C, or scale the features. A checkpoint, if "
            "there is one, is from before"
        )


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
