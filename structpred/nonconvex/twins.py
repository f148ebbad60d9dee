"""The semi-supervised support vector machine over rows of features, for more points than a kernel matrix has room for."""

from typing import NoReturn

import numpy as np
import numpy.typing as npt

from structpred.errors import ConvergenceError, DataError, ParameterError
from structpred.nonconvex.problem import Floats, Inner, SemiSupervisedProblem, checked_labels, positive

#: visits of all points in one inner problem, sweeps over moving points after each, and the least gap, as a share of the objective
_VISITS, _SWEEPS, _LEAST = 500, 5, 1e-3


class FeatureProblem(SemiSupervisedProblem):
    """As its parent, for h_i = <w, x_i> with rows of features in place of a kernel matrix: O(n d) memory and time for a sweep.

    There is no intercept besides that of a constant column in the rows, which is regularised. Steps are in 32-bit numbers: an
    inner problem is solved until its gap is a share `tol` of its objective, and at least a thousandth; its value is the dual
    one, a lower bound.

    rows: (n, d). y: (n,) of +1, -1, and 0 for unlabelled points. positives: as for the parent.

    Raises DataError for rows that are not finite or labels of one sort; ParameterError as the parent.

    >>> problem = FeatureProblem(np.array([[1.0, 1.0], [-1.0, 1.0], [2.0, 1.0]]), np.array([1, -1, 0]), C=1.0, C2=1.0)
    >>> problem.solve(np.array([1.0])).objective < problem.solve(np.array([0.0])).objective
    True
    """

    def __init__(self, rows: npt.ArrayLike, y: npt.ArrayLike, C: float, C2: float, positives: float | None = None) -> None:
        self.rows = np.ascontiguousarray(rows, dtype=np.float32)
        if self.rows.ndim != 2 or not np.isfinite(self.rows).all():
            raise DataError(f"rows: expected a table of finite numbers, got shape {self.rows.shape}")
        self.diagonal = np.einsum("ij,ij->i", self.rows, self.rows).astype(np.float64)
        self._set(checked_labels(y, len(self.rows)), positive(C, "C"), positive(C2, "C2"), positives)

    @property
    def gram(self) -> NoReturn:  # type: ignore[override]
        """Not there."""
        raise ParameterError("this solver needs the kernel matrix: leave features out, or take solver='growing', 'ao' or 'pdm'")

    def solve_boxes(
        self, upper: Floats, lower: Floats, start: Inner | None = None, tol: float = 1e-3, stop_at: float = np.inf
    ) -> Inner:
        """As the parent's, by coordinate ascent."""
        from structpred.nonconvex._twin_kernels import ascend_twins

        tol = max(tol, _LEAST)
        beta = np.zeros(self.n) if start is None else np.clip(start.beta, -lower, upper)
        there = np.flatnonzero(upper + lower)
        rng = np.random.default_rng(0)
        for _ in range(_VISITS):
            w = self.weights(beta)
            f = (self.rows @ w).astype(np.float64)
            half = 0.5 * float(w.astype(np.float64) @ w)
            value = float(np.minimum(2.0 * upper - beta, 2.0 * lower + beta).sum()) - half
            losses = upper @ np.maximum(0.0, 1.0 - f) + lower @ np.maximum(0.0, 1.0 + f)
            if half + losses - value <= tol * abs(value) or value >= stop_at:
                return Inner(beta, f, 0.0, 0.0, value)
            ascend_twins(self.rows, self.diagonal, upper, lower, beta, w, rng.permutation(there), _SWEEPS)
        raise ConvergenceError(f"inner problem: {_VISITS} visits did not reach a gap of {tol:g}; is C or C2 too large?")

    def weights(self, beta: Floats) -> npt.NDArray[np.float32]:
        """(d,): w."""
        support = np.flatnonzero(beta)
        few = 4 * len(support) < self.n
        return np.asarray(
            self.rows[support].T @ beta[support].astype(np.float32) if few else self.rows.T @ beta.astype(np.float32)
        )

    def distances(self, i: int) -> Floats:
        """As the parent's."""
        point, others = self.unlabelled[i], self.unlabelled
        inner = (self.rows @ self.rows[point])[others]
        return np.asarray(self.diagonal[point] + self.diagonal[others] - 2.0 * inner)

    def anchor(self, tol: float = 1e-3) -> tuple[Floats, float]:
        """The middle of the box and its J; its rays leave the box as those of the least F do."""
        middle = np.full(self.u, 0.5)
        return middle, self.solve(middle, tol=tol).objective

    def table(self, inner: Inner) -> Floats:
        """(d,): the weights of a solution."""
        return self.weights(inner.beta).astype(np.float64)
