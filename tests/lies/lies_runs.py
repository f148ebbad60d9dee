"""A plant is a lie in one component of a user's own; a run trains with it, and is judged by what is true."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from lies_world import LAM, AtMostTwo, Differences, N, World, data, surrogate_of

from structpred.core.result import Certificate
from structpred.errors import StructpredError, StructpredWarning
from structpred.models import StructuredPredictor

#: by how much, relative to it, a bound may be wrong
TOLERANCE = 2e-5
#: passes of each trainer: enough to leave zero, and for the quick ones to close the gap
PASSES = {
    "bcfw": 40, "corrective": 12, "n_slack": 12, "one_slack": 40, "bmrm": 60, "ls_bmrm": 40, "sgd": 15, "proximal": 15,
    "mira": 8, "pragam": 40, "projected_ascent": 40, "oeg": 15, "lbfgs": 30,
}  # fmt: skip


class Outcome(NamedTuple):
    """How a run ended: "named", "no proof", "proof" or "false"; what was said; whether it also called itself converged."""

    end: str
    said: str
    converged: bool = False


class Plant(NamedTuple):
    """A lie: its family, its name, the one sentence that says it, the trainers to try, and the run with one of them."""

    family: str
    name: str
    says: str
    trainers: tuple[str, ...]
    run: Callable[[str], Outcome]


PLANTS: list[Plant] = []
#: right components, which are planted in the same way
CONTROLS: list[Plant] = []


def enter(family: str, thing: Any, trainers: tuple[str, ...], run: Callable[[str], Outcome], under: str = "") -> None:
    """Put a plant on the list; its sentence is the docstring of the component."""
    name = thing.__name__ + (f" ({under})" if under else "")
    planted = CONTROLS if thing.__name__.startswith("Right") or family == "honest" else PLANTS
    planted.append(Plant(family, name, (thing.__doc__ or "").strip(), trainers, run))


def plant(family: str, setting: str, *trainers: str, world: World | None = None, **others: Any) -> Callable[[Any], Any]:
    """Decorates a component that lies: it stands for the setting `setting` of a StructuredPredictor, the others are honest."""
    true = world or World()

    def planted(thing: Any) -> Any:
        under = "" if true.kind == "margin" else true.kind
        enter(family, thing, trainers, lambda trainer: run(trainer, true, **{setting: thing, **others}), under)
        return thing

    return planted


def run(name: str, world: Any, **components: Any) -> Outcome:
    """Train a StructuredPredictor with these components, each made anew, and judge it; `name`: whose passes it gets."""
    made = {"oracle": AtMostTwo, "loss": Differences, "features": list, "trainer": None, "surrogate": None, **components}
    rows, shapes, truths = data(world.single)

    def fitted() -> tuple[Certificate, Any, bool]:
        oracle = made["oracle"]()
        model = StructuredPredictor(
            oracle,
            made["loss"](),
            name if made["trainer"] is None else made["trainer"](),
            1.0 / (LAM * N),
            max_iter=PASSES.get(name, 20),
            surrogate=surrogate_of(world.kind) if made["surrogate"] is None else made["surrogate"](oracle),
            regulariser=made["regulariser"]() if "regulariser" in made else None,
            random_state=0,
        )
        model.fit(made["features"](rows), [truth.copy() for truth in truths], shapes)
        return model.certificate_, model.coef_, model.converged_

    return judge(fitted, world)


def judge(fitted: Callable[[], tuple[Certificate, Any, bool]], world: Any) -> Outcome:
    """Run it, and hold what it printed against `world.value` at its weights and `world.optimum`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StructpredWarning)  # a warning excuses no proof
        try:
            certificate, weights, converged = fitted()
        except StructpredError as error:
            return Outcome("named", f"{type(error).__name__}: {error}")
    if not certificate.proven or certificate.primal is None:
        return Outcome("no proof", str(certificate), converged)
    true, best = world.value(weights), world.optimum()
    too_low = certificate.primal < true - TOLERANCE * (1.0 + abs(true))
    too_high = certificate.dual is not None and certificate.dual > best + TOLERANCE * (1.0 + abs(best))
    said = f"{certificate}; converged {converged}; true {true:.6g}, optimum {best:.6g}"
    return Outcome("false" if too_low or too_high else "proof", said, converged)
