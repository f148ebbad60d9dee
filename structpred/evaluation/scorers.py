"""Scorers of label sequences for scikit-learn's `scoring=`, whose own take flat labels only."""

from collections.abc import Sequence
from typing import Any

from structpred.errors import ParameterError
from structpred.evaluation.summary import evaluate_sequences

#: name -> the figure of Evaluation; all are shares, larger is better
FIGURES = ("token_accuracy", "sequence_accuracy", "word_accuracy", "precision", "recall", "f1", "f1_strict")


def make_sequence_scorer(figure: str = "f1", *, scheme: str = "conlleval") -> Any:
    """A scorer(estimator, X, y) for GridSearchCV, cross_val_score and the like; it can be pickled and cloned.

    figure: one of FIGURES; precision, recall and f1 are of phrases under `scheme`, as evaluate_sequences has them.
    Raises ParameterError for an unknown figure or scheme.

    >>> callable(make_sequence_scorer("token_accuracy"))
    True
    """
    from sklearn.metrics import make_scorer

    from structpred.evaluation.chunks import SCHEMES

    if figure not in FIGURES:
        raise ParameterError(f"figure: expected one of {', '.join(FIGURES)}, got {figure!r}")
    if scheme not in SCHEMES:
        raise ParameterError(f"scheme: expected one of {', '.join(SCHEMES)}, got {scheme!r}")
    return make_scorer(sequence_score, figure=figure, scheme=scheme)


def sequence_score(gold: Sequence[Any], predicted: Sequence[Any], *, figure: str = "f1", scheme: str = "conlleval") -> float:
    """One figure of evaluate_sequences.

    >>> sequence_score([["B-X", "O"]], [["B-X", "B-X"]], figure="precision")
    0.5
    """
    return float(getattr(evaluate_sequences(gold, predicted, scheme), figure))
