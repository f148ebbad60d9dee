"""`structpred predict`: what a model gives for new data."""

import logging
from typing import TYPE_CHECKING, Any

import click

from structpred.cli.kinds.kind import Asked
from structpred.cli.model_command import ModelCommand, open_model
from structpred.cli.options import InputFile, general_options, reading_options, refuse, shard_options
from structpred.cli.running_text import check_text, text_options, words_of
from structpred.cli.session import interrupted
from structpred.errors import ParameterError

if TYPE_CHECKING:
    from structpred.distributed import Shards

log = logging.getLogger("structpred.cli")


@click.command(cls=ModelCommand, short_help="Label or parse new data.")
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
@text_options
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
    from structpred.cli.files import check_output
    from structpred.runtime.threads import checked_jobs

    asked, shards = Asked.of(model, data, values), values["shards"]
    check_text(ctx, asked)
    if (asked.kbest is not None or asked.marginals) and not asked.as_json:
        raise click.UsageError("--kbest and --marginals need --json")
    if shards is not None:
        _check_shards(ctx, asked)
    else:
        refuse(ctx, ("scheduler",), "needs --shards")
        checked_jobs(asked.n_jobs)
        check_output(asked.output, "-o", inputs=(model, data))
    estimator, kind = open_model(ctx, model, values)
    if shards is not None:
        # the file of a model does not hold an oracle of the user's own, which workers get with the model
        fitted = asked.model if getattr(estimator, "oracle", None) is None else estimator
        _predict_shards(fitted, kind.shards(estimator, asked, shards), asked)
        return
    if asked.marginals and not getattr(estimator, "probabilistic_", True):
        kbest = "kbest" not in kind.refuses.get("predict", ())
        instead = "--kbest 2 shows how far two are apart" if kbest else "--json alone has scores"
        raise ParameterError(
            f"--marginals: {model} was not trained with the log loss, so its scores are not log-probabilities; train with "
            f"--trainer lbfgs or oeg, or without probabilities: {instead}"
        )
    with words_of(kind, estimator, asked) as found:
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


def _predict_shards(model: Any, shards: "Shards", asked: Asked) -> None:
    from structpred.distributed import predict

    try:
        parts = predict(model, shards, asked.output, asked.own["scheduler"])
    except KeyboardInterrupt:
        raise interrupted("the parts that are complete stay; the same command does the rest") from None
    log.info("wrote %d parts, from %s to %s", len(parts), parts[0], parts[-1])
