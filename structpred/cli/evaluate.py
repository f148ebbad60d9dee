"""`structpred evaluate`: how good a model is on labelled data."""

from typing import Any

import click

from structpred.cli.files import check_picture
from structpred.cli.kinds.kind import Asked
from structpred.cli.model_command import ModelCommand, kinds_of, open_model, refuse_foreign
from structpred.cli.options import InputFile, general_options, reading_options


@click.command(cls=ModelCommand, short_help="Score a model on labelled data.")
@click.argument("model", type=InputFile(), required=False)
@click.argument("data", type=InputFile(), required=False)
@click.option("--json", "as_json", is_flag=True, help="All figures as one JSON object.")
@click.option("--confusion", metavar="FILE", help="Draw which label is predicted for which: a .png or .svg.")
@click.option(
    "--per-type", is_flag=True,
    help="Also print a line for each phrase type (or label), relation, or label of a set.",
)  # fmt: skip
@reading_options
@general_options
@click.pass_context
def evaluate(ctx: click.Context, /, model: str | None, data: str | None, **values: Any) -> None:
    """Compare the labels or trees that MODEL predicts for DATA with the true ones in DATA.

    Phrases (B-X I-X) are counted as conlleval does; F1 under strict IOB2 or IOBES is shown next to it. A label in DATA that
    the model has never seen counts as wrong. Trees: UAS and LAS, each with and without punctuation, roots, whole sentences and
    non-projective arcs, under the rules of Universal Dependencies or of a CoNLL shared task. Sets of labels: accuracy, label
    loss, whole sets, micro and macro F1, and with a hierarchy the same along it.

    \b
    structpred evaluate chunk.spz test.txt
    structpred evaluate en.spz test.conllu --intervals --against other.spz
    structpred evaluate --gold test.conllu predicted.conllu --rules conllx
    """
    kinds = kinds_of(ctx.obj)
    asked = Asked.of(model or "", data or "", values)
    given = [kind for kind in kinds if kind.instead is not None and asked.own[kind.instead] is not None]
    own = [asked.own.get(str(option.name)) for option in ctx.command.params if isinstance(option.type, InputFile)]
    inputs = [name for name in (model, data, *own) if name is not None]
    if inputs.count("-") > 1:
        raise click.UsageError("only one of the files can be standard input")
    check_picture(asked.confusion, "--confusion", inputs)
    if given:
        refuse_foreign(ctx, given[0])
        click.echo(given[0].evaluate_files(ctx, model, asked))
        return
    if model is None or data is None:
        instead = {kind.instead for kind in kinds}
        others = [f"{option.opts[0]} {option.metavar}" for option in ctx.command.params if option.name in instead]
        raise click.UsageError(f"expected MODEL and DATA, or one of {', '.join(others)} (see --help)")
    estimator, kind = open_model(ctx, model, values)
    click.echo(kind.evaluate(estimator, asked))
