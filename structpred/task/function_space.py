"""Functions on the positions of a training set, a few kernels each with its own: their coefficients, values and norms.

A function of kernel k is f = sum_t a_t K_k(t, .), one for each label. Weights hold a beside the values f(t) = (K_k a)_t at all
positions: scores are read off, and the inner product of two is <a, f>. A joint feature is the value at a position t; a step along
it changes a_t, and adds the row K_k[t] to the values.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from structpred.core.types import AnyArray, Floats
from structpred.core.weights import Vector
from structpred.runtime.ranges import ends_of
from structpred.task.steps import TaskLike

#: a symmetric matrix of float32, (positions, positions): an array, or a SciPy CSR array with sorted indices
Gram = Any


class FunctionSpace:
    """The layout of weights: group k < len(grams) is coefficients (n_labels, n), then values (n_labels, n), of kernel k.

    The groups behind them, of the sizes `others`, are ordinary weights.

    >>> space = FunctionSpace([np.eye(2, dtype=np.float32)], 1, [3])
    >>> w = np.zeros(space.dim)
    >>> space.coefficients(w, 0)[:], space.values(w, 0)[:] = 2.0, 2.0
    >>> space.groups.tolist(), space.norms(w).round(3).tolist()
    ([0, 4, 7], [2.828, 0.0])
    """

    def __init__(self, grams: Sequence[Gram], n_labels: int, others: Sequence[int]) -> None:
        self.grams, self.n_labels, self.n = list(grams), n_labels, int(grams[0].shape[0])
        self.groups = ends_of(np.array([*[2 * n_labels * self.n] * len(self.grams), *others]))
        self.dim = int(self.groups[-1])

    def coefficients(self, w: Vector, k: int) -> Vector:
        """Those of kernel k, (n_labels, n): a view."""
        return self._half(w, k, 0)

    def values(self, w: Vector, k: int) -> Vector:
        """Of the functions of kernel k at all positions, (n_labels, n): a view."""
        return self._half(w, k, 1)

    def _half(self, w: Vector, k: int, which: int) -> Vector:
        first, size = int(self.groups[k]) + which * self.n_labels * self.n, self.n_labels * self.n
        return w[first : first + size].reshape(self.n_labels, self.n)

    def squares(self, w: Vector) -> Floats:
        """The squared norm of each group, for weights whose values are those of their coefficients."""
        others = [w[a:b].astype(np.float64) for a, b in pairwise(self.groups[len(self.grams) :].tolist())]
        out = np.array([float(np.vdot(part, part)) for part in others])
        own = [float(np.einsum("lt,lt", self.coefficients(w, k), self.values(w, k), dtype=np.float64)) for k in self._kernels]
        return np.maximum(np.concatenate((own, out)), 0.0)

    def norms(self, w: Vector) -> Floats:
        """The norm of each group."""
        return np.sqrt(self.squares(w))

    def as_weights(self, features: Vector) -> Vector:
        """The weights of a sum of joint features, which is a vector of values that are summed: in place."""
        for k in self._kernels:
            self.coefficients(features, k)[:] = self.values(features, k)
            self.values(features, k)[:] = self.times(k, self.coefficients(features, k))
        return features

    def times(self, k: int, coefficients: Vector) -> Vector:
        """The values of the functions of kernel k with these coefficients, (n_labels, n)."""
        gram, given = self.grams[k], np.ascontiguousarray(coefficients, dtype=np.float32)
        return np.asarray(given @ gram if isinstance(gram, np.ndarray) else (gram @ given.T).T)

    @property
    def _kernels(self) -> range:
        return range(len(self.grams))

    def arrays(self) -> list[AnyArray]:
        """The Gram matrices, for a fingerprint."""
        out: list[AnyArray] = []
        for gram in self.grams:
            out += [gram] if isinstance(gram, np.ndarray) else [gram.indptr, gram.indices, gram.data]
        return out


def space_of(task: TaskLike) -> FunctionSpace | None:
    """The space of functions that the weights of a task are in; None for ordinary weights."""
    return getattr(getattr(task, "features", None), "space", None)
