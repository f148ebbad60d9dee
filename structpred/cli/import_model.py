"""`structpred import`: a model that CRFsuite wrote, as one of structpred's."""

import logging

import click

from structpred.cli.files import check_output
from structpred.cli.options import Choice, InputFile, general_options


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
    n_labels, n_features = len(labeler.classes_), labeler.n_features_in_
    logging.getLogger("structpred.cli").info("wrote %s: %d labels, %s features", output, n_labels, f"{n_features:,}")
