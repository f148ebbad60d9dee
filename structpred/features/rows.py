"""Feature rows of many instances in one CSR matrix, checked."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.runtime.ranges import picked


class FeatureRows(NamedTuple):
    """Rows as CSR: row r has the features indices[indptr[r]:indptr[r + 1]], sorted and unique, none of them zero.

    offsets: instance i has the rows offsets[i]:offsets[i + 1]. n_columns: the number of features.
    """

    indptr: Integers
    indices: Integers
    values: Floats
    offsets: Integers
    n_columns: int

    @property
    def counts(self) -> Integers:
        """The number of rows of each instance."""
        return np.diff(self.offsets)

    @property
    def matrix(self) -> Any:
        """All rows as a CSR array."""
        from scipy import sparse

        return sparse.csr_array((self.values, self.indices, self.indptr), shape=(len(self.indptr) - 1, self.n_columns))

    def take(self, instances: Integers) -> "FeatureRows":
        """The rows of these instances, in this order; a copy of no more than these."""
        own, offsets = picked(self.offsets, instances)
        at, indptr = picked(self.indptr, own)
        return FeatureRows(indptr, self.indices[at], self.values[at], offsets, self.n_columns)


def stack_rows(given: Any, what: str = "features") -> FeatureRows:
    """One matrix with a row per instance, or a sequence of matrices with as many rows per instance as each likes, as FeatureRows.

    Matrices are 2-d numeric arrays or SciPy sparse ones. Raises DataError, naming the sample, for other dimensions, other numbers
    of columns, and values that are not finite. FeatureRows are taken as they are.

    >>> import numpy as np
    >>> stack_rows([np.eye(2), np.ones((1, 2))]).counts.tolist()
    [2, 1]
    """
    from scipy import sparse

    if isinstance(given, FeatureRows):
        return given
    expected = f"{what} as a 2-d array of real numbers (rows, columns) or a sparse matrix"
    if sparse.issparse(given) or (isinstance(given, np.ndarray) and given.ndim == 2):
        stacked = csr_of(given, None, what, expected, copy=True)
        counts: Any = np.ones(stacked.shape[0], np.int64)
    else:
        parts = [csr_of(matrix, i, what, expected, copy=True) for i, matrix in enumerate(given)]
        if not parts:
            raise DataError(f"{what}: expected at least one sample, got none")
        for i, part in enumerate(parts):
            if part.shape[1] != parts[0].shape[1]:
                raise DataError(f"sample {i}: expected {parts[0].shape[1]} columns of {what}, got {part.shape[1]}")
        counts = [part.shape[0] for part in parts]
        stacked = sparse.vstack(parts, format="csr")
    stacked.sum_duplicates()
    stacked.eliminate_zeros()
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    values = np.ascontiguousarray(stacked.data, dtype=np.float64)
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        row = int(np.searchsorted(stacked.indptr, at, side="right") - 1)
        i = int(np.searchsorted(offsets, row, side="right") - 1)
        raise DataError(f"sample {i}: {what} must be finite, got {values[at]} in column {int(stacked.indices[at])}")
    return FeatureRows(stacked.indptr.astype(np.int64), stacked.indices.astype(np.int64), values, offsets, int(stacked.shape[1]))


def csr_of(
    given: Any, i: int | None, what: str, expected: str = "a 2-d matrix of numbers", hint: str = "", *, copy: bool = False
) -> Any:
    """A numeric matrix as CSR of float64.

    Raises DataError, naming the sample, for what is no 2-d array, nor sparse matrix, of real numbers (`expected` says what should
    be there, `hint` a likely cause), and for a sparse one whose index arrays are damaged.
    SciPy checks index arrays when a matrix is made, but not those that were changed or put together without its checks.
    """
    from scipy import sparse

    is_sparse = sparse.issparse(given)
    matrix: Any = given if is_sparse else np.asarray(given)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise DataError(f"{_sample(i)}expected {expected}, got {matrix.ndim}-d {matrix.dtype}{hint}")
    try:
        if is_sparse and hasattr(matrix, "check_format"):  # CSR, CSC, BSR
            matrix.check_format(full_check=True)
        elif is_sparse and matrix.format == "coo":
            for axis, (places, size) in enumerate(zip(matrix.coords, matrix.shape, strict=True)):
                if len(places) != len(matrix.data) or (len(places) and not (places.min() >= 0 and places.max() < size)):
                    raise ValueError(f"expected {len(matrix.data)} indices in 0..{size - 1} along axis {axis}")
        return sparse.csr_array(matrix, dtype=np.float64, copy=copy)
    except (ValueError, IndexError, TypeError) as error:
        sample = _damaged_row(matrix) if i is None else i
        raise DataError(f"{_sample(sample)}{what}: the index arrays of this sparse matrix are damaged: {error}") from None


def _damaged_row(matrix: Any) -> int | None:
    """The first row of a CSR matrix with a wrong index or end; None where it is unknown."""
    if matrix.format != "csr" or len(matrix.indptr) != matrix.shape[0] + 1:
        return None
    starts = matrix.indptr[:-1]
    ends_badly = (matrix.indptr[1:] < starts) | (matrix.indptr[1:] > len(matrix.indices)) | (starts < 0)
    if ends_badly.any():
        return int(np.argmax(ends_badly))
    outside = (matrix.indices < 0) | (matrix.indices >= matrix.shape[1])
    return int(np.searchsorted(matrix.indptr, np.argmax(outside), side="right")) - 1 if outside.any() else None


def _sample(i: int | None) -> str:
    return "" if i is None else f"sample {i}: "


def checked_places(values: Any, length: int, below: int, i: int, what: str) -> Integers:
    """`length` whole numbers in [0, below), else DataError naming sample i; `what` says what they are.

    >>> checked_places([0, 2], 2, 3, 0, "row_of").tolist()
    [0, 2]
    """
    array = np.asarray(values)
    if array.shape != (length,) or (array.dtype.kind not in "iu" and length):
        raise DataError(f"sample {i}: {what}: expected {length} whole numbers, got {array.dtype} of shape {array.shape}")
    if length and not (array.min() >= 0 and array.max() < below):
        raise DataError(f"sample {i}: {what}: expected numbers in [0, {below}), got {array.min()}..{array.max()}")
    return array.astype(np.int64)


def one_each(given: Sequence[Any] | None, n: int, what: str) -> list[Any]:
    """The entries as a list of length n; n times None for None; DataError for another length."""
    listed: list[Any] = [None] * n if given is None else list(given)
    if len(listed) != n:
        raise DataError(f"{what}: expected one entry per sample, {n}, got {len(listed)}")
    return listed
