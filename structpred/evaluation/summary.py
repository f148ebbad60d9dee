"""One call that says how good predicted label sequences are."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from structpred.evaluation import chunks
from structpred.evaluation.chunks import ChunkCounts
from structpred.evaluation.coding import Sequences, encode


@dataclass(frozen=True)
class Evaluation:
    """Scores of predicted label sequences; every score lies in [0, 1], every count is an integer.

    token_accuracy: share of tokens right. sequence_accuracy: share of sequences wholly right; word_accuracy is the same
    figure under the name used where a sequence is a word. precision, recall, f1, per_type: phrases under `scheme`.
    f1_strict: phrases under `strict_scheme`, which is iobes if a tag E or S occurs, else iob2. n_errors: wrong tokens.
    n_invalid_gold, n_invalid_predicted: labels other than O outside every strict phrase; if the gold labels have some,
    they are written in another scheme and f1_strict says little. Phrase scores are 0 where there are no phrases.
    """

    token_accuracy: float
    sequence_accuracy: float
    word_accuracy: float
    precision: float
    recall: float
    f1: float
    f1_strict: float
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

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain numbers and strings; each type has its counts, precision, recall and f1."""
        figures = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        figures["per_type"] = {
            name: {**dataclasses.asdict(c), "precision": c.precision, "recall": c.recall, "f1": c.f1}
            for name, c in self.per_type.items()
        }
        return figures

    def to_json(self) -> str:
        """Return `to_dict` as one line of JSON."""
        return json.dumps(self.to_dict())

    def table(self) -> str:
        """Return a plain-text table: the accuracies, and the phrase scores by type where there are phrases; in per cent."""
        lines = [
            f"tokens     {self.n_tokens:>8}   accuracy {100 * self.token_accuracy:6.2f} %   wrong {self.n_errors}",
            f"sequences  {self.n_sequences:>8}   accuracy {100 * self.sequence_accuracy:6.2f} %",
        ]
        if self.n_gold_phrases or self.n_predicted_phrases:
            lines += ["", *self._phrases()]
        return "\n".join(lines)

    def _phrases(self) -> list[str]:
        width = max(12, *(len(name) for name in self.per_type))
        total = ChunkCounts(self.n_gold_phrases, self.n_predicted_phrases, self.n_correct_phrases)
        lines = [f"{'phrases':<{width}} {'gold':>7} {'found':>7} {'correct':>7} {'precision':>9} {'recall':>7} {'F1':>7}"]
        for name, c in [*self.per_type.items(), ("all", total)]:
            scores = f"{100 * c.precision:9.2f} {100 * c.recall:7.2f} {100 * c.f1:7.2f}"
            lines.append(f"{name or '(no type)':<{width}} {c.n_gold:>7} {c.n_predicted:>7} {c.n_correct:>7} {scores}")
        lines.append(f"Phrases as {self.scheme} counts them; F1 under strict {self.strict_scheme}: {100 * self.f1_strict:.2f}")
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
    """
    coded = encode(gold, predicted)
    wrong = coded.sums(coded.gold != coded.predicted)
    total, per_type = chunks.count(coded, scheme)
    strict = chunks.strict_scheme(coded)
    invalid_gold, invalid_predicted = chunks.uncovered(coded, strict)
    n_tokens, n_errors = len(coded.gold), int(wrong.sum())
    whole = float(np.mean(wrong == 0))
    return Evaluation(
        token_accuracy=1 - n_errors / n_tokens,
        sequence_accuracy=whole,
        word_accuracy=whole,
        precision=total.precision,
        recall=total.recall,
        f1=total.f1,
        f1_strict=chunks.count(coded, strict)[0].f1,
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
    )
