"""Perturbation gradient losses: the decision's true worth as a directional derivative of the best score."""

from structpred.core.oracle import Oracle
from structpred.core.types import Floats
from structpred.layers.loss import Given, Loss, Terms
from structpred.layers.record import Scores
from structpred.runtime.settings import checked_positive


class PerturbationGradient(Loss):
    """[S(theta - h c) - S(theta)] / h, with S(theta) = max_y theta . mu(y) and true scores c (Gupta & Huang 2024, backward PG).

    It needs no gold. S is convex, so the value is at least -c . mu(y(theta)), what the decision loses; the gradient is
    [mu(theta - h c) - mu(theta)] / h. Two calls of `argmax` an instance. It may be negative, and it is not convex.

    Parameters
    ----------
    oracle : Oracle
    width : float
        h > 0, in scores over true scores: small is near to the true loss, large is smooth.
    central : bool
        [S(theta - h c) - S(theta + h c)] / 2 h instead: nearer to the true loss, and no bound of it.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> found = PerturbationGradient(oracle)(Scores.of(oracle, [(2,)]), [0.0, 0.5], true_scores=[1.0, 0.0])
    >>> found.values.tolist(), found.gradient.tolist()
    ([0.0], [0.0, 0.0])
    """

    name = "pg"
    takes = ("true_scores",)
    nonnegative = False

    def __init__(self, oracle: Oracle, *, width: float = 1.0, central: bool = False) -> None:
        super().__init__(oracle)
        self.width, self.central = checked_positive(width, "width"), bool(central)

    def terms(self, batch: Scores, theta: Floats, given: Given) -> Terms:
        """Two maxima an instance."""
        step = self.width * given.truth
        worse, other = batch.best(theta - step), batch.best(theta + step if self.central else theta)
        h = 2.0 * self.width if self.central else self.width
        gradient = (batch.counts(worse) - batch.counts(other)) / h
        decisions = None if self.central else other.outputs
        return Terms((worse.values - other.values) / h, gradient, worse.gaps / h, decisions=decisions)
