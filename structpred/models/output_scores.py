"""How well predicted outputs of any structure agree with the true ones: scores for model selection, larger is better."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.costs import Cost, TaskCosts
from structpred.core.oracle import Labels, Oracle
from structpred.errors import DataError, OracleError, ParameterError
from structpred.task.task_checks import true_parts

#: a name, None for the default, or a function of the true and the predicted labels
Scoring = str | Callable[[Sequence[Labels], Sequence[Labels]], float] | None
SCORINGS = ("labels", "parts", "exact", "loss")


def checked_scoring(scoring: Any) -> Scoring:
    """The setting as it is; ParameterError where it is neither a known name nor a function."""
    if scoring is None or callable(scoring) or scoring in SCORINGS:
        return scoring
    raise ParameterError(
        f"scoring: expected one of {', '.join(SCORINGS)}, None, or a function of true and predicted labels, got {scoring!r}"
    )


class OutputScores:
    """Scores of predictions for one data set, whose true outputs are looked at once.

    None: 1 - (sum of the losses) / (sum of the sizes of the true outputs), the size being the number of positions where the
    oracle has a label grid, else the number of parts. With the Hamming loss that is the share of labels, or of true parts, that
    are right. "labels": the share of labels that are right, for outputs as long as the truth. "parts": F1 of predicted parts.
    "exact": the share of outputs that are right in all parts. "loss": minus the mean loss.

    Raises DataError, naming the sample, for true labels that are not an output, LossError for a loss that breaks its rules.
    """

    def __init__(self, oracle: Oracle, loss: Cost, scoring: Scoring, labels: Sequence[Labels], shapes: Sequence[Any]) -> None:
        self._oracle, self._scoring, self._labels, self._shapes = oracle, checked_scoring(scoring), list(labels), list(shapes)
        if len(self._labels) != len(self._shapes):
            raise DataError(f"X has {len(self._shapes)} samples but y has {len(self._labels)}")
        if not self._labels:
            raise DataError("no samples: expected at least one sample to score")
        if scoring == "labels" or callable(scoring):
            return
        n_parts = [oracle.n_parts(shape) for shape in self._shapes]
        self._parts = true_parts(oracle, self._labels, self._shapes, np.array(n_parts))
        if scoring in (None, "loss"):
            self._costs = TaskCosts(loss, oracle, self._labels, self._shapes, self._parts, n_parts, None)

    def __call__(self, found: Sequence[Labels]) -> float:
        """The score of the outputs found, one per sample."""
        if callable(self._scoring):
            score: Any = self._scoring(self._labels, found)
            try:
                return float(score)
            except (TypeError, ValueError) as error:
                raise ParameterError(f"scoring: expected the function to return a number, got {score!r}") from error
        if self._scoring == "labels":
            return self._share_of_labels(found)
        parts = [self._found_parts(i, labels) for i, labels in enumerate(found)]
        if self._scoring == "exact":
            same = [np.array_equal(np.sort(a), np.sort(b)) for a, b in zip(self._parts, parts, strict=True)]
            return float(np.mean(same))
        if self._scoring == "parts":
            both = sum((Counter(a.tolist()) & Counter(b.tolist())).total() for a, b in zip(self._parts, parts, strict=True))
            total = sum(len(a) + len(b) for a, b in zip(self._parts, parts, strict=True))
            return 2.0 * both / total if total else 1.0
        loss = sum(self._loss(i, at) for i, at in enumerate(parts))
        if self._scoring == "loss":
            return -loss / len(parts)
        grid: Any = getattr(self._oracle, "label_grid", None)
        sizes = map(len, self._parts) if grid is None else (int(grid(shape)[0]) for shape in self._shapes)
        return 1.0 - loss / max(sum(sizes), 1)

    def _found_parts(self, i: int, labels: Labels) -> npt.NDArray[np.int64]:
        try:
            return np.asarray(self._oracle.parts(labels, self._shapes[i]), dtype=np.int64)
        except Exception as error:
            raise OracleError(
                f"sample {i}: {type(self._oracle).__name__}.parts refuses what its argmax returned: {error}; "
                "run check_oracle on it"
            ) from error

    def _loss(self, i: int, parts: npt.NDArray[np.int64]) -> float:
        constant, costs = self._costs.of(i)
        return max(constant + float(costs[parts].sum()), 0.0)

    def _share_of_labels(self, found: Sequence[Labels]) -> float:
        right = total = 0
        for i, (truth, labels) in enumerate(zip(self._labels, found, strict=True)):
            if truth.shape != labels.shape:
                raise DataError(
                    f"sample {i}: y has {truth.size} labels and the output {labels.size}, which cannot be compared one by one; "
                    'use scoring="parts", "exact", "loss" or None'
                )
            right += int((truth == labels).sum())
            total += len(labels)
        return right / max(total, 1)
