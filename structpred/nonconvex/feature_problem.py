"""The semi-supervised support vector machine with features in place of a kernel matrix: for many points."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats, Integers
from structpred.errors import DataError, ParameterError
from structpred.nonconvex.problem import Inner, SemiSupervisedProblem

#: solutions that are kept are more accurate than those that are only looked at by this factor
_FINER = 10.0
#: slopes that may differ less than this are asked of solutions that are kept
_KEPT = 1e-4
#: sweeps over moving points after each visit of all points
_SWEEPS = 5


class FeatureProblem(SemiSupervisedProblem):
    """The same problem for rows z_i of a few features, with k(x, x') = <z, z'>: memory O(n m) and time O(n m) for each pass.

    features: (n, m), float32 or float64; a constant feature `offset` follows, whose weight takes the place of b, so that b is
    regularised as 1/2 (b / offset)^2. accuracy: the gap between the primal and the dual of an inner problem that is kept, as a
    share of the primal; ten times that for those that are only looked at. After `max_rounds` of sweeps a larger gap stays.
    Bounds and the objectives of solutions that are kept are true all the same: duals and primals in double precision.

    >>> problem = FeatureProblem(np.array([[1.0], [-1.0], [0.5]]), np.array([1, -1, 0]), 10.0, 1.0)
    >>> problem.solve(np.array([1.0])).objective < problem.solve(np.array([0.0])).objective
    True
    """

    def __init__(
        self,
        features: npt.NDArray[np.floating],
        y: npt.ArrayLike,
        C: float,
        C2: float,
        positives: float | None = None,
        offset: float = 1.0,
        accuracy: float = 1e-3,
        max_rounds: int = 200,
    ) -> None:
        if features.ndim != 2 or not np.isfinite(features).all():
            raise DataError(f"features: expected a table of finite numbers, got shape {features.shape}")
        self.features = np.hstack([features, np.full((len(features), 1), offset, features.dtype)])
        self.accuracy, self.max_rounds, self.offset = accuracy, max_rounds, offset
        self.diagonal = np.einsum("ij,ij->i", self.features, self.features).astype(np.float64)
        self._keep(y, C, C2, positives)

    @property
    def gram(self) -> Floats:  # type: ignore[override]
        """There is none: ParameterError, for solvers that need it."""
        raise ParameterError("this solver needs the kernel matrix, which there is none of where features take its place")

    def weights(self, inner: Inner) -> Floats:
        """w, with the weight of the constant last."""
        from structpred.nonconvex._dual_kernels import weights

        return np.asarray(weights(self.features, inner.beta))

    def solve_boxes(
        self, upper: Floats, lower: Floats, start: Inner | None = None, tol: float = 1e-3, stop_at: float = np.inf
    ) -> Inner:
        """By dual coordinate ascent, to the accuracy of this problem."""
        from structpred.nonconvex._dual_kernels import ascend, values, weights

        is_kept = tol < _KEPT
        rng, share = np.random.default_rng(0), self.accuracy * (1.0 if is_kept else _FINER)
        beta = np.zeros(self.n) if start is None else np.clip(start.beta, -lower, upper)
        weighted = np.flatnonzero(upper + lower > 0.0)
        for _ in range(self.max_rounds):  # w and the dual in double precision, steps in that of the features
            w = weights(self.features, beta)
            steps = w.astype(self.features.dtype)
            h = np.asarray(self.features @ steps, dtype=np.float64)
            half = 0.5 * float(w @ w)
            dual = float(np.minimum(2.0 * upper - beta, 2.0 * lower + beta).sum()) - half
            primal = half + float(upper @ np.maximum(0.0, 1.0 - h) + lower @ np.maximum(0.0, 1.0 + h))
            if primal - dual <= share * primal or dual >= stop_at:
                break
            ascend(self.features, self.diagonal, upper, lower, beta, steps, rng.permutation(weighted), _SWEEPS)
        return Inner(beta, values(self.features, w) if is_kept else h, 0.0, 0.0, dual)

    def anchor(self, tol: float = 1e-3) -> tuple[Floats, float]:
        """The centre of the box, in place of the least F, and its value."""
        p = np.full(self.u, 0.5)
        return p, self.solve(p).objective

    def gram_of(self, points: Integers) -> Floats:
        """The inner products of these points' features, in double precision."""
        rows = self.features[points].astype(np.float64)
        return np.asarray(rows @ rows.T)

    def decision(self, points: Integers, inner: Inner) -> Floats:
        """h of all points for a solution of the subset of these."""
        w = self.features[points].T @ inner.beta.astype(self.features.dtype)
        return np.asarray(self.features @ w + inner.b, dtype=np.float64)

    def distances(self, centre: int) -> Floats:
        """|z - z_centre|^2 up to a constant, for all unlabelled points."""
        rows, own = self.unlabelled, self.features[self.unlabelled[centre]]
        return np.asarray(self.diagonal[rows] - 2.0 * (self.features @ own)[rows], dtype=np.float64)
