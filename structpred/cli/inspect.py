"""`structpred inspect`: what a model has learnt."""

from typing import Any

import click

from structpred.cli.kinds.kind import Asked
from structpred.cli.model_command import ModelCommand, open_model
from structpred.cli.options import InputFile, general_options, known_encoding


@click.command(cls=ModelCommand, short_help="Show what a model has learnt.")
@click.argument("model", type=InputFile())
@click.option(
    "--top", default=20, show_default=True, type=click.IntRange(1), metavar="N",
    help="Strongest weights (parsers: templates) to show.",
)  # fmt: skip
@click.option("--label", metavar="LABEL", help="Only the weights of this label.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with the whole history and all weights of transitions.")
@click.option(
    "--encoding", default="utf-8", show_default=True, metavar="NAME", callback=known_encoding,
    help="No effect here, since no data are read; accepted so that one --config file can serve all commands.",
)  # fmt: skip
@general_options
@click.pass_context
def inspect(ctx: click.Context, /, model: str, **values: Any) -> None:
    """Show settings, certificate, history and weights of the model in the file MODEL.

    For every label the strongest features for (+) and against (-) it, and the transitions that are favoured and avoided. For a
    parser, how large the weights of each template are: which templates matter; and the certificates of both stages. For a
    multi-label model the strongest features of each label, and the pairs that go together or exclude each other.
    """
    estimator, kind = open_model(ctx, model, values)
    click.echo(kind.inspect(estimator, Asked.of(model, "", values)))
