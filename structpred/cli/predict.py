"""What a model gives for data: `structpred predict`; how good that is: `evaluate`, and as a page, `report`."""

import logging
from typing import TYPE_CHECKING, Any

import click

from structpred.cli import model_command
from structpred.cli.files import check_output, check_picture
from structpred.cli.kinds.kind import Asked
from structpred.cli.options import InputFile, Reading, general_options, reading_options, refuse, shard_options
from structpred.cli.session import interrupted
from structpred.errors import ParameterError

if TYPE_CHECKING:
    pass


log = logging.getLogger("structpred.cli")


@click.command(cls=model_command.ModelCommand, short_help="Label or parse new data.")
@click.argument("model", type=InputFile())
@click.argument("data", type=InputFile())
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write; default: standard output.")
@click.option(
    "--json", "as_json", is_flag=True,
    help="One JSON object per sequence: tokens, labels, and their probabilities if there are any.",
)  # fmt: skip
@click.option("--kbest", type=click.IntRange(1), metavar="K", help="With --json: the K best outputs, with scores.")
@click.option(
    "--marginals", is_flag=True,
    help="With --json: the probability of every label, or arc (models trained with the log loss only).",
)  # fmt: skip
@model_command.text_options
@shard_options("DATA", "label or parse")
@click.option("--n-jobs", type=int, metavar="N", help="Threads; -1: all processors. The result is the same for any number.")
@reading_options
@general_options
@click.pass_context
def predict(ctx: click.Context, /, model: str, data: str, **values: Any) -> None:
    """Label or parse DATA with the model in the file MODEL.

    Column files come back with one more column, the predicted label. CRFsuite text gives one label per line, OCR data the id
    and the letter. DATA may contain true labels, which are not used; column files may lack them if they are the last column.
    Treebanks come back with new heads and relations and every other byte unchanged; their HEAD may be _. Multi-label data
    give one line per example, its labels separated by tabs.

    With --text DATA is running text, as people write it: a model of columns gives columns, a parser gives CoNLL-U.

    With --shards each piece of DATA gives a file: --shards 16 --output 'out/{shard:03}.txt'. The same command after an
    interruption does what is left.
    """
    from structpred.runtime.threads import checked_jobs

    asked, shards = Asked.of(model, data, values), values["shards"]
    model_command.check_text(ctx, asked)
    if (asked.kbest is not None or asked.marginals) and not asked.as_json:
        raise click.UsageError("--kbest and --marginals need --json")
    if shards is not None:
        _check_shards(ctx, asked)
    else:
        refuse(ctx, ("scheduler",), "needs --shards")
        checked_jobs(asked.n_jobs)
        check_output(asked.output, "-o", inputs=(model, data))
    estimator, kind = model_command.open_model(ctx, model, values)
    if shards is not None:
        from structpred.distributed import predict as predict_shards

        # the file of a model does not hold an oracle of the user's own, which workers get with the model
        fitted = asked.model if getattr(estimator, "oracle", None) is None else estimator
        pieces = kind.shards(estimator, asked, shards)
        try:
            parts = predict_shards(fitted, pieces, asked.output, asked.own["scheduler"])
        except KeyboardInterrupt:
            raise interrupted("the parts that are complete stay; the same command does the rest") from None
        log.info("wrote %d parts, from %s to %s", len(parts), parts[0], parts[-1])
        return
    if asked.marginals and not getattr(estimator, "probabilistic_", True):
        kbest = "kbest" not in kind.refuses.get("predict", ())
        instead = "--kbest 2 shows how far two are apart" if kbest else "--json alone has scores"
        raise ParameterError(
            f"--marginals: {model} was not trained with the log loss, so its scores are not log-probabilities; train with "
            f"--trainer lbfgs or oeg, or without probabilities: {instead}"
        )
    with model_command.words_of(kind, estimator, asked) as found:
        kind.predict(estimator, found)


def _check_shards(ctx: click.Context, asked: Asked) -> None:
    """Raise UsageError for what shards do not take."""
    refuse(ctx, ("as_json", "kbest", "marginals", "text", "n_jobs"), "cannot be combined with --shards")
    if asked.reading.on_error != "raise":
        raise click.UsageError("--on-error skip cannot be combined with --shards")
    if "{shard" not in asked.output:
        raise click.UsageError("--shards needs --output with the number of the shard, such as 'out/{shard:03}.txt'")
    if "-" in (asked.model, asked.data):
        raise click.UsageError("--shards: MODEL and DATA must be files, not -")


@click.command(cls=model_command.ModelCommand, short_help="Score a model on labelled data.")
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
    kinds = model_command.kinds_of(ctx.obj)
    asked = Asked.of(model or "", data or "", values)
    given = [kind for kind in kinds if kind.instead is not None and asked.own[kind.instead] is not None]
    own = [asked.own.get(str(option.name)) for option in ctx.command.params if isinstance(option.type, InputFile)]
    inputs = [name for name in (model, data, *own) if name is not None]
    if inputs.count("-") > 1:
        raise click.UsageError("only one of the files can be standard input")
    check_picture(asked.confusion, "--confusion", inputs)
    if given:
        model_command.refuse_foreign(ctx, given[0])
        click.echo(given[0].evaluate_files(ctx, model, asked))
        return
    if model is None or data is None:
        instead = {kind.instead for kind in kinds}
        others = [f"{option.opts[0]} {option.metavar}" for option in ctx.command.params if option.name in instead]
        raise click.UsageError(f"expected MODEL and DATA, or one of {', '.join(others)} (see --help)")
    estimator, kind = model_command.open_model(ctx, model, values)
    click.echo(kind.evaluate(estimator, asked))


@click.command(cls=model_command.ModelCommand, short_help="Write a page about a model and its errors.")
@click.argument("model", type=InputFile())
@click.argument("data", type=InputFile(), required=False)
@click.option("-o", "--output", required=True, metavar="PAGE", help="The .html file to write.")
@click.option("--title", metavar="TEXT", help="Heading of the page; default: the name of the model file.")
@click.option(
    "--examples", default=12, show_default=True, type=click.IntRange(0), metavar="N",
    help="Sequences, sentences or outputs with errors to show.",
)  # fmt: skip
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
    from structpred.storage.atomic import write_atomic

    if output == "-":
        raise click.UsageError("-o PAGE must be a file")
    check_output(output, "-o", inputs=(model, data))
    estimator, kind = model_command.open_model(ctx, model, values)
    if data is None:
        refuse(ctx, Reading._fields, "needs DATA, which is missing")
    write_atomic(output, kind.page(estimator, Asked.of(model, data or "", values)).encode())
    log.info("wrote %s", output)
