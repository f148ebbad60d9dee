"""Similarities as columns: those to the training samples (SVM-pairwise), with signs; random ones close to the RBF kernel."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from structpred.core.types import AnyArray, Floats, Floats32, Integers
from structpred.errors import DataError
from structpred.models.base import seed_of
from structpred.models.kernels.functions import Kernel, Precomputed, name_of, resolve_kernel
from structpred.models.linear.classifier import _read_targets
from structpred.models.sklearn_bridge import NotFittedError, refusals
from structpred.runtime.memory import check_fits
from structpred.runtime.settings import checked_positive, checked_whole

#: entries that are held at once besides the result
_BLOCK = 1 << 22


class SimilarityFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace each sample by its similarities to the n training samples, x -> (k(x, x_1), ..., k(x, x_n)).

    A linear classifier over these features is SVM-pairwise (Liao and Noble 2003). A sample similar to a training sample should
    rather have its class, so the weight of that feature should not be negative for the class, nor positive against it:
    `signs_` says which sign each weight may have (Kato, Kobayashi and Sano 2018, (32)).

    Parameters
    ----------
    kernel : str, Kernel or callable
        The similarity: the name of a kernel such as "rbf", "linear" or "polynomial", an object such as ``RBF(0.1)``, or a
        function (A, B) -> array (rows of A, rows of B) of two CSR matrices. "precomputed": X holds similarities, in `fit`
        (n, n), later (m, n), such as scores of sequence alignments. It need not be positive semidefinite.

    Attributes
    ----------
    signs_ : ndarray of int64
        +1 where the weight of a feature may not be negative, -1 where not positive. For two classes (n,): +1 for training
        samples of the second class, -1 for those of the first. For more (n_classes, n), as `coef_`: +1 in the row of the
        sample's own class, -1 in the others.
    classes_ : ndarray
        The classes in ascending order.
    kernel_ : Kernel
        With the numbers it took from the training data.
    n_features_in_ : int
        Columns of X.

    Raises
    ------
    DataError
        For X or y that cannot be used, such as NaN, one class only, or precomputed similarities that are not a square.
    ParameterError
        For a kernel that is not known.

    Notes
    -----
    Features are CSR where X is, else dense. They are named after the classes: feature j is ``"<class of sample j>_j"``, so
    patterns such as ``{"yes_*": +1, "no_*": -1}`` say the same as `signs_`, also in a pipeline whose samples change.

    References
    ----------
    Liao and Noble (2003), Combining pairwise sequence similarity and support vector machines for detecting remote protein
    evolutionary and structural relationships.

    Examples
    --------
    >>> similar = SimilarityFeatures("linear").fit([[0.0, 1.0], [2.0, 0.0], [3.0, 1.0]], ["no", "yes", "yes"])
    >>> similar.signs_.tolist(), similar.get_feature_names_out().tolist()
    ([-1, 1, 1], ['no_0', 'yes_1', 'yes_2'])
    >>> similar.transform([[1.0, 1.0]]).tolist()
    [[1.0, 2.0, 4.0]]
    """

    signs_: Integers
    classes_: AnyArray
    kernel_: Kernel
    n_features_in_: int

    def __init__(self, kernel: Any = "rbf") -> None:
        self.kernel = kernel

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the samples X, (n, d) dense or sparse, and take the signs from their classes y, (n,)."""
        kernel = resolve_kernel(self.kernel)
        with refusals():
            rows, targets = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True)
        if targets.ndim == 2 and targets.shape[1] > 1:
            raise DataError("y: expected one class per sample, got a table; OneVsRestClassifier asks for each column")
        if isinstance(kernel, Precomputed) and rows.shape[0] != rows.shape[1]:
            raise DataError(f"X: expected precomputed similarities of {rows.shape[0]} samples among each other, a square matrix, "
                            f"got shape {rows.shape}")  # fmt: skip
        _, self.classes_, self._codes = _read_targets(targets)
        own = np.where(self._codes == np.arange(len(self.classes_))[:, None], 1, -1)
        self.signs_ = own[1] if len(self.classes_) == 2 else own
        self._samples: Any = None if isinstance(kernel, Precomputed) else sparse.csr_matrix(rows)
        self.kernel_ = kernel if self._samples is None else kernel.fitted(self._samples)
        return self

    def transform(self, X: Any) -> Any:
        """The similarities (m, n) of the samples X, (m, d), to those of `fit`; CSR where X is, else an array."""
        check_is_fitted(self)
        with refusals():
            rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        if self._samples is None:
            return rows
        found = self.kernel_(sparse.csr_matrix(rows), self._samples)
        if not np.isfinite(found).all():
            i, j = np.argwhere(~np.isfinite(found))[0]
            raise DataError(f"kernel {name_of(self.kernel)}: similarity of sample {i} to training sample {j} is {found[i, j]}")
        return sparse.csr_matrix(found) if sparse.issparse(X) else found

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """A name for each training sample, its class and its number; input_features is not used."""
        check_is_fitted(self)
        return np.array([f"{self.classes_[code]}_{j}" for j, code in enumerate(self._codes)], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.target_tags.required = True, True
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"
        return tags


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
        n, gamma = checked_whole(self.n_components, "n_components"), self.gamma
        if gamma is not None:
            checked_positive(gamma, "gamma")
        rows = self._rows(X, reset=True)
        variance = float(rows.var())
        self.gamma_ = float(gamma) if gamma is not None else (1.0 / (rows.shape[1] * variance) if variance > 0.0 else 1.0)
        rng = np.random.default_rng(seed_of(self.random_state))
        self.directions_ = np.sqrt(2.0 * self.gamma_) * rng.normal(size=(rows.shape[1], (n + 1) // 2))
        return self

    def transform(self, X: Any) -> Floats32:
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

    def _rows(self, X: Any, reset: bool) -> Floats:
        with refusals():
            return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
