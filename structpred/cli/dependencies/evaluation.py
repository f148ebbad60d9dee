"""What `structpred evaluate` does for parsers: scores under named rules, intervals, and a paired test of two systems."""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from structpred.cli.dependencies.data import read
from structpred.cli.kinds.kind import Asked, Scored
from structpred.cli.options import Reading
from structpred.errors import DataError
from structpred.evaluation import (
    CONLL07,
    CONLL07_WITHOUT_PUNCTUATION,
    CONLLX,
    UD,
    Comparison,
    ParsingRules,
    ParsingScores,
    compare_parsers,
    confusion_matrix,
    evaluate_treebanks,
    evaluate_trees,
    parsing_interval,
)
from structpred.evaluation.bootstrap import PARSING_METRICS
from structpred.io.treebanks.treebank import Tree, Treebank

if TYPE_CHECKING:
    from structpred.models import DependencyParser

#: the names of `--rules`
RULES = {"ud": UD, "conllx": CONLLX, "conll07": CONLL07, "conll07-p": CONLL07_WITHOUT_PUNCTUATION}
_NAMES = {
    "uas": "UAS",
    "las": "LAS",
    "label_accuracy": "labels",
    "exact_match": "exact match",
    "root_accuracy": "root",
    "exact_match_labelled": "exact match, labelled",
}


def scored(system: "str | DependencyParser", asked: Asked, read_before: Treebank | None = None) -> Scored:
    """The scores on labelled data. system: a parser, or a file with predictions or a model."""
    gold = read_gold(asked.data, asked.reading) if read_before is None else read_before
    rules, against = RULES[asked.own["rules"]], asked.own["against"]
    if isinstance(system, str):
        scores, trees = judge(system, gold, asked.reading, rules)
    else:
        scores, trees = judge_model(system, gold, rules)
    other = None if against is None else judge(against, gold, asked.reading, rules)[0]
    if asked.confusion is not None:
        from structpred import report
        from structpred.evaluation.parsing import relation_pairs

        report.confusion(*confusion_matrix(*relation_pairs(gold.trees(), trees, rules)), asked.confusion)
    return _shown(scores, other, asked)


def read_gold(path: str, reading: Reading) -> Treebank:
    """A treebank that has trees. Raises DataError where it does not, naming the line."""
    treebank = read(path, reading)
    treebank.trees()  # raises where a head is missing
    return treebank


def judge_model(model: "DependencyParser", gold: Treebank, rules: ParsingRules) -> tuple[ParsingScores, list[Tree]]:
    """The scores of a parser on a treebank, and its trees."""
    trees = model.predict(gold)
    sentences = gold.sentences()
    forms, upos = [s.forms for s in sentences], [s.upos for s in sentences]
    return evaluate_trees(gold.trees(), trees, forms=forms, upos=upos, rules=rules), trees


def judge(path: str, gold: Treebank, reading: Reading, rules: ParsingRules) -> tuple[ParsingScores, list[Tree]]:
    """The same for a file: a treebank with predictions, or a model."""
    from structpred.models.files import load_estimator

    if _is_archive(path):
        return judge_model(load_estimator(path, "DependencyParser", "ParsingPipeline"), gold, rules)
    # the rules decide what predictions must be like: some allow several roots, even cycles
    predicted = read(path, reading._replace(on_error="raise"), check_trees=False)
    return evaluate_treebanks(gold, predicted, rules), predicted.trees()


def _is_archive(path: str) -> bool:
    """Whether a file looks like a model, which is a zip archive."""
    if path == "-":
        return False
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"PK"
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def _shown(scores: ParsingScores, other: ParsingScores | None, asked: Asked) -> Scored:
    """All figures. other: the scores of a second system; a paired test of both, of LAS where both have relations."""
    intervals, name = asked.own["intervals"], asked.own["against"]
    figures: dict[str, Any] = scores.to_dict()
    parts = [(scores if asked.per_type else replace(scores, per_relation={})).table()]
    if intervals:
        found = [parsing_interval(scores, metric) for metric in PARSING_METRICS if getattr(scores, metric) is not None]
        figures["intervals"] = {one.metric: {"low": one.low, "high": one.high} for one in found}
        lines = [f"{_NAMES[one.metric]:<22} {100 * one.low:6.2f} to {100 * one.high:6.2f}" for one in found]
        parts.append("\n".join(["95 % intervals, by a bootstrap over sentences", *lines]))
    if other is not None:
        compared = [metric for metric in ("uas", "las") if None not in (getattr(scores, metric), getattr(other, metric))]
        tests = [compare_parsers(scores, other, metric) for metric in compared]
        figures["against"] = {"name": name, **{test.metric: asdict(test) for test in tests}}
        parts.append("\n".join([f"against {name}", *map(_test, tests)]))
    return Scored(figures, "\n\n".join(parts))


def _test(t: Comparison) -> str:
    apart = f"{100 * t.difference:+.2f} ({100 * t.low:+.2f} to {100 * t.high:+.2f})"
    return f"{_NAMES[t.metric]:<4} {100 * t.first:6.2f} against {100 * t.second:6.2f}: {apart}, p = {t.p_value:.4f}"
