"""Scorers under the names that sklearn_crfsuite.scorers has, for scikit-learn's `scoring=`."""

from typing import Any

from structpred.compat import metrics

flat_accuracy: Any
sequence_accuracy: Any


def __getattr__(name: str) -> Any:
    """Make a scorer when it is first used: scikit-learn is expensive to load."""
    functions = {"flat_accuracy": metrics.flat_accuracy_score, "sequence_accuracy": metrics.sequence_accuracy_score}
    if name not in functions:
        raise AttributeError(f"module 'structpred.compat.scorers' has no attribute {name!r}")
    from sklearn.metrics import make_scorer

    return make_scorer(functions[name])
