"""`structpred predict`: what a model gives for new data."""

from typing import Any

import click

from structpred.cli.kinds.kind import Predicting
from structpred.cli.model_command import ModelCommand, open_model, refuse_foreign
from structpred.cli.options import InputFile, general_options, reading_options


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
    help="With --json: the probability of every label (models trained with the log loss only), or of every arc (any parser).",
)  # fmt: skip
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
    """
    from structpred.cli.files import check_output
    from structpred.runtime.threads import checked_jobs

    asked = Predicting.of(model, data, values)
    if (asked.kbest is not None or asked.marginals) and not asked.as_json:
        raise click.UsageError("--kbest and --marginals need --json")
    checked_jobs(asked.n_jobs)
    check_output(asked.output, "-o", inputs=(model, data))
    estimator, kind = open_model(ctx.obj, model, values)
    refuse_foreign(ctx, kind)
    kind.predict(estimator, asked)
