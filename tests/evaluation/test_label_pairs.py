"""Labels that occur together: counts against counting by hand, and which of many labels are kept."""

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.evaluation.multilabel import cooccurrence


def test_counts_are_those_of_loops() -> None:
    """Both sides count what two loops count, and pairs go from too often to too seldom, each once."""
    rng = np.random.default_rng(0)
    gold, guess = ((rng.random((30, 5)) < 0.4).astype(int) for _ in range(2))
    found = cooccurrence(gold, guess, list("abcde"))
    for rows, counts in ((gold, found.gold), (guess, found.predicted)):
        assert counts.tolist() == [[sum(r[i] and r[j] for r in rows.tolist()) for j in range(5)] for i in range(5)]
    pairs = found.pairs()
    assert sorted((pair.label, pair.other) for pair in pairs) == [(a, b) for a in "abcde" for b in "abcde" if a < b]
    assert [pair.excess for pair in pairs] == sorted((pair.predicted - pair.gold for pair in pairs), reverse=True)


def test_the_most_frequent_labels_are_kept() -> None:
    """Of more labels than wanted those with most examples stay, in the order of the data."""
    gold = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0]])
    found = cooccurrence(gold, gold, ["a", "b", "c", "d"], most=2)
    assert (found.names, found.gold.tolist()) == (["a", "c"], [[3, 2], [2, 2]])


def test_shapes_must_fit() -> None:
    """Rows of another number of labels are refused."""
    with pytest.raises(DataError, match="predicted: "):
        cooccurrence([[1, 0]], [[1, 0, 1]])
