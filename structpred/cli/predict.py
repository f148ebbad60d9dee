"""`structpred predict`: the labels a model gives to new data."""

import json
from typing import TYPE_CHECKING, Any

import click

from structpred.cli.options import ReadingOptions, general_options, reading_options, refuse

if TYPE_CHECKING:
    from structpred.cli.corpora import Data
    from structpred.models import ChainLabeler


@click.command(short_help="Label or parse new data.")
@click.argument("model")
@click.argument("data")
@click.option("-o", "--output", default="-", metavar="FILE", help="Where to write; default: standard output.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One JSON object a sequence: tokens, labels, and their probabilities if there are any.",
)
@click.option(
    "--kbest", type=click.IntRange(1), metavar="K", help="With --json: the K best label sequences or trees, with scores."
)
@click.option(
    "--marginals",
    is_flag=True,
    help="With --json: the probability of every label of each token (oeg, lbfgs only), or of every arc (any parser).",
)
@click.option(
    "--projective/--non-projective", "projective", default=None, help="Parsers: the trees to look for. Default: as trained."
)
@click.option("--multi-root", is_flag=True, help="Parsers: any number of words may hang on the root.")
@click.option("--n-jobs", type=int, metavar="N", help="Threads; -1: all processors. The result is the same for any number.")
@reading_options
@general_options
@click.pass_context
def predict(
    ctx: click.Context,
    /,
    model: str,
    data: str,
    output: str,
    as_json: bool,
    kbest: int | None,
    marginals: bool,
    projective: bool | None,
    multi_root: bool,
    n_jobs: int | None,
    **values: Any,
) -> None:
    """Label or parse DATA with the model in the file MODEL.

    Column files come back with one more column, the predicted label; CRFsuite text gives one label a line; OCR data give
    the id and the letter. DATA may have its true labels or, in column files where they stand last, not; they are not used.
    Treebanks come back with new heads and relations, every other byte as it was, whether they have heads or _. Multi-label data
    give one line an example, its labels separated by tabs.
    """
    from structpred.cli import corpora, treebanks
    from structpred.cli.evaluate import predict_labels, read_for
    from structpred.models import ChainLabeler, DependencyParser
    from structpred.runtime.threads import checked_jobs

    if (kbest is not None or marginals) and not as_json:
        raise click.UsageError("--kbest and --marginals need --json")
    checked_jobs(n_jobs)
    reading = ReadingOptions(**values)
    corpora.check_output(output, "-o", inputs=(model, data))
    labeler = treebanks.load_model(model)
    if not isinstance(labeler, ChainLabeler | DependencyParser):
        from structpred.cli.label_results import predict_sets

        others = ("label_column", "folds", "on_error", "projective", "multi_root", "kbest", "n_jobs")
        refuse(ctx, others, "is not for multi-label models")
        predict_sets(labeler, data, output, reading, as_json=as_json, marginals=marginals)
        return
    labeler.n_jobs = labeler.n_jobs if n_jobs is None else n_jobs
    if isinstance(labeler, DependencyParser):
        refuse(ctx, ("label_column", "folds"), "is not for parsers")
        wanted = treebanks.Wanted(projective, False if multi_root else None)
        if as_json:
            treebanks.predict_json(labeler, data, output, reading, wanted, kbest=kbest, marginals=marginals)
        else:
            treebanks.predict_treebank(labeler, data, output, reading, wanted)
        return
    refuse(ctx, ("projective", "multi_root"), "is for parsers only")
    read = read_for(labeler, model, data, reading)
    corpora.refuse_running_text(read, [str(label) for label in labeler.classes_.tolist()])
    if as_json:
        text = "".join(f"{json.dumps(entry)}\n" for entry in describe(labeler, read, kbest, marginals))
    else:
        text = corpora.format_predictions(read, predict_labels(labeler, read))
    corpora.write_output(output, text)


def describe(labeler: "ChainLabeler", data: "Data", kbest: int | None, marginals: bool) -> list[dict[str, Any]]:
    """One entry a sequence, as `--json` writes it. Raises ParameterError for marginals of a model that has none."""
    from structpred.cli.corpora import features_of, tokens_of

    X = features_of(data, hashed=labeler.n_bits is not None)
    predicted, names = labeler.predict(X), [str(label) for label in labeler.classes_.tolist()]
    entries: list[dict[str, Any]] = [
        {"tokens": tokens, "labels": [str(label) for label in labels]}
        for tokens, labels in zip(tokens_of(data), predicted, strict=True)
    ]
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
