"""What is minimised, and by what: --trainer, --surrogate, --loss, --regulariser and --signs, which all kinds of models have."""

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from structpred.cli.own_code import made
from structpred.cli.suggestions import Choice

if TYPE_CHECKING:
    from structpred.core.costs import Cost
    from structpred.core.regulariser import Regulariser
    from structpred.trainers.problem import Trainer

Command = TypeVar("Command", bound=Callable[..., Any])
_NAME = "NAME|MODULE:CLASS"
#: those of models/settings.py that are not for linear models alone
SURROGATES = ("margin", "slack", "log", "perturbed", "soft_margin", "sparsemap")


class _ListedOption(click.Option):
    """An option whose help lists the names that there are: they are imported when the help page is shown, not before."""

    def __init__(self, *args: Any, listed: Callable[[], str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.listed = listed

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = self.listed()
        return super().get_help_record(ctx)


def trainer_options(default: str | None, shown: str | bool = True) -> Callable[[Command], Command]:
    """--trainer, with the default of the command and how it is shown, --surrogate, --loss, --regulariser and --signs."""
    options = (
        click.option("--trainer", cls=_ListedOption, listed=_listed_trainers, default=default, show_default=shown, metavar=_NAME),
        click.option(
            "--surrogate",
            type=Choice(SURROGATES),
            help="What is minimised: margin or slack (rescaling); log (a conditional random field); perturbed, soft_margin or "
            "sparsemap (smooth losses: lbfgs, sgd, proximal, bmrm). Default: the trainer's own; sgd takes all.",
        ),
        click.option("--loss", cls=_ListedOption, listed=_listed_losses, default="hamming", show_default=True, metavar=_NAME),
        click.option("--regulariser", cls=_ListedOption, listed=_listed_regularisers, metavar=_NAME),
        click.option(
            "--signs",
            metavar="FILE",
            help="Weights that must not be negative (+), or not positive (-): lines such as 'word=Mr -> PERSON +'; *: any text.",
        ),
    )

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def trainer_of(name: str | None) -> "str | Trainer | None":
    """What --trainer names: a trainer of ours by its name, as it is; of MODULE:CLASS, and of a name with settings, an instance.
    None is left to the estimator.

    >>> trainer_of("sgd"), trainer_of("bcfw,gap_sampling=True").gap_sampling
    ('sgd', True)
    """
    from structpred.trainers.problem import Trainer

    if name is None:
        return None
    if ":" in name:
        own: Trainer = made(name, Trainer, "my_package.subgradient:Subgradient")
        return own
    kind, *pairs = name.split(",")
    return _with_settings(kind, pairs) if pairs else name


def _with_settings(name: str, pairs: Sequence[str]) -> "Trainer":
    """A trainer of ours with settings, each NAME=VALUE; ParameterError for what it does not have."""
    import inspect

    from structpred.errors import ParameterError
    from structpred.models.settings import make_trainer
    from structpred.trainers.names import trainers

    settings = {}
    for pair in pairs:
        setting, equals, text = pair.partition("=")
        if not (setting and equals and text):
            raise ParameterError(f"--trainer: expected NAME,SETTING=VALUE, such as bcfw,gap_sampling=True, got {pair!r}")
        try:
            settings[setting] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            settings[setting] = text
    if name in trainers() and (extra := settings.keys() - inspect.signature(trainers()[name]).parameters.keys()):
        known = ", ".join(inspect.signature(trainers()[name]).parameters) or "none"
        raise ParameterError(f"--trainer: {name} has no setting {min(extra)!r}; it has {known}")
    return make_trainer(name, settings)


def loss_of(name: str) -> "str | Cost":
    """What --loss names, likewise."""
    from structpred.core.costs import Cost

    return made(name, Cost, "my_package.distance:Distance") if ":" in name else name


def regulariser_of(name: str | None) -> "str | Regulariser | None":
    """What --regulariser names, likewise; None for none."""
    from structpred.core.regulariser import Regulariser

    return made(name, Regulariser, "my_package.signs:NonNegative") if name is not None and ":" in name else name


def signs_of(path: str | None, encoding: str = "utf-8") -> dict[str, int] | None:
    """What --signs names; None for none."""
    from structpred.io.signs import read_signs

    return None if path is None else read_signs(path, encoding)


def check_objective(
    trainer: str | None, surrogate: str | None, loss: str = "hamming", regulariser: str | None = None, *, strict: bool = False,
    signs: bool = False,
) -> None:  # fmt: skip
    """Raise ParameterError for unknown names, what the trainer cannot minimise, and under --strict for one without bounds."""
    from structpred.errors import MissingCapabilityError, ParameterError
    from structpred.models.settings import resolve_loss, resolve_regulariser, resolve_surrogate, resolve_trainer
    from structpred.objectives.regularisers.sign_constraints import SignConstraints
    from structpred.trainers.names import require_before_data, require_surrogate

    minimiser, minimised = resolve_trainer(trainer_of(trainer) or "bcfw")  # None: where another is taken, it fits
    resolve_loss(loss_of(loss))
    if surrogate is not None:
        minimised = resolve_surrogate(surrogate)
        require_surrogate(minimiser, minimised)
    try:
        found = SignConstraints() if signs else resolve_regulariser(regulariser_of(regulariser), minimiser)
        require_before_data(minimiser, found)
    except MissingCapabilityError as error:
        raise ParameterError(str(error)) from None  # two options that do not go together, not a fault of the data
    if strict and not minimiser.certifies(minimised):
        raise ParameterError(f"--strict needs a trainer with a certificate; {trainer} has none")


def _listed_trainers() -> str:
    """The names of all trainers by what they minimise, certified ones marked."""
    from structpred.trainers.names import trainers

    groups: dict[str, list[str]] = {"Max-margin": [], "Log loss": [], "Mistake-driven, without -C": []}
    for name, kind in trainers().items():
        surrogate = kind.surrogates[0]()
        by_mistakes = getattr(surrogate, "loss_weight", 1.0) == 0.0
        group = "Mistake-driven, without -C" if by_mistakes else "Max-margin" if surrogate.piecewise_linear else "Log loss"
        needs = [(need,) if isinstance(need, str) else need for need in kind.requires]
        rare = [" or ".join(either) for either in needs if either not in (("argmax",), ("marginals",))]
        groups[group].append(name + "*" * kind.certified + (f" (needs {rare[0]})" if rare else ""))
    listed = ". ".join(f"{group}: {', '.join(names)}" for group, names in groups.items())
    own = "With settings: bcfw,gap_sampling=True. MODULE:CLASS: a trainer of your own, whose code is run."
    return f"{listed}. * certified: bounds of the optimum. {own}"


def _listed_losses() -> str:
    """The names of all losses."""
    from structpred.objectives.names import losses

    return f"What a wrong output costs, which margins are scaled by: {', '.join(losses())}; or a loss of your own."


def _listed_regularisers() -> str:
    """The names of all regularisers, with the trainers for those that not all trainers minimise."""
    from structpred.core.regulariser import capabilities
    from structpred.core.requirements import met
    from structpred.objectives.regularisers.names import regularisers
    from structpred.trainers.names import trainers

    listed = []
    for name, kind in regularisers().items():
        fitting = [other for other, trainer in trainers().items() if met(trainer.regulariser_requires, capabilities(kind))]
        listed.append(name if len(fitting) == len(trainers()) else f"{name} (trainers: {', '.join(fitting) or 'none'})")
    return f"What keeps weights small: {', '.join(listed)}; or one of your own. Default: l2."
