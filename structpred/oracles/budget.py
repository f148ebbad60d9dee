"""Budgets: how many of some parts are on, at most, at least or exactly."""

from structpred.core.oracle import Labels
from structpred.core.types import Floats
from structpred.errors import InfeasibleError, ParameterError
from structpred.oracles.decisions.truths import TruthOracle, best_count
from structpred.runtime.settings import checked_whole


class Budget(TruthOracle):
    """shape = (n,); labels[j] is 1 when part j is on. At most, at least or exactly so many of the n parts are on.

    The best output has the parts with positive scores, as many as may be, and as many others as must be; of equal ones the first.
    `TopKOracle` has the sums over choices of exactly k.

    >>> import numpy as np
    >>> Budget(at_most=2).argmax(np.array([1.0, 3.0, -1.0, 2.0]), (4,)).tolist()
    [0, 1, 0, 1]
    """

    def __init__(self, *, at_most: int | None = None, at_least: int | None = None, exactly: int | None = None) -> None:
        given = {"at_most": at_most, "at_least": at_least, "exactly": exactly}
        self.limits = {name: checked_whole(limit, name, 0) for name, limit in given.items() if limit is not None}
        self.low = self.limits.get("exactly", self.limits.get("at_least", 0))
        self.high = self.limits.get("exactly", self.limits.get("at_most"))
        if (exactly is not None and len(self.limits) > 1) or (self.high is not None and self.low > self.high):
            raise ParameterError(f"expected at_least <= at_most, or exactly alone, got {self!r}")

    def __repr__(self) -> str:
        return f"Budget({', '.join(f'{name}={limit}' for name, limit in self.limits.items())})"

    def best(self, scores: Floats) -> Labels:
        """The rows with the largest scores on. InfeasibleError where more must be on than there are."""
        if (n := scores.shape[1]) < self.low:
            raise InfeasibleError(f"{self!r} over {n} parts has no output")
        return best_count(scores, self.low, self.high)
