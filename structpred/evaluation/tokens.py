"""Measures on single labels: token accuracy, and whole-sequence accuracy."""

import numpy as np

from structpred.evaluation.coding import Sequences, encode


def token_accuracy(gold: Sequences, predicted: Sequences) -> float:
    """Return the share of tokens with the right label, in [0, 1]; raises DataError as `encode` does.

    >>> token_accuracy([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "x"]])
    0.75
    """
    coded = encode(gold, predicted)
    return float(np.mean(coded.gold == coded.predicted))


def sequence_accuracy(gold: Sequences, predicted: Sequences) -> float:
    """Return the share of sequences with every label right, in [0, 1].

    >>> sequence_accuracy([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "x"]])
    0.5
    """
    coded = encode(gold, predicted)
    return float(np.mean(coded.sums(coded.gold != coded.predicted) == 0))
