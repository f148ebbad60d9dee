"""The squared Euclidean norm of all weights but the last group: an intercept that is not regularised."""

from collections.abc import Sequence
from copy import copy
from typing import cast

import numpy as np
import numpy.typing as npt

from structpred.core.products import dot
from structpred.core.regulariser import Pieces, Regulariser, pieces_of
from structpred.core.weights import Vector

#: a dual point may be out of balance by so much, in units of the loss: the rounding of its sum
BALANCED = 1e-9


class FreeIntercept(Regulariser):
    """r(w) = 1/2 |w|^2 without the last group of weights. Only trainers that keep the dual in balance know it.

    Its conjugate is 1/2 |u|^2 where u is zero in the last group, infinite elsewhere: a dual point bounds the optimum only where
    the samples' pulls on the free weights cancel. So it has neither a dual map nor a gradient that is strongly monotone.
    """

    def __init__(self) -> None:
        self.start = self.stop = 0

    def grouped(self, groups: npt.NDArray[np.int64], names: Sequence[str]) -> "FreeIntercept":
        """With the last group free."""
        new = copy(self)
        new.start, new.stop = int(groups[-2]), int(groups[-1])
        return new

    def free(self) -> slice:
        """The weights that are left out."""
        return slice(self.start, self.stop)

    def value(self, w: Vector) -> float:
        """1/2 |w|^2 without the free weights."""
        return self._split(pieces_of(w))[0]

    def prox(self, w: Vector, step: float) -> Vector:
        """All but the free weights shrink."""
        out = np.asarray(w / (1.0 + step), dtype=w.dtype)
        out[self.free()] = w[self.free()]
        return cast(Vector, out)

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """loss - lam r(u) where u is in balance; else there is none."""
        value, largest = self._split(u)
        return loss - lam * value if lam * largest <= BALANCED * (1.0 + abs(loss)) else -np.inf

    def _split(self, pieces: Pieces) -> tuple[float, float]:
        """Half the squared norm of the others, and the largest free entry."""
        total, largest, first = 0.0, 0.0, 0
        for piece in pieces:
            a, b = (int(np.clip(end - first, 0, len(piece))) for end in (self.start, self.stop))
            total += 0.5 * dot(piece[:a], piece[:a]) + 0.5 * dot(piece[b:], piece[b:])
            largest = max(largest, float(np.abs(piece[a:b]).max(initial=0.0)))
            first += len(piece)
        return total, largest
