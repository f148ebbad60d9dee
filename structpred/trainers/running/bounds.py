"""The bounds of a run: finite numbers, and no lower bound above an upper bound; else something that took part is wrong."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.result import Record, crossing
from structpred.core.weights import Vector
from structpred.errors import ConvergenceError, OracleError
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
