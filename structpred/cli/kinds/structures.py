"""Structures of a user's own (StructuredPredictor) in the shell: an oracle and a reader, both named as MODULE:NAME."""

from dataclasses import dataclass
from typing import Any, ClassVar

import click

from structpred.cli.options import Choice
from structpred.cli.rooms import Room
from structpred.cli.training_options import TrainingOptions, option

ORACLE = click.Option(
    ["--oracle"], metavar="MODULE:CLASS",
    help="Structures, decisions: your oracle, which a model file names but does not hold; its code is run.",
)  # fmt: skip
READER = click.Option(
    ["--reader"], metavar="MODULE:FUNCTION",
    help="Structures, decisions: your function that reads DATA; its code is run. It gets the name of the file and gives (X, y), "
    "y None where the labels, or costs, are not known.",
)  # fmt: skip


def required(code: click.Option) -> Any:
    """The same option of training, which needs it."""
    return option(*code.opts, metavar=code.metavar, help=str(code.help).removeprefix("Structures, decisions: "), required=True)


@dataclass(frozen=True, kw_only=True)
class Options(TrainingOptions):
    """The options of `train structure`, under their own names."""

    oracle: str = required(ORACLE)
    reader: str = required(READER)
    scoring: str | None = option(
        "--scoring", type=Choice(("labels", "parts", "exact", "loss")),
        help="What is measured on held-out data; default: 1 less the loss by the size of the true outputs.",
    )  # fmt: skip


class Structures(Room):
    """Train a StructuredPredictor on TRAIN, for a structure that your own code describes.

    \b
    structpred train structure train.txt --oracle mine:Matching --reader mine:read -o m.spz
    structpred predict m.spz test.txt --oracle mine:Matching --reader mine:read

    The oracle says what outputs there are and finds the best one (docs/howto/add_an_oracle.md). The reader gets the name of a
    file and returns (X, y) as StructuredPredictor.fit takes them: a list of Instance, and labels. Model files hold neither, so
    that every command is given both; no file makes it run code.
    """

    name = "structure"
    summary = "Train a model of a structure of your own."
    plural = "structures of your own"
    estimators = ("StructuredPredictor",)
    options: ClassVar = {
        "train": Options.own(),
        **{command: [ORACLE, READER] for command in ("predict", "evaluate", "explain", "report")},
        "inspect": [ORACLE],
    }
    refuses: ClassVar = {
        "train": ("n_jobs", "on_error"),
        "predict": ("n_jobs", "format", "on_error", "encoding"),
        "evaluate": ("confusion", "per_type", "format", "on_error", "encoding"),
        "explain": ("format", "on_error", "encoding"),
        "inspect": ("label",),
        "report": ("format", "on_error", "encoding"),
    }
    one_value = ("oracle", "reader", "scoring")
