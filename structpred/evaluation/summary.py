"""One call that says how good predicted label sequences are."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from structpred.evaluation import chunks
from structpred.evaluation.chunks import ChunkCounts
from structpred.evaluation.coding import Sequences, encode
from structpred.evaluation.labels import Confusion, confused, confusion_lines, label_counts
from structpred.text.markup import preformatted
from structpred.text.tables import cut

_MOST_CONFUSED = 20


@dataclass(frozen=True)
class Evaluation:
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
        told = [dataclasses.replace(c, gold=str(c.gold), predicted=str(c.predicted)) for c in self.confusions]
        return {**figures, "confusions": [dataclasses.asdict(c) for c in told]}

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON."""
        return json.dumps(self.to_dict())

    def table(self, *, details: bool = True) -> str:
        """Return a plain-text table in per cent: the accuracies, and phrases by type, or labels where there are no phrases.

        details: False leaves out the lines of types and labels.
        """
        lines = [
            f"tokens     {self.n_tokens:>8}   accuracy {100 * self.token_accuracy:6.2f} %   wrong {self.n_errors}",
            f"sequences  {self.n_sequences:>8}   accuracy {100 * self.sequence_accuracy:6.2f} %",
        ]
        if self.f1 is not None:
            lines += ["", *self._phrases(details)]
        elif details:
            lines += ["", self.label_table()]
        return "\n".join(lines)

    def label_table(self) -> str:
        """Precision and recall of each label, as plain text, in per cent."""
        rows = {cut(str(label), 40): counts.row for label, counts in self.per_label.items()}
        return "\n".join(chunks.counts_lines("labels", rows))

    def confusion_table(self, tokens: Sequences | None = None) -> str:
        """The most frequent confusions as plain text, with examples; tokens: those of all sequences, to show their words."""
        return "\n".join(confusion_lines(self.confusions, tokens))

    def __str__(self) -> str:
        """The table."""
        return self.table()

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return preformatted(self.table())

    def _phrases(self, details: bool) -> list[str]:
        total = ChunkCounts(self.n_gold_phrases, self.n_predicted_phrases, self.n_correct_phrases)
        types = {name or "(no type)": counts.row for name, counts in self.per_type.items()} if details else {}
        lines = chunks.counts_lines("phrases", {**types, "all": total.row})
        strict = f"{100 * (self.f1_strict or 0.0):.2f}"
        lines.append(f"Phrases as {self.scheme} counts them; F1 under strict {self.strict_scheme}: {strict}")
        if self.n_invalid_gold or self.n_invalid_predicted:
            lines.append(f"Labels outside every strict phrase: {self.n_invalid_gold} gold, {self.n_invalid_predicted} predicted")
        return lines


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
    wrong = coded.sums(coded.gold != coded.predicted)
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
        token_accuracy=1 - n_errors / n_tokens,
        sequence_accuracy=float(np.mean(wrong == 0)),
        precision=shares[0],
        recall=shares[1],
        f1=shares[2],
        f1_strict=f1_strict,
        n_tokens=n_tokens,
        n_sequences=len(wrong),
        n_errors=n_errors,
        n_gold_phrases=total.n_gold,
        n_predicted_phrases=total.n_predicted,
        n_correct_phrases=total.n_correct,
        scheme=scheme,
        strict_scheme=strict,
        n_invalid_gold=invalid_gold,
        n_invalid_predicted=invalid_predicted,
        per_type=per_type,
        per_label=label_counts(coded),
        confusions=confused(coded, _MOST_CONFUSED),
    )


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
    return float(np.mean(coded.sums(coded.gold != coded.predicted) == 0))
