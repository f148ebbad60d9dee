"""SPO+: a convex bound of the regret of a decision."""

from structpred.core.oracle import Oracle
from structpred.core.types import ArrayLike, Floats
from structpred.errors import MissingCapabilityError
from structpred.layers.loss import Given, Loss, LossRecord, Terms
from structpred.layers.record import Scores
from structpred.runtime.settings import checked_positive


class SPOPlus(Loss):
    """H(theta) = max_y (s theta - c) . (mu(y) - g), with true scores c and gold g (Elmachtoub & Grigas 2022, in scores).

    Convex, >= 0, and at least the regret c . g - c . mu(y(theta)) of the decision y(theta), for every scale s > 0 and every gold
    g, whichever maximiser y(theta) is taken. It is the structural hinge whose loss is the regret. One `argmax` an instance.

    Parameters
    ----------
    oracle : Oracle
    scale : float
        s > 0; 2 is the published loss.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> oracle = MulticlassOracle()
    >>> found = SPOPlus(oracle)(Scores.of(oracle, [(3,)]), [0.0, 2.0, 1.0], true_scores=[1.0, 0.0, 0.0])
    >>> found.values.tolist(), found.gradient.tolist(), found.labels[0].tolist()
    ([5.0], [-2.0, 2.0, 0.0], [1])
    """

    name = "spo+"
    takes = ("gold", "true_scores")

    def __init__(self, oracle: Oracle, *, scale: float = 2.0) -> None:
        super().__init__(oracle)
        self.scale = checked_positive(scale, "scale")

    def terms(self, batch: Scores, theta: Floats, given: Given) -> Terms:
        """One maximum an instance; its gradient is s (mu(y*) - g)."""
        scores = self.scale * theta - given.truth
        best = batch.best(scores)
        values = best.values - batch.dots(scores, given.target)
        return Terms(values, self.scale * (batch.counts(best) - given.target), best.gaps, scores)

    def regret_bound(self, batch: Scores, theta: ArrayLike, **given: ArrayLike) -> Floats:
        """(n,) numbers that the regret of no decision at theta exceeds; arguments as for the call.

        Raises MissingCapabilityError where the oracle is not exact and gives no bound: the loss is then a lower estimate.
        """
        found: LossRecord = self(batch, theta, **given)  # type: ignore[arg-type]
        if not found.proven:
            raise MissingCapabilityError(
                f"{type(self.oracle).__name__} is not exact and has no argmax_bound: SPO+ then bounds no regret, though it trains"
            )
        return found.values + found.gap
