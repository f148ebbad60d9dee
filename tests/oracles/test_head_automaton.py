"""Head automata: the best head and modifiers against enumeration, with scores by the definition of parts."""

from itertools import pairwise

import numpy as np
import pytest

from structpred.contracts.checks import check_oracle
from structpred.errors import DataError
from structpred.oracles.head_automaton import HeadAutomaton

SHAPES = [(1, 0, 0, 0), (0, 0, 4, 0), (0, 0, 4, 1), (3, 2, 3, 0), (2, 3, 0, 0), (0, 2, 2, 1)]


def score(labels, theta, shape):
    """The score of an output, part by part as the class numbers them."""
    heads, left, right, _ = shape
    head, chosen, d = labels[0], labels[1:], left + right
    pairs = [(k + 1) * (k + 2) // 2 for k in (left, right)]
    total = theta[d + head] if heads else 0.0
    for begin, size, siblings in ((0, left, d + heads), (left, right, d + heads + pairs[0])):
        states = [0, *(j for j in range(1, size + 1) if chosen[begin + j - 1]), size + 1]
        for i, j in pairwise(states):
            total += theta[siblings + j * (j - 1) // 2 + i]
        for j in states[1:-1]:
            total += theta[begin + j - 1]
            total += theta[d + heads + sum(pairs) + (begin + j - 1) * heads + head] if heads else 0.0
    return total


def test_the_contract_holds() -> None:
    """All that is promised of an oracle, batches included."""
    check_oracle(HeadAutomaton())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_best_of_all(shape: tuple[int, ...]) -> None:
    """argmax scores what the best enumerated output does, and parts add up to the score."""
    oracle, rng = HeadAutomaton(), np.random.default_rng(0)
    for _ in range(20):
        theta = rng.normal(size=oracle.n_parts(shape))
        values = [score(labels, theta, shape) for labels in oracle.enumerate(shape)]
        found = oracle.argmax(theta, shape)
        assert score(found, theta, shape) == pytest.approx(max(values), abs=1e-12)
        assert theta[oracle.parts(found, shape)].sum() == pytest.approx(score(found, theta, shape), abs=1e-12)


def test_what_is_no_shape_and_no_output() -> None:
    """A wrong shape is a DataError; labels of another size, a second child of the root, and NaN are refused, too."""
    oracle = HeadAutomaton()
    with pytest.raises(DataError, match="a shape is"):
        oracle.n_parts((1, 2))
    with pytest.raises(DataError, match="finite"):
        oracle.argmax(np.full(5, np.nan), (0, 0, 1, 0))
    with pytest.raises(ValueError, match="one modifier"):
        oracle.parts(np.array([0, 1, 1]), (0, 0, 2, 1))
