"""A slow oracle behind a pool of the outputs it gave before: most calls are answered from the pool."""

from hashlib import blake2b
from operator import attrgetter

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.own_code import asked_parts
from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.runtime.settings import checked_whole


class PooledOracle(Oracle):
    """Answers argmax with the best output that it has met for the shape, and asks `oracle` for a share of the calls only.

    Outputs depend on the shape alone, so those met for some scores are outputs for others (Mulamba et al. 2021). Whether a call
    is asked is a function of its scores. It is not exact: a loss then says that its values are lower bounds (an infinite `gap`).

    Parameters
    ----------
    oracle : Oracle
        The slow one.
    share : float
        Of the calls that are asked, in (0, 1]; the first of each shape always is.
    size : int
        Outputs kept for each shape; the oldest goes first.

    Examples
    --------
    >>> from structpred.oracles.assignment import AssignmentOracle
    >>> oracle = PooledOracle(AssignmentOracle(), share=0.1)
    >>> oracle.argmax(np.eye(3).ravel(), (3,)).tolist(), oracle.exact
    ([0, 1, 2], False)
    """

    exact = False

    def __init__(self, oracle: Oracle, *, share: float = 0.1, size: int = 1000) -> None:
        if not 0.0 < share <= 1.0:
            raise ParameterError(f"share must lie in (0, 1], got {share!r}")
        self.oracle, self.share, self.output = oracle, float(share), oracle.output
        self.size = checked_whole(size, "size")
        self._met: dict[Shape, dict[bytes, tuple[Labels, Floats]]] = {}

    # those of the oracle
    n_parts = property(attrgetter("oracle.n_parts"))
    parts = property(attrgetter("oracle.parts"))
    example_shapes = property(attrgetter("oracle.example_shapes"))

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The oracle's best output, or the best of those met."""
        met = self._met.setdefault(shape, {})
        if not met or int.from_bytes(blake2b(scores.tobytes(), digest_size=8).digest(), "little") < self.share * 2.0**64:
            labels = self.oracle.argmax(scores, shape).copy()
            counts = np.bincount(asked_parts(self.oracle, 0, labels, shape), minlength=len(scores)).astype(np.float64)
            if labels.tobytes() not in met and len(met) >= self.size:
                del met[next(iter(met))]
            met[labels.tobytes()] = labels, counts
            return labels.copy()
        found = list(met.values())
        return found[int(np.argmax([scores @ counts for _, counts in found]))][0].copy()
