"""Random features: columns whose inner products are close to the values of the RBF kernel, without a kernel matrix."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from structpred.errors import ParameterError
from structpred.models.base import seed_of
from structpred.models.sklearn_bridge import NotFittedError, refusals
from structpred.runtime.memory import check_fits

#: entries that are held at once besides the result
_BLOCK = 1 << 22


class RandomFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """phi(x) = sqrt(2 / n_components) (cos <w_j, x>, sin <w_j, x>)_j, w_j drawn from a normal distribution with variance 2 gamma.

    <phi(x), phi(x')> has the mean exp(-gamma |x - x'|^2), and deviates from it by about 1 / sqrt(n_components);
    |phi(x)| = 1 where n_components is even. A linear model of these columns is close to the machine with the kernel, in memory
    O(n n_components). Rahimi & Recht 2007, with a sine for each cosine, which deviates less than random phases
    (Sutherland & Schneider 2015).

    Parameters
    ----------
    n_components : int
        The number of columns; of an odd number the last cosine has no sine.
    gamma : float, optional
        > 0; None: 1 / (number of features times the variance of X), as scikit-learn's "scale".
    random_state : int or RandomState, optional
        Seeds the draws; None means 0.

    Raises
    ------
    ParameterError
        For settings out of range.
    DataError
        For X that is no table of finite numbers.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> phi = RandomFeatures(20_000, gamma=0.5).fit_transform(X)
    >>> bool(abs(phi[0] @ phi[1] - np.exp(-0.5)) < 0.02)
    True
    """

    def __init__(self, n_components: int = 1000, gamma: float | None = None, *, random_state: Any = None) -> None:
        self.n_components, self.gamma, self.random_state = n_components, gamma, random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the directions. X: (n, d); y is not looked at."""
        n, gamma = self.n_components, self.gamma
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ParameterError(f"n_components must be a whole number >= 1, got {n!r}")
        if gamma is not None and not (isinstance(gamma, int | float | np.number) and np.isfinite(gamma) and gamma > 0):
            raise ParameterError(f"gamma must be a number > 0 or None, got {gamma!r}")
        rows = self._rows(X, reset=True)
        variance = float(rows.var())
        self.gamma_ = float(gamma) if gamma is not None else (1.0 / (rows.shape[1] * variance) if variance > 0.0 else 1.0)
        rng = np.random.default_rng(seed_of(self.random_state))
        self.directions_ = np.sqrt(2.0 * self.gamma_) * rng.normal(size=(rows.shape[1], (n + 1) // 2))
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float32]:
        """(n, n_components) columns, 32-bit numbers."""
        if not hasattr(self, "directions_"):
            raise NotFittedError("this RandomFeatures is not fitted yet; call fit(X) first")
        rows, half, n = self._rows(X, reset=False), self.directions_.shape[1], self.n_components
        check_fits(4 * len(rows) * n, f"{n:,} random features of {len(rows):,} rows")
        found = np.empty((len(rows), n), np.float32)
        step = max(1, _BLOCK // half)
        for a in range(0, len(rows), step):
            angles = rows[a : a + step] @ self.directions_
            np.cos(angles, out=found[a : a + step, :half], casting="same_kind")
            np.sin(angles[:, : n - half], out=found[a : a + step, half:], casting="same_kind")
        found *= np.float32(np.sqrt(2.0 / n))
        return found

    def _rows(self, X: Any, reset: bool) -> npt.NDArray[np.float64]:
        with refusals():
            return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
