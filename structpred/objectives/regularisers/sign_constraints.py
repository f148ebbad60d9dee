"""Half the squared Euclidean norm on a cone: chosen weights must not be negative, others must not be positive."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structpred.core.regulariser import DualMap, Regulariser
from structpred.errors import ParameterError


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
