"""Areas under ROC curves and precision-recall break-even points, ties included."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from structpred.errors import DataError
from structpred.evaluation import average_precision, break_even_point, roc_area

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("n_values", [3, 1000])
def test_the_area_equals_that_of_scikit_learn(n_values: int) -> None:
    """With many ties and with hardly any."""
    for _ in range(20):
        truth, scores = RNG.random(40) < 0.3, RNG.integers(0, n_values, 40) / 7.0
        truth[:2] = True, False
        assert roc_area(truth, scores) == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)


@pytest.mark.parametrize("n_values", [3, 1000])
def test_average_precision_equals_that_of_scikit_learn(n_values: int) -> None:
    """With many ties and with hardly any; 1 where all positive samples come first."""
    for _ in range(20):
        truth, scores = RNG.random(40) < 0.3, RNG.integers(0, n_values, 40) / 7.0
        truth[:2] = True, False
        assert average_precision(truth, scores) == pytest.approx(average_precision_score(truth, scores), abs=1e-12)
        assert average_precision(truth, truth + 0.5 * scores / n_values) == 1.0


def test_precision_equals_recall_at_the_break_even_point() -> None:
    """Without ties it is a point of scikit-learn's curve at which both are the same."""
    for _ in range(20):
        truth, scores = RNG.random(30) < 0.4, RNG.permutation(30) - 10.0
        truth[:2] = True, False
        precision, recall, _ = precision_recall_curve(truth, scores)
        found = break_even_point(truth, scores)
        assert min(abs(precision - found) + abs(recall - found)) < 1e-12


def test_ties_count_by_their_chance() -> None:
    """The value is the mean over all orders of the tied samples."""
    truth, scores = np.array([True, False, True, True, False]), np.array([3.0, 2.0, 2.0, 2.0, 1.0])
    every = [break_even_point(truth, scores + 0.01 * np.array([0, *order, 0])) for order in permutations(range(3))]
    assert break_even_point(truth, scores) == pytest.approx(np.mean(every))
    assert break_even_point(truth, np.zeros(5)) == pytest.approx(0.6)


def test_unusable_input_is_an_error() -> None:
    """Numbers for flags, lengths that differ, one class only, and NaN."""
    with pytest.raises(DataError, match="expected a flag, True or False"):
        break_even_point([1, -1], [0.0, 1.0])
    with pytest.raises(DataError, match="scores of shape"):
        roc_area([True, False], [0.0])
    with pytest.raises(DataError, match="got 0 positive ones of 2"):
        roc_area([False, False], [0.0, 1.0])
    with pytest.raises(DataError, match="sample 1 has nan"):
        break_even_point([True, False], [0.0, np.nan])
