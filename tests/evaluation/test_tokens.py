"""Token measures against scikit-learn and by hand."""

import random
from itertools import chain

import numpy as np
from sklearn import metrics

from structpred.evaluation import confusion_matrix, sequence_accuracy, token_accuracy


def test_equal_to_scikit_learn() -> None:
    """Accuracy and confusion counts are scikit-learn's on the flattened labels."""
    rng = random.Random(0)
    gold = [[rng.choice("abcd") for _ in range(rng.randint(1, 9))] for _ in range(200)]
    predicted = [[x if rng.random() < 0.7 else rng.choice("bcde") for x in s] for s in gold]
    flat, other = list(chain(*gold)), list(chain(*predicted))
    labels, counts = confusion_matrix(gold, predicted)
    assert labels == tuple("abcde")
    assert np.array_equal(counts, metrics.confusion_matrix(flat, other, labels=list(labels)))
    assert token_accuracy(gold, predicted) == metrics.accuracy_score(flat, other)
    assert sequence_accuracy(gold, predicted) == np.mean([g == p for g, p in zip(gold, predicted, strict=True)])


def test_bounds() -> None:
    """Everything right is 1, everything wrong is 0, and one wrong letter costs the whole word."""
    word = [list("cat")]
    assert (token_accuracy(word, word), sequence_accuracy(word, word)) == (1.0, 1.0)
    assert (token_accuracy(word, [list("dog")]), sequence_accuracy(word, [list("dog")])) == (0.0, 0.0)
    assert sequence_accuracy(word, [list("car")]) == 0.0
