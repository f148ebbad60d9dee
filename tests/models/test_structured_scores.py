"""scoring= of StructuredPredictor: what each score means, on outputs of one length and of many."""

from typing import Any

import numpy as np
import pytest
from subset_cases import Subsets, planted

from structpred.core.costs import PartCosts
from structpred.errors import DataError, ParameterError
from structpred.models import StructuredPredictor
from structpred.models.output_scores import OutputScores
from structpred.objectives.part_losses import Hamming
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle


def score(
    oracle: Any, scoring: Any, truth: list[list[int]], found: list[list[int]], shapes: list[Any], loss: Any = None
) -> float:
    """The score of one list of outputs."""
    labels = [np.array(t, dtype=np.int64) for t in truth]
    return OutputScores(oracle, loss or Hamming(), scoring, labels, shapes)([np.array(f, dtype=np.int64) for f in found])


MATCHINGS = ([[0, 1, 2], [1, 0]], [[0, 2, 1], [1, 0]], [(3,), (2,)])
CHAINS = ([[0, 1, 1], [1, 1]], [[0, 1, 0], [1, 1]], [(3, 2), (2, 2)])
SUBSETS = ([[0, 2], []], [[0, 1], [0]], [planted(1)[0][0].shape] * 2)


@pytest.mark.parametrize(
    ("oracle", "case", "scoring", "wanted"),
    [
        (AssignmentOracle(), MATCHINGS, None, 3 / 5),
        (AssignmentOracle(), MATCHINGS, "labels", 3 / 5),
        (AssignmentOracle(), MATCHINGS, "parts", 3 / 5),
        (AssignmentOracle(), MATCHINGS, "exact", 1 / 2),
        (AssignmentOracle(), MATCHINGS, "loss", -2 / 2),
        (ChainOracle(), CHAINS, None, 4 / 5),
        (ChainOracle(), CHAINS, "labels", 4 / 5),
        (ChainOracle(), CHAINS, "parts", 6 / 8),  # of 5 labels and 3 transitions, one of each is wrong
        (ChainOracle(), CHAINS, "exact", 1 / 2),
        (ChainOracle(), CHAINS, "loss", -1 / 2),
    ],
)
def test_scores_by_hand(oracle: Any, case: Any, scoring: Any, wanted: float) -> None:
    """Each score of two small outputs equals what one counts by hand; the default is the share of labels under Hamming."""
    assert score(oracle, scoring, *case) == pytest.approx(wanted)


class Open:
    """Subsets without a budget, for outputs written by hand."""

    n_parts = staticmethod(lambda shape: 3)
    parts = staticmethod(lambda labels, shape: labels)


class Symmetric:
    """The number of items in one set only."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> PartCosts:
        costs = np.ones(oracle.n_parts(shape))
        costs[labels] = -1.0
        return PartCosts(float(len(labels)), costs)


class FromSubsets(Open):
    """The same, able to answer what a loss with negative costs is asked."""

    @staticmethod
    def argmax(scores: Any, shape: Any) -> Any:
        return np.flatnonzero(scores > 0)


def test_outputs_of_other_lengths_have_scores() -> None:
    """One of two items found, and one too many: counted by parts, by outputs and by the training loss, but not by labels."""
    truth, found, shapes = [[0, 2], []], [[0, 1], [0]], [(3,), (3,)]
    assert score(Open(), "parts", truth, found, shapes) == pytest.approx(2 * 1 / 5)
    assert score(Open(), "exact", truth, found, shapes) == 0.0
    assert score(FromSubsets(), None, truth, found, shapes, Symmetric()) == pytest.approx(1 - 3 / 2)
    assert score(FromSubsets(), "loss", truth, found, shapes, Symmetric()) == pytest.approx(-3 / 2)
    with pytest.raises(DataError, match="sample 1: y has 0 labels and the output 1"):
        score(Open(), "labels", truth, found, shapes)


def test_repeated_parts_are_counted() -> None:
    """A part that comes twice in one output and once in the other agrees once."""
    assert score(Open(), "parts", [[0, 0, 1]], [[0, 2]], [(3,)]) == pytest.approx(2 * 1 / 5)


def test_a_function_is_given_true_and_predicted_labels() -> None:
    """scoring= may be a function of both lists; in fit it chooses the pass to keep."""
    X, y = planted(10)
    calls = []

    def size(truth: Any, found: Any) -> float:
        calls.append((len(truth), len(found)))
        return -abs(sum(map(len, found)) - sum(map(len, truth)))

    model = StructuredPredictor(Subsets(), max_iter=3, scoring=size).fit(X, y, dev=(X[:4], y[:4]))
    assert calls == [(4, 4)] * 3
    assert model.score(X[:4], y[:4]) == max(row["dev_score"] for row in model.history_)


def test_bad_scoring_is_refused_before_training() -> None:
    """An unknown name is refused by fit; true labels that are no output by score, naming the sample."""
    X, y = planted(4)
    with pytest.raises(ParameterError, match="scoring: expected one of labels, parts, exact, loss"):
        StructuredPredictor(Subsets(), scoring="accuracy").fit(X, y)
    model = StructuredPredictor(Subsets(), max_iter=2).fit(X, y)
    with pytest.raises(DataError, match="sample 2: the true labels do not fit the shape"):
        model.score(X, [*y[:2], [0, 1, 2, 3], y[3]])
    with pytest.raises(DataError, match="X has 4 samples but y has 3"):
        model.score(X, y[:3])
    with pytest.raises(ParameterError, match="expected the function to return a number"):
        StructuredPredictor.score(model.set_params(scoring=lambda truth, found: None), X, y)
