"""The support vector machine with the ramp loss: its inner problem for given weights of points."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.nonconvex.problem import FeatureProblem, Inner, SemiSupervisedProblem
from structpred.runtime.settings import checked_positive


class RampLossProblem(SemiSupervisedProblem):
    """Minimise 1/2 |w|^2 + C sum_i min(cap, V(y_i, h_i)) over w and b, with V(y, h) = max(0, 1 - y h).

    min(cap, V) = min_{0 <= p <= 1} p V + (1 - p) cap: with the weights p the least objective over w and b,

        J(p) = min_{w, b} 1/2 |w|^2 + C sum_i p_i V(y_i, h_i) + C cap sum_i (1 - p_i),

    is concave, so this is a problem of two labels for each point, as the semi-supervised one: keep it (+1, p_i = 1) or discard it
    (-1, p_i = 0). The solvers are the same. Xu, Crammer & Schuurmans 2006, eq. 4; Collobert, Sinz, Weston & Bottou 2006.

    gram: (n, n), symmetric and positive semidefinite. y: (n,) of +1 and -1, both there. cap: > 0; infinite: none is discarded.

    >>> problem = RampLossProblem(np.diag([1.0, 1.0]), np.array([1, -1]), C=1.0, cap=2.0)
    >>> problem.solve(np.array([1.0, 0.0])).objective  # one class is left: w = 0, b = 1
    2.0
    """

    kind: ClassVar[str] = "the ramp loss"
    coarsens: ClassVar[bool] = False

    def __init__(self, gram: Floats, y: npt.ArrayLike, C: float, cap: float) -> None:
        self.cap = np.inf if cap == np.inf else checked_positive(cap, "cap")
        super().__init__(gram, y, C, C)

    def _keep(self, y: npt.ArrayLike, C: float, C2: float, positives: float | None) -> None:
        """Check and keep what there is besides the kernel; every point may be discarded."""
        self.y = np.asarray(y).astype(np.int64)
        if self.y.shape != self.diagonal.shape or set(self.y.tolist()) != {-1, 1}:
            raise DataError(f"y: expected {len(self.diagonal)} numbers, +1 and -1, both there")
        self.C = self.C2 = checked_positive(C, "C")
        self.unlabelled = np.arange(len(self.y))
        self.positives = None

    def boxes(self, plus: Floats, minus: Floats) -> tuple[Floats, Floats]:
        """The loss of a point that is kept is that of its class."""
        return self.C2 * np.where(self.y > 0, plus, 0.0), self.C2 * np.where(self.y < 0, plus, 0.0)

    def charge(self, minus: Floats) -> float:
        """What points cost that are discarded with these weights."""
        return float(self.C2 * self.cap * minus.sum()) if minus.any() else 0.0

    def solve_weights(self, plus: Floats, minus: Floats, start: Inner | None, tol: float, stop_at: float) -> Inner:
        """As the parent's, with the charge; where one class is kept, or none, the classifier is a constant."""
        charge = self.charge(minus)
        start = None if start is None else start._replace(objective=0.0)
        found = super().solve_weights(plus, minus, start, tol, stop_at - charge)
        if not np.isfinite(found.low):  # no point of class +1 is kept
            b = -1.0 if (plus[self.y < 0] > 0.0).any() else 0.0
            found = found._replace(low=b, high=b)
        return found._replace(objective=found.objective + charge)

    def primal(self, inner: Inner, plus: Floats, minus: Floats | None = None) -> float:
        """As the parent's, with the charge."""
        minus = 1.0 - plus if minus is None else minus
        return super().primal(inner, plus, minus) + self.charge(minus)

    def gradient(self, inner: Inner) -> Floats:
        """The gradient of F, to be maximised, with respect to p: C (cap - V(y_i, h_i))."""
        return self.C2 * (self.cap - self._losses(inner))

    def next_decision(self, inner: Inner, undecided: Integers, rng: np.random.Generator | None = None) -> tuple[int, int]:
        """The point that loses most is next, for both of its labels then cost something."""
        losses = self._losses(inner)[undecided]
        k = int((losses if rng is None else losses * rng.uniform(0.5, 1.0, len(losses))).argmax())
        return int(undecided[k]), 1 if losses[k] <= self.cap else -1

    def surest(self, inner: Inner, undecided: Integers) -> Floats:
        """1: kept without a loss."""
        return np.maximum(1.0 - self._losses(inner)[undecided] / self.cap, -0.999)

    def anchor(self, tol: float = 1e-3) -> tuple[Floats, float]:
        """(p, J): the largest J over [0, 1]^n, which is that of the loss max(cap, V) = cap + max(0, 1 - cap - y h).

        For cap >= 1 it is reached at w = 0 and p = 0; else it is a support vector machine with a smaller margin.
        """
        charge = self.C2 * self.cap * self.u
        if self.cap >= 1.0:
            return np.zeros(self.u), charge
        margin = 1.0 - self.cap
        ones = np.ones(self.u)
        upper, lower = self.boxes(ones / margin, ones)
        found = self.solve_boxes(upper, lower, tol=tol)
        return np.clip(np.abs(found.beta) * margin / self.C2, 0.0, 1.0), charge + margin**2 * found.objective

    def _losses(self, inner: Inner) -> Floats:
        return np.asarray(np.maximum(0.0, 1.0 - self.y * inner.h))


class RampFeatureProblem(RampLossProblem, FeatureProblem):
    """The same problem for rows of a few features in place of a kernel matrix, as `FeatureProblem` has them: for many points.

    >>> rows, y = np.array([[1.0], [2.0], [-1.0], [-2.0], [9.0]]), np.array([1, 1, -1, -1, -1])
    >>> problem = RampFeatureProblem(rows, y, C=10.0, cap=2.0)
    >>> kept, discarded = problem.solve(np.ones(5)), problem.solve(np.array([1.0, 1.0, 1.0, 1.0, 0.0]))
    >>> print(round(kept.objective), round(discarded.objective))  # without the last, which costs C times the cap
    40 20
    """

    def __init__(
        self, features: npt.NDArray[np.floating], y: npt.ArrayLike, C: float, cap: float, *, accuracy: float = 1e-3
    ) -> None:
        self.cap = np.inf if cap == np.inf else checked_positive(cap, "cap")
        FeatureProblem.__init__(self, features, y, C, C, accuracy=accuracy)
