"""`structpred curve`: how good a model gets with how much data."""

import json
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from structpred.cli.kinds.sequences import Sequences
from structpred.cli.options import Folds, InputFile
from structpred.cli.train import train_command
from structpred.cli.training_options import resolved_passes, trainer_of
from structpred.errors import DataError, ParameterError

if TYPE_CHECKING:
    from structpred.evaluation.curves import LearningCurve

log = logging.getLogger("structpred.cli")
#: the options that are those of `train chain`, beside those that every command has
_ALIKE = ("format", "template", "label_column", "folds", "trainer", "C", "max_iter", "min_count", "on_error", "encoding")


class Numbers(click.ParamType[tuple[float, ...]]):
    """Numbers separated by commas."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Parse the text; a usage error says what is expected."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(piece) for piece in str(value).split(","))
        except ValueError:
            self.fail(f"expected numbers separated by commas, such as 0.1,0.5,1, got {value!r}", param, ctx)


@click.command(short_help="Scores against the amount of training data.")
@click.argument("train", type=InputFile(), metavar="TRAIN")
@click.option(
    "--test", "--dev", "test", type=InputFile(), required=True, metavar="FILE",
    help="Labelled data to score on; --dev is the same.",
)  # fmt: skip
@click.option("--test-folds", "--dev-folds", "test_folds", type=Folds(), help="Score on these folds of OCR data in --test.")
@click.option("--fractions", type=Numbers(), default="0.1,0.2,0.4,0.7,1", show_default=True, help="Parts of TRAIN to train on.")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1), metavar="N", help="Runs a fraction, seeds 0..N-1.")
@click.option("--picture", metavar="FILE", help="Draw the curve: a .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="All runs as one JSON object.")
def curve(train: str, test: str, picture: str | None, as_json: bool, **values: Any) -> None:
    """Train on growing parts of TRAIN and score each model on --test; the mean over several seeds, with its range.

    \b
    structpred curve train.txt --test test.txt --format conll2000 --template chunking --trainer sgd -C 0.3 --picture curve.png

    Parts are random, and each contains the smaller ones. The slope at the end shows whether more data would help.
    """
    from structpred.cli.files import check_picture
    from structpred.cli.sequences.defaults import completed
    from structpred.io.columns import ROW_FORMATS
    from structpred.report.curves import data_curve

    asked = SimpleNamespace(train=train, test=test, **completed(values, train))
    if (asked.template is not None) != (asked.format in ROW_FORMATS):
        raise ParameterError("--template is needed with column files, and only there")
    if train == test == "-":
        raise ParameterError("TRAIN and --test cannot both be standard input")
    check_picture(picture, "--picture", (train, test))
    found = _measured(asked)
    if picture is not None:
        data_curve(found, picture)
    click.echo(json.dumps(found.to_dict()) if as_json else found.table())


def _measured(asked: SimpleNamespace) -> "LearningCurve":
    """Train on each part with each seed, and score. asked: the values of the options by name."""
    from structpred.cli.sequences.data import Reader, read_data
    from structpred.evaluation.curves import learning_curve
    from structpred.models import ChainLabeler

    n = resolved_passes(vars(asked), {})
    trainer, template = trainer_of(asked.trainer), asked.template
    model = ChainLabeler(trainer, asked.C, n, template=template, min_count=asked.min_count, check_every=n)
    reader = Reader(asked.format, asked.label_column)
    data, held_out = (
        read_data(path, reader, folds, encoding=asked.encoding, on_error=asked.on_error)
        for path, folds in ((asked.train, asked.folds), (asked.test, asked.test_folds))
    )
    if data.labels is None or held_out.labels is None:
        raise DataError("both files need labels")
    log.info("%d runs on %s, scored on %s", len(set(asked.fractions)) * asked.seeds, data.corpus.name, held_out.corpus.name)
    return learning_curve(
        model, data.corpus, data.labels, held_out.corpus, held_out.labels, fractions=asked.fractions, seeds=range(asked.seeds)
    )


curve.params += [param for param in train_command(Sequences()).params if param.name in _ALIKE or not param.expose_value]
