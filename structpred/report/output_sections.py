"""Outputs of a structure of a user's own on the report page: those with most wrong labels, and why they were predicted."""

from collections.abc import Sequence
from dataclasses import dataclass

from structpred.report.layout import data_table
from structpred.report.sections import two_lists
from structpred.text.markup import Html, join, tag

_MOST_LABELS = 100


@dataclass(frozen=True)
class Output:
    """A wrong output. where: its place in the data. gold, predicted: labels. n_wrong: how many of them differ.

    excess: by how much the score of what is predicted is above that of the truth. why: what the features add to that difference,
    (name, what it adds), the strongest first.
    """

    where: str
    gold: Sequence[str]
    predicted: Sequence[str]
    n_wrong: int
    excess: float
    why: Sequence[tuple[str, float]]


def worst_outputs(outputs: Sequence[Output]) -> Html:
    """Each output folded up: its labels, true and predicted, and what spoke for and against the prediction."""
    parts = []
    for k, one in enumerate(outputs):
        of, sides = max(len(one.gold), len(one.predicted)), [[pair for pair in one.why if sign * pair[1] > 0] for sign in (1, -1)]
        heading = f"{one.where}: {one.n_wrong} of {of} labels wrong, preferred to the truth by {one.excess:.4g}"
        rows = [["true", _told(one.gold)], ["predicted", _told(one.predicted)]]
        labels = data_table(["", "labels"], rows, numbers=[False, False], name="labels")
        why = two_lists(("for the prediction", sides[0]), ("for the truth", sides[1]), figure="adds")
        parts.append(tag("details", tag("summary", heading), labels, why, open="" if k == 0 else None))
    note = "Labels as the oracle returns them. Below: what features add to the score of the prediction, less that of the truth."
    return join(tag("p", note, class_="note"), *parts) if parts else Html("")


def _told(labels: Sequence[str]) -> str:
    more = "" if len(labels) <= _MOST_LABELS else f" and {len(labels) - _MOST_LABELS} more"
    return " ".join(labels[:_MOST_LABELS]) + more
