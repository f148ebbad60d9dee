"""Features of anything: one sparse row of features a part."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from structpred.core.feature_map import FeatureMap
from structpred.core.sparse import SparseVector
from structpred.core.types import AnyArray, ArrayLike, DTypeLike, Floats, Integers
from structpred.core.weights import Vector, check_length
from structpred.errors import DataError
from structpred.features.rows import FeatureRows, csr_of
from structpred.runtime.lazy_names import later

_kernels = later("structpred.features._feature_kernels")


class PartFeatures(FeatureMap):
    """One feature row per part: instance i has a matrix (p_i, d), its scores are that matrix times w.

    `matrices` are 2-d arrays or SciPy sparse matrices, all with d columns. They are packed into one CSR matrix. Raises
    DataError, naming the sample, for wrong dimensions, other numbers of columns, and values that are not finite.

    >>> import numpy as np
    >>> f = PartFeatures([np.eye(2), np.ones((3, 2))])
    >>> f.scores(np.array([1.0, 10.0]), 1).tolist()
    [11.0, 11.0, 11.0]
    """

    def __init__(self, matrices: Sequence[Any], *, n_columns: int | None = None, dtype: DTypeLike = np.float64) -> None:
        from scipy import sparse

        rows = []
        for i, matrix in enumerate(matrices):
            expected = "a 2-d numeric array (n_parts, n_features) or a sparse matrix"
            csr = csr_of(matrix, i, "features", expected, "; did you pass one sample instead of a list of samples?")
            n_columns = csr.shape[1] if n_columns is None else n_columns
            if csr.shape[1] != n_columns:
                raise DataError(f"sample {i}: expected {n_columns} feature columns, got {csr.shape[1]}")
            if not np.isfinite(csr.data).all():
                raise DataError(f"sample {i}: features must be finite, found NaN or infinity")
            rows.append(csr)
        if not rows:
            raise DataError("no samples: expected at least one feature matrix")
        stacked = sparse.vstack(rows, format="csr")
        counts = np.cumsum([0, *(m.shape[0] for m in rows)])
        self._keep(stacked.indptr, stacked.indices, stacked.data, counts, int(stacked.shape[1]), dtype)

    @classmethod
    def of_rows(
        cls, indptr: ArrayLike, indices: ArrayLike, values: ArrayLike, offsets: ArrayLike, n_columns: int
    ) -> "PartFeatures":
        """From rows that are packed already: row r has indices[indptr[r]:indptr[r+1]], sample i the rows from offsets[i] on."""
        self = cls.__new__(cls)
        self._keep(indptr, indices, values, offsets, n_columns, np.float64)
        return self

    def _keep(self, indptr: Any, indices: Any, values: Any, offsets: Any, n_columns: int, dtype: DTypeLike) -> None:
        self.indptr = np.ascontiguousarray(indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(indices, dtype=np.int64)
        self.values = np.ascontiguousarray(values, dtype=np.float64)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.dim = n_columns
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.groups, self.group_names = np.array([0, self.dim], dtype=np.int64), ["features"]

    def compact(self) -> tuple[Integers, "PartFeatures"]:
        """The features that occur, ascending, and the same rows with these alone, numbered in this order.

        >>> rows, small = PartFeatures([np.array([[0.0, 2.0, 0.0, 1.0]])]).compact()
        >>> rows.tolist(), small.dim, small.scores(np.array([1.0, 10.0]), 0).tolist()
        ([1, 3], 2, [12.0])
        """
        new, rows = copy(self), np.unique(self.indices)
        new._keep(self.indptr, np.searchsorted(rows, self.indices), self.values, self.offsets, len(rows), self.dtype)
        return rows, new

    def __len__(self) -> int:
        """The number of samples."""
        return len(self.offsets) - 1

    def n_parts(self, i: int) -> int:
        """The number of feature rows of sample i."""
        return int(self.offsets[i + 1] - self.offsets[i])

    def scores(self, w: Vector, i: int) -> Floats:
        """X_i w."""
        check_length(w, self.dim)
        out = np.empty(self.n_parts(i))
        _kernels().score_parts(w, self.indices, self.values, self.indptr, self.offsets[i], self.offsets[i + 1], out)
        return out

    def score_block(self, w: Vector, scale: float, start: int, stop: int, places: Integers, out: Floats) -> None:
        """out[places[i - start]:]: scale times the scores of sample i; several threads may call it at once."""
        check_length(w, self.dim)
        _kernels().score_parts(w, self.indices, self.values, self.indptr, self.offsets[start], self.offsets[stop], out)
        if scale != 1.0:
            out *= scale

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """X_i^T mu."""
        own = (self.indices, self.values, self.indptr, self.offsets[i], self.dim)
        return SparseVector(*_kernels().combine_parts(parts, counts, *own))

    def adjoint_block(self, start: int, parts: Integers, counts: Floats, ends: Integers) -> tuple[Integers, Floats, Integers]:
        """What `adjoint` gives for the samples from `start` on: (indices, values, offsets), flat; for many threads at once."""
        out, own = np.empty(len(ends), np.int64), (self.indices, self.values, self.indptr, self.offsets, self.dim)
        return *_kernels().combine_each(parts, counts, ends, *own, start, out), out

    def flush(self, i: int, scratch: Floats, coef: float, w: Vector) -> None:
        """w += coef * scratch; scratch, which `spread` filled for instance i, becomes zero again."""
        rows = slice(self.indptr[self.offsets[i]], self.indptr[self.offsets[i + 1]])
        touched = np.unique(self.indices[rows])
        w[touched] += (coef * scratch[touched]).astype(w.dtype)
        scratch[touched] = 0.0

    def total(self, mu: Floats, places: Integers, coefs: Floats) -> Floats:
        """sum_i coefs[i] X_i^T mu_i, for the dense mu_i = mu[places[i]:places[i+1]] of all instances."""
        from scipy import sparse

        matrix = sparse.csr_array((self.values, self.indices, self.indptr), shape=(len(self.indptr) - 1, self.dim))
        return np.asarray(matrix.T @ (np.repeat(coefs, np.diff(places)) * mu), dtype=np.float64)

    def take(self, rows: Integers) -> "PartFeatures":
        """The samples with these numbers, in this order."""
        new, packed = copy(self), FeatureRows(self.indptr, self.indices, self.values, self.offsets, self.dim).take(rows)
        new._keep(packed.indptr, packed.indices, packed.values, packed.offsets, self.dim, self.dtype)
        return new

    def arrays(self) -> Sequence[AnyArray]:
        """The packed matrix."""
        return (self.indptr, self.indices, self.values, self.offsets)
