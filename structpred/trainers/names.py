"""The trainers of this package by their names, and the one refusal of what a trainer cannot minimise."""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache

import numpy as np

from structpred.core import requirements
from structpred.core.regulariser import Regulariser, capabilities
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.objectives.names import regularisers
from structpred.runtime.discovery import public_subclasses
from structpred.task.partial_task import is_partial
from structpred.trainers.problem import Problem, Surrogate, Trainer, is_convex, lacks_slack


@cache
def trainers() -> dict[str, type[Trainer]]:
    """Every trainer that has a name: a file in this package is all that a new one needs."""
    return {kind.name: kind for kind in public_subclasses("structpred.trainers", Trainer) if kind.name}  # type: ignore[type-abstract]


def trainers_without(lacks: Collection[str]) -> dict[str, type[Trainer]]:
    """Those that do without these methods of the data (`core.requirements.OF_ROWS`), which a kind of model never has."""
    needs = {name: [{one} if isinstance(one, str) else set(one) for one in kind.requires] for name, kind in trainers().items()}
    return {name: kind for name, kind in trainers().items() if not any(need.issubset(lacks) for need in needs[name])}


def require(trainer: Trainer, problem: Problem) -> None:
    """Raise before any work where the task lacks what trainer or surrogate need, or the trainer cannot minimise the surrogate."""
    problem.task.require(trainer.requires, f"trainer {type(trainer).__name__}")
    problem.task.require(problem.surrogate.requires, f"surrogate {type(problem.surrogate).__name__}")
    require_surrogate(trainer, problem.surrogate)
    if is_partial(problem.task) and is_convex(problem.surrogate) and not trainer.completes:
        name = type(trainer).__name__
        raise ParameterError(
            f"some outputs are known in part, and {name} needs all of each: take CCCP({name}()), or MarginalLogLoss() where the "
            "oracle has `marginals`"
        )

    def serves(kind: type[Trainer]) -> bool:
        with suppress(MissingCapabilityError):
            problem.task.require(kind.requires, kind.name)
            return kind.minimises(problem.surrogate)
        return False

    require_regulariser(trainer, problem.regulariser, serves)


def require_surrogate(trainer: Trainer, surrogate: Surrogate, lacks: Collection[str] = ()) -> None:
    """Raise ParameterError, which names the trainers that fit and need nothing that is lacking, where the trainer does not."""
    if not trainer.minimises(surrogate):
        fitting = ", ".join(name for name, kind in trainers_without(lacks).items() if kind.minimises(surrogate))
        why = ", whose search needs the slack of each sample" if lacks_slack(trainer, surrogate) else ""
        raise ParameterError(
            f"surrogate: {type(trainer).__name__} cannot minimise {type(surrogate).__name__}{why}; trainers that can: "
            f"{fitting or 'none of this package'}"
        )


def can_minimise(trainer: Trainer | type[Trainer], regulariser: Regulariser) -> bool:
    """Whether the regulariser has what the trainer needs, and fits it."""
    return requirements.met(trainer.regulariser_requires, capabilities(regulariser)) and trainer.fits(regulariser)


def require_regulariser(
    trainer: Trainer, regulariser: Regulariser, serves: Callable[[type[Trainer]], bool] = lambda kind: True
) -> None:
    """Raise where the regulariser lacks what the trainer needs (MissingCapabilityError), or does not fit it (ParameterError).

    Both name the trainers that do, of those that serve otherwise. regulariser: `grouped` already, or one that needs no groups.
    """
    name = type(regulariser).__name__
    kinds = [name for name, kind in trainers().items() if can_minimise(kind, regulariser) and serves(kind)]
    advice = f". Trainers for {name}: {', '.join(kinds) or 'none of this package'}"
    require_methods(trainer, regulariser, advice)
    if not trainer.fits(regulariser):
        raise ParameterError(f"regulariser: {type(trainer).__name__} cannot minimise {name}{advice}")


def require_before_data(trainer: Trainer, regulariser: Regulariser, lacks: Collection[str] = ()) -> None:
    """As `require_regulariser` before the groups are known: any two will do, and of a user's own that needs them its methods."""
    inner: Regulariser = getattr(regulariser, "of", regulariser)  # of one on a cone of signs
    kind = type(inner)
    if kind in regularisers().values():
        regulariser = regulariser.grouped(np.arange(3), ("a", "b"))
    elif kind.grouped is not Regulariser.grouped and not requirements.is_ours(kind):
        return require_methods(trainer, regulariser)
    require_regulariser(trainer, regulariser, lambda kind: kind in trainers_without(lacks).values())


def require_methods(trainer: Trainer, regulariser: Regulariser, advice: str = "") -> None:
    """Raise MissingCapabilityError, which ends with the advice, where the regulariser lacks a method that the trainer needs."""
    requirements.require(
        trainer.regulariser_requires, regulariser, f"trainer {type(trainer).__name__}", family=requirements.REGULARISERS,
        advice=advice,
    )  # fmt: skip
