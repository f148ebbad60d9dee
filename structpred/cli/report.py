"""`structpred report`: a model, and how it does on data, as one HTML page."""

import logging
from typing import Any

import click

from structpred.cli.kinds.kind import Asked
from structpred.cli.model_command import ModelCommand, open_model
from structpred.cli.options import InputFile, Reading, general_options, reading_options, refuse

log = logging.getLogger("structpred.cli")


@click.command(cls=ModelCommand, short_help="Write a page about a model and its errors.")
@click.argument("model", type=InputFile())
@click.argument("data", type=InputFile(), required=False)
@click.option("-o", "--output", required=True, metavar="PAGE", help="The .html file to write.")
@click.option("--title", metavar="TEXT", help="Heading of the page; default: the name of the model file.")
@click.option(
    "--examples",
    default=12,
    show_default=True,
    type=click.IntRange(0),
    metavar="N",
    help="Sequences, sentences or outputs with errors to show.",
)
@click.option("--top", default=15, show_default=True, type=click.IntRange(1), metavar="N", help="Features to show of each label.")
@reading_options
@general_options
@click.pass_context
def report(ctx: click.Context, /, model: str, data: str | None, output: str, **values: Any) -> None:
    """Write a page with the certificate, the course of training, transitions and strongest features of MODEL.

    With labelled DATA also scores, the confusion matrix, and sequences with their errors marked. The page is one file that
    loads nothing from elsewhere. The page of a parser shows scores, relations, distances and the worst sentences as arcs; it
    needs DATA. That of a multi-label model shows which labels occur together, in truth and as predicted; that of a structure
    of your own the worst outputs and which features speak for them.
    """
    from structpred.cli.files import check_output
    from structpred.storage.atomic import write_atomic

    if output == "-":
        raise click.UsageError("-o PAGE must be a file")
    check_output(output, "-o", inputs=(model, data))
    estimator, kind = open_model(ctx, model, values)
    if data is None:
        refuse(ctx, Reading._fields, "needs DATA, which is missing")
    write_atomic(output, kind.page(estimator, Asked.of(model, data or "", values)).encode())
    log.info("wrote %s", output)
