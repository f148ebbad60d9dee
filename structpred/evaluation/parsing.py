"""How good predicted dependency trees are, under the rules of CoNLL-X, CoNLL-2007 or Universal Dependencies; all figures."""

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structpred.core.types import Flags, Integers
from structpred.errors import DataError
from structpred.evaluation.chunks import counts_lines
from structpred.evaluation.coding import sums, tallied
from structpred.evaluation.trees import Forest, Parse, ParsingRules, check_trees, forest
from structpred.io.treebanks.treebank import Treebank
from structpred.text.markup import Shown

# The lengths of arcs that eval.pl distinguishes.
_LENGTHS = (("to root", 0, 0), ("1", 1, 1), ("2", 2, 2), ("3-6", 3, 6), ("7-", 7, None))


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
        for heading, rows in (("arc length", self.by_length), ("relation", self.most_frequent())):
            if rows:
                lines += ["", *counts_lines(heading, {name: arcs.row for name, arcs in rows.items()})]
        return "\n".join(lines)

    def most_frequent(self) -> dict[str, ArcCounts]:
        """`per_relation`, the most frequent relations first."""
        return dict(sorted(self.per_relation.items(), key=lambda item: (-item[1].n_gold, item[0])))


def _percent(share: float | None) -> str:
    return f"{100 * share:7.2f}" if share is not None else f"{'-':>7}"


def evaluate_trees(
    gold: Sequence[Parse], predicted: Sequence[Parse], *, forms: Sequence[Sequence[str]], upos: Sequence[Sequence[str]],
    rules: ParsingRules,
) -> ParsingScores:  # fmt: skip
    """Compare predicted trees with the gold ones, word by word.

    gold, predicted: one tree per sentence. forms, upos: the words of each sentence and their universal tags. rules: one of
    CONLLX, CONLL07, CONLL07_WITHOUT_PUNCTUATION, UD, or rules of your own.

    Both sides must have the same words: predictions on a tokenisation of their own, which the evaluator of CoNLL 2018
    aligns with the gold words and scores by F1, cannot be evaluated here. On equal words that F1 is the score given here.

    Raises DataError with the number of the sentence (from 0) for lengths that differ, an empty sentence, a head outside
    the sentence, a cycle in a gold tree, and, where the rules forbid them, several roots and cycles in predicted trees.

    >>> from typing import NamedTuple
    >>> class Tree(NamedTuple):
    ...     heads: list[int]
    ...     labels: list[str] | None
    >>> from structpred.evaluation.trees import CONLLX, UD
    >>> gold, predicted = [Tree([2, 0, 2], ["nsubj", "root", "punct"])], [Tree([2, 0, 1], ["obj", "root", "punct"])]
    >>> words = {"forms": [["Cats", "sleep", "."]], "upos": [["NOUN", "VERB", "PUNCT"]]}
    >>> for rules in (CONLLX, UD):
    ...     scores = evaluate_trees(gold, predicted, **words, rules=rules)
    ...     print(f"{scores.rules}: UAS {scores.uas:.3f}, LAS {scores.las:.3f}")
    CoNLL-X: UAS 1.000, LAS 0.500
    Universal Dependencies: UAS 0.667, LAS 0.333
    """
    _check_words(forms, upos)
    one, other = forest(gold, forms, "gold"), forest(predicted, forms, "predicted")
    check_trees(one, forms, rules, "gold", cycles=True)
    check_trees(other, forms, rules, "predicted", cycles=rules.trees_only)
    flat_forms, flat_upos = list(itertools.chain.from_iterable(forms)), list(itertools.chain.from_iterable(upos))
    marks = rules.punctuation(flat_forms, flat_upos)
    return _Comparison(one, other, rules, marks, flat_upos).scores()


def evaluate_treebanks(gold: Treebank, predicted: Treebank | Sequence[Parse], rules: ParsingRules) -> ParsingScores:
    """As `evaluate_trees`, on two treebanks, which must have the same sentences and words; or on one and trees for it.

    Punctuation is recognised by the gold treebank's forms and tags. Raises DataError as `evaluate_trees` does, and with the
    lines of both files for words that differ.
    """
    if isinstance(predicted, Treebank):
        _check_same_words(gold, predicted)
        predicted = predicted.trees()
    return evaluate_trees(gold.trees(), predicted, forms=gold.nested(gold.forms), upos=gold.nested(gold.upos), rules=rules)


def relation_pairs(
    gold: Sequence[Parse], predicted: Sequence[Parse], rules: ParsingRules
) -> tuple[list[list[str]], list[list[str]]]:
    """The gold and the predicted relations of each sentence, as the rules compare them: for `confusion_matrix`.

    Raises DataError if a tree has no relations.
    """
    if any(tree.labels is None for tree in (*gold, *predicted)):
        raise DataError("expected trees with relations, got some without")
    one, other = ([[rules.relation(label) for label in tree.labels or ()] for tree in side] for side in (gold, predicted))
    return one, other


def _check_words(forms: Sequence[Sequence[str]], upos: Sequence[Sequence[str]]) -> None:
    if not len(forms):
        raise DataError("nothing to evaluate: the list of sentences is empty")
    if len(upos) != len(forms):
        raise DataError(f"expected the tags of {len(forms)} sentences, got those of {len(upos)}")
    for i, (words, tags) in enumerate(zip(forms, upos, strict=True)):
        if isinstance(words, str):
            raise DataError(f"sentence {i}: expected a list of words, got the string {words!r}")
        if not len(words):
            raise DataError(f"sentence {i}: the sentence is empty")
        if len(words) != len(tags):
            raise DataError(f"sentence {i}: {len(words)} words but {len(tags)} tags")


def _check_same_words(gold: Treebank, predicted: Treebank) -> None:
    if len(gold) != len(predicted):
        raise DataError(
            f"{predicted.path}: expected the {len(gold)} sentences of {gold.path}, got {len(predicted)} "
            "(were the predictions made on another file, or with another tokenisation?)"
        )
    if not np.array_equal(gold.offsets, predicted.offsets):
        i = int(np.argmax(gold.offsets[1:] != predicted.offsets[1:]))
        lengths = [int(side.lengths[i]) for side in (gold, predicted)]
        raise DataError(
            f"{predicted.where(int(predicted.offsets[i]))}: sentence {i}: expected the {lengths[0]} words of {gold.path}, "
            f"got {lengths[1]} (the tokenisation differs)"
        )
    if gold.forms != predicted.forms:
        k = next(k for k, (a, b) in enumerate(zip(gold.forms, predicted.forms, strict=True)) if a != b)
        raise DataError(
            f"{predicted.where(k)}: expected the word {gold.forms[k]!r} of {gold.where(k)}, got {predicted.forms[k]!r}"
        )


class _Comparison:
    """Two forests over the same words: which heads and relations are right, and every figure made of that."""

    def __init__(self, gold: Forest, predicted: Forest, rules: ParsingRules, marks: Flags, upos: list[str]) -> None:
        self.gold, self.predicted, self.rules, self.marks, self.upos = gold, predicted, rules, marks, upos
        n = len(marks)
        self.scored = np.ones(n, dtype=np.bool_) if rules.scores_punctuation else ~marks
        self.heads = gold.heads == predicted.heads
        self.names: list[str] = []
        self.codes: tuple[Integers, Integers] | None = None
        if gold.labels is not None and predicted.labels is not None:
            raw = {label: rules.relation(label) for label in {*gold.labels, *predicted.labels}}
            self.names = sorted(set(raw.values()))
            number = {name: k for k, name in enumerate(self.names)}
            code = {label: number[name] for label, name in raw.items()}
            one, other = (np.fromiter(map(code.__getitem__, side), np.int64, n) for side in (gold.labels, predicted.labels))
            self.codes = one, other
        self.labels: Flags | None = None if self.codes is None else self.codes[0] == self.codes[1]
        # without relations none is known to be right
        self.both = self.heads & self.labels if self.labels is not None else np.zeros_like(self.heads)

    def scores(self) -> ParsingScores:
        counts = self._counts()
        total = counts.sum(axis=0)
        scored = self._attachment(self.scored)
        some = max(int(total[5]), 1)
        distance, tags = self._by_distance(), np.array(self.upos, dtype=object)
        per_upos = {tag: self._attachment((tags == tag) & self.scored) for tag in sorted(set(tags[self.scored].tolist()))}
        return ParsingScores(
            rules=self.rules.name, uas=scored.uas, las=scored.las, label_accuracy=scored.label_accuracy,
            with_punctuation=self._attachment(np.ones_like(self.scored)), without_punctuation=self._attachment(~self.marks),
            root_accuracy=int(total[6]) / some, exact_match=int(total[4]) / some,
            exact_match_labelled=None if self.labels is None else int(total[7]) / some,
            n_sentences=len(counts), n_words=len(self.scored), n_scored=int(total[0]), n_punctuation=int(self.marks.sum()),
            non_projective=self._non_projective(), per_relation=self._per_relation(), by_distance=distance,
            by_length={name: _within(distance, low, high) for name, low, high in _LENGTHS},
            per_upos=per_upos, counts=counts,
        )  # fmt: skip

    def _counts(self) -> Integers:
        """Per sentence: scored words, heads, heads with relation, relations; wholly right; scored at all; roots; labelled."""
        none = np.zeros_like(self.heads)
        labels = none if self.labels is None else self.labels
        roots = (self.gold.heads == 0) != (self.predicted.heads == 0)
        rows = [self.scored & flags for flags in (~none, self.heads, self.both, labels, roots)]
        words, heads, both, right, lost = (sums(row, self.gold.offsets) for row in rows)
        any_word = words > 0
        columns = [
            words, heads, both, right, any_word & (heads == words), any_word, any_word & (lost == 0), any_word & (both == words),
        ]  # fmt: skip
        return np.column_stack(columns).astype(np.int64)

    def _attachment(self, chosen: Flags) -> Attachment:
        heads, both = int((self.heads & chosen).sum()), int((self.both & chosen).sum())
        labels = None if self.labels is None else int((self.labels & chosen).sum())
        return Attachment(int(chosen.sum()), heads, None if labels is None else both, labels)

    def _non_projective(self) -> ArcCounts:
        gold, predicted = (side.non_projective() & self.scored for side in (self.gold, self.predicted))
        sums = [int(flags.sum()) for flags in (gold, predicted, gold & self.heads, predicted & self.heads)]
        return ArcCounts(*sums)

    def _per_relation(self) -> dict[str, ArcCounts]:
        if self.codes is None:
            return {}
        (gold, predicted), right = self.codes, self.both & self.scored
        counts = tallied(self.names, gold[self.scored], predicted[self.scored], gold[right])
        return {name: ArcCounts(g, p, c, c) for name, g, p, c in counts}

    def _by_distance(self) -> dict[int, ArcCounts]:
        position = self.gold.positions()
        gold, predicted = (np.where(side.heads > 0, np.abs(side.heads - position), 0) for side in (self.gold, self.predicted))
        counts = tallied(itertools.count(), gold[self.scored], predicted[self.scored], gold[self.scored & self.heads])
        return {k: ArcCounts(g, p, c, c) for k, g, p, c in counts}


def _within(distance: dict[int, ArcCounts], low: int, high: int | None) -> ArcCounts:
    rows = [c for k, c in distance.items() if k >= low and (high is None or k <= high)]
    sums: Integers = np.array([[c.n_gold, c.n_predicted, c.n_found, c.n_right] for c in rows] or [[0] * 4]).sum(0)
    return ArcCounts(*sums.tolist())
