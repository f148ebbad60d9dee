"""Scores of label sequences under the names that sklearn_crfsuite.metrics has; the flat ones are scikit-learn's, over all tokens.

Labels that are missing or never predicted are treated as scikit-learn does: pass zero_division=... to choose.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from structpred.errors import DataError

Sequences = Sequence[Sequence[Any]]


def flat_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """The share of tokens with the right label.

    >>> flat_accuracy_score([["A", "B"], ["A"]], [["A", "A"], ["A"]]) == 2 / 3
    True
    """
    return float(_over_tokens("accuracy_score", y_true, y_pred))


def flat_precision_score(y_true: Sequences, y_pred: Sequences, **settings: Any) -> Any:
    """scikit-learn's precision_score over all tokens; settings are its own (average, labels, zero_division ...)."""
    return _over_tokens("precision_score", y_true, y_pred, **settings)


def flat_recall_score(y_true: Sequences, y_pred: Sequences, **settings: Any) -> Any:
    """scikit-learn's recall_score over all tokens; settings are its own."""
    return _over_tokens("recall_score", y_true, y_pred, **settings)


def flat_f1_score(y_true: Sequences, y_pred: Sequences, **settings: Any) -> Any:
    """scikit-learn's f1_score over all tokens; settings are its own.

    >>> flat_f1_score([["A", "B"], ["A"]], [["A", "A"], ["A"]], average="micro") == 2 / 3
    True
    """
    return _over_tokens("f1_score", y_true, y_pred, **settings)


def flat_fbeta_score(y_true: Sequences, y_pred: Sequences, beta: float, **settings: Any) -> Any:
    """scikit-learn's fbeta_score over all tokens; settings are its own."""
    return _over_tokens("fbeta_score", y_true, y_pred, beta=beta, **settings)


def flat_classification_report(y_true: Sequences, y_pred: Sequences, labels: Sequence[Any] | None = None, **settings: Any) -> Any:
    """scikit-learn's classification_report over all tokens: a text, or a dict with output_dict=True."""
    return _over_tokens("classification_report", y_true, y_pred, labels=labels, **settings)


def sequence_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """The share of sequences with every label right; 0 where there are none.

    >>> sequence_accuracy_score([["A", "B"], ["A"]], [["A", "A"], ["A"]])
    0.5
    """
    _check(y_true, y_pred)
    right = sum(_plain(one) == _plain(other) for one, other in zip(y_true, y_pred, strict=True))
    return right / len(y_true) if len(y_true) else 0.0


def _over_tokens(name: str, y_true: Sequences, y_pred: Sequences, **settings: Any) -> Any:
    """A function of scikit-learn, which is expensive to load, over all tokens."""
    import sklearn.metrics

    _check(y_true, y_pred)
    flat = (list(chain.from_iterable(map(_plain, sequences))) for sequences in (y_true, y_pred))
    return getattr(sklearn.metrics, name)(*flat, **settings)


def _check(y_true: Sequences, y_pred: Sequences) -> None:
    """Two errors that flattening would hide, where lengths happen to add up."""
    if len(y_true) != len(y_pred):
        raise DataError(f"expected as many predicted as true sequences, got {len(y_pred)} and {len(y_true)}")
    for i, (one, other) in enumerate(zip(y_true, y_pred, strict=True)):
        if isinstance(one, str) or not hasattr(one, "__len__") or not hasattr(other, "__len__"):
            raise DataError(f"sample {i}: expected a sequence of labels, got {one!r}; is this one sequence instead of a list?")
        if len(one) != len(other):
            raise DataError(f"sample {i}: {len(one)} true labels but {len(other)} predicted ones")


def _plain(labels: Sequence[Any]) -> list[Any]:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
