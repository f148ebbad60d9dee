"""--trainer and --surrogate, which all kinds of models have: what can be given, what goes together, and the help page."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from structpred.cli.own_code import made

if TYPE_CHECKING:
    from structpred.trainers.problem import Trainer

Command = TypeVar("Command", bound=Callable[..., Any])


class _TrainerOption(click.Option):
    """An option whose help lists the trainers that there are: they are imported when the help page is shown, not before."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = _listed_trainers()
        return super().get_help_record(ctx)


def trainer_options(default: str) -> Callable[[Command], Command]:
    """--trainer, with the default of the command, and --surrogate."""
    trainer = click.option("--trainer", cls=_TrainerOption, default=default, show_default=True, metavar="NAME|MODULE:CLASS")
    surrogate = click.option(
        "--surrogate",
        type=click.Choice(("margin", "slack", "log")),
        help="What is minimised: margin or slack (rescaling), or log (a conditional random field). Default: the "
        "trainer's own; sgd takes all.",
    )
    return lambda command: trainer(surrogate(command))


def trainer_of(name: str) -> "str | Trainer":
    """What --trainer names: a trainer of ours by its name, as it is; of MODULE:CLASS an instance."""
    from structpred.trainers.problem import Trainer

    return made(name, Trainer, "my_package.subgradient:Subgradient") if ":" in name else name


def check_trainer(name: str, surrogate: str | None, *, strict: bool = False) -> None:
    """Raise ParameterError for an unknown trainer, one that cannot minimise the surrogate, or has no bounds under --strict."""
    from structpred.models.settings import resolve_surrogate, resolve_trainer
    from structpred.trainers.names import require_surrogate

    trainer, minimised = resolve_trainer(trainer_of(name))
    if surrogate is not None:
        minimised = resolve_surrogate(surrogate)
        require_surrogate(trainer, minimised)
    if strict and not trainer.certifies(minimised):
        from structpred.errors import ParameterError

        raise ParameterError(f"--strict needs a trainer with a certificate; {name} has none")


def _listed_trainers() -> str:
    """The names of all trainers by what they minimise, certified ones marked."""
    from structpred.trainers.names import trainers

    groups: dict[str, list[str]] = {"Max-margin": [], "Log loss": [], "Mistake-driven, without -C": []}
    for name, kind in trainers().items():
        surrogate = kind.surrogates[0]()
        by_mistakes = getattr(surrogate, "loss_weight", 1.0) == 0.0
        group = "Mistake-driven, without -C" if by_mistakes else "Max-margin" if surrogate.piecewise_linear else "Log loss"
        rare = [need for need in kind.requires if need not in ("argmax", "marginals")]
        groups[group].append(name + "*" * kind.certified + (f" (needs {rare[0]})" if rare else ""))
    listed = ". ".join(f"{group}: {', '.join(names)}" for group, names in groups.items())
    return f"{listed}. * certified: bounds of the optimum. MODULE:CLASS: a trainer of your own, whose code is run."
