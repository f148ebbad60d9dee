"""`structpred evaluate`: how good a model is on labelled data."""

import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from structpred.cli.options import ReadingOptions, general_options, reading_options, refuse

if TYPE_CHECKING:
    from structpred.cli.corpora import Data
    from structpred.evaluation import Evaluation
    from structpred.models import ChainLabeler, DependencyParser

log = logging.getLogger("structpred.cli")

_CHAIN_ONLY = ("label_column", "folds", "scheme", "pred")
_PARSER_ONLY = ("rules", "intervals", "against")


class Shown(NamedTuple):
    """What is wanted besides the scores; from `rules` on it is about parsers."""

    as_json: bool
    confusion: str | None
    per_type: bool
    rules: str
    intervals: bool
    against: str | None
    reading: ReadingOptions


@click.command(short_help="Judge a model on labelled data.")
@click.argument("model", required=False)
@click.argument("data", required=False)
@click.option("--pred", metavar="FILE", help="Instead of MODEL and DATA: a column file ending in gold and predicted label.")
@click.option("--json", "as_json", is_flag=True, help="All figures as one JSON object.")
@click.option("--confusion", metavar="FILE", help="Draw which label is taken for which: a .png or .svg.")
@click.option("--per-type", is_flag=True, help="A line for each phrase type, relation or label of a set, too.")
@click.option("--gold", metavar="GOLD", help="Instead of MODEL and DATA: this treebank, and one with predictions (or a model).")
@click.option(
    "--rules",
    type=click.Choice(("ud", "conllx", "conll07", "conll07-p")),
    default="ud",
    show_default=True,
    help="Parsers: the rules of which words count and when a relation is right; conll07-p leaves punctuation out.",
)
@click.option("--intervals", is_flag=True, help="Parsers: 95 % intervals, by a bootstrap over sentences.")
@click.option("--against", metavar="OTHER", help="Parsers: a paired test against another model, or a treebank with predictions.")
@click.option(
    "--scheme",
    type=click.Choice(("conlleval", "iob2", "iobes")),
    default="conlleval",
    show_default=True,
    help="What counts as a phrase.",
)
@reading_options
@general_options
@click.pass_context
def evaluate(
    ctx: click.Context,
    /,
    model: str | None,
    data: str | None,
    pred: str | None,
    as_json: bool,
    confusion: str | None,
    per_type: bool,
    gold: str | None,
    rules: str,
    intervals: bool,
    against: str | None,
    scheme: str,
    **values: Any,
) -> None:
    """Compare the labels or trees that MODEL gives to DATA with those that stand there.

    Phrases (B-X I-X) are counted as conlleval does; F1 under strict IOB2 or IOBES is shown beside it. A label in DATA that
    the model has never seen counts as wrong. Trees: UAS and LAS, each with and without punctuation, roots, whole sentences and
    non-projective arcs, under the rules of Universal Dependencies or of a CoNLL shared task. Sets of labels: accuracy, label
    loss, whole sets, micro and macro F1, and with a hierarchy the same along it.

    \b
    structpred evaluate chunk.spz test.txt
    structpred evaluate en.spz test.conllu --intervals --against other.spz
    structpred evaluate --gold test.conllu predicted.conllu --rules conllx
    """
    inputs = [name for name in (model, data, pred, gold, against) if name is not None]
    if inputs.count("-") > 1:
        raise click.UsageError("only one of the files can be standard input")
    if confusion is not None:
        _check_picture(confusion, inputs)
    reading = ReadingOptions(**values)
    shown = Shown(as_json, confusion, per_type, rules, intervals, against, reading)
    if gold is not None:
        refuse(ctx, _CHAIN_ONLY, "is not for treebanks (--gold)")
        if model is None or data is not None:
            raise click.UsageError("--gold GOLD takes one more file: the treebank with predictions, or a model")
        refuse(ctx, ("on_error",), "is not for two treebanks: sentences left out of one would not be left out of the other")
        _judge_trees(model, gold, shown)
    elif pred is not None:
        refuse(ctx, _PARSER_ONLY, "is for parsers only")
        refuse(ctx, ("on_error",), "is not for --pred")
        others = {
            "MODEL": model, "--format": reading.format, "--label-column": reading.label_column, "--folds": reading.folds,
        }  # fmt: skip
        if given := [name for name, value in others.items() if value is not None]:
            raise click.UsageError(f"--pred FILE stands alone, without {' and '.join(given)}")
        _judge_labels(*_two_last_columns(pred, reading.encoding), scheme, shown)
    elif model is None or data is None:
        raise click.UsageError("expected MODEL and DATA, --pred FILE, or --gold GOLD and a file")
    else:
        _judge_model(ctx, model, data, scheme, shown)


def _judge_model(ctx: click.Context, model: str, data: str, scheme: str, shown: Shown) -> None:
    """What is shown of a model depends on its kind."""
    from structpred.cli.treebanks import load_model
    from structpred.errors import DataError
    from structpred.models import ChainLabeler, DependencyParser

    loaded = load_model(model)
    if isinstance(loaded, DependencyParser):
        refuse(ctx, _CHAIN_ONLY, "is not for parsers")
        _judge_trees(loaded, data, shown)
        return
    if not isinstance(loaded, ChainLabeler):
        from structpred.cli.label_results import judge, show

        refuse(ctx, (*_CHAIN_ONLY, *_PARSER_ONLY, "confusion", "on_error"), "is not for multi-label models")
        click.echo(show(*judge(loaded, data, shown.reading), as_json=shown.as_json, long=shown.per_type))
        return
    refuse(ctx, _PARSER_ONLY, "is for parsers only")
    read = read_for(loaded, model, data, shown.reading)
    if read.labels is None:
        raise DataError(f"{data}: expected labels in the last column, as in the training data, but this column is missing")
    predicted = [[str(label) for label in labels] for labels in predict_labels(loaded, read)]
    _judge_labels(read.labels, predicted, scheme, shown)


def _judge_labels(gold: list[list[str]], predicted: list[list[str]], scheme: str, shown: Shown) -> None:
    from structpred.evaluation import evaluate_sequences

    result = evaluate_sequences(gold, predicted, scheme)
    if shown.confusion is not None:
        _draw(gold, predicted, shown.confusion)
    click.echo(result.to_json() if shown.as_json else _table(result, shown.per_type))


def _judge_trees(system: "str | DependencyParser", data: str, shown: Shown) -> None:
    """system: a parser, or a file with predictions or a model."""
    from structpred.cli.parser_evaluate import RULES, judge, judge_model, read_gold, show
    from structpred.evaluation.parsing import relation_pairs

    gold, rules = read_gold(data, shown.reading), RULES[shown.rules]
    if isinstance(system, str):
        scores, trees = judge(system, gold, shown.reading, rules)
    else:
        scores, trees = judge_model(system, gold, rules)
    other = None if shown.against is None else judge(shown.against, gold, shown.reading, rules)[0]
    if shown.confusion is not None:
        _draw(*relation_pairs(gold.trees(), trees, rules), shown.confusion)
    name = shown.against or ""
    click.echo(show(scores, other, name, intervals=shown.intervals, as_json=shown.as_json, long=shown.per_type))


def _check_picture(path: str, inputs: list[str]) -> None:
    from structpred.cli.corpora import check_output
    from structpred.report.figures import check_path

    check_path(path)
    check_output(path, "--confusion", inputs=inputs)


def _draw(gold: list[list[str]], predicted: list[list[str]], path: str) -> None:
    from structpred import report
    from structpred.evaluation import confusion_matrix

    report.confusion(*confusion_matrix(gold, predicted), path)


def read_for(labeler: "ChainLabeler", model: str, data: str, reading: ReadingOptions) -> "Data":
    """Data read as the training data of the labeller, from the file `model`, were."""
    from structpred.cli.corpora import Reader, read_data

    reader = Reader.of_model(labeler, model, reading.format, reading.label_column)
    return read_data(data, reader, reading.folds, encoding=reading.encoding, on_error=reading.on_error)


def predict_labels(labeler: "ChainLabeler", data: "Data") -> list[Any]:
    """The labels of all sequences; says how fast it was."""
    from structpred.cli.corpora import features_of

    start = time.perf_counter()
    predicted: list[Any] = labeler.predict(features_of(data, hashed=labeler.n_bits is not None))
    log.debug("labelled %d tokens in %.2f s, features included", data.n_tokens, time.perf_counter() - start)
    return predicted


def _two_last_columns(path: str, encoding: str) -> tuple[list[list[str]], list[list[str]]]:
    from structpred.errors import DataError
    from structpred.io.columns import read_columns

    rows = read_columns(path, encoding=encoding)
    if rows.n_columns < 2:
        raise DataError(f"{rows.where(0)}: expected at least 2 columns, the last two gold and predicted label, got 1")
    return rows.labels(-2), rows.labels(-1)


def _table(result: "Evaluation", per_type: bool) -> str:
    """The table; without per_type it has one line for all phrases together."""
    lines = result.table().splitlines()
    if not per_type:
        del lines[4 : 4 + len(result.per_type)]
    return "\n".join(lines)
