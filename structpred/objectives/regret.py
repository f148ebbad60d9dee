"""The regret of a decision as a loss: what the best decision is worth, less what the one taken is worth."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structpred.core.costs import PartCosts
from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.types import Floats
from structpred.errors import LossError


class Regret:
    """loss(y_i, y) = c_i . mu(y_i) - c_i . mu(y), with true part scores c_i of each instance and its best output y_i.

    The margin-rescaled hinge of this loss, at twice the scores, is SPO+ (Elmachtoub & Grigas 2022), so that every trainer of
    structural support vector machines minimises SPO+. A true output that is not the best one is refused: others would cost less.

    true_scores: an array with one number a part for each instance; minus the costs where costs are minimised.

    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> Regret([[1.0, 3.0]]).loss_of(0).costs(np.array([1]), (2,), MulticlassOracle())
    PartCosts(constant=3.0, costs=array([-1., -3.]))
    """

    def __init__(self, true_scores: Sequence[npt.ArrayLike]) -> None:
        self.true_scores = [np.asarray(own, dtype=np.float64) for own in true_scores]

    def loss_of(self, i: int) -> "RegretOf":
        """The loss of instance i. Raises LossError where there are not so many."""
        if i >= len(self.true_scores):
            raise LossError(f"sample {i}: there are true scores of {len(self.true_scores)} instances")
        return RegretOf(self.true_scores[i])

    def take(self, rows: npt.NDArray[np.int64]) -> "Regret":
        """That of these instances."""
        return Regret([self.true_scores[i] for i in rows.tolist()])


class RegretOf:
    """The regret of one instance, whose parts have these true scores."""

    def __init__(self, true_scores: Floats) -> None:
        self.true_scores = true_scores

    def costs(self, labels: Labels, shape: Shape, oracle: Oracle) -> PartCosts:
        """Minus the true scores; the constant is the score of the true output."""
        if self.true_scores.shape != (oracle.n_parts(shape),):
            raise LossError(f"expected {oracle.n_parts(shape)} true scores, one a part, got shape {self.true_scores.shape}")
        return PartCosts(float(self.true_scores[oracle.parts(labels, shape)].sum()), -self.true_scores)
