"""The semi-supervised support vector machine: its inner problem for given weights of labels, with a kernel matrix or features."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats, Integers
from structpred.errors import ConvergenceError, DataError, ParameterError
from structpred.runtime.settings import checked_positive

#: the most steps of one inner problem, as a multiple of the number of points; and at least this many
_STEPS, _LEAST_STEPS = 2_000, 1_000_000


class Inner(NamedTuple):
    """A solved inner problem: the classifier h(x) = sum_i beta_i k(x_i, x) + b that is best for some weights of labels.

    beta: (n,), f: (n,) = K beta. low, high: the offset b may be any number between them (they are equal where a support vector is
    strictly between its bounds, up to the tolerance). objective: the dual value, a lower bound of the least objective.
    """

    beta: Floats
    f: Floats
    low: float
    high: float
    objective: float

    @property
    def b(self) -> float:
        """The middle of the offsets."""
        return 0.5 * (self.low + self.high)

    @property
    def h(self) -> Floats:
        """The decision values of all points."""
        return self.f + self.b


class SemiSupervisedProblem:
    """Minimise 1/2 |w|^2 + C sum_labelled V(y_i, h_i) + C2 sum_unlabelled V(yhat_i, h_i) over w, b and the labels yhat.

    V(y, h) = max(0, 1 - y h) and h_i = <w, phi(x_i)> + b. With the weights p_i of label +1 and 1 - p_i of -1 of unlabelled
    point i, the least objective J(p) = -F(p) over w and b is a concave function of p in [0, 1]^u; its minima over the labels are
    those over all p, so F, which is convex, is to be maximised (Zhou, Kang & Spanos 2017, OPT1 and OPT2).

    gram: (n, n), symmetric and positive semidefinite. y: (n,) of +1, -1, and 0 for unlabelled points.
    positives: how many unlabelled points have the label +1 (sum_i p_i), None: any number.

    Raises DataError for a matrix that is no kernel's, and where no label, or labels of one sort only, are given;
    ParameterError for weights that are not positive and for a balance that is impossible.

    >>> problem = SemiSupervisedProblem(np.diag([1.0, 1.0, 1.0]), np.array([1, -1, 0]), 1.0, 1.0, positives=None)
    >>> problem.solve(np.array([1.0])).objective == problem.solve(np.array([0.0])).objective
    True
    """

    #: what messages call it
    kind: ClassVar[str] = "semi-supervised problems"
    #: whether the labels of some points tell those of the others, and all are unlabelled or labelled: for the default solver
    coarsens: ClassVar[bool] = True
    #: called with a row of the history at each improvement
    told: Callable[[dict[str, Any]], None] | None = None

    def __init__(self, gram: Floats, y: npt.ArrayLike, C: float, C2: float, positives: float | None = None) -> None:
        self.gram = checked_gram(gram)
        self.diagonal = self.gram.diagonal().copy()
        self._keep(y, C, C2, positives)

    def _keep(self, y: npt.ArrayLike, C: float, C2: float, positives: float | None) -> None:
        """Check and keep what there is besides the kernel."""
        self.y = checked_labels(y, len(self.diagonal))
        self.C, self.C2 = checked_positive(C, "C"), checked_positive(C2, "C2")
        self.unlabelled: Integers = np.flatnonzero(self.y == 0)
        if positives is not None and not 0 <= positives <= self.u:
            raise ParameterError(f"positives: expected 0 to {self.u}, the number of unlabelled points, got {positives}")
        self.positives = positives
        self._upper = np.where(self.y == 1, self.C, 0.0)
        self._lower = np.where(self.y == -1, self.C, 0.0)

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.y)

    @property
    def u(self) -> int:
        """The number of unlabelled points."""
        return len(self.unlabelled)

    @property
    def max_steps(self) -> int:
        """The most steps of one inner problem."""
        return max(_LEAST_STEPS, _STEPS * self.n)

    def checked_weights(self, p: npt.ArrayLike) -> Floats:
        """p as an array; ParameterError unless it has a weight in [0, 1] for each unlabelled point."""
        found = np.asarray(p, dtype=np.float64)
        if found.shape != (self.u,) or not ((found >= 0.0) & (found <= 1.0)).all():
            raise ParameterError(f"p: expected {self.u} weights in [0, 1], one per unlabelled point, got shape {found.shape}")
        return found

    def with_C2(self, C2: float) -> Self:
        """The same problem with another weight of the unlabelled points."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.C2 = checked_positive(C2, "C2")
        return new

    def with_positives(self, positives: int) -> Self:
        """The same problem with another balance."""
        new = self.with_C2(self.C2)
        new.positives = positives
        return new

    def boxes(self, plus: Floats, minus: Floats) -> tuple[Floats, Floats]:
        """(upper, lower): -lower <= beta <= upper, for weights of the two labels of each unlabelled point."""
        upper, lower = self._upper.copy(), self._lower.copy()
        upper[self.unlabelled], lower[self.unlabelled] = self.C2 * plus, self.C2 * minus
        return upper, lower

    def solve(
        self, plus: Floats, minus: Floats | None = None, start: Inner | None = None, tol: float = 1e-3, stop_at: float = np.inf
    ) -> Inner:
        """The inner problem for weights `plus` of label +1 and `minus` (1 - plus) of -1 of the unlabelled points.

        Weights that do not sum to one are allowed (Lifted: F stays convex); none may be negative: outside, F is infinite, and
        ParameterError is raised. start: a solution for other weights. tol: the most that two slopes of the dual, which are in
        units of the margin, may differ. stop_at: end as soon as the objective is known to be at least that.
        """
        minus = 1.0 - plus if minus is None else minus
        if not (plus.min(initial=0.0) >= 0.0 and minus.min(initial=0.0) >= 0.0):
            raise ParameterError("p: expected weights in [0, 1]: outside, the inner problem has no solution, and F is infinite")
        return self.solve_weights(plus, minus, start, tol, stop_at)

    def solve_weights(self, plus: Floats, minus: Floats, start: Inner | None, tol: float, stop_at: float) -> Inner:
        """As `solve`, for weights that were checked."""
        upper, lower = self.boxes(plus, minus)
        return self.solve_boxes(upper, lower, start, tol, stop_at)

    def solve_boxes(
        self, upper: Floats, lower: Floats, start: Inner | None = None, tol: float = 1e-3, stop_at: float = np.inf
    ) -> Inner:
        """As `solve`, for boxes."""
        from structpred.nonconvex._dual_kernels import smo

        beta = np.zeros(self.n) if start is None else feasible(start.beta, upper, lower)
        same = start is not None and np.array_equal(beta, start.beta)
        f = start.f.copy() if same and start is not None else self._values(beta)
        most = self.max_steps
        steps, value, low, high = smo(self.gram, self.diagonal, upper, lower, beta, f, tol, stop_at, most)
        if tol < 1e-6 and steps > self.n:  # f has gathered rounding errors
            f = self._values(beta)
            more, value, low, high = smo(self.gram, self.diagonal, upper, lower, beta, f, tol, stop_at, most)
            steps = max(steps, more)
        if steps == most:
            raise ConvergenceError(f"inner problem: {steps:,} steps did not reach tol={tol}; is it too small, or C too large?")
        low, high = (low if np.isfinite(low) else high), (high if np.isfinite(high) else low)
        return Inner(beta, f, low, high, value)

    def _values(self, beta: Floats) -> Floats:
        support = np.flatnonzero(beta)
        if 4 * len(support) < self.n:
            return np.asarray(beta[support] @ self.gram[support])
        return np.asarray(self.gram @ beta)

    def primal(self, inner: Inner, plus: Floats, minus: Floats | None = None) -> float:
        """1/2 |w|^2 plus the losses of a classifier, with these weights of labels: never below the optimum for them."""
        upper, lower = self.boxes(plus, 1.0 - plus if minus is None else minus)
        h = inner.h
        losses = upper @ np.maximum(0.0, 1.0 - h) + lower @ np.maximum(0.0, 1.0 + h)
        return float(0.5 * inner.beta @ inner.f + losses)

    def gradient(self, inner: Inner) -> Floats:
        """The gradient of F (to be maximised) with respect to p: C2 (V(-1, h_i) - V(1, h_i)); it increases with h_i."""
        h = inner.h[self.unlabelled]
        return self.C2 * (np.maximum(0.0, 1.0 + h) - np.maximum(0.0, 1.0 - h))

    def best_vertex(self, gradient: Floats) -> Floats:
        """argmax of gradient' p over P: signs, or the `positives` largest entries; the earlier point wins a tie."""
        if self.positives is None:
            return (gradient > 0.0).astype(np.float64)
        p, whole = np.zeros(self.u), int(self.positives)
        order = np.argsort(-gradient, kind="stable")
        p[order[:whole]] = 1.0
        if whole < self.positives:
            p[order[whole]] = self.positives - whole
        return p

    def surest(self, inner: Inner, undecided: Integers) -> Floats:
        """What the classifier says of these undecided points: their labels are the signs, and cost nothing from 1 on."""
        return np.asarray(inner.h[self.unlabelled[undecided]])

    def next_decision(self, inner: Inner, undecided: Integers, rng: np.random.Generator | None = None) -> tuple[int, int]:
        """The point whose label is to be decided next, that with the largest |h|, and which label is tried first, that of h.

        rng: |h| is multiplied by random factors between 0.5 and 1.
        """
        h = self.surest(inner, undecided)
        k = int((np.abs(h) if rng is None else np.abs(h) * rng.uniform(0.5, 1.0, len(h))).argmax())
        return int(undecided[k]), 1 if h[k] >= 0.0 else -1

    def subset(self, points: Integers, C2: float) -> "SemiSupervisedProblem":
        """The problem of some points alone, with the same share of positives, rounded, and another C2."""
        y = self.y[points]
        positives = None if self.positives is None else float(round(self.positives / max(1, self.u) * int((y == 0).sum())))
        return SemiSupervisedProblem(self.gram_of(points), y, self.C, C2, positives)

    def gram_of(self, points: Integers) -> Floats:
        """The kernel matrix of these points."""
        return self.gram[np.ix_(points, points)]

    def decision(self, points: Integers, inner: Inner) -> Floats:
        """h of all points for a solution of the subset of these."""
        return np.asarray(self.gram[:, points] @ inner.beta + inner.b)

    def distances(self, centre: int) -> Floats:
        """|phi(x) - phi(x_centre)|^2 up to a constant, for all unlabelled points; centre is a number among them."""
        rows = self.unlabelled
        return np.asarray(self.diagonal[rows] - 2.0 * self.gram[rows[centre], rows])

    def anchor(self, tol: float = 1e-3) -> tuple[Floats, float]:
        """(p, J): the largest J over [0, 1]^u, the minimum of F, where the balance is left out.

        It is that of a support vector machine with the loss 1 + |h| on unlabelled points, whose dual is
        max y_l' beta_l - 1/2 beta' K beta + C2 u with |beta_u| <= C2 and sum(beta) = 0; p = (1 + beta_u / C2) / 2.
        """
        from structpred.nonconvex._dual_kernels import smo

        # h = -1 for a shift of the unlabelled slopes: a box [0, 2 C2] has the slope +1 throughout, so f starts at K beta + 1
        upper, lower = self._upper.copy(), self._lower.copy()
        upper[self.unlabelled] = 2.0 * self.C2
        shift = np.where(self.y == 0, self.C2, 0.0)
        beta = shift.copy()  # gamma = beta + shift, which has the sum C2 u
        f = np.where(self.y == 0, 1.0, 0.0)
        smo(self.gram, self.diagonal, upper, lower, beta, f, tol, np.inf, self.max_steps)
        beta -= shift
        value = np.abs(beta[self.y != 0]).sum() - 0.5 * beta @ self._values(beta) + self.C2 * self.u
        return np.clip(0.5 * (1.0 + beta[self.unlabelled] / self.C2), 0.0, 1.0), float(value)


def feasible(beta: Floats, upper: Floats, lower: Floats) -> Floats:
    """beta within other boxes, its larger side scaled down so that it sums to zero again."""
    beta = np.clip(beta, -lower, upper)
    plus, minus = float(beta[beta > 0.0].sum()), -float(beta[beta < 0.0].sum())
    if abs(plus - minus) <= 1e-13 * max(plus, minus):
        return beta
    larger, wanted = (beta > 0.0, minus / plus) if plus > minus else (beta < 0.0, plus / minus)
    beta[larger] *= wanted
    return beta


def checked_gram(gram: npt.ArrayLike) -> Floats:
    """A matrix of kernel values; DataError unless it is finite, symmetric and positive semidefinite up to rounding."""
    found = np.ascontiguousarray(gram, dtype=np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1]:
        raise DataError(f"kernel matrix: expected a square one, got shape {found.shape}")
    if not np.isfinite(found).all():
        raise DataError("kernel matrix: its values must be finite; are the features scaled?")
    largest = float(np.abs(found).max(initial=0.0))
    if np.abs(found - found.T).max(initial=0.0) > 1e-8 * largest:
        raise DataError("kernel matrix: it is not symmetric; k(a, b) must equal k(b, a)")
    try:
        np.linalg.cholesky(found + np.eye(len(found)) * (1e-8 * max(largest, 1e-300)))
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(found)[0])
        raise DataError(
            f"kernel matrix: it is not positive semidefinite, its least eigenvalue is {least:.3g}: this is not a kernel"
        ) from None
    return found


def checked_labels(y: npt.ArrayLike, n: int) -> Integers:
    """y as whole numbers; DataError unless they are +1, -1 and 0, the first two both there."""
    found = np.asarray(y)
    if found.shape != (n,) or not np.isin(found, (-1, 0, 1)).all():
        raise DataError(f"y: expected {n} numbers of +1, -1 and 0 (unlabelled), got shape {found.shape}")
    there = sorted({int(label) for label in found if label != 0})
    if len(there) < 2:
        raise DataError(f"y: expected labelled points of both classes, got {there or 'no labelled point'}")
    return found.astype(np.int64)


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
        self, features: npt.NDArray[np.floating], y: npt.ArrayLike, C: float, C2: float, positives: float | None = None,
        offset: float = 1.0, accuracy: float = 1e-3, max_rounds: int = 200,
    ) -> None:  # fmt: skip
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
