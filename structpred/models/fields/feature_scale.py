"""Features scaled to one size: what is measured on the training data is applied to all later ones."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.runtime.memory import check_fits

SCALES = ("standard", "maxabs")
#: a feature that varies by less is constant for all practical purposes, and is left as it is
_TINY = 1e-300


class FeatureScale(NamedTuple):
    """Scaled features are (x - shift) * factor. shift: (d,), None where zeros are to stay zeros. factor: (d,), all > 0."""

    shift: Floats | None
    factor: Floats

    @classmethod
    def merged(cls, scale: str | None, parts: Sequence["Spread"], dense: str = "maxabs") -> "FeatureScale | None":
        """What a setting asks for: mean 0 and variance 1, or the largest absolute value 1, of all rows; None for None.

        parts: the spread of each part of them (Chan, Golub and LeVeque 1979). dense: what "auto" is where most entries are not
        zero; else it is None.

        >>> from scipy import sparse
        >>> parts = [Spread.of("maxabs", sparse.csr_array(rows)) for rows in ([[1.0, 0.0]], [[-4.0, 0.0]])]
        >>> FeatureScale.merged("maxabs", parts).factor.tolist()
        [0.25, 1.0]
        """
        if scale == "auto":
            scale = dense if sum(2 * part.filled - part.n * len(part.mean) for part in parts) > 0 else None
        if scale is None:
            return None
        if scale == "maxabs":
            return cls(None, inverse(np.max([part.largest for part in parts], axis=0)))
        n, mean, variance, squares = *parts[0][:3], parts[0].n * parts[0].variance
        for part in parts[1:]:
            both, apart = n + part.n, part.mean - mean
            squares = squares + part.n * part.variance + apart**2 * (n * part.n / both)
            n, mean, variance = both, mean + apart * (part.n / both), squares / both
        return cls(mean, inverse(np.where(variance > (np.finfo(float).eps * n * mean) ** 2, np.sqrt(variance), 0.0)))

    def applied(self, rows: Any) -> Any:
        """The scaled rows, CSR."""
        from scipy import sparse

        if self.shift is None:
            return sparse.csr_array(rows.multiply(self.factor[None, :]))
        n, d = rows.shape
        check_fits(24 * n * d, f"{n:,} rows of {d:,} standardised features (scale='maxabs' keeps their zeros)")
        return sparse.csr_array((rows.toarray() - self.shift) * self.factor)

    def arrays(self) -> dict[str, Floats]:
        """For a model file; `from_arrays` takes them back."""
        return {"scale.factor": self.factor} | ({} if self.shift is None else {"scale.shift": self.shift})

    @classmethod
    def from_arrays(cls, scale: str | None, arrays: Mapping[str, npt.NDArray[Any]], n_features: int) -> "FeatureScale | None":
        """The scale in a model file. Raises ValueError where the arrays do not fit the setting and the number of features."""
        found = {name: array for name, array in arrays.items() if name.startswith("scale.")}
        fitting: dict[str | None, list[str]] = {None: [], "maxabs": ["scale.factor"], "standard": ["scale.factor", "scale.shift"]}
        if sorted(found) not in (fitting.values() if scale == "auto" else [fitting.get(scale)]):
            raise ValueError(f"the scale {scale!r} does not fit the arrays {sorted(found)}")
        for name, array in found.items():
            if array.dtype != np.float64 or array.shape != (n_features,) or not np.isfinite(array).all():
                raise ValueError(f"{name} must be {n_features} finite float64 numbers, got {array.dtype} {array.shape}")
        if not found:
            return None
        if (found["scale.factor"] <= 0).any():
            raise ValueError("scale.factor must be > 0")
        return cls(found.get("scale.shift"), found["scale.factor"])


class Spread(NamedTuple):
    """n rows: the mean of each feature and its variance, the largest absolute value, and how many entries are not zero."""

    n: int
    mean: Floats
    variance: Floats
    largest: Floats
    filled: int = 0

    @classmethod
    def of(cls, scale: str | None, rows: Any) -> "Spread":
        """What `FeatureScale.merged` needs of these rows (CSR)."""
        if scale not in (None, "auto", *SCALES):
            raise ParameterError(f"scale: expected None, 'auto', {' or '.join(map(repr, SCALES))}, got {scale!r}")
        (n, d), largest = rows.shape, abs(rows).max(axis=0).toarray().ravel()
        mean, zeros = rows.sum(axis=0) / n, n - np.bincount(rows.indices, minlength=d)
        squares = np.bincount(rows.indices, (rows.data - mean[rows.indices]) ** 2, d) + zeros * mean**2
        return cls(n, mean, squares / n, largest, rows.nnz)


def inverse(sizes: Floats) -> Floats:
    """One over each size; 1 where a feature is constant."""
    return np.where(sizes > _TINY, 1.0 / np.maximum(sizes, _TINY), 1.0)
