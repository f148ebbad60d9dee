"""Phrases in label sequences, and their precision, recall and F1 under the conlleval rule or a strict scheme.

- "conlleval" is lenient, as the script of the CoNLL-2000 shared task: `structpred.data.tag_schemes` has the rules.
- "iob2" is strict: a phrase is B-X and the I-X that follow it; any other I is outside every phrase.
- "iobes" is strict: a phrase is S-X, or B-X, any number of I-X, and E-X; anything unfinished is outside every phrase.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from structpred.core.types import Integers
from structpred.data.tag_schemes import FIRST, INNER, LAST, OTHER, OUT, SINGLE, TAGS, Flags, lenient
from structpred.errors import ParameterError
from structpred.evaluation.coding import Coded, Sequences, encode, tallied

SCHEMES = ("conlleval", "iob2", "iobes")


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


@dataclass(frozen=True)
class Spans:
    """The phrases of one labelling, in order: tokens ``starts[j]`` to ``ends[j] - 1``, of the type ``types[j]`` (a code)."""

    starts: Integers
    ends: Integers
    types: Integers


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
    names, tags, types = _split(coded)
    gold, predicted = (_spans(side, tags, types, coded.offsets, scheme) for side in (coded.gold, coded.predicted))
    # At most one phrase starts at a token, so an index by start is enough to compare the two.
    end, kind = np.full((2, len(coded.gold)), -1, dtype=np.int64)
    end[predicted.starts], kind[predicted.starts] = predicted.ends, predicted.types
    return names, gold, predicted, (end[gold.starts] == gold.ends) & (kind[gold.starts] == gold.types)


def uncovered(coded: Coded, scheme: str) -> tuple[int, int]:
    """Count the gold and the predicted labels other than O that lie outside every phrase: the scheme's violations."""
    _, tags, types = _split(coded)
    sides = []
    for side in (coded.gold, coded.predicted):
        spans = _spans(side, tags, types, coded.offsets, scheme)
        tagged = np.isin(tags[side], (FIRST, INNER, LAST, SINGLE))
        sides.append(int(tagged.sum() - (spans.ends - spans.starts).sum()))
    return sides[0], sides[1]


def has_phrases(coded: Coded) -> bool:
    """Whether the labels mark phrases: one is B-X, I-X, E-X or S-X, or all are B, I, E, S and O.

    >>> has_phrases(encode([["B-NP", "O"]], [["O", "O"]])), has_phrases(encode([["NN", "-LRB-", "B"]], [["NN", "NN", "B"]]))
    (True, False)
    """
    labels = [str(label).split("-", 1) for label in coded.labels]
    marks = [TAGS.get(tag, OTHER) not in (OUT, OTHER) for tag, *_ in labels]
    typed = any(mark and len(label) > 1 for mark, label in zip(marks, labels, strict=True))
    return typed or (any(marks) and all(tag in TAGS and not rest for tag, *rest in labels))


def strict_scheme(coded: Coded) -> str:
    """The strict scheme that the labels are written in: "iobes" if a tag E or S occurs, else "iob2"."""
    _, tags, _ = _split(coded)
    return "iobes" if np.isin(tags, (LAST, SINGLE)).any() else "iob2"


def _split(coded: Coded) -> tuple[tuple[str, ...], Integers, Integers]:
    """The type names, and for each label its tag and the code of its type."""
    parts = [str(label).split("-", 1) for label in coded.labels]
    kinds = [part[1] if len(part) > 1 else "" for part in parts]
    names = tuple(sorted({"", *kinds}))
    tags = np.array([TAGS.get(part[0], OTHER) for part in parts], dtype=np.int64)
    return names, tags, np.array([names.index(kind) for kind in kinds], dtype=np.int64)


def _spans(side: Integers, label_tags: Integers, label_types: Integers, offsets: Integers, scheme: str) -> Spans:
    if scheme not in _RULES:
        raise ParameterError(f"scheme: expected one of {', '.join(SCHEMES)}, got {scheme!r}")
    tag, kind = label_tags[side], label_types[side]
    before, kind_before = np.roll(tag, 1), np.roll(kind, 1)
    first = offsets[:-1]
    before[first], kind_before[first] = OUT, 0  # the empty type sorts first: code 0
    starts, breaks = _RULES[scheme](before, tag, kind_before == kind)
    breaks[first] = True
    begin = np.flatnonzero(starts)
    limits = np.append(np.flatnonzero(breaks), len(side))
    end = limits[np.searchsorted(limits, begin, side="right")]
    if scheme == "iobes":
        whole = (tag[begin] == SINGLE) | (tag[end - 1] == LAST)
        begin, end = begin[whole], end[whole]
    return Spans(begin, end, kind[begin])


# Each rule sees, for every token, the tag before it, its own tag, and whether the two types agree. It returns where a
# phrase starts, and where a phrase that is open before the token ends.


def _iob2(before: Integers, tag: Integers, same: Flags) -> tuple[Flags, Flags]:
    return tag == FIRST, (tag != INNER) | ~same


def _iobes(before: Integers, tag: Integers, same: Flags) -> tuple[Flags, Flags]:
    goes_on = np.isin(before, (FIRST, INNER)) & np.isin(tag, (INNER, LAST)) & same
    return np.isin(tag, (FIRST, SINGLE)), ~goes_on


_RULES = {"conlleval": lenient, "iob2": _iob2, "iobes": _iobes}
