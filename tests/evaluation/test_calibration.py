"""Promises of structpred.evaluation.calibration: figures as counted by hand, thresholds as a search finds them."""

import json

import numpy as np
import pytest

from structpred.errors import DataError, ParameterError
from structpred.evaluation import Calibration, calibration
from structpred.models.chain.decoding import Phrase


def test_a_small_case_by_hand() -> None:
    """Two bins: |0.92 - 1/2| of two phrases, and |0.6 - 1| of one; a phrase of another sequence, type or end is not right."""
    gold = [["B-X", "I-X", "O"], ["O", "S-Y", "O"]]
    found = calibration(gold, [[Phrase(0, 2, "X", 0.96), Phrase(0, 1, "X", 0.88 + 1e-9)], [Phrase(1, 2, "Y", 0.6)]])
    assert (found.n_gold, found.right.tolist()) == (2, [True, False, True])
    assert found.error == pytest.approx((0.04 + 0.88 + 0.4) / 3)
    assert [row[:2] for row in found.bins()] == [(0.6, 1), (0.8, 1), (0.9, 1)]
    assert found.bins()[0][4:] == (2 / 3, 1.0)
    assert (found.at(0.9).precision, found.at(0.9).recall) == (1.0, 0.5)
    assert [found.threshold_for(p) for p in (0.5, 0.9)] == [0.6, 0.96]
    assert json.loads(json.dumps(found.to_dict()))["error"] == found.error
    assert str(found).endswith("Expected calibration error of phrases: 0.4400")
    other = [Phrase(0, 2, "X", 0.8), Phrase(1, 2, "X", 0.7), Phrase(1, 3, "Y", 0.6)]
    shifted = calibration(gold, [[Phrase(1, 2, "Y", 0.9)], other])
    assert not shifted.right.any()
    assert shifted.threshold_for(0.1) is None


def test_thresholds_equal_a_search() -> None:
    """The least probability from which on precision is as wanted, also where many phrases are equally probable."""
    rng = np.random.default_rng(0)
    for digits in (1, 8):
        p = np.sort(rng.random(200).round(digits))[::-1]
        found = Calibration(p, rng.random(200) < p, 150)
        for wanted in (0.5, 0.8, 0.95, 1.0):
            good = [threshold for threshold in p.tolist() if found.at(threshold).precision >= wanted]
            assert found.threshold_for(wanted) == (min(good) if good else None)


def test_probabilities_that_hold_have_a_small_error() -> None:
    """Drawn as they say the error is small; squared they are wrong, and it is not."""
    p = np.sort(np.random.default_rng(1).random(20_000))[::-1]
    right = np.random.default_rng(2).random(20_000) < p
    assert Calibration(p, right, 20_000).error < 0.015
    assert Calibration(p**2, right, 20_000).error > 0.1


def test_nothing_to_judge_and_what_does_not_fit() -> None:
    """No phrases have no error; lists of different lengths and wrong shares are refused."""
    none = calibration([["O"]], [[]])
    assert (none.error, none.bins(), none.threshold_for(0.5)) == (0.0, [], None)
    with pytest.raises(DataError, match="expected the phrases of each of 1 gold sequences, got 2"):
        calibration([["O"]], [[], []])
    with pytest.raises(ParameterError, match="precision: expected a number from 0 to 1, got 95"):
        none.threshold_for(95)
