"""The space of a kernel, as learning problems that are not convex take it: its matrix, or features in its place."""

from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats, Integers
from structpred.errors import ParameterError
from structpred.models.kernels.functions import Kernel
from structpred.nonconvex.feature_problem import FeatureProblem
from structpred.nonconvex.problem import Inner, SemiSupervisedProblem
from structpred.nonconvex.ramp import RampFeatureProblem, RampLossProblem
from structpred.runtime.memory import check_fits

#: kernel values that are held at once
_BLOCK = 1 << 22


class KernelMatrix:
    """The kernel matrix of the training points."""

    def __init__(self, gram: Floats, kernel: Kernel) -> None:
        self.gram, self.kernel = gram, kernel

    def problem(self, signs: Integers, C: float, C2: float, positives: int | None) -> SemiSupervisedProblem:
        """The problem for these labels."""
        return SemiSupervisedProblem(self.gram, signs, C, C2, positives)

    def ramp_problem(self, signs: Integers, C: float, cap: float) -> RampLossProblem:
        """The problem of these labels that finds the points to discard."""
        return RampLossProblem(self.gram, signs, C, cap)

    def expansion(self, found: list[Inner]) -> tuple[Integers, Floats, Floats]:
        """(support vectors, their coefficients, offsets)."""
        beta = np.array([inner.beta for inner in found])
        support = np.flatnonzero(beta.any(axis=0))
        return support, beta[:, support], np.array([inner.b for inner in found])


class Columns:
    """Features in place of the kernel matrix, as float32.

    kernel: what scores new rows. support: the training rows whose kernel values it needs; None: it transforms rows to features.
    turn: from kernel values to features; None where they are the same.
    """

    def __init__(
        self, features: npt.NDArray[np.float32], kernel: Any, support: Integers | None = None, turn: Floats | None = None
    ) -> None:
        self.features, self.kernel, self.support, self.turn = features, kernel, support, turn

    def problem(self, signs: Integers, C: float, C2: float, positives: int | None) -> FeatureProblem:
        """The problem for these labels."""
        return FeatureProblem(self.features, signs, C, C2, positives)

    def ramp_problem(self, signs: Integers, C: float, cap: float) -> RampFeatureProblem:
        """The problem of these labels that finds the points to discard."""
        return RampFeatureProblem(self.features, signs, C, cap)

    def expansion(self, found: list[Inner]) -> tuple[Integers, Floats, Floats]:
        """(landmarks, their coefficients or those of the features, offsets)."""
        from structpred.nonconvex._ascent_kernels import weights

        w = np.array([weights(self.features, inner.beta) for inner in found])
        return self.from_weights(w, np.array([inner.beta.sum() for inner in found]))

    def from_weights(self, w: Floats, b: Floats) -> tuple[Integers, Floats, Floats]:
        """As `expansion`, for weights of the features (n_outputs, m) and offsets."""
        support = np.zeros(0, np.int64) if self.support is None else self.support
        return support, w if self.turn is None else w @ self.turn.T, b


def landmarks(rows: Any, kernel: Kernel, n_components: Any, seed: int) -> Columns:
    """phi(x) = S^-1/2 U' k(landmarks, x) with k(landmarks, landmarks) = U S U' (Williams & Seeger 2001)."""
    if isinstance(n_components, bool) or not isinstance(n_components, int | np.integer) or n_components < 1:
        raise ParameterError(f"n_components must be None or a whole number >= 1, got {n_components!r}")
    n, size = rows.shape[0], min(int(n_components), rows.shape[0])
    check_fits(8 * n * size, f"{size:,} features of {n:,} points")
    chosen: Integers = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
    base = rows[chosen]
    values, vectors = np.linalg.eigh(kernel(base, base))
    kept = values > 1e-8 * values[-1]
    turn = vectors[:, kept] / np.sqrt(values[kept])
    features, step = np.empty((n, int(kept.sum())), np.float32), max(1, _BLOCK // size)
    for a in range(0, n, step):
        features[a : a + step] = kernel(rows[a : a + step], base) @ turn
    return Columns(features, kernel, chosen, turn)
