"""The parts of the report page of a multi-label model: scores, labels, and which labels occur together."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from structpred.core.types import Integers
from structpred.evaluation.multilabel import Cooccurrence, LabelPair, MultiLabelScores
from structpred.report import sections
from structpred.report.contents import About, Weights
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
    lists = [
        titled(heading, _pair_table(pairs))
        for heading, pairs in (("Predicted together too often", often), ("Predicted together too seldom", seldom))
        if pairs
    ]
    return join(tag("p", note, class_="note"), tag("div", *maps, class_="row"), columns(*lists) if lists else "")


def _map(names: Sequence[str], counts: Integers) -> Html:
    share = counts / np.maximum(np.diag(counts), 1)[:, None]
    return sections.counts_map(names, counts, share, _tip, power=1.0, beside="with", above="also with")


def _tip(label: str, other: str, n: int, share: float) -> str:
    return f"{label}: {n}" if label == other else f"{label} and {other}: {n} ({percent(share)} of {label})"


def _pair_table(pairs: Sequence[LabelPair]) -> Html:
    rows = [[*pair, f"{pair.excess:+d}".replace("-", "\N{MINUS SIGN}")] for pair in pairs]
    head = ["label", "and label", "gold", "predicted", "too many"]
    return data_table(head, rows, numbers=[False, False, True, True, True], name="pairs of labels")
