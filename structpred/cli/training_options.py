"""The options that all `structpred train` commands share: how training goes, what is minimised, and by what."""

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from structpred.cli.options import Choice, InputFile, encoding_option, general_options, on_error_option, shard_options
from structpred.cli.own_code import made
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.text.suggestions import named as checked

if TYPE_CHECKING:
    from structpred.core.costs import Cost
    from structpred.core.regulariser import Regulariser
    from structpred.trainers.problem import Trainer

_NAME = "NAME|MODULE:CLASS"
#: those of models/settings.py that are not for linear models alone
SURROGATES = ("margin", "slack", "log", "perturbed", "soft_margin", "sparsemap")
#: what the shared options say, and --max-iter is, if the kind of model says nothing else
DEFAULTS: dict[str, Any] = {"trainer_shown": "bcfw; --surrogate log: oeg, slack: corrective", "max_iter": 10, "score": "score"}


def _listed_trainers(lacks: Sequence[str]) -> str:
    """The names of the trainers by what they minimise, certified ones marked."""
    from structpred.trainers.names import trainers_without

    groups: dict[str, list[str]] = {"Max-margin": [], "Log loss": [], "Mistake-driven, without -C": []}
    for name, kind in trainers_without(lacks).items():
        surrogate = kind.surrogates[0]()
        by_mistakes = getattr(surrogate, "loss_weight", 1.0) == 0.0
        group = "Mistake-driven, without -C" if by_mistakes else "Max-margin" if surrogate.piecewise_linear else "Log loss"
        groups[group].append(name + "*" * kind.certified)
    listed = ". ".join(f"{group}: {', '.join(names)}" for group, names in groups.items())
    own = "With settings: bcfw,gap_sampling=True. MODULE:CLASS: a trainer of your own, whose code is run."
    return f"{listed}. * certified: bounds of the optimum. {own}"


def _listed_losses(lacks: Sequence[str]) -> str:
    """The names of all losses."""
    from structpred.objectives.margin import SET_LOSSES
    from structpred.objectives.names import losses

    sets = "" if "label_sets" in lacks else f"; of whole sets, C ten times as large: {', '.join(SET_LOSSES)}"
    return f"What a wrong output costs, which margins are scaled by: {', '.join(losses())}{sets}; or a loss of your own."


def _listed_regularisers(lacks: Sequence[str]) -> str:
    """The names of all regularisers, with the trainers for those that not all trainers minimise."""
    import numpy as np

    from structpred.objectives.names import regularisers
    from structpred.trainers.names import can_minimise, trainers_without

    listed, trainers = [], trainers_without(lacks)
    for name, kind in regularisers().items():
        tried = kind().grouped(np.arange(3), ("a", "b"))
        fitting = [other for other, trainer in trainers.items() if can_minimise(trainer, tried)]
        listed.append(name if len(fitting) == len(trainers) else f"{name} (trainers: {', '.join(fitting) or 'none'})")
    return f"What keeps weights small: {', '.join(listed)}; or one of your own. Default: l2."


class _ListedOption(click.Option):
    """An option whose help lists the names that there are: they are imported when the help page is shown, not before.

    lacks: of `Kind.lacks`; what needs it is not listed.
    """

    lacks: Sequence[str] = ()

    def __init__(self, *args: Any, listed: Callable[[Sequence[str]], str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.listed = listed

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = self.listed(self.lacks)
        return super().get_help_record(ctx)


def option(*names: str, kind: type[click.Parameter] = click.Option, **settings: Any) -> Any:
    """A field of TrainingOptions that an option of the shell sets, with the default of that option."""
    made = kind(list(names), **settings)
    return field(default=settings.get("default", False if settings.get("is_flag") else None), metadata={"option": made})


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of all `train` commands, under their own names; a kind of model adds its own as a child.

    Those that some kind does not have are there as if they were not given.
    """

    data: str = option("data", kind=click.Argument, type=InputFile(), metavar="TRAIN")
    output: str = option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
    C: float = option(
        "--C", "-C", "C", metavar="X", default=1.0, show_default=True, type=click.FloatRange(0, min_open=True),
        help="Weight of the training loss against the regulariser; perceptron, pa and arow ignore it.",
    )  # fmt: skip
    max_iter: int | None = option(
        "--max-iter", show_default="{max_iter}; 20 of n_slack, 200 of bmrm, ls_bmrm, one_slack", metavar="N",
        type=click.IntRange(1), help="Passes over the data; lbfgs and owlqn: iterations.",
    )  # fmt: skip
    tol: float = option(
        "--tol", metavar="X", default=0.0, show_default=True, type=click.FloatRange(0),
        help="Stop when gap <= tol * primal; 0: after max-iter passes.",
    )  # fmt: skip
    check_every: int = option(
        "--check-every", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="Passes between certificates."
    )
    dev: str | None = option(
        "--dev", type=InputFile(), metavar="FILE", help="Held-out data: the weights with the best {score} are kept."
    )
    patience: int | None = option(
        "--patience", type=click.IntRange(1), metavar="N", help="Stop after N passes without a better {score} on held-out data."
    )
    n_jobs: int | None = option(
        "--n-jobs", type=int, metavar="N",
        help="Threads for passes over all data; -1: all processors. The result is the same for any number.",
    )  # fmt: skip
    seed: int = option(
        "--seed", metavar="N", default=0, show_default=True, type=click.IntRange(min=0), help="Seeds the order of visits."
    )
    checkpoint: str | None = option(
        "--checkpoint", metavar="FILE", help="Default: MODEL.ckpt, removed once MODEL is written; a named one is kept."
    )
    resume: bool = option("--resume", is_flag=True, help="Continue from the checkpoint of an interrupted run.")
    strict: bool = option("--strict", is_flag=True, help="Exit code 3 if the gap is not proven to be within --tol.")
    as_json: bool = option("--json", "as_json", is_flag=True, help="Events of training as JSON lines on standard output.")
    trainer: str | None = option(
        "--trainer", kind=_ListedOption, listed=_listed_trainers, show_default="{trainer_shown}", metavar=_NAME
    )
    surrogate: str | None = option(
        "--surrogate", type=Choice(SURROGATES),
        help="What is minimised: margin or slack (rescaling); log (a conditional random field); perturbed, soft_margin or "
        "sparsemap (smooth losses: lbfgs, sgd, proximal, bmrm). Default: the trainer's own; sgd takes all.",
    )  # fmt: skip
    loss: str = option("--loss", kind=_ListedOption, listed=_listed_losses, default="hamming", show_default=True, metavar=_NAME)
    regulariser: str | None = option("--regulariser", kind=_ListedOption, listed=_listed_regularisers, metavar=_NAME)
    signs: str | None = option(
        "--signs", metavar="FILE",
        help="Weights that must not be negative (+), or not positive (-): lines such as 'word=Mr -> PERSON +'; *: any text.",
    )  # fmt: skip
    store: str | None = option(
        "--store", metavar="FOLDER",
        help="With --shards: where the state of a run is kept, which all workers must see. Default: MODEL.ckpt.store.",
    )  # fmt: skip
    store_every: int | None = option(
        "--store-every", type=click.IntRange(1), metavar="N",
        help="With --shards: what bcfw and oeg keep of each shard goes to the store in every N-th round. Default: 1.",
    )  # fmt: skip
    shards: int | None = None
    scheduler: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    encoding: str = "utf-8"

    @classmethod
    def own(cls) -> list[click.Option]:
        """The options that a kind of model adds."""
        shared = {one.name for one in fields(TrainingOptions)}
        return [one.metadata["option"] for one in fields(cls) if one.metadata and one.name not in shared]

    @property
    def checkpoint_path(self) -> Path:
        """The file given, else one next to the model."""
        return Path(self.checkpoint or f"{self.output}.ckpt")

    @property
    def store_path(self) -> Path:
        """The folder for the state of shards: the one given, else one next to the checkpoint."""
        return Path(self.store or f"{self.checkpoint_path}.store")


def resolved_passes(values: Mapping[str, Any], given: Mapping[str, Any], lacks: Sequence[str] = ()) -> int:
    """--max-iter; where it was not given the default, or what the trainer needs at least. given, lacks: as below."""
    from structpred.models.settings import resolve_trainer
    from structpred.trainers.names import trainers, trainers_without

    given_name = values.get("minimiser") or values.get("trainer")
    name = (given_name or "").partition(",")[0]
    if name and ":" not in name and name != "adam" and name not in trainers():
        checked("trainer", name, trainers_without(lacks), " or MODULE:CLASS")
    named = trainer_of(given_name)
    least = 1 if named in (None, "adam") else resolve_trainer(named)[0].least_passes
    return values["max_iter"] or max({**DEFAULTS, **given}["max_iter"], least)


def shared_params(given: Mapping[str, Any], lacks: Sequence[str]) -> list[click.Parameter]:
    """TRAIN, -o and the shared options.

    given: other defaults; `score` is what the weights are chosen by on --dev. lacks: of `Kind.lacks`; trainers that need it are
    not listed.
    """
    others, defaults = click.Command(None), {**DEFAULTS, **given}
    for decorate in (general_options, encoding_option, on_error_option, shard_options("TRAIN", "train on together")):
        decorate(others)
    own = [_of_kind(one.metadata["option"], defaults, lacks) for one in fields(TrainingOptions) if one.metadata]
    return [*own, *others.params[::-1]]


def _of_kind(option: click.Parameter, defaults: Mapping[str, Any], lacks: Sequence[str]) -> click.Parameter:
    """A shared option with the defaults of a kind, also in its help."""
    own = copy.copy(option)
    if isinstance(own, click.Option):
        own.help = own.help and own.help.format(**defaults)
        if isinstance(own.show_default, str):
            own.show_default = own.show_default.format(**defaults)
    if own.name in ("trainer", "C", "tol"):
        own.default = defaults.get(own.name, own.default)
    if isinstance(own, _ListedOption):
        own.lacks = lacks
    return own


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
        return made(name, Trainer, "my_package.subgradient:Subgradient")
    kind, *pairs = name.split(",")
    return _with_settings(kind, pairs) if pairs else name


def _with_settings(name: str, pairs: Sequence[str]) -> "Trainer":
    """A trainer of ours with settings, each NAME=VALUE; ParameterError for what it does not have."""
    import inspect

    from structpred.models.settings import trainer_kind

    settings = {}
    for pair in pairs:
        setting, equals, text = pair.partition("=")
        if not (setting and equals and text):
            raise ParameterError(f"--trainer: expected NAME,SETTING=VALUE, such as bcfw,gap_sampling=True, got {pair!r}")
        try:
            settings[setting] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            settings[setting] = text
    kind = trainer_kind(name)
    known = inspect.signature(kind).parameters
    for key, value in settings.items():
        if key not in known:
            raise ParameterError(f"--trainer: {name} has no setting {key!r}; it has {', '.join(known) or 'none'}")
        if isinstance(known[key].default, bool) and not isinstance(value, bool):
            raise ParameterError(f"--trainer: {name}: {key} must be True or False, got {value!r}")
    return kind(**settings)


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


def check_objective(options: TrainingOptions, lacks: Sequence[str]) -> None:
    """Raise ParameterError for unknown names, what the trainer cannot minimise, and under --strict for one without bounds."""
    from structpred.models.settings import resolve_loss, resolve_regulariser, resolve_surrogate, resolve_trainer
    from structpred.objectives.margin import SET_LOSSES, SetHinge
    from structpred.objectives.regularisers.signed import signed
    from structpred.trainers.names import require_before_data, require_surrogate

    whole = options.loss in SET_LOSSES and "label_sets" not in lacks  # Python refuses them beside slack and log
    usual = "oeg" if options.surrogate == "log" else "bcfw"  # None: where another is taken, it fits
    minimiser, minimised = resolve_trainer(trainer_of(options.trainer) or usual)
    resolve_loss("hamming" if whole else loss_of(options.loss))
    if (chosen := SetHinge(options.loss) if whole and options.surrogate in (None, "margin") else options.surrogate) is not None:
        minimised = resolve_surrogate(chosen)
        require_surrogate(minimiser, minimised, lacks)
    try:
        found = resolve_regulariser(regulariser_of(options.regulariser), minimiser)
        require_before_data(minimiser, found if options.signs is None else signed(found, 1), lacks)
    except MissingCapabilityError as error:
        raise ParameterError(str(error)) from None  # two options that do not go together, not a fault of the data
    if options.strict and not minimiser.certifies(minimised):
        raise ParameterError(f"--strict needs a trainer with a certificate; {options.trainer} has none")
