"""Weights in one flat vector with a scale and a lazily kept weighted average.

The weights are ``w = scale * v``. The average of the iterates w_1, w_2, ... with weights rho_k is

    sum_k rho_k s_k v_k / sum_k rho_k  =  (A v - U) / R,   A = sum_k rho_k s_k,   R = sum_k rho_k,

where U[j] grows by A_{k-1} * delta each time v[j] changes by delta: a step costs only what it touches.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.sparse import SparseVector
from structpred.errors import DataError
from structpred.runtime.lazy_names import later

_kernels = later("structpred.core._sparse_kernels")
Vector = npt.NDArray[np.float64] | npt.NDArray[np.float32]


def padded(n: int) -> int:
    """n rounded up to a multiple of 8: loops over rows of that length are compiled to whole vector instructions."""
    return -(-n // 8) * 8


def check_length(w: Vector, dim: int) -> None:
    """Raise DataError unless w is a flat array of `dim` floats: compiled code reads it without looking at its length."""
    if not isinstance(w, np.ndarray) or w.shape != (dim,) or w.dtype.kind != "f":
        came = f"{w.dtype} of shape {w.shape}" if isinstance(w, np.ndarray) else type(w).__name__
        raise DataError(
            f"the weights: expected {dim} floats in a flat array, as the features have, got {came}; was coef_ replaced?"
        )


class Weights(NamedTuple):
    """v: the unscaled weights (float32 or float64, flat). u: the average's accumulator, of the same type; empty if there is no
    average. A float32 average has a few of its own rounding errors; A, R and all products are float64.

    factor: the scale s. mass: R. scaled_mass: A. These are single numbers, float64 arrays of no dimension. All are changed in
    place, so that a checkpoint is these arrays as they are.
    """

    v: Vector
    u: Vector
    factor: npt.NDArray[np.float64]
    mass: npt.NDArray[np.float64]
    scaled_mass: npt.NDArray[np.float64]

    @staticmethod
    def zeros(dim: int, dtype: npt.DTypeLike = np.float64, *, averaged: bool = False) -> "Weights":
        """All-zero weights of length dim; with an accumulator if an average is wanted."""
        u = np.zeros(dim if averaged else 0, dtype)
        return Weights(np.zeros(dim, dtype), u, np.array(1.0), np.array(0.0), np.array(0.0))

    @property
    def scale(self) -> float:
        """The factor s of w = s * v."""
        return self.factor.item()

    def set_scale(self, scale: float) -> None:
        """Replace the scale: shrinks all weights at once."""
        self.factor.fill(scale)

    def add(self, delta: SparseVector, coef: float) -> None:
        """v += coef * delta, in time proportional to the length of delta."""
        if len(self.u):
            _kernels().add_into_both(self.v, self.u, delta.indices, delta.values, coef, coef * self.scaled_mass.item())
        else:
            _kernels().add_into(self.v, delta.indices, delta.values, coef)

    def include(self, rho: float) -> None:
        """Let the present weights enter the average with weight rho."""
        self.scaled_mass.fill(self.scaled_mass.item() + rho * self.factor.item())  # item and fill: much faster than +=
        self.mass.fill(self.mass.item() + rho)

    def in_doubt(self) -> bool:
        """Whether something may no longer be finite: a look at a sum and three numbers, once per pass."""
        return not all(np.isfinite(array.sum()) for array in (self.v, self.factor, self.mass, self.scaled_mass))

    def current(self) -> Vector:
        """The present weights as a new flat vector of v's dtype."""
        return np.multiply(self.v, self.scale, dtype=self.v.dtype)

    def average(self) -> Vector:
        """The weighted average of all included iterates; the present weights while there are none."""
        return self._average_into(np.empty_like(self.v))

    def average_in_place(self) -> Vector:
        """`average` in an array of these weights, which must not be used afterwards: no third array beside v and u."""
        return self._average_into(self.u if len(self.u) else self.v)

    def _average_into(self, out: Vector) -> Vector:
        a, r = float(self.scaled_mass), float(self.mass)
        if not len(self.u) or r == 0.0:
            np.multiply(self.v, self.scale, out=out, dtype=self.v.dtype)
            return out
        for k in range(0, len(out), 1 << 18):  # in pieces: no second full-length float64 vector
            out[k : k + (1 << 18)] = (a * self.v[k : k + (1 << 18)].astype(np.float64) - self.u[k : k + (1 << 18)]) / r
        return out
