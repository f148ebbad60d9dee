"""`structpred export`: a model as a program of its own, which needs NumPy alone."""

import logging

import click

from structpred.cli.model_command import open_model
from structpred.cli.options import InputFile, general_options

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
    from structpred.cli.files import check_output
    from structpred.export import export_predictor

    check_output(output, "-o", inputs=(model,))
    estimator, _ = open_model(ctx, model, {})
    files = export_predictor(estimator, output)
    sizes = [path.stat().st_size for path in files]
    log.info("wrote %s (%s bytes) and %s (%s bytes)", files.program, f"{sizes[0]:,}", files.weights, f"{sizes[1]:,}")
