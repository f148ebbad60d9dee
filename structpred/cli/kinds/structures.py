"""Structures of a user's own (StructuredPredictor) in the shell: an oracle and a reader, both named as MODULE:NAME."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import click

from structpred.cli.kinds.kind import Evaluating, Explained, Explaining, Inspecting, Kind, Predicting, Reporting
from structpred.cli.suggestions import Choice

if TYPE_CHECKING:
    from structpred.cli.training import Training
    from structpred.distributed import Shards
    from structpred.models import StructuredPredictor

ORACLE = click.Option(
    ["--oracle"], metavar="MODULE:CLASS",
    help="Structures, decisions: your oracle, which a model file names but does not hold; its code is run.",
)  # fmt: skip
READER = click.Option(
    ["--reader"], metavar="MODULE:FUNCTION",
    help="Structures, decisions: your function that reads DATA; its code is run. It gets the name of the file and gives (X, y), "
    "y None where the labels, or costs, are not known.",
)  # fmt: skip
REQUIRED = [
    click.Option(
        option.opts, metavar=option.metavar, help=str(option.help).removeprefix("Structures, decisions: "), required=True
    )
    for option in (ORACLE, READER)
]
_SCORING = click.Option(
    ["--scoring"], type=Choice(("labels", "parts", "exact", "loss")),
    help="What is measured on held-out data; default: 1 less the loss by the size of the true outputs.",
)  # fmt: skip


class Structures(Kind):
    """Train a StructuredPredictor on TRAIN, for a structure that your own code describes.

    \b
    structpred train structure train.txt --oracle mine:Matching --reader mine:read -o m.spz
    structpred predict m.spz test.txt --oracle mine:Matching --reader mine:read

    The oracle says what outputs there are and finds the best one (docs/howto/add_an_oracle.md). The reader gets the name of a
    file and returns (X, y) as StructuredPredictor.fit takes them: a list of Instance, and labels. Model files hold neither, so
    that every command is told; no file makes it run code.
    """

    name = "structure"
    summary = "Train a model of a structure of your own."
    plural = "structures of your own"
    estimators = ("StructuredPredictor",)
    options: ClassVar = {
        "train": [*REQUIRED, _SCORING],
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

    def training(self, values: Mapping[str, Any]) -> "Training[Any]":
        """One run of `train structure`."""
        from structpred.cli.structures.training import StructureOptions, StructureTraining

        return StructureTraining(StructureOptions(**values))

    def predict(self, model: "StructuredPredictor", asked: Predicting) -> None:
        """Write the labels of an instance on a line, or one JSON object per instance."""
        from structpred.cli.structures.results import predict

        predict(model, asked)

    def shards(self, model: "StructuredPredictor", asked: Predicting, n: int) -> "Shards":
        """Parts of what the reader gives."""
        from structpred.cli.structures.results import asked_reader
        from structpred.cli.structures.shards import shards_of

        _, reader = asked_reader(asked)
        return shards_of(asked.data, n, reader, labelled=False)

    def evaluate(self, model: "StructuredPredictor", asked: Evaluating) -> str:
        """The score of the model, and the share of outputs that are right in all labels."""
        from structpred.cli.structures.results import scored

        return scored(model, asked)

    def explain(self, model: "StructuredPredictor", asked: Explaining) -> Explained:
        """What each feature of each part adds."""
        from structpred.cli.structures.results import explained

        return explained(model, asked)

    def inspect(self, model: "StructuredPredictor", asked: Inspecting) -> str:
        """Settings, certificate and the strongest features."""
        from structpred.cli.structures.results import inspected

        return inspected(model, asked)

    def page(self, model: "StructuredPredictor", asked: Reporting) -> str:
        """The same as a page; with data the scores, and the worst outputs with what speaks for them."""
        from structpred.cli.structures.results import page

        return page(model, asked)
