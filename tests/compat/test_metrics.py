"""Metrics under sklearn_crfsuite's names: scikit-learn's figures over all tokens."""

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.base import BaseEstimator

from structpred.compat import metrics, scorers
from structpred.errors import DataError

GOLD = [["A", "B", "C"], ["B"], ["A", "A"]]
FOUND = [["A", "C", "C"], ["B"], ["B", "A"]]
FLAT = (["A", "B", "C", "B", "A", "A"], ["A", "C", "C", "B", "B", "A"])
AVERAGED = [
    (metrics.flat_precision_score, sk.precision_score, {}),
    (metrics.flat_recall_score, sk.recall_score, {}),
    (metrics.flat_f1_score, sk.f1_score, {}),
    (metrics.flat_fbeta_score, sk.fbeta_score, {"beta": 2.0}),
]


@pytest.mark.parametrize(("ours", "theirs", "more"), AVERAGED, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("average", ["weighted", "macro", "micro"])
@pytest.mark.parametrize("labels", [None, ["A", "C"]], ids=str)
def test_averaged_scores(ours, theirs, more, average, labels) -> None:
    """Ragged lists give what flat lists give; arrays too."""
    settings = {"average": average, "labels": labels, **more}
    assert ours(GOLD, FOUND, **settings) == theirs(*FLAT, **settings)
    assert ours([np.array(y) for y in GOLD], [np.array(y) for y in FOUND], **settings) == theirs(*FLAT, **settings)


def test_accuracies_and_report() -> None:
    """Accuracy over tokens and over sequences, and the report with labels and digits."""
    assert metrics.flat_accuracy_score(GOLD, FOUND) == sk.accuracy_score(*FLAT)
    assert metrics.sequence_accuracy_score(GOLD, FOUND) == 1 / 3
    assert metrics.sequence_accuracy_score([], []) == 0.0
    report = metrics.flat_classification_report(GOLD, FOUND, labels=["B", "A"], digits=3)
    assert report == sk.classification_report(*FLAT, labels=["B", "A"], digits=3)
    assert metrics.flat_fbeta_score(GOLD, FOUND, 2.0, average="macro") == sk.fbeta_score(*FLAT, beta=2.0, average="macro")


@pytest.mark.parametrize(
    ("gold", "found"), [(GOLD, FOUND[:2]), ([["A"], ["A", "B"]], [["A", "B"], ["A"]]), (["A", "B"], ["A", "B"])]
)
def test_what_does_not_fit_is_refused(gold, found) -> None:
    """Lengths that only add up, and flat lists, raise an error instead of a score."""
    for score in (metrics.flat_accuracy_score, metrics.sequence_accuracy_score):
        with pytest.raises(DataError):
            score(gold, found)


class Says(BaseEstimator):
    """An estimator that says FOUND."""

    def predict(self, X):
        return FOUND


def test_scorers() -> None:
    """scorers.flat_accuracy and scorers.sequence_accuracy work as scoring functions; other names are an error."""
    assert scorers.flat_accuracy(Says(), [], GOLD) == sk.accuracy_score(*FLAT)
    assert scorers.sequence_accuracy(Says(), [], GOLD) == 1 / 3
    with pytest.raises(AttributeError, match="flat_f2"):
        _ = scorers.flat_f2
