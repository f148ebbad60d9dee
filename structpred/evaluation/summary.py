"""How good predicted label sequences are: one call for all figures, each label by itself, and which is taken for which."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Integers
from structpred.evaluation import chunks
from structpred.evaluation.chunks import ChunkCounts
from structpred.evaluation.coding import Coded, Sequences, encode, sums, tallied
from structpred.text.markup import Shown, preformatted
from structpred.text.tables import aligned, cut

_EXAMPLES = 3
_AROUND = 2


class ConfusionMatrix(NamedTuple):
    """Which label is taken for which. labels: n, sorted. counts: int64 (n, n), rows are gold labels, columns predicted.

    It is a pair, so that ``labels, counts = confusion_matrix(gold, predicted)`` works.
    """

    labels: tuple[Any, ...]
    counts: Integers

    def table(self) -> str:
        """Plain text: a row a gold label, a column a predicted one."""
        names = [cut(str(label), 30) for label in self.labels]
        rows = [[name, *map(str, row)] for name, row in zip(names, self.counts.tolist(), strict=True)]
        return "\n".join(aligned(["gold \\ predicted", *names], rows))

    def __str__(self) -> str:
        """The table."""
        return self.table()

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return preformatted(self.table())


@dataclass(frozen=True)
class Confusion:
    """Tokens whose gold label is taken for another one. n: how many. places: the first few as (sequence, token), from 0."""

    gold: Any
    predicted: Any
    n: int
    places: tuple[tuple[int, int], ...]

    def examples(self, tokens: Sequence[Sequence[Any]]) -> list[str]:
        """The places with the tokens around them, the token itself in brackets; tokens: those of all sequences."""
        found = []
        for i, t in self.places:
            words = [str(token) for token in tokens[i]]
            words[t] = f"[{words[t]}]"
            found.append(" ".join(words[max(t - _AROUND, 0) : t + _AROUND + 1]))
        return found


def confusion_matrix(gold: Sequences, predicted: Sequences) -> ConfusionMatrix:
    """Count which label is taken for which; raises DataError as `encode` does.

    >>> labels, counts = confusion_matrix([["a", "b"]], [["a", "a"]])
    >>> labels, counts.tolist()
    (('a', 'b'), [[1, 0], [1, 0]])
    """
    coded = encode(gold, predicted)
    n = len(coded.labels)
    counts = np.bincount(coded.gold * n + coded.predicted, minlength=n * n).reshape(n, n)
    return ConfusionMatrix(coded.labels, counts)


def most_confused(gold: Sequences, predicted: Sequences, top: int = 20) -> list[Confusion]:
    """The `top` most frequent confusions of labels, with the first places of each; raises DataError as `encode` does.

    >>> worst = most_confused([["DT", "NN"], ["NN", "NN"]], [["DT", "JJ"], ["JJ", "DT"]])[0]
    >>> worst.gold, worst.predicted, worst.n, worst.examples([["the", "red"], ["old", "man"]])
    ('NN', 'JJ', 2, ['the [red]', '[old] man'])
    """
    return confused(encode(gold, predicted), top)


def confused(coded: Coded, top: int) -> list[Confusion]:
    """As `most_confused`, on labels that are coded already."""
    wrong = np.flatnonzero(coded.gold != coded.predicted)
    n = len(coded.labels)
    pairs, counts = np.unique(coded.gold[wrong] * n + coded.predicted[wrong], return_counts=True)
    found = []
    for k in np.argsort(-counts, kind="stable")[:top].tolist():
        one, other = divmod(int(pairs[k]), n)
        at = wrong[(coded.gold[wrong] == one) & (coded.predicted[wrong] == other)][:_EXAMPLES]
        rows = np.searchsorted(coded.offsets, at, side="right") - 1
        places = tuple(zip(rows.tolist(), (at - coded.offsets[rows]).tolist(), strict=True))
        found.append(Confusion(coded.labels[one], coded.labels[other], int(counts[k]), places))
    return found


def label_counts(coded: Coded) -> dict[Any, ChunkCounts]:
    """For each label how many tokens have it, how many are given it, and how many are both."""
    right = coded.gold[coded.gold == coded.predicted]
    return {label: ChunkCounts(*row) for label, *row in tallied(coded.labels, coded.gold, coded.predicted, right)}


_MOST_CONFUSED = 20


@dataclass(frozen=True)
class Evaluation(Shown):
    """Scores of predicted label sequences; every score lies in [0, 1], every count is an integer.

    token_accuracy: share of tokens right. sequence_accuracy: share of sequences wholly right. n_errors: wrong tokens.
    per_label: for each label its tokens, gold, predicted and both, with precision, recall and f1. confusions: the 20 most
    frequent ones, with places.

    precision, recall, f1, per_type: phrases under `scheme`. f1_strict: phrases under `strict_scheme`, which is iobes if a tag E
    or S occurs, else iob2. All four scores are None where the labels mark no phrases. n_invalid_gold, n_invalid_predicted: labels
    other than O outside every strict phrase; if the gold labels have some, they are written in another scheme and f1_strict says
    little.
    """

    token_accuracy: float
    sequence_accuracy: float
    precision: float | None
    recall: float | None
    f1: float | None
    f1_strict: float | None
    n_tokens: int
    n_sequences: int
    n_errors: int
    n_gold_phrases: int
    n_predicted_phrases: int
    n_correct_phrases: int
    scheme: str
    strict_scheme: str
    n_invalid_gold: int
    n_invalid_predicted: int
    per_type: dict[str, ChunkCounts]
    per_label: dict[Any, ChunkCounts]
    confusions: list[Confusion]

    @property
    def word_accuracy(self) -> float:
        """sequence_accuracy, by the name that it has where a sequence is a word."""
        return self.sequence_accuracy

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain numbers and strings; types and labels have their counts, precision, recall and f1."""
        figures = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in ("per_type", "per_label"):
            figures[name] = {
                str(key): {**dataclasses.asdict(c), "precision": c.precision, "recall": c.recall, "f1": c.f1}
                for key, c in figures[name].items()
            }
        shown = [dataclasses.replace(c, gold=str(c.gold), predicted=str(c.predicted)) for c in self.confusions]
        return {**figures, "confusions": [dataclasses.asdict(c) for c in shown]}

    def table(self, *, details: bool = True) -> str:
        """Return a plain-text table in per cent: the accuracies, and phrases by type, or labels where there are no phrases.

        details: False leaves out the lines of types and labels.
        """
        lines = [
            f"tokens     {self.n_tokens:>8}   accuracy {100 * self.token_accuracy:6.2f} %   wrong {self.n_errors}",
            f"sequences  {self.n_sequences:>8}   accuracy {100 * self.sequence_accuracy:6.2f} %",
        ]
        if self.f1 is not None:
            total = ChunkCounts(self.n_gold_phrases, self.n_predicted_phrases, self.n_correct_phrases)
            types = {name or "(no type)": counts.row for name, counts in self.per_type.items()} if details else {}
            lines += ["", *chunks.counts_lines("phrases", {**types, "all": total.row})]
            strict = f"{100 * (self.f1_strict or 0.0):.2f}"
            lines.append(f"Phrases as {self.scheme} counts them; F1 under strict {self.strict_scheme}: {strict}")
            if self.n_invalid_gold or self.n_invalid_predicted:
                invalid = f"{self.n_invalid_gold} gold, {self.n_invalid_predicted} predicted"
                lines.append(f"Labels outside every strict phrase: {invalid}")
        elif details:
            lines += ["", self.label_table()]
        return "\n".join(lines)

    def label_table(self) -> str:
        """Precision and recall of each label, as plain text, in per cent."""
        rows = {cut(str(label), 40): counts.row for label, counts in self.per_label.items()}
        return "\n".join(chunks.counts_lines("labels", rows))

    def confusion_table(self, tokens: Sequences | None = None) -> str:
        """The most frequent confusions as plain text, with examples; tokens: those of all sequences, to show their words."""
        found = self.confusions
        if not found:
            return "no token is wrong"
        numbers = ("; ".join(f"sequence {i}, token {t}" for i, t in c.places) for c in found)
        shown = numbers if tokens is None else (", ".join(c.examples(tokens)) for c in found)
        rows = [
            (str(c.n), cut(str(c.gold), 30), cut(str(c.predicted), 30), cut(text, 100))
            for c, text in zip(found, shown, strict=True)
        ]
        return "\n".join(aligned(("tokens", "gold", "predicted", "for example"), rows, numbers=1))


def evaluate_sequences(gold: Sequences, predicted: Sequences, scheme: str = "conlleval") -> Evaluation:
    """Compare predicted label sequences with the gold ones.

    gold, predicted: lists of label sequences of equal lengths. scheme: how precision, recall and F1 find phrases, one of
    `chunks.SCHEMES`. Raises DataError with the index of the sample for lengths that differ or empty input,
    ParameterError for an unknown scheme.

    >>> result = evaluate_sequences([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]])
    >>> round(result.token_accuracy, 3), result.f1, result.n_errors
    (0.667, 0.0, 1)
    >>> evaluate_sequences([["DT", "NN"]], [["DT", "NN"]]).f1 is None
    True
    """
    coded = encode(gold, predicted)
    wrong = sums(coded.gold != coded.predicted, coded.offsets)
    total, per_type = chunks.count(coded, scheme)
    strict = chunks.strict_scheme(coded)
    invalid_gold, invalid_predicted = chunks.uncovered(coded, strict)
    f1_strict: float | None = chunks.count(coded, strict)[0].f1
    shares: tuple[float | None, ...] = (total.precision, total.recall, total.f1)
    if not chunks.has_phrases(coded):
        shares, f1_strict, total, per_type = (None, None, None), None, ChunkCounts(0, 0, 0), {}
        invalid_gold = invalid_predicted = 0
    n_tokens, n_errors = len(coded.gold), int(wrong.sum())
    return Evaluation(
        token_accuracy=1 - n_errors / n_tokens, sequence_accuracy=float(np.mean(wrong == 0)),
        precision=shares[0], recall=shares[1], f1=shares[2], f1_strict=f1_strict,
        n_tokens=n_tokens, n_sequences=len(wrong), n_errors=n_errors,
        n_gold_phrases=total.n_gold, n_predicted_phrases=total.n_predicted, n_correct_phrases=total.n_correct,
        scheme=scheme, strict_scheme=strict, n_invalid_gold=invalid_gold, n_invalid_predicted=invalid_predicted,
        per_type=per_type, per_label=label_counts(coded), confusions=confused(coded, _MOST_CONFUSED),
    )  # fmt: skip


def token_accuracy(gold: Sequences, predicted: Sequences) -> float:
    """Return the share of tokens with the right label, in [0, 1]; raises DataError as `encode` does.

    >>> token_accuracy([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "x"]])
    0.75
    """
    coded = encode(gold, predicted)
    return float(np.mean(coded.gold == coded.predicted))


def sequence_accuracy(gold: Sequences, predicted: Sequences) -> float:
    """Return the share of sequences with every label right, in [0, 1].

    >>> sequence_accuracy([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "x"]])
    0.5
    """
    coded = encode(gold, predicted)
    return float(np.mean(sums(coded.gold != coded.predicted, coded.offsets) == 0))
