"""Models for other programs, and of them: `structpred export` and `structpred import`."""

import logging

import click

from structpred.cli.files import check_output
from structpred.cli.model_command import open_model
from structpred.cli.options import Choice, InputFile, general_options

log = logging.getLogger("structpred.cli")


@click.command(short_help="Write a model as a program that needs NumPy alone.")
@click.argument("model", type=InputFile())
@click.option("-o", "--output", required=True, metavar="PROGRAM", help="The program, such as tagger.py; its weights lie beside.")
@general_options
@click.pass_context
def export(ctx: click.Context, model: str, output: str) -> None:
    """Write the sequence labeller or multi-label model in MODEL as one Python file and its weights, for deployment.

    \b
    structpred export chunk.spz -o tagger.py
    python tagger.py test.txt > tagged.txt

    The program predicts the same labels, bit for bit, and writes what `structpred predict` does. It needs NumPy alone: no
    structpred, no compiler. As a module it has predict(X). What it cannot do is refused here.
    """
    from structpred.export import export_predictor

    check_output(output, "-o", inputs=(model,))
    estimator, _ = open_model(ctx, model, {})
    files = export_predictor(estimator, output)
    sizes = [path.stat().st_size for path in files]
    log.info("wrote %s (%s bytes) and %s (%s bytes)", files.program, f"{sizes[0]:,}", files.weights, f"{sizes[1]:,}")


@click.command("import", short_help="Make a model of one that CRFsuite wrote.")
@click.argument("model", type=InputFile())
@click.option("-o", "--output", required=True, metavar="FILE", help="The model, such as tagger.spz.")
@click.option(
    "--algorithm", type=Choice(["lbfgs", "l2sgd", "ap", "pa", "arow"]), default="lbfgs", show_default=True,
    help="What it was trained with, which its file does not say. After lbfgs and l2sgd there are probabilities.",
)  # fmt: skip
@general_options
def import_model(model: str, output: str, algorithm: str) -> None:
    """Write the model that CRFsuite, python-crfsuite or sklearn-crfsuite left in the file MODEL as one of structpred's.

    \b
    structpred import tagger.crfsuite -o tagger.spz
    structpred predict tagger.spz test.crfsuite

    It predicts the same labels from the same features. python-crfsuite reads the file:
    python -m pip install 'structpred[crfsuite]'
    """
    from structpred.compat.pycrfsuite import load_crfsuite

    check_output(output, "-o", inputs=(model,))
    labeler = load_crfsuite(model, algorithm)
    labeler.reader_ = {"format": "crfsuite"}
    labeler.save(output)
    log.info("wrote %s: %d labels, %s features", output, len(labeler.classes_), f"{labeler.n_features_in_:,}")
