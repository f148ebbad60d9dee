"""`structpred predict`: the labels a model gives to new data."""

import json
from typing import TYPE_CHECKING, Any

import click

from structpred.cli.options import general_options, reading_options

if TYPE_CHECKING:
    from structpred.cli.corpora import Data
    from structpred.models import ChainLabeler


@click.command(short_help="Label new data.")
@click.argument("model")
@click.argument("data")
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write; default: standard output.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a sequence: labels, and their probabilities if there are any."
)
@click.option("--kbest", type=click.IntRange(1), metavar="K", help="With --json: the K best label sequences, with scores.")
@click.option("--marginals", is_flag=True, help="With --json: the probability of every label of each token (oeg, lbfgs only).")
@click.option("--n-jobs", type=int, metavar="N", help="Threads; -1: all processors. The result is the same for any number.")
@reading_options
@general_options
def predict(
    model: str,
    data: str,
    output: str,
    as_json: bool,
    kbest: int | None,
    marginals: bool,
    n_jobs: int | None,
    format: str | None,
    label_column: int | None,
    folds: tuple[int, ...] | None,
) -> None:
    """Label DATA with the model in the file MODEL.

    Column files come back with one more column, the predicted label; CRFsuite text gives one label a line; OCR data give
    the id and the letter. DATA may have its true labels or, in column files where they stand last, not; they are not used.
    """
    from structpred.cli import corpora
    from structpred.cli.evaluate import load_and_read, predict_labels
    from structpred.core.threads import checked_jobs

    if (kbest is not None or marginals) and not as_json:
        raise click.UsageError("--kbest and --marginals need --json")
    checked_jobs(n_jobs)
    corpora.check_output(output, "-o", inputs=(model, data))
    labeler, read = load_and_read(model, data, format, label_column, folds, ids=True)
    labeler.n_jobs = labeler.n_jobs if n_jobs is None else n_jobs
    if as_json:
        text = "".join(f"{json.dumps(entry)}\n" for entry in describe(labeler, read, kbest, marginals))
    else:
        text = corpora.format_predictions(read, predict_labels(labeler, read))
    corpora.write_output(output, text)


def describe(labeler: "ChainLabeler", data: "Data", kbest: int | None, marginals: bool) -> list[dict[str, Any]]:
    """One entry a sequence, as `--json` writes it. Raises ParameterError for marginals of a model that has none."""
    from structpred.cli.corpora import features_of

    X = features_of(data, hashed=labeler.n_bits is not None)
    predicted, names = labeler.predict(X), [str(label) for label in labeler.classes_.tolist()]
    entries: list[dict[str, Any]] = [{"labels": [str(label) for label in labels]} for labels in predicted]
    if labeler.probabilistic_ or marginals:
        code = {name: k for k, name in enumerate(names)}
        for entry, table in zip(entries, labeler.predict_marginals(X), strict=True):
            rows = table.tolist()
            entry["probabilities"] = [row[code[label]] for row, label in zip(rows, entry["labels"], strict=True)]
            if marginals:
                entry["marginals"] = [dict(zip(names, row, strict=True)) for row in rows]
    if kbest is not None:
        for entry, best in zip(entries, labeler.predict_kbest(X, kbest), strict=True):
            entry["kbest"] = [{"labels": [str(label) for label in labels], "score": score} for labels, score in best]
    return entries
