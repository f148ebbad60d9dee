"""What an oracle of a user's own says is the most violating output is compared with what its own argmax finds."""

from typing import Any

import numpy as np
import pytest

from structpred.errors import OracleError
from structpred.features.parts import PartFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task


class Pairs(EnumeratedOracle):
    """Two of four, with the search for the largest product and the best output of each loss."""

    def __init__(self) -> None:
        outputs = [np.array([a, b]) for a in range(4) for b in range(a + 1, 4)]
        super().__init__(lambda shape: outputs, lambda labels, shape: labels, lambda shape: 4, example_shapes=[()])
        self.counts = np.array([np.bincount(y, minlength=4) for y in outputs], dtype=np.float64)

    def argmax_product(self, scores: Any, costs: Any, offsets: Any, shape: Any) -> Any:
        products = np.maximum(offsets[0] + self.counts @ scores, 0.0) * (offsets[1] + self.counts @ costs)
        return list(self.enumerate(shape))[int(products.argmax())]

    def argmax_per_loss(self, scores: Any, costs: Any, shape: Any) -> Any:
        outputs, loss, value = list(self.enumerate(shape)), self.counts @ costs, self.counts @ scores
        levels = np.unique(loss)
        best = [int(np.where(loss == level, value, -np.inf).argmax()) for level in levels]
        return levels, value[best], [outputs[k] for k in best]


class ArgmaxAlone(Pairs):
    """The product of the best output without the loss."""

    def argmax_product(self, scores: Any, costs: Any, offsets: Any, shape: Any) -> Any:
        return self.argmax(scores, shape)


class PerLoss(Pairs):
    """Only the best output of each loss."""

    argmax_product = None  # type: ignore[assignment]


class TooSmall(PerLoss):
    """Values that are too small."""

    def argmax_per_loss(self, scores: Any, costs: Any, shape: Any) -> Any:
        levels, best, labels = super().argmax_per_loss(scores, costs, shape)
        return levels, best - 0.3, labels


class NoLargest(PerLoss):
    """The outputs of the largest loss are left out."""

    def argmax_per_loss(self, scores: Any, costs: Any, shape: Any) -> Any:
        return tuple(own[:-1] for own in super().argmax_per_loss(scores, costs, shape))


def values(oracle: Any) -> Any:
    """The slack-rescaled hinges of eight instances at random weights and at zero."""
    rng = np.random.default_rng(3)
    task = Task(PartFeatures(list(rng.normal(size=(8, 4, 3)))), oracle, [[0, 1]] * 8, [()] * 8, Hamming())
    return np.concatenate([SlackRescaling().values(task, w) for w in (rng.normal(size=3), np.zeros(3))])


@pytest.mark.parametrize(
    ("kind", "method"), [(ArgmaxAlone, "argmax_product"), (TooSmall, "argmax_per_loss"), (NoLargest, "argmax_per_loss")]
)
def test_a_search_that_misses_the_most_violating_output_is_named(kind: type, method: str) -> None:
    """The error names sample and method, and has the numbers of both outputs."""
    with pytest.raises(OracleError, match=rf"sample \d: the best output by {kind.__name__}\.{method} has .* argmax gives has"):
        values(kind())


def test_right_searches_agree() -> None:
    """No false alarm, and both ways give the same values."""
    np.testing.assert_allclose(values(Pairs()), values(PerLoss()))
