"""The space of a kernel, as learning problems that are not convex take it: its matrix, or the features that landmarks give."""

from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.errors import ParameterError
from structpred.models.kernels.functions import Kernel
from structpred.nonconvex.feature_problem import FeatureProblem
from structpred.nonconvex.problem import Inner, SemiSupervisedProblem
from structpred.runtime.memory import check_fits

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
#: kernel values that are held at once
_BLOCK = 1 << 22


class KernelMatrix:
    """The kernel matrix of the training points."""

    def __init__(self, gram: Floats, kernel: Kernel) -> None:
        self.gram, self.kernel = gram, kernel

    def problem(self, signs: Integers, C: float, C2: float, positives: int | None) -> SemiSupervisedProblem:
        """The problem for these labels."""
        return SemiSupervisedProblem(self.gram, signs, C, C2, positives)

    def expansion(self, found: list[Inner]) -> tuple[Integers, Floats, Floats]:
        """(support vectors, their coefficients, offsets)."""
        beta = np.array([inner.beta for inner in found])
        support = np.flatnonzero(beta.any(axis=0))
        return support, beta[:, support], np.array([inner.b for inner in found])


class Landmarks:
    """phi(x) = S^-1/2 U' k(landmarks, x) with k(landmarks, landmarks) = U S U' (Williams & Seeger 2001), as float32."""

    def __init__(self, rows: Any, kernel: Kernel, n_components: Any, seed: int) -> None:
        if isinstance(n_components, bool) or not isinstance(n_components, int | np.integer) or n_components < 1:
            raise ParameterError(f"n_components must be None or a whole number >= 1, got {n_components!r}")
        n, size = rows.shape[0], min(int(n_components), rows.shape[0])
        check_fits(8 * n * size, f"{size:,} features of {n:,} points")
        self.kernel = kernel
        self.landmarks: Integers = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
        base = rows[self.landmarks]
        values, vectors = np.linalg.eigh(kernel(base, base))
        kept = values > 1e-8 * values[-1]
        self.turn = vectors[:, kept] / np.sqrt(values[kept])
        self.features = np.empty((n, int(kept.sum())), np.float32)
        for a in range(0, n, max(1, _BLOCK // size)):
            own = slice(a, a + max(1, _BLOCK // size))
            self.features[own] = kernel(rows[own], base) @ self.turn

    def problem(self, signs: Integers, C: float, C2: float, positives: int | None) -> FeatureProblem:
        """The problem for these labels."""
        self._last = FeatureProblem(self.features, signs, C, C2, positives)
        return self._last

    def expansion(self, found: list[Inner]) -> tuple[Integers, Floats, Floats]:
        """(landmarks, their coefficients, offsets)."""
        w = np.array([self._last.weights(inner) for inner in found])
        return self.landmarks, w[:, :-1] @ self.turn.T, w[:, -1] * self._last.offset
