"""Sums whose last digits depend on the vectors alone: for all that goes into weights, histories and certificates."""

import numpy as np

from structpred.core.types import AnyArray, Floats
from structpred.runtime.lazy_names import later

_kernels = later("structpred.core._product_kernels")


def dot(a: AnyArray, b: AnyArray) -> float:
    """<a, b> in float64, added up in a fixed order. That of `a @ b` depends on the CPU and on how many threads BLAS has.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 0.5], np.float32))
    4.0
    """
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"expected two vectors of one length, got the shapes {a.shape} and {b.shape}")
    if a.dtype != b.dtype or a.dtype.kind != "f":  # compiled for two float64 and for two float32
        a, b = a.astype(np.float64), b.astype(np.float64)
    return float(_kernels().dot(np.ascontiguousarray(a), np.ascontiguousarray(b)))


def dot_of_differences(a: Floats, b: Floats, c: Floats, d: Floats) -> float:
    """<a - b, c - d>, added up in a fixed order, without vectors in between.

    >>> dot_of_differences(np.array([3.0, 2.0]), np.array([1.0, 2.0]), np.array([5.0, 1.0]), np.zeros(2))
    10.0
    """
    return float(_kernels().dot_of_differences(a, b, c, d))


def add_multiple(out: AnyArray, coef: float, vector: AnyArray) -> None:
    """out += coef * vector, in their own precision, without a vector in between. BLAS rounds once or twice, as the CPU does."""
    _kernels().add_multiple(out, out.dtype.type(coef), vector)
