"""Measures on single labels: token accuracy, whole-sequence accuracy, and which label is taken for which."""

from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.evaluation.coding import Sequences, encode


def token_accuracy(gold: Sequences, predicted: Sequences) -> float:
    """Return the share of tokens with the right label, in [0, 1]; raises DataError as `encode` does.

    >>> token_accuracy([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "x"]])
    0.75
    """
    coded = encode(gold, predicted)
    return float(np.mean(coded.gold == coded.predicted))


def sequence_accuracy(gold: Sequences, predicted: Sequences) -> float:
    """Return the share of sequences with every label right, in [0, 1] (word accuracy, where a sequence is a word).

    >>> sequence_accuracy([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "x"]])
    0.5
    """
    coded = encode(gold, predicted)
    return float(np.mean(coded.sums(coded.gold != coded.predicted) == 0))


def confusion_matrix(gold: Sequences, predicted: Sequences) -> tuple[tuple[Any, ...], npt.NDArray[np.int64]]:
    """Return the sorted labels and counts, int64 (n_labels, n_labels): rows are gold labels, columns predicted ones.

    >>> labels, counts = confusion_matrix([["a", "b"]], [["a", "a"]])
    >>> labels, counts.tolist()
    (('a', 'b'), [[1, 0], [1, 0]])
    """
    coded = encode(gold, predicted)
    n = len(coded.labels)
    return coded.labels, np.bincount(coded.gold * n + coded.predicted, minlength=n * n).reshape(n, n)
