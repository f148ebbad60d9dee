"""What every measure refuses, with the index of the sample."""

from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.evaluation.coding import encode

BAD: list[tuple[Any, Any, str]] = [
    ([], [], "the list of sequences is empty"),
    ([["a"]], [["a"], ["b"]], "one prediction for each of 1 gold sequences, got 2"),
    ([["a"], ["a", "b"]], [["a"], ["a"]], "sample 1: 2 gold labels but 1 predicted"),
    ([["a"], []], [["a"], []], "sample 1: the sequence is empty"),
    (["ab"], ["ab"], "sample 0: the gold labels are 'ab', expected a sequence of labels .was one sequence passed"),
    ([1, 2], [1, 2], "sample 0: the gold labels are 1, expected a sequence"),
    ([["a"]], ["a"], "sample 0: the predicted labels are 'a'"),
]


@pytest.mark.parametrize(("gold", "predicted", "message"), BAD)
def test_bad_input(gold: Any, predicted: Any, message: str) -> None:
    """Lengths that differ, empty input and strings for sequences are DataErrors that name the sample."""
    with pytest.raises(DataError, match=message):
        encode(gold, predicted)


def test_labels_of_any_kind() -> None:
    """Strings, integers, arrays and mixtures are coded, each label once, in a fixed order."""
    coded = encode([np.array([3, 1]), [1]], [[1, 1], np.array([2])])
    assert (coded.labels, coded.gold.tolist(), coded.predicted.tolist()) == ((1, 2, 3), [2, 0, 0], [0, 0, 1])
    assert encode([np.array(["b", "a"])], [["a", "a"]]).labels == ("a", "b")
    assert encode([[1, "a"]], [["a", 1]]).labels == (1, "a")
