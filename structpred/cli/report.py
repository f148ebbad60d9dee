"""`structpred report`: a model, and how it does on data, as one HTML page."""

import logging
from typing import TYPE_CHECKING, Any

import click

from structpred.cli.options import ReadingOptions, general_options, reading_options, refuse

if TYPE_CHECKING:
    from structpred.cli.corpora import Data
    from structpred.models import ChainLabeler, DependencyParser
    from structpred.report.page import Contents, Example

log = logging.getLogger("structpred.cli")

_MOST_TOKENS = 120
_MOST_CANDIDATES = 4
_NEAR = 0.1  # of the primal: a larger gap is a proof, too, but of little


@click.command(short_help="Write a page about a model and its errors.")
@click.argument("model")
@click.argument("data", required=False)
@click.option("-o", "--output", required=True, metavar="PAGE", help="The .html file to write.")
@click.option("--title", metavar="TEXT", help="Heading of the page; default: the name of the model file.")
@click.option(
    "--examples", default=12, show_default=True, type=click.IntRange(0), metavar="N", help="Sequences with errors to show."
)
@click.option("--top", default=15, show_default=True, type=click.IntRange(1), metavar="N", help="Features to show of each label.")
@click.option(
    "--rules",
    type=click.Choice(("ud", "conllx", "conll07", "conll07-p")),
    default="ud",
    show_default=True,
    help="Parsers: the rules of which words count and when a relation is right.",
)
@reading_options
@general_options
@click.pass_context
def report(
    ctx: click.Context,
    /,
    model: str,
    data: str | None,
    output: str,
    title: str | None,
    examples: int,
    top: int,
    rules: str,
    **values: Any,
) -> None:
    """Write a page with the certificate, the course of training, transitions and strongest features of MODEL.

    With labelled DATA also scores, the confusion matrix, and sequences with their errors marked. The page is one file that
    loads nothing from elsewhere. The page of a parser shows scores, relations, distances and the worst sentences as arcs; it
    needs DATA.
    """
    from dataclasses import replace

    from structpred.cli import corpora
    from structpred.cli.evaluate import read_for
    from structpred.cli.treebanks import load_model
    from structpred.errors import DataError
    from structpred.models import ChainLabeler, DependencyParser
    from structpred.report.page import write_page

    if output == "-":
        raise click.UsageError("-o PAGE must be a file")
    reading = ReadingOptions(**values)
    corpora.check_output(output, "-o", inputs=[name for name in (model, data) if name is not None])
    labeler = load_model(model)
    if isinstance(labeler, DependencyParser):
        refuse(ctx, ("label_column", "folds", "top"), "is not for parsers")
        if data is None:
            raise click.UsageError("the page of a parser needs DATA: MODEL DATA -o PAGE")
        _report_trees(labeler, model, data, output, reading, rules=rules, title=title, examples=examples)
        return
    refuse(ctx, ("rules",), "is for parsers only")
    if not isinstance(labeler, ChainLabeler):
        from structpred.cli.label_inspect import label_page
        from structpred.storage.atomic import write_atomic

        refuse(ctx, ("label_column", "folds", "on_error", "examples"), "is not for multi-label models")
        write_atomic(output, label_page(labeler, model, data, reading, title, top).encode())
        log.info("wrote %s", output)
        return
    if data is None:
        refuse(ctx, ReadingOptions._fields, "is about DATA, which is missing")
        contents = model_contents(labeler, model, title, top)
    else:
        read = read_for(labeler, model, data, reading)
        if read.labels is None:
            raise DataError(f"{data}: expected labels in the last column, as in the training data, but this column is missing")
        contents = replace(model_contents(labeler, model, title, top), **judged(labeler, read, examples))
    write_page(contents, output)
    log.info("wrote %s", output)


def _report_trees(
    parser: "DependencyParser",
    model: str,
    data: str,
    output: str,
    reading: ReadingOptions,
    *,
    rules: str,
    title: str | None,
    examples: int,
) -> None:
    from structpred.cli.parser_inspect import parser_contents
    from structpred.report import parsing_report
    from structpred.storage.atomic import write_atomic

    contents = parser_contents(parser, model, data, reading, rules=rules, title=title, examples=examples)
    write_atomic(output, parsing_report(contents).encode())
    log.info("wrote %s", output)


def model_contents(labeler: "ChainLabeler", path: str, title: str | None, top: int) -> "Contents":
    """What the page says of the model alone."""
    import numpy as np

    from structpred.cli.inspect import describe_facts, model_facts
    from structpred.models.chain.constraints import resolve_constraints
    from structpred.report.page import Contents, Weights

    found = labeler.top_features(top)
    edges = labeler.transitions_
    start, stop = (np.array([getattr(entry, side) for entry in found.labels]) for side in ("start", "stop"))
    if (rules := resolve_constraints(labeler.constraints)) is not None:
        follow, first, last = rules.tables(labeler.classes_.tolist())
        edges, start, stop = (np.where(may, w, -np.inf) for may, w in ((follow, edges), (first, start), (last, stop)))
    gap = labeler.certificate_.relative_gap
    facts = [pair for pair in describe_facts(model_facts(path)) if pair[0] != "certificate"]
    used = f"{found.n_features}, {found.n_features_used} of them with a weight"
    return Contents(
        title=title or path,
        facts=[*facts, ("features", used), ("labels", str(len(labeler.classes_)))],
        certificate=str(labeler.certificate_),
        proven=labeler.certificate_.proven and gap is not None and gap <= _NEAR,
        history=labeler.history_,
        labels=[str(label) for label in labeler.classes_.tolist()],
        transitions=edges,
        start=start,
        stop=stop,
        templates=_pixel_weights(labeler),
        weights=[Weights(str(entry.label), entry.positive, entry.negative) for entry in found.labels],
    )


def _pixel_weights(labeler: "ChainLabeler") -> list[tuple[str, Any]]:
    """The weights of each label as an image, for OCR data; nothing for other features."""
    from structpred.io.ocr import N_PIXELS

    known: dict[str, Any] = getattr(labeler, "reader_", None) or {}
    if known.get("format") != "ocr" or labeler.n_features_in_ != N_PIXELS:
        return []
    table = labeler.emissions_
    return [(str(label), table[:, k].reshape(-1, 8)) for k, label in enumerate(labeler.classes_.tolist())]


def judged(labeler: "ChainLabeler", read: "Data", n_examples: int) -> dict[str, Any]:
    """What the page says of the data: scores, confusions, examples."""
    from structpred.cli.corpora import tokens_of
    from structpred.cli.evaluate import predict_labels
    from structpred.evaluation import confusion_matrix, evaluate_sequences

    gold = read.labels or []
    predicted = [[str(label) for label in labels] for labels in predict_labels(labeler, read)]
    wrong = [i for i, (one, other) in enumerate(zip(gold, predicted, strict=True)) if one != other]
    right = [i for i, (one, other) in enumerate(zip(gold, predicted, strict=True)) if one == other]
    chosen = _spread(wrong, n_examples)
    chosen += _spread(right, n_examples - len(chosen))
    tokens = tokens_of(read) if chosen else []
    return {
        "data": read.corpus.name,
        "evaluation": evaluate_sequences(gold, predicted),
        "confusion": confusion_matrix(gold, predicted),
        "examples": [_example(labeler, read, i, predicted[i], tokens[i]) for i in chosen],
        "sureness": "probability" if labeler.probabilistic_ else "score gap",
    }


def _spread(numbers: list[int], n: int) -> list[int]:
    """n of the numbers, evenly spread; all where there are fewer."""
    step = max(1, len(numbers) // n) if n > 0 else 1
    return numbers[::step][: max(n, 0)]


def _example(labeler: "ChainLabeler", read: "Data", i: int, predicted: list[str], tokens: list[str]) -> "Example":
    """Sequence i with how sure the model is of each label; very long ones are cut."""
    from structpred.cli.corpora import Data, features_of
    from structpred.evaluation.selection import select_sequences
    from structpred.io.ocr import OcrWords
    from structpred.report.page import Example

    corpus = select_sequences(read.corpus, [i])
    gold = (read.labels or [])[i]
    x = features_of(Data(corpus, None, 1, len(gold)), hashed=labeler.n_bits is not None)
    classes = [str(label) for label in labeler.classes_.tolist()]
    candidates: list[list[tuple[str, float]]] = []
    if labeler.probabilistic_:
        marginals = labeler.predict_marginals(x)[0]
        sure = [float(row[classes.index(label)]) for row, label in zip(marginals, predicted, strict=True)]
        orders = (-marginals).argsort(axis=1, kind="stable")[:, :_MOST_CANDIDATES].tolist()
        candidates = [[(classes[k], float(row[k])) for k in order] for row, order in zip(marginals, orders, strict=True)]
    else:
        sure = labeler.predict_score_gaps(x)[0].tolist()
    n = min(len(gold), _MOST_TOKENS)
    images = corpus.pixels.reshape(-1, 16, 8)[:n] if isinstance(corpus, OcrWords) else None
    where = f"line {int(corpus.lines[0])}" + (f", the first {n} of {len(gold)} tokens" if n < len(gold) else "")
    return Example(where, tokens[:n], gold[:n], predicted[:n], sure[:n], images, candidates[:n])
