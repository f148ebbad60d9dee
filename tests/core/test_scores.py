"""Promises of structpred.core.scores: what passes is what compiled code may trust; the rest is refused in words."""

from typing import Any

import numpy as np
import pytest

from structpred.core.scores import checked_batch, checked_scores, checked_sizes, checked_table
from structpred.errors import DataError


def test_plain_scores_are_not_copied() -> None:
    """Contiguous float64 arrays come back as they are, those that are read-only too; -1e30 and 1e300 are finite numbers."""
    for scores in (np.zeros(3), np.full(3, -1e30), np.full(20_000, 1e300)):
        scores.flags.writeable = False
        assert checked_scores(scores, len(scores), (len(scores),)) is scores


@pytest.mark.parametrize("size", [5, 20_000])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_part_that_is_not_finite_is_named(size: int, bad: float) -> None:
    """In short arrays and in long ones, one by one and in a batch; large numbers next to it do no harm."""
    scores = np.full(size, 1e200)
    scores[3] = bad
    with pytest.raises(DataError, match=rf"got {bad} for part 3"):
        checked_scores(scores, size, (size,))
    with pytest.raises(DataError, match=rf"sample 1: scores must be finite numbers, got {bad}"):
        checked_batch(scores, np.array([0, 2, size]), np.array([2, size - 2]))


def test_lists_of_numbers_are_converted_and_nested_ones_refused() -> None:
    """What NumPy takes for a flat array of real numbers is one."""
    assert checked_scores([1, 2.5], 2, (2,)).tolist() == [1.0, 2.5]
    with pytest.raises(DataError, match="nested list"):
        checked_scores([[1.0], [1.0, 2.0]], 2, (2,))
    with pytest.raises(DataError, match="array of bool"):
        checked_scores([True, False], 2, (2,))


@pytest.mark.parametrize("shape", [[4, 3], np.array([4, 3]), (4.0, np.int32(3))])
def test_shapes_of_whole_numbers(shape: Any) -> None:
    """Lists, arrays and whole numbers of other types mean the same shape."""
    assert checked_sizes(shape, "positions", "labels") == (4, 3)


@pytest.mark.parametrize("shape", [(4,), (4, 3, 2), 4, (4, "3"), (4, None), (4, float("nan")), (0, 3), (4, 2**31)])
def test_other_shapes_are_refused(shape: Any) -> None:
    """Too few or too many numbers, no tuple, no numbers, numbers out of range: DataError, in a batch with the sample."""
    with pytest.raises(DataError, match=r"positions|labels"):
        checked_sizes(shape, "positions", "labels")
    with pytest.raises(DataError, match=r"^sample 1: .*(positions|labels)"):
        checked_table([(4, 3), shape], "positions", "labels")
