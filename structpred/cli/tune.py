"""`structpred tune`: one command for each kind of model, that of `structpred train` with several values for its options."""

import copy
import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from structpred.cli.kinds.kind import Kind
from structpred.cli.model_command import kinds_of
from structpred.cli.options import InputFile, SuggestingGroup
from structpred.cli.session import Session, interrupted
from structpred.cli.train import train_command
from structpred.cli.training_options import resolved_passes

if TYPE_CHECKING:
    from structpred.cli.training import Training
    from structpred.tuning import Search, Tuned

#: shared options of `train` that the search sets itself
SET = {
    "output": "best.spz", "tol": 0.0, "check_every": 1, "patience": None, "checkpoint": None, "resume": False, "strict": False,
    "as_json": False, "shards": None, "scheduler": None, "store": None, "store_every": None,
}  # fmt: skip
_UNSAID = SET.keys() - {"output", "tol"}
#: shared options of which all settings have the same value
SHARED = ("data", "dev", "max_iter", "seed", "n_jobs", "encoding", "on_error")


def _tuned_kinds(ctx: click.Context) -> dict[str, Callable[[], click.Command]]:
    """A command for each kind of model that takes held-out data."""
    kinds = kinds_of(ctx.ensure_object(Session))
    return {kind.name: partial(tune_command, kind) for kind in kinds if "dev" not in kind.refuses.get("train", ())}


@click.group(cls=SuggestingGroup, makers=_tuned_kinds, short_help="Choose C and other settings on held-out data.")
def tune() -> None:
    """Choose settings of one kind of model by successive halving: all get few passes, the best third three times as many ..."""


class TuneCommand(click.Command):
    """A command whose options take several values, one after the other: --C 0.1 0.3 1."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join the values of each option; there are no arguments besides TRAIN, if it stands first."""
        args = ["--train", *args] if args and not args[0].startswith("-") else args
        return super().parse_args(ctx, self._joined(ctx, args))

    def _joined(self, ctx: click.Context, args: Sequence[str]) -> list[str]:
        options = [option for option in self.params if isinstance(option, click.Option)]
        valued = {name: option for option in options if not (option.is_flag or option.count) for name in option.opts}
        joined: list[str] = []
        rest = list(args)[::-1]
        while rest:
            name, equals, value = rest.pop().partition("=")
            if (option := valued.get(name)) is None:
                joined.append(f"{name}{equals}{value}")
                continue
            values = [value] if equals else []
            while rest and (not rest[-1].startswith("-") or rest[-1] == "-" or rest[-1][1:2].isdigit()):
                values.append(rest.pop())
            if not values:
                raise click.UsageError(f"Option '{name}' requires an argument.", ctx)
            if len(values) > 1 and not option.multiple:
                raise click.UsageError(f"{name} takes one value, which all settings share, got {' '.join(values)}", ctx)
            joined += [part for value in values for part in (name, value)]
        return joined


class Asked(NamedTuple):
    """What is particular to `tune`. kind: what is tuned. train: `structpred train KIND`. values: of its options; free: unset."""

    kind: Kind
    train: click.Command
    values: dict[str, Any]
    grid: dict[str, tuple[Any, ...]]
    cv: int | None
    min_passes: int
    eta: int
    jobs: int
    state: str | None
    write: str | None
    free: Sequence[str]


def tune_command(kind: Kind) -> click.Command:
    """`structpred tune NAME`: the options of `structpred train NAME`, most with several values, and those of the search."""
    base = train_command(kind)

    @click.pass_obj
    def run(session: Session, /, picture: str | None, as_json: bool, **values: Any) -> None:
        run_tuning(_asked(kind, base, values), session, picture, as_json)

    page = (
        f"Choose settings of {kind.plural} on held-out data (--dev) or folds (--cv), by successive halving.\n\n\b\n"
        f"structpred tune {kind.name} --train TRAIN --dev DEV --C 0.03 0.1 0.3 1 3 --trainer sgd bcfw --jobs 2 --resume RUN\n\n"
        "Options take several values; every combination is a setting. All settings get few passes; the best third continues to "
        "three times as many, and so on up to --max-iter. Printed are all settings and the command that trains the best; -o runs "
        f"it. `tune multilabel TRAIN` has its own grid, on 3 folds. Other options are those of `structpred train {kind.name}`."
    )
    params = [_varied(kind, param) for param in base.params if param.name not in SET]
    return TuneCommand(kind.name, callback=run, params=[*params[:1], *_own_options(), *params[1:]], help=page,
                       short_help=f"Choose settings of {kind.plural}.")  # fmt: skip


def _own_options() -> list[click.Parameter]:
    return [
        click.Option(["--cv"], type=click.IntRange(2), metavar="K", help="Instead of held-out data: K folds, drawn by --seed."),
        click.Option(["--min-passes"], type=click.IntRange(1), default=1, show_default=True, metavar="N",
                     help="Drop nothing before N passes; as many as --max-iter: the full grid."),
        click.Option(["--eta"], type=click.IntRange(2), default=3, show_default=True, metavar="N", help="One in N continues."),
        click.Option(["--jobs"], type=click.IntRange(-1), default=1, show_default=True, metavar="N",
                     help="Processes; -1: all processors. The result is the same for any number."),
        click.Option(["--resume", "state"], metavar="FOLDER",
                     help="Keep the state there, and continue from what an interrupted search left there."),
        click.Option(["-o", "--output", "write"], metavar="MODEL", help="Then train the best on all of TRAIN, and write it."),
        click.Option(["--picture"], metavar="FILE", help="Draw a curve per setting over the passes: a .png or .svg."),
        click.Option(["--json", "as_json"], is_flag=True, help="All settings as one JSON object."),
    ]  # fmt: skip


def _varied(kind: Kind, param: click.Parameter) -> click.Parameter:
    """The option of `train` as `tune` has it."""
    if param.name == "data":
        return click.Option(["--train", "data"], type=InputFile(), required=True, metavar="FILE", help="The training data.")
    alike = isinstance(param, click.Option) and (param.is_flag or param.count or not param.expose_value)
    if alike or param.name in (*SHARED, *kind.one_value):
        return param
    option = copy.copy(param)
    choices = param.type.choices if isinstance(param.type, click.Choice) else ()
    option.metavar = f"{param.metavar or '|'.join(map(str, choices)) or param.type.name.upper()} ..."
    option.multiple = True
    option.default = [param.default] if isinstance(param.default, str | int | float) else None
    return option


def _asked(kind: Kind, train: click.Command, values: dict[str, Any]) -> Asked:
    own = {name: values.pop(name) for name in ("cv", "min_passes", "eta", "jobs", "state", "write")}
    known = [str(param.name) for param in train.params if param.expose_value]
    varied = [name for name in known if name not in (*SET, *SHARED, *kind.one_value)]
    several = {name: values[name] for name in varied if isinstance(values[name], tuple)}
    single = {name: next(iter(value), None) if name in several else value for name, value in values.items()}
    single |= {name: value for name, value in SET.items() if name in known}
    grid = {name: value for name, value in several.items() if len(value) > 1}
    free = [name for name in varied if click.get_current_context().get_parameter_source(name) is ParameterSource.DEFAULT]
    return Asked(kind, train, dict(kind.completed(single)), grid, **own, free=free)


def run_tuning(asked: Asked, session: Session, picture: str | None, as_json: bool) -> None:
    """Run the command. Raises our errors, or Stop where it is interrupted."""
    from structpred.cli.files import check_output, check_picture
    from structpred.report.curves import halving_curves

    search, work = _search(asked)
    check_picture(picture, "--picture", (asked.values["data"], asked.values["dev"]))
    if asked.write is not None:
        check_output(asked.write, "-o", (asked.values["data"], asked.values["dev"]))
    try:
        found = search.run(None if asked.state is None else Path(asked.state), asked.jobs)
    except KeyboardInterrupt:
        kept = "nothing was kept; --resume FOLDER keeps the state of a search"
        if asked.state is not None:
            kept = f"the state is kept in {asked.state}. To continue:\n  {shlex.join(['structpred', *session.arguments])}"
        raise interrupted(kept) from None
    score = work.training().score
    if picture is not None:
        halving_curves(found, picture, score)
    command = _command(asked, found, session)
    if as_json:
        click.echo(json.dumps({**found.to_dict(), "score": score, "command": command}))
    else:
        named = "" if score == "score" else f"The score is {score}. "
        click.echo(f"{found.table()}\n\n{named}To train the best:\n  {command}")
    if asked.write is not None:
        words = shlex.split(command)
        asked.train.main(words[words.index("train") + 2 :], "structpred train", standalone_mode=False, obj=session)


def _search(asked: Asked) -> "tuple[Search, KindWork]":
    """The search, after a look at all that can be known to be wrong before anything is read."""
    from structpred.cli.training import check_usage, refuse_conflicts
    from structpred.tuning.halving import grid_of, rungs
    from structpred.tuning.search import Search

    values, given = asked.values, asked.kind.training(asked.values)
    held_out, named = given.holds_out(), "-" not in (values["data"], values["dev"])
    cv = asked.cv or (None if asked.grid or held_out else 3)
    settings = grid_of(asked.grid) if asked.grid else []
    if named and not asked.grid:
        check_usage(given)
        usual = [{name: value for name, value in one.items() if name in asked.free} for one in given.grid()]
        settings = [one for i, one in enumerate(usual) if one not in usual[:i]]
    refuse_conflicts(
        {
            "files must be named: the data are read several times": not named,
            "nothing to choose from: give an option several values, such as --C 0.1 0.3 1": len(settings) < 2,
            "held-out data are needed: --dev FILE, or --cv K for K folds": not held_out and cv is None,
            "--cv K cannot be combined with held-out data": held_out and cv is not None,
        }
    )
    passes = max(resolved_passes({**values, **setting}, asked.kind.defaults) for setting in settings)
    steps = rungs(len(settings), passes, asked.min_passes if asked.grid else min(passes, max(asked.min_passes, 10)), asked.eta)
    runs = [asked.kind.training({**values, **setting}) for setting in settings]
    for training in runs:
        check_usage(training)
    inputs = sorted({name for training in runs for name in training.inputs()})
    files = [values["data"], values["dev"], *inputs]
    # what is no file is the name of a template
    digests = [hashlib.sha256(Path(one).read_bytes()).hexdigest() if one and Path(one).is_file() else None for one in files]
    known = [repr(sorted(values.items(), key=lambda item: item[0])), digests, inputs]
    work = KindWork(asked.kind, {**values, **asked.kind.in_tuning}, cv)
    return Search(work, settings, steps, cv or 1, known), work


def _command(asked: Asked, found: "Tuned", session: Session) -> str:
    """The command line that trains the best setting."""
    passes, to = found.best.best_pass, asked.write or asked.values["output"]
    values: Mapping[str, Any] = {**asked.values, **found.best.setting, "max_iter": passes, "output": to}
    kind = [part for pair in zip(session.arguments, session.arguments[1:], strict=False) if pair[0] == "--kind" for part in pair]
    stated = ("output", "max_iter", *found.best.setting)  # whatever the defaults are
    words = ["structpred", *kind, "train", asked.kind.name, values["data"]]
    for option in asked.train.params:
        if not isinstance(option, click.Option) or not option.expose_value or option.name in _UNSAID:
            continue
        value = values[str(option.name)]
        if value is None or (option.name not in stated and value == option.default):
            continue
        if option.is_flag:
            words += option.opts[:1] if value else option.secondary_opts[:1]
        else:
            words += [option.opts[0], ",".join(map(str, value)) if isinstance(value, tuple) else str(value)]
    return shlex.join(words)


@dataclass
class KindWork:
    """Trains models of one kind; data are read, and features made, once for all settings that read them alike.

    values: those of all options of `structpred train KIND`, apart from what a setting brings. n_folds: None for held-out data.
    """

    kind: Kind
    values: Mapping[str, Any]
    n_folds: int | None
    read_for: str = ""
    whole: "Training[Any] | None" = None
    ready: "dict[int, Training[Any]]" = field(default_factory=dict)

    def training(self, **changed: Any) -> "Training[Any]":
        """One run with other values, which has read nothing yet."""
        return self.kind.training({**self.values, **changed})

    def fit(self, setting: dict[str, Any], fold: int, passes: int, checkpoint: Path) -> list[float]:
        """Train one setting; the score on held-out data after each pass."""
        from structpred.cli.training import common_settings
        from structpred.trainers.running.checkpoints import begun
        from structpred.tuning.estimators import scores_of

        course = {"max_iter": passes, "check_every": passes, "checkpoint": str(checkpoint), "resume": begun(checkpoint)}
        asked = self.training(**setting, **{name: value for name, value in course.items() if name in self.values})
        training = copy.copy(self._ready(setting, fold))
        training.options = asked.options
        model = training.estimator(common_settings(training.options, None, verbose=False))
        training.fit(model)
        return scores_of(model)

    def _ready(self, setting: dict[str, Any], fold: int) -> "Training[Any]":
        """The data of a fold; what is kept of others goes where this setting reads other data or makes other features."""
        own = {option.name for option in self.kind.options.get("train", ())}
        key = repr(sorted((name, value) for name, value in setting.items() if name in own))
        if key != self.read_for:
            self.read_for, self.whole, self.ready = key, None, {}
        if self.whole is None:
            self.whole = self.training(**setting)
            self.whole.read()
        if fold not in self.ready:
            part = copy.copy(self.whole)
            if self.n_folds is not None:
                part.hold_out(self.n_folds, fold)
            part.prepare()
            self.ready[fold] = part
        return self.ready[fold]
