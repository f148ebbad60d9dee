"""The report pages of parsers and of multi-label models: scores, relations, distances, the worst sentences; labels and pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Integers
from structpred.errors import DataError
from structpred.evaluation import confusion_matrix, evaluate_trees, parsing_interval
from structpred.evaluation.multilabel import Cooccurrence, MultiLabelScores
from structpred.evaluation.parsing import ArcCounts, ParsingScores, relation_pairs
from structpred.evaluation.trees import Parse, ParsingRules
from structpred.report import sections
from structpred.report.arcs import draw_tree
from structpred.report.contents import About, Stage, Weights
from structpred.report.drawings import Curve, chart
from structpred.report.figures import BLUE, ORANGE
from structpred.report.layout import columns, counts_table, data_table, headline, percent, prose, scrolling, titled, two_lists
from structpred.report.page import model_page
from structpred.text.markup import Html, join, tag

_MOST_PAIRS = 10
_NOTHING = Html("")


class OnLabels(NamedTuple):
    """How the model does on data. figures: (name, share) of all labels together. together: which labels occur together."""

    data: str
    scores: MultiLabelScores
    figures: Sequence[tuple[str, float]]
    together: Cooccurrence


def label_report(
    about: About, weights: Sequence[Weights], pairs: Sequence[tuple[str, str, float]], found: OnLabels | None, top: int = 15
) -> str:
    """The page as text. pairs: (label, other label, weight), the largest first, of which `top` of either sign are shown."""
    together = [(f"{a}, {b}", w) for a, b, w in pairs if w > 0][:top]
    apart = [(f"{a}, {b}", w) for a, b, w in reversed(pairs) if w < 0][:top]
    rows = [] if found is None else [(*one, one.precision, one.recall, one.f1) for one in found.scores.labels]
    return model_page(
        about,
        ("Scores", _NOTHING if found is None else _scores(found)),
        ("Labels", counts_table("label", rows) if rows else _NOTHING),
        ("Labels together", _NOTHING if found is None else _together(found.together, len(rows))),
        ("Pairs of labels", two_lists(("go together", together), ("exclude each other", apart))),
        ("Strongest features", sections.weights(weights)),
    )


def _scores(found: OnLabels) -> Html:
    scores = found.scores
    # Halves side by side: the table has a name and a figure only.
    rows = [[name, percent(share)] for name, share in found.figures]
    half = -(-len(rows) // 2)
    tables = [data_table(["", ""], part, numbers=[False, True], name="scores") for part in (rows[:half], rows[half:])]
    main = [("whole sets right", percent(scores.subset_accuracy)), ("micro F1", percent(scores.micro_f1))]
    size = f"{found.data}: {scores.n} examples, {len(scores.labels)} labels."
    return join(headline(size, main), prose(columns(*tables)))


def _together(found: Cooccurrence, all_labels: int) -> Html:
    """Co-occurrence in truth and as predicted as heat maps, and the pairs that are predicted too often or too seldom."""
    if len(found.names) < 2:
        return _NOTHING
    few = "" if len(found.names) == all_labels else f" Shown are the {len(found.names)} most frequent of {all_labels} labels."
    note = (
        "A number: examples with both labels; on the diagonal: with this one. Colour: the share of the examples with the label "
        f"of the row that have the label of the column, too.{few}"
    )
    maps = [
        titled(heading, scrolling(_map(found.names, counts), heading))
        for heading, counts in (("In truth", found.gold), ("As predicted", found.predicted))
    ]
    ordered = found.pairs()
    often = [pair for pair in ordered if pair.excess > 0][:_MOST_PAIRS]
    seldom = [pair for pair in reversed(ordered) if pair.excess < 0][:_MOST_PAIRS]
    head, numbers = ["label", "and label", "gold", "predicted", "too many"], [False, False, True, True, True]
    tables = {
        heading: [[*pair, f"{pair.excess:+d}".replace("-", "\N{MINUS SIGN}")] for pair in pairs]
        for heading, pairs in (("Predicted together too often", often), ("Predicted together too seldom", seldom))
        if pairs
    }
    lists = [titled(heading, data_table(head, rows, numbers=numbers, name="pairs of labels")) for heading, rows in tables.items()]
    return join(tag("p", note, class_="note"), tag("div", *maps, class_="row"), columns(*lists) if lists else "")


def _map(names: Sequence[str], counts: Integers) -> Html:
    share = counts / np.maximum(np.diag(counts), 1)[:, None]
    return sections.counts_map(names, counts, share, _tip, power=1.0, beside="with", above="also with")


def _tip(label: str, other: str, n: int, share: float) -> str:
    return f"{label}: {n}" if label == other else f"{label} and {other}: {n} ({percent(share)} of {label})"


_MOST_RELATIONS = 60
_LEAST_ARCS = 10  # a share of fewer arcs than this says little, and is not drawn
_LONGEST = 60  # words of a sentence that is drawn
_RESAMPLES = 1000


@dataclass(frozen=True)
class ParsingContents:
    """All that the page of a parser shows.

    gold, predicted: a tree per sentence; forms, upos: the words and their tags. rules: what counts. data: the name of the
    data. facts: (name, text) about the model. stages: of training, heads and relations. n_examples: how many sentences are
    drawn. places: where each sentence is in the data; without them they are numbered from 0.
    """

    title: str
    gold: Sequence[Parse]
    predicted: Sequence[Parse]
    forms: Sequence[Sequence[str]]
    upos: Sequence[Sequence[str]]
    rules: ParsingRules
    data: str
    facts: Sequence[tuple[str, str]] = ()
    stages: Sequence[Stage] = ()
    n_examples: int = 8
    places: Sequence[str] = ()


def parsing_report(contents: ParsingContents) -> str:
    """The page as text: one HTML file that needs nothing from outside, in which all data are text and never markup.

    Raises DataError as `evaluate_trees` and `draw_tree` do, and for a number of places other than that of sentences.
    """
    c = contents
    if c.places and len(c.places) != len(c.forms):
        raise DataError(f"expected a place for each of {len(c.forms)} sentences, got {len(c.places)}")
    scores = evaluate_trees(c.gold, c.predicted, forms=c.forms, upos=c.upos, rules=c.rules)
    return model_page(
        About(c.title, c.facts, c.stages),
        ("Scores", score_table(scores, c.data)),
        ("Relations", relation_table(scores)),
        ("Confusions", sections.confusions(_confusions(c)) if scores.las is not None else _NOTHING),
        ("Distances", distances(scores)),
        ("Worst sentences", worst_sentences(c)),
    )


def score_table(scores: ParsingScores, data: str) -> Html:
    """Attachment scores with their intervals, with and without punctuation, and the scores of whole sentences."""
    size = f"{data}: {scores.n_sentences} sentences, {scores.n_words} words, {scores.n_scored} of them scored."
    rules = f"Rules of {scores.rules}. {size} Intervals: 95 %, by a bootstrap over sentences."
    metrics = [name for name in ("uas", "las", "label_accuracy") if getattr(scores, name) is not None]
    big = []
    for name, metric in (("UAS", "uas"), ("LAS", "las")):
        if metric in metrics:
            found = parsing_interval(scores, metric, n_resamples=_RESAMPLES)
            big.append((f"{name} ({100 * found.low:.2f} to {100 * found.high:.2f})", percent(found.value)))
    with_all, without = scores.with_punctuation, scores.without_punctuation
    official = with_all if scores.n_scored == scores.n_words else without
    rows = [
        [name, row.n_words, *map(percent, (row.uas, row.las, row.label_accuracy))]
        for name, row in (("scored", official), ("with punctuation", with_all), ("without it", without))
    ]
    head = ["words", "number", "UAS", "LAS", "relation right"]
    by_words = data_table(head, rows, numbers=[False, *[True] * 4], name="attachment scores")
    arcs = scores.non_projective
    whole = [
        ("sentences with the right root", percent(scores.root_accuracy), ""),
        ("sentences with every head right", percent(scores.exact_match), ""),
        ("sentences with every head and relation right", percent(scores.exact_match_labelled), ""),
        ("non-projective arcs found", percent(arcs.recall if arcs.n_gold else None), f"of {arcs.n_gold}"),
        (
            "predicted non-projective arcs that are right",
            percent(arcs.precision if arcs.n_predicted else None),
            f"of {arcs.n_predicted}",
        ),
    ]
    others = data_table(["share of", "", ""], whole, numbers=[False, True, True], name="scores of sentences")
    return join(headline(rules, big), prose(columns(by_words, others)))


def relation_table(scores: ParsingScores) -> Html:
    """Precision, recall and F1 of each relation with its head, the most frequent first."""
    rows = list(scores.most_frequent().items())
    if not rows:
        return _NOTHING
    few = "" if len(rows) <= _MOST_RELATIONS else f" Shown are the {_MOST_RELATIONS} most frequent of {len(rows)}."
    note = f"An arc is correct if head and relation are.{few}"
    return join(tag("p", note, class_="note"), _counts("relation", rows[:_MOST_RELATIONS]))


def distances(scores: ParsingScores) -> Html:
    """How many heads are right, by the distance between head and word: of the gold arcs, and of the predicted ones; a table."""
    curves = []
    for name, of, share, colour, dashed in (
        ("recall", "n_gold", "recall", BLUE, False),
        ("precision", "n_predicted", "precision", ORANGE, True),
    ):
        points = [(k, c) for k, c in scores.by_distance.items() if k > 0 and getattr(c, of) >= _LEAST_ARCS]
        if len(points) > 1:
            curves.append(Curve(name, [(float(k), 100 * getattr(c, share)) for k, c in points], colour, dashed))
    note = (
        "Recall: of the gold arcs of a length, those that were found (UAS by distance). Precision: of the predicted ones, those "
        f"that are right. Lengths with fewer than {_LEAST_ARCS} arcs are not drawn. An arc is correct if its head is."
    )
    picture = chart(curves, "distance between head and word", "heads right, %") if curves else _NOTHING
    table = _counts("distance", list(scores.by_length.items()))
    return join(tag("p", note, class_="note"), columns(picture, table) if picture else table)


def worst_sentences(contents: ParsingContents) -> Html:
    """The sentences with most wrong heads, drawn; very long ones are skipped."""
    c = contents
    wrong = []
    for i, trees in enumerate(zip(c.gold, c.predicted, strict=True)):
        gold, predicted = (_compared(tree, c.rules) for tree in trees)
        heads = int((gold.heads != predicted.heads).sum())
        labels = sum(a != b for a, b in zip(gold.labels or (), predicted.labels or (), strict=False))
        if (heads or labels) and len(c.forms[i]) <= _LONGEST:
            wrong.append((-heads, -labels, i, gold, predicted))
    if not wrong:
        return _NOTHING
    note = (
        "A red, dashed arc has a wrong head; the right one is green, below the words. An orange arc has the right head and "
        "a wrong relation, the right one in brackets. Relations are shown as the rules compare them. Long sentences scroll."
    )
    drawn = []
    for heads, _, i, gold, predicted in sorted(wrong, key=lambda row: row[:3])[: c.n_examples]:
        place = c.places[i] if c.places else f"sentence {i}"
        words = f"{place}: {-heads} of {len(c.forms[i])} heads wrong"
        picture = draw_tree(c.forms[i], predicted, gold=gold, tags=c.upos[i])
        drawn.append(tag("div", tag("p", words, class_="where"), scrolling(picture, "tree")))
    return join(tag("p", note, class_="note"), *drawn)


class _Shown(NamedTuple):
    """A tree with its relations as the rules compare them."""

    heads: Integers
    labels: Sequence[str] | None


def _compared(tree: Parse, rules: ParsingRules) -> _Shown:
    return _Shown(np.asarray(tree.heads), None if tree.labels is None else [rules.relation(label) for label in tree.labels])


def _confusions(contents: ParsingContents) -> Any:
    """The relations of all scored words, gold against predicted."""
    c = contents
    gold, predicted = relation_pairs(c.gold, c.predicted, c.rules)
    if not c.rules.scores_punctuation:
        kept = [~c.rules.punctuation(forms, upos) for forms, upos in zip(c.forms, c.upos, strict=True)]
        gold, predicted = (
            [[label for label, keep in zip(row, flags, strict=True) if keep] for row, flags in zip(side, kept, strict=True)]
            for side in (gold, predicted)
        )
        gold, predicted = [row for row in gold if row], [row for row in predicted if row]
    return confusion_matrix(gold, predicted) if gold else None


def _counts(heading: str, rows: Sequence[tuple[str, ArcCounts]]) -> Html:
    found = []
    for name, arcs in rows:
        *counts, precision, recall, f1 = arcs.row
        found.append([name, *counts, precision if arcs.n_predicted else None, recall if arcs.n_gold else None, f1])
    return counts_table(heading, found)
