"""`structpred evaluate`: how good a model is on labelled data."""

import logging
import time
from typing import TYPE_CHECKING, Any

import click

from structpred.cli.options import general_options, reading_options

if TYPE_CHECKING:
    from structpred.cli.corpora import Data
    from structpred.evaluation import Evaluation
    from structpred.models import ChainLabeler

log = logging.getLogger("structpred.cli")


@click.command(short_help="Judge a model on labelled data.")
@click.argument("model", required=False)
@click.argument("data", required=False)
@click.option("--pred", metavar="FILE", help="Instead of MODEL and DATA: a column file ending in gold and predicted label.")
@click.option("--json", "as_json", is_flag=True, help="All figures as one JSON object.")
@click.option("--confusion", metavar="FILE", help="Draw which label is taken for which: a .png or .svg.")
@click.option("--per-type", is_flag=True, help="A line for each phrase type, too.")
@click.option(
    "--scheme",
    type=click.Choice(("conlleval", "iob2", "iobes")),
    default="conlleval",
    show_default=True,
    help="What counts as a phrase.",
)
@reading_options
@general_options
def evaluate(
    model: str | None,
    data: str | None,
    pred: str | None,
    as_json: bool,
    confusion: str | None,
    per_type: bool,
    scheme: str,
    format: str | None,
    label_column: int | None,
    folds: tuple[int, ...] | None,
) -> None:
    """Compare the labels that MODEL gives to DATA with the labels that stand there.

    Phrases (B-X I-X) are counted as conlleval does; F1 under strict IOB2 or IOBES is shown beside it. A label in DATA that
    the model has never seen counts as wrong.
    """
    from structpred.errors import DataError
    from structpred.evaluation import evaluate_sequences

    if confusion is not None:
        _check_picture(confusion, [name for name in (model, data, pred) if name is not None])
    if pred is not None:
        others = {"MODEL": model, "--format": format, "--label-column": label_column, "--folds": folds}
        if given := [name for name, value in others.items() if value is not None]:
            raise click.UsageError(f"--pred FILE stands alone, without {' and '.join(given)}")
        gold, predicted = _two_last_columns(pred)
    elif model is None or data is None:
        raise click.UsageError("expected MODEL and DATA, or --pred FILE")
    else:
        labeler, read = load_and_read(model, data, format, label_column, folds)
        if read.labels is None:
            raise DataError(f"{data}: expected labels in the last column, as in the training data, but this column is missing")
        gold, predicted = read.labels, [[str(label) for label in labels] for labels in predict_labels(labeler, read)]
    result = evaluate_sequences(gold, predicted, scheme)
    if confusion is not None:
        _draw(gold, predicted, confusion)
    click.echo(result.to_json() if as_json else _table(result, per_type))


def _check_picture(path: str, inputs: list[str]) -> None:
    from structpred.cli.corpora import check_output
    from structpred.report.figures import check_path

    check_path(path)
    check_output(path, "--confusion", inputs=inputs)


def _draw(gold: list[list[str]], predicted: list[list[str]], path: str) -> None:
    from structpred import report
    from structpred.evaluation import confusion_matrix

    report.confusion(*confusion_matrix(gold, predicted), path)


def load_and_read(
    model: str, data: str, format: str | None, label_column: int | None, folds: tuple[int, ...] | None, *, ids: bool = False
) -> tuple["ChainLabeler", "Data"]:
    """A model, and data read as the model's training data were; with `ids`, those of OCR letters, too."""
    from structpred.cli.corpora import Reader, read_data
    from structpred.models import ChainLabeler

    labeler = ChainLabeler.load(model)
    return labeler, read_data(data, Reader.of_model(labeler, model, format, label_column), folds, ids=ids)


def predict_labels(labeler: "ChainLabeler", data: "Data") -> list[Any]:
    """The labels of all sequences; says how fast it was."""
    from structpred.cli.corpora import features_of

    start = time.perf_counter()
    predicted: list[Any] = labeler.predict(features_of(data, hashed=labeler.n_bits is not None))
    log.debug("labelled %d tokens in %.2f s, features included", data.n_tokens, time.perf_counter() - start)
    return predicted


def _two_last_columns(path: str) -> tuple[list[list[str]], list[list[str]]]:
    from structpred.errors import DataError
    from structpred.io.columns import read_columns

    rows = read_columns(path)
    if rows.n_columns < 2:
        raise DataError(f"{rows.where(0)}: expected at least 2 columns, the last two gold and predicted label, got 1")
    return rows.labels(-2), rows.labels(-1)


def _table(result: "Evaluation", per_type: bool) -> str:
    """The table; without per_type it has one line for all phrases together."""
    lines = result.table().splitlines()
    if not per_type:
        del lines[4 : 4 + len(result.per_type)]
    return "\n".join(lines)
