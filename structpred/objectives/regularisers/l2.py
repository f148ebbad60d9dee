"""The squared Euclidean norm: as it is, without an intercept, and on a cone of signs."""

from collections.abc import Sequence
from copy import copy
from typing import cast

import numpy as np
import numpy.typing as npt

from structpred.core.products import dot
from structpred.core.regulariser import DualMap, Pieces, Regulariser, pieces_of
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.errors import ParameterError


class L2(Regulariser):
    """r(w) = 1/2 |w|^2, which is its own conjugate: w is the dual point itself."""

    name = "l2"
    strong_convexity = 1.0

    def squared_norm(self, w: Vector) -> float:
        """|w|^2, the products and sums in float64, without a float64 copy of the whole vector."""
        return _summed(pieces_of(w))

    def value(self, w: Vector) -> float:
        """1/2 |w|^2."""
        return 0.5 * self.squared_norm(w)

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """loss - lam/2 |u|^2."""
        return loss - 0.5 * lam * _summed(u)

    def dual_map(self) -> DualMap:
        """w = u."""
        return DualMap.alike(1.0)

    def gradient(self, w: Floats) -> tuple[float, Floats]:
        """(1/2 |w|^2, w)."""
        return self.value(w), w

    def smooth_part(self) -> tuple["L2", float]:
        """All of it is smooth."""
        return self, 0.0


def _summed(pieces: Pieces) -> float:
    total = 0.0
    for piece in pieces:
        total += dot(piece, piece)
    return total


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


class SignConstraints(Regulariser):
    """r(w) = 1/2 |w|^2 where c_j w_j >= 0 for each j, infinite elsewhere; c_j is -1, 0 (the weight is free) or 1.

    Its dual map is the projection on that cone, P_S(u)_j = u_j, or 0 where c_j u_j < 0; the conjugate is 1/2 |P_S(u)|^2.

    Parameters
    ----------
    signs : array of int
        c, one for each weight, or one for all of them. Estimators make it of the names of weights: see their setting `signs`.

    Raises
    ------
    ParameterError
        For anything else; in training, too, where their number is not that of the weights.

    References
    ----------
    Sign-constrained empirical risk minimisation: S = {w : c_j w_j >= 0}, P_S(v) = v + c * max(-c * v, 0).

    Examples
    --------
    >>> SignConstraints([1, -1, 0]).prox(np.array([-2.0, -2.0, -2.0]), 1.0)
    array([ 0., -1., -1.])
    """

    strong_convexity = 1.0

    def __init__(self, signs: npt.ArrayLike = 1) -> None:
        self.signs = checked_signs(signs)

    def grouped(self, groups: npt.NDArray[np.int64], names: Sequence[str]) -> "SignConstraints":
        """Itself, if there is a sign for each weight, or one for all."""
        if self.signs.ndim and len(self.signs) != groups[-1]:
            raise ParameterError(f"signs: expected one for each of {groups[-1]} weights, got {len(self.signs)}")
        return self

    def dual_map(self) -> DualMap:
        """w_j = u_j - clip(u_j, low, high): (-inf, 0) for w_j >= 0, (0, inf) for w_j <= 0; a group is a run of equal signs."""
        if not self.signs.ndim:
            return DualMap.alike(1.0, *map(float, _interval(self.signs)))
        last = np.flatnonzero(np.append(self.signs[1:] != self.signs[:-1], True))
        return DualMap.of(last + 1, 1.0, *_interval(self.signs[last]))

    def smooth_part(self) -> tuple[L2, float]:
        """The square: the cone is left to those who ask for the signs."""
        return L2(), 0.0


def checked_signs(signs: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Signs as an array of int8, flat or a single one. Raises ParameterError for other numbers than -1, 0 and 1."""
    try:
        found = np.array(signs)
    except ValueError as error:
        raise ParameterError(f"signs: expected an array of -1, 0 and 1: {error}") from None
    if found.dtype.kind not in "iuf" or found.ndim > 1 or found.size == 0:
        raise ParameterError(f"signs: expected a flat array of -1, 0 and 1, got {found.dtype} of shape {found.shape}")
    wrong = np.flatnonzero(~np.isin(found, (-1, 0, 1)))
    if len(wrong):
        raise ParameterError(f"signs: expected -1, 0 or 1, got {found.ravel()[wrong[0]]} for weight {wrong[0]}")
    return found.astype(np.int8)


def _interval(signs: npt.NDArray[np.int8]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(low, high) of each sign."""
    return np.where(signs > 0, -np.inf, 0.0), np.where(signs < 0, np.inf, 0.0)
