"""The options that all `structpred train` commands share: once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from structpred.cli.options import InputFile, encoding_option, general_options, on_error_option, shard_options
from structpred.cli.trainer_options import trainer_of, trainer_options

#: what the shared options are if the kind of model says nothing else
DEFAULTS: dict[str, Any] = {
    "trainer": None, "trainer_shown": "bcfw; corrective with --surrogate slack", "C": 1.0, "max_iter": 10, "tol": 0.0,
    "score": "score",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of all `train` commands, under their own names; a kind of model adds its own as a child.

    Those that some kind does not have are there as if they were not given.
    """

    data: str
    output: str
    trainer: str | None = None
    surrogate: str | None = None
    C: float
    max_iter: int | None
    tol: float
    check_every: int
    dev: str | None = None
    patience: int | None = None
    seed: int
    checkpoint: str | None = None
    resume: bool = False
    as_json: bool
    encoding: str
    loss: str = "hamming"
    regulariser: str | None = None
    signs: str | None = None
    strict: bool = False
    n_jobs: int | None = None
    on_error: str = "raise"
    shards: int | None = None
    scheduler: str | None = None
    store: str | None = None
    store_every: int | None = None

    @property
    def checkpoint_path(self) -> Path:
        """The file given, else one next to the model."""
        return Path(self.checkpoint or f"{self.output}.ckpt")

    @property
    def store_path(self) -> Path:
        """The folder for the state of shards: the one given, else one next to the checkpoint."""
        return Path(self.store or f"{self.checkpoint_path}.store")


def resolved_passes(values: Mapping[str, Any], given: Mapping[str, Any]) -> int:
    """--max-iter; where it was not given the default, or what the trainer needs at least. given: other defaults, as below."""
    from structpred.models.settings import resolve_trainer

    named = trainer_of(values.get("minimiser") or values.get("trainer"))
    least = 1 if named in (None, "adam") else resolve_trainer(named)[0].least_passes
    passes: int = values["max_iter"] or max({**DEFAULTS, **given}["max_iter"], least)
    return passes


def add_training_options(command: click.Command, given: Mapping[str, Any], without: tuple[str, ...]) -> click.Command:
    """Give a command TRAIN, -o and the shared options.

    given: other defaults; `score` is what the weights are chosen by on --dev. without: options that the kind does not have.
    """
    defaults = {**DEFAULTS, **given}
    positive = click.FloatRange(0, min_open=True)
    shared = [
        click.Argument(["data"], type=InputFile(), metavar="TRAIN"),
        click.Option(["-o", "--output"], required=True, metavar="MODEL", help="The model file to write."),
        click.Option(
            ["--C", "-C", "C"], metavar="X", default=defaults["C"], show_default=True, type=positive,
            help="Weight of the training loss against the regulariser; perceptron, pa and arow ignore it.",
        ),
        click.Option(
            ["--max-iter"], show_default=f"{defaults['max_iter']}; 20 of n_slack, 200 of bmrm, ls_bmrm, one_slack", metavar="N",
            type=click.IntRange(1), help="Passes over the data; lbfgs and owlqn: iterations.",
        ),
        click.Option(
            ["--tol"], metavar="X", default=defaults["tol"], show_default=True, type=click.FloatRange(0),
            help="Stop when gap <= tol * primal; 0: after max-iter passes.",
        ),
        click.Option(
            ["--check-every"], default=10, show_default=True, type=click.IntRange(1), metavar="N",
            help="Passes between certificates.",
        ),
        click.Option(
            ["--dev"], type=InputFile(), metavar="FILE",
            help=f"Held-out data: the weights with the best {defaults['score']} are kept.",
        ),
        click.Option(
            ["--patience"], type=click.IntRange(1), metavar="N",
            help=f"Stop after N passes without a better {defaults['score']} on held-out data.",
        ),
        click.Option(
            ["--n-jobs"], type=int, metavar="N",
            help="Threads for passes over all data; -1: all processors. The result is the same for any number.",
        ),
        click.Option(
            ["--seed"], metavar="N", default=0, show_default=True, type=click.IntRange(min=0), help="Seeds the order of visits."
        ),
        click.Option(
            ["--checkpoint"], metavar="FILE", help="Default: MODEL.ckpt, removed once MODEL is written; a named one is kept."
        ),
        click.Option(["--resume"], is_flag=True, help="Continue from the checkpoint of an interrupted run."),
        click.Option(["--strict"], is_flag=True, help="Exit code 3 if the gap is not proven to be within --tol."),
        click.Option(["--json", "as_json"], is_flag=True, help="Events of training as JSON lines on standard output."),
        click.Option(
            ["--store"], metavar="FOLDER",
            help="With --shards: where the state of a run is kept, which all workers must see. Default: MODEL.ckpt.store.",
        ),
        click.Option(
            ["--store-every"], type=click.IntRange(1), metavar="N",
            help="With --shards: what bcfw and oeg keep of each shard goes to the store in every N-th round. Default: 1.",
        ),
    ]  # fmt: skip
    own = command.params
    command.params = []
    trainer = trainer_options(defaults["trainer"], defaults["trainer_shown"])
    for decorate in (general_options, encoding_option, on_error_option, trainer, shard_options("TRAIN", "train on together")):
        decorate(command)
    general = [option for option in [*shared, *command.params[::-1]] if option.name not in without]
    command.params = [*general[:2], *own, *general[2:]]
    return command
