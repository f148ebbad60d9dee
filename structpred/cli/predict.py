"""`structpred predict`: the labels a model gives to new data."""

import click

from structpred.cli.options import general_options, reading_options


@click.command(short_help="Label new data.")
@click.argument("model")
@click.argument("data")
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write; default: standard output.")
@reading_options
@general_options
def predict(
    model: str, data: str, output: str, format: str | None, label_column: int | None, folds: tuple[int, ...] | None
) -> None:
    """Label DATA with the model in the file MODEL.

    Column files come back with one more column, the predicted label; CRFsuite text gives one label a line; OCR data give
    the id and the letter. DATA may have its true labels or, in column files where they stand last, not; they are not used.
    """
    from structpred.cli import corpora
    from structpred.cli.evaluate import load_and_read, predict_labels

    corpora.check_output(output, "-o", inputs=(model, data))
    labeler, read = load_and_read(model, data, format, label_column, folds, ids=True)
    corpora.write_output(output, corpora.format_predictions(read, predict_labels(labeler, read)))
