"""Precision, recall and F1 of the phrases in label sequences, read as `structpred.data.phrases` says."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from structpred.data.phrases import CLOSING, MARKS, SCHEMES, PhraseLabels, Spans
from structpred.data.tag_schemes import Flags
from structpred.evaluation.coding import Coded, Sequences, encode, tallied

__all__ = ["SCHEMES", "ChunkCounts", "Spans", "chunk_counts", "count", "counts_lines", "has_phrases", "matched"]


@dataclass(frozen=True)
class ChunkCounts:
    """How many phrases the gold labels have, the predicted ones have, and both have with the same span and type.

    Or tokens with one label: how many have it, are given it, and both.
    """

    n_gold: int
    n_predicted: int
    n_correct: int

    @property
    def precision(self) -> float:
        """The share of predicted phrases that are right, in [0, 1]; 0 where there are none (as conlleval)."""
        return self.n_correct / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of gold phrases that were found, in [0, 1]; 0 where there are none (as conlleval)."""
        return self.n_correct / self.n_gold if self.n_gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, in [0, 1]; 0 where there is no phrase at all (as conlleval)."""
        both = self.n_gold + self.n_predicted
        return 2 * self.n_correct / both if both else 0.0

    @property
    def row(self) -> tuple[int, int, int, float, float, float]:
        """A row of a table: gold, predicted, correct, precision, recall, F1."""
        return self.n_gold, self.n_predicted, self.n_correct, self.precision, self.recall, self.f1


def counts_lines(heading: str, rows: Mapping[str, tuple[int, int, int, float, float, float]]) -> list[str]:
    """Rows by name as a table in plain text, shares in per cent."""
    width = max(len(heading), 12, *map(len, rows))
    lines = [f"{heading:<{width}} {'gold':>7} {'found':>7} {'correct':>7} {'precision':>9} {'recall':>7} {'F1':>7}"]
    for name, (gold, found, correct, precision, recall, f1) in rows.items():
        shares = f"{100 * precision:9.2f} {100 * recall:7.2f} {100 * f1:7.2f}"
        lines.append(f"{name:<{width}} {gold:>7} {found:>7} {correct:>7} {shares}")
    return lines


def chunk_counts(gold: Sequences, predicted: Sequences, scheme: str = "conlleval") -> tuple[ChunkCounts, dict[str, ChunkCounts]]:
    """Count phrases under one of SCHEMES: over all types, and for each type by name.

    Raises DataError as `encode` does, ParameterError for an unknown scheme.

    >>> total, per_type = chunk_counts([["B-NP", "I-NP", "B-VP"]], [["I-NP", "I-NP", "O"]])
    >>> total.precision, total.recall, per_type["VP"].n_gold
    (1.0, 0.5, 1)
    """
    return count(encode(gold, predicted), scheme)


def count(coded: Coded, scheme: str) -> tuple[ChunkCounts, dict[str, ChunkCounts]]:
    """As `chunk_counts`, on labels that are coded already."""
    names, gold, predicted, correct = matched(coded, scheme)
    per_type = {name: ChunkCounts(*row) for name, *row in tallied(names, gold.types, predicted.types, gold.types[correct])}
    return ChunkCounts(len(gold.starts), len(predicted.starts), int(correct.sum())), per_type


def matched(coded: Coded, scheme: str) -> tuple[tuple[str, ...], Spans, Spans, Flags]:
    """Return the type names, the gold phrases, the predicted phrases, and which gold phrases were found exactly."""
    read = PhraseLabels.of(coded.labels)
    gold, predicted = (read.spans(side, coded.offsets, scheme) for side in (coded.gold, coded.predicted))
    # At most one phrase starts at a token, so an index by start is enough to compare the two.
    end, kind = np.full((2, len(coded.gold)), -1, dtype=np.int64)
    end[predicted.starts], kind[predicted.starts] = predicted.ends, predicted.types
    return read.names, gold, predicted, (end[gold.starts] == gold.ends) & (kind[gold.starts] == gold.types)


def uncovered(coded: Coded, scheme: str) -> tuple[int, int]:
    """Count the gold and the predicted labels other than O that lie outside every phrase: the scheme's violations."""
    read, sides = PhraseLabels.of(coded.labels), []
    for side in (coded.gold, coded.predicted):
        spans = read.spans(side, coded.offsets, scheme)
        tagged = np.isin(read.tags[side], MARKS)
        sides.append(int(tagged.sum() - (spans.ends - spans.starts).sum()))
    return sides[0], sides[1]


def has_phrases(coded: Coded) -> bool:
    """Whether the labels mark phrases: one is B-X, I-X, E-X or S-X, or all are B, I, E, S and O.

    >>> has_phrases(encode([["B-NP", "O"]], [["O", "O"]])), has_phrases(encode([["NN", "-LRB-", "B"]], [["NN", "NN", "B"]]))
    (True, False)
    """
    return PhraseLabels.of(coded.labels).marked


def strict_scheme(coded: Coded) -> str:
    """The strict scheme that the labels are written in: "iobes" if a tag E or S occurs, else "iob2"."""
    return "iobes" if np.isin(PhraseLabels.of(coded.labels).tags, CLOSING).any() else "iob2"
