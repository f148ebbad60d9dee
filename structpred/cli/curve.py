"""`structpred curve`: how good a model gets with how much data."""

import json
import logging
from typing import Any

import click

from structpred.cli.kinds.sequences import Sequences
from structpred.cli.options import InputFile, folds
from structpred.cli.train import train_command
from structpred.cli.training_options import resolved_passes, trainer_of

log = logging.getLogger("structpred.cli")
KIND = Sequences()
#: the options that are those of `train chain`, beside those that every command has
_ALIKE = ("format", "template", "label_column", "folds", "trainer", "C", "max_iter", "min_count", "on_error", "encoding")


def numbers(value: str | tuple[float, ...]) -> tuple[float, ...]:
    """The type of numbers separated by commas; BadParameter says what is expected."""
    try:
        return tuple(map(float, value.split(","))) if isinstance(value, str) else value
    except ValueError:
        raise click.BadParameter(f"expected numbers separated by commas, such as 0.1,0.5,1, got {value!r}") from None


@click.command(short_help="Scores against the amount of training data.")
@click.argument("data", type=InputFile(), metavar="TRAIN")
@click.option(
    "--test", "--dev", "dev", type=InputFile(), required=True, metavar="FILE",
    help="Labelled data to score on; --dev is the same.",
)  # fmt: skip
@click.option("--test-folds", "--dev-folds", "dev_folds", type=folds, help="Score on these folds of OCR data in --test.")
@click.option("--fractions", type=numbers, default="0.1,0.2,0.4,0.7,1", show_default=True, help="Parts of TRAIN to train on.")
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1), metavar="N", help="Runs a fraction, seeds 0..N-1.")
@click.option("--picture", metavar="FILE", help="Draw the curve: a .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="All runs as one JSON object.")
def curve(fractions: tuple[float, ...], seeds: int, picture: str | None, as_json: bool, **values: Any) -> None:
    """Train on growing parts of TRAIN and score each model on --test; the mean over several seeds, with its range.

    \b
    structpred curve train.txt --test test.txt --format conll2000 --template chunking --trainer sgd -C 0.3 --picture curve.png

    Parts are random, and each contains the smaller ones. The slope at the end shows whether more data would help.
    """
    from structpred.cli.files import check_picture
    from structpred.cli.training import check_usage
    from structpred.evaluation.curves import learning_curve
    from structpred.report.curves import data_curve

    given, n = KIND.completed(values), resolved_passes(values, {})
    run = KIND.training({**given, "missing": ""})  # a label as any other
    check_usage(run)
    check_picture(picture, "--picture", (given["data"], given["dev"]))
    run.read()
    model = run.estimator({"trainer": trainer_of(given["trainer"]), "C": given["C"], "max_iter": n, "check_every": n})
    log.info("%d runs on %s, scored on %s", len(set(fractions)) * seeds, given["data"], given["dev"])
    found = learning_curve(model, *run.train, *run.dev, fractions=fractions, seeds=range(seeds))
    if picture is not None:
        data_curve(found, picture)
    click.echo(json.dumps(found.to_dict()) if as_json else found.table())


curve.params += [param for param in train_command(KIND).params if param.name in _ALIKE or not param.expose_value]
