"""The result of an evaluation of trees: every figure, as numbers, JSON and a table."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from structpred.core.types import Integers
from structpred.evaluation.chunks import counts_lines
from structpred.text.markup import Shown


@dataclass(frozen=True)
class Attachment:
    """How many of n_words words have the right head, both head and relation, and the right relation.

    The last two are None, and so are the scores made of them, where a side has no relations.
    """

    n_words: int
    n_heads: int
    n_labelled: int | None
    n_labels: int | None

    @property
    def uas(self) -> float:
        """The share of words with the right head, in [0, 1]; 0 where there are none."""
        return self.n_heads / self.n_words if self.n_words else 0.0

    @property
    def las(self) -> float | None:
        """The share of words with the right head and relation, in [0, 1]; 0 where there are none."""
        return None if self.n_labelled is None else self.n_labelled / self.n_words if self.n_words else 0.0

    @property
    def label_accuracy(self) -> float | None:
        """The share of words with the right relation, whatever the head, in [0, 1]; 0 where there are none."""
        return None if self.n_labels is None else self.n_labels / self.n_words if self.n_words else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Counts and scores by name."""
        return {**dataclasses.asdict(self), "uas": self.uas, "las": self.las, "label_accuracy": self.label_accuracy}


@dataclass(frozen=True)
class ArcCounts:
    """Arcs of one kind: how many gold and predicted ones, how many gold ones were found, how many predicted ones are right.

    n_found and n_right differ only where an arc's kind depends on the rest of its tree, as non-projectivity does.
    """

    n_gold: int
    n_predicted: int
    n_found: int
    n_right: int

    @property
    def precision(self) -> float:
        """The share of predicted arcs of the kind that are right, in [0, 1]; 0 where there are none."""
        return self.n_right / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of gold arcs of the kind that were found, in [0, 1]; 0 where there are none."""
        return self.n_found / self.n_gold if self.n_gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, in [0, 1]; 0 where both are."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    @property
    def row(self) -> tuple[int, int, int, float, float, float]:
        """A row of a table: gold, predicted, found, precision, recall, F1."""
        return self.n_gold, self.n_predicted, self.n_found, self.precision, self.recall, self.f1

    def as_dict(self) -> dict[str, Any]:
        """Counts and scores by name."""
        return {**dataclasses.asdict(self), "precision": self.precision, "recall": self.recall, "f1": self.f1}


@dataclass(frozen=True)
class ParsingScores(Shown):
    """Scores of predicted trees under the named rules; all lie in [0, 1], and labelled ones are None without relations.

    uas, las, label_accuracy: over the words that the rules score (n_scored of n_words); the same over all words, and over
    all that are not punctuation (by the rules). The rest is over the scored words: root_accuracy, the share of
    sentences whose set of roots is right; exact_match, exact_match_labelled, the share of sentences with every head (and
    relation) right, where sentences without a scored word are left out. non_projective: arcs over a word that does not
    descend from their head. per_relation: arcs with head and relation right. by_distance, by_length: arcs by |head - word|,
    0 and "to root" for arcs from the root; right are those with the right head. per_upos: by the word's tag.
    counts: int64 (n_sentences, 8), what each sentence adds; see `bootstrap.PARSING_METRICS`.
    """

    rules: str
    uas: float
    las: float | None
    label_accuracy: float | None
    with_punctuation: Attachment
    without_punctuation: Attachment
    root_accuracy: float
    exact_match: float
    exact_match_labelled: float | None
    n_sentences: int
    n_words: int
    n_scored: int
    n_punctuation: int
    non_projective: ArcCounts
    per_relation: dict[str, ArcCounts]
    by_distance: dict[int, ArcCounts]
    by_length: dict[str, ArcCounts]
    per_upos: dict[str, Attachment]
    counts: Integers = dataclasses.field(compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain numbers and strings, `counts` left out; keys are strings."""
        figures: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (Attachment, ArcCounts)):
                figures[field.name] = value.as_dict()
            elif isinstance(value, dict):
                figures[field.name] = {str(key): entry.as_dict() for key, entry in value.items()}
            elif field.name != "counts":
                figures[field.name] = value
        return figures

    #: the earlier name
    as_dict = to_dict

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON."""
        return json.dumps(self.to_dict())

    def table(self) -> str:
        """Return a plain-text table in per cent, with the name of the rules; the relations last, most frequent first."""
        lines = [
            f"Rules of {self.rules}: {self.n_sentences} sentences, {self.n_words} words, {self.n_scored} of them scored",
            "",
            f"{'':<22}{'words':>8} {'UAS':>7} {'LAS':>7} {'labels':>7}",
        ]
        with_all, without = self.with_punctuation, self.without_punctuation
        scored = with_all if self.n_scored == self.n_words else without
        for name, row in (("scored", scored), ("with punctuation", with_all), ("without punctuation", without)):
            lines.append(f"{name:<22}{row.n_words:>8} {_percent(row.uas)} {_percent(row.las)} {_percent(row.label_accuracy)}")
        arcs = self.non_projective
        lines += [
            "",
            f"root {_percent(self.root_accuracy)}   exact match {_percent(self.exact_match)}, "
            f"labelled {_percent(self.exact_match_labelled)}",
            f"non-projective arcs: {arcs.n_gold} gold, recall {_percent(arcs.recall if arcs.n_gold else None)}; "
            f"{arcs.n_predicted} predicted, precision {_percent(arcs.precision if arcs.n_predicted else None)}",
        ]
        for heading, rows in (("arc length", self.by_length), ("relation", self._most_frequent())):
            if rows:
                lines += ["", *counts_lines(heading, {name: arcs.row for name, arcs in rows.items()})]
        return "\n".join(lines)

    def _most_frequent(self) -> dict[str, ArcCounts]:
        return dict(sorted(self.per_relation.items(), key=lambda item: (-item[1].n_gold, item[0])))


def _percent(share: float | None) -> str:
    return f"{100 * share:7.2f}" if share is not None else f"{'-':>7}"
