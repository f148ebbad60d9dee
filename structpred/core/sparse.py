"""Sparse vectors as pairs (indices, values): the joint features of outputs and their differences."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.runtime.lazy_names import later

_kernels = later("structpred.core._sparse_kernels")


class SparseVector(NamedTuple):
    """Sorted unique int64 indices with float64 values, none of them zero."""

    indices: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]

    def dense(self, dim: int) -> npt.NDArray[np.float64]:
        """The same vector as an array of length `dim`."""
        out = np.zeros(dim)
        out[self.indices] = self.values
        return out


def coalesced(indices: npt.ArrayLike, values: npt.ArrayLike) -> SparseVector:
    """Sort pairs by index, add up equal indices in their order, drop zeros.

    >>> coalesced([3, 1, 3, 2], [1.0, 5.0, 2.0, 0.0])
    SparseVector(indices=array([1, 3]), values=array([5., 3.]))
    """
    idx = np.array(indices, dtype=np.int64)
    val = np.array(values, dtype=np.float64)
    n = _kernels().coalesce(idx, val, len(idx), np.empty_like(idx), np.empty_like(val))
    return SparseVector(idx[:n], val[:n])


def sparse_dot(w: npt.NDArray[np.float64] | npt.NDArray[np.float32], vector: SparseVector) -> float:
    """The inner product of dense weights and a sparse vector, added in order in float64."""
    return float(_kernels().dot(w, vector.indices, vector.values))


def squared_norm(vector: SparseVector) -> float:
    """The sum of the squares of the values, added in order."""
    return float(_kernels().squared_norm(vector.values))


def weighted_square(weights: npt.NDArray[np.float64], vector: SparseVector) -> float:
    """The sum of weights[j] * value_j^2, added in order."""
    return float(_kernels().weighted_square(weights, vector.indices, vector.values))


def add_sparse(v: npt.NDArray[np.float64], vector: SparseVector, coef: float) -> None:
    """v += coef * vector, in time proportional to the length of the vector."""
    _kernels().add_into(v, vector.indices, vector.values, coef)
