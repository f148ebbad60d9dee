"""The excessive gap method for binary classification with an intercept that is not regularised (Pragam-b)."""

from structpred.trainers.blocks.dual_sets import BalancedBoxes, balanced_set
from structpred.trainers.pragam import Pragam, PragamState
from structpred.trainers.problem import Problem


class PragamB(Pragam):
    """Pragam with a free intercept: dual points are kept in balance, so projections are on a box with an equality, in O(n).

    For `LinearTask(..., intercept=1.0)` with the regulariser `FreeIntercept`. The intercept returned is the best one for the
    other weights.

    Parameters
    ----------
    adaptive, recentre
        As for Pragam.

    Raises
    ------
    ParameterError
        Without an intercept, and where all samples with a weight above zero have one sign: the intercept is then unbounded.

    References
    ----------
    Saha, Zhang and Vishwanathan (2009), sections 4.1 and 5.

    Examples
    --------
    >>> from structpred.rows.linear_task import LinearTask
    >>> from structpred.objectives.margin import MarginRescaling
    >>> from structpred.objectives.regularisers.l2 import FreeIntercept
    >>> from structpred.trainers.loop import RunSettings, train
    >>> task = LinearTask([[1.0], [2.0], [3.0]], [1, -1, -1], intercept=1.0)
    >>> problem = Problem(task, MarginRescaling(), 0.1, regulariser=FreeIntercept())
    >>> train(problem, PragamB(), RunSettings(max_iter=200, tol=1e-3)).certificate.gap < 1e-3
    True
    """

    name = "pragam_b"
    requires = ("signed_rows",)
    regulariser_requires = ("free",)

    def dual_set(self, problem: Problem) -> BalancedBoxes:
        """The box and the balance."""
        return balanced_set(problem)

    def init_state(self, problem: Problem) -> PragamState:
        """As Pragam; the data are looked at first."""
        self.dual_set(problem).check()
        return super().init_state(problem)
