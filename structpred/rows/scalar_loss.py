"""Losses phi(z; y) of one score z = <w, x> and one target y: what they must do, and the table that most of them follow from.

The dual of  min_w lam r(w) + sum_i p_i phi(<w, x_i>; y_i)  has one variable a_i for each sample, and phi*(-a_i) in it. For most
losses that is, on an interval,

    phi*(-a) = -t a + gamma a^2 / 2 + e (high - low) h(b),   low <= a <= high,   b = (a - low) / (high - low),

h(b) = b log b + (1 - b) log(1 - b): `DualTable`. Then  phi(z) = max_a a (t - z) - (the other terms),  phi'(z) = -a  of that
maximum, and a step of dual ascent along one a_i has a closed form (Newton where there is an entropy). Shalev-Shwartz and Zhang
(2013); Kato, Kobayashi and Sano (2018), table 1 and equation 16.
"""

from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from structpred.core.group_scales import GroupScales, Scale
from structpred.core.sparse import SparseVector
from structpred.core.types import ArrayLike, Floats
from structpred.core.weights import Vector
from structpred.errors import DataError, LossError, MissingCapabilityError
from structpred.task.instance_subset import checked_rows
from structpred.task.steps import Step, TaskLike, Terms, checked_shares

#: a loss that writes its own value is tried at these scores, for this number of samples, before it is trained on
_PROBES, _PROBED = (-4.0, -1.0, -0.3, 0.0, 0.3, 1.0, 4.0), 200


class DualTable(NamedTuple):
    """phi*(-a) of each sample: target (t), curvature (gamma), low, high and entropy (e), all of them (n,).

    low <= 0 <= high; an infinite end needs a curvature > 0 and no entropy.
    """

    target: Floats
    curvature: Floats
    low: Floats
    high: Floats
    entropy: Floats

    @staticmethod
    def of(
        n: int, target: ArrayLike, *, curvature: ArrayLike = 0.0, low: ArrayLike, high: ArrayLike, entropy: ArrayLike = 0.0
    ) -> "DualTable":
        """For n samples, from arrays or from single numbers that hold for all of them.

        >>> table = DualTable.of(2, [1.0, -1.0], low=[0.0, -1.0], high=[1.0, 0.0])
        >>> table.conjugate(np.array([0.25, -1.0])).tolist()
        [-0.25, -1.0]
        """
        fields = (target, curvature, low, high, entropy)
        return DualTable(*(np.array(np.broadcast_to(np.asarray(x, np.float64), n)) for x in fields))

    def fault(self, n: int) -> str | None:
        """What does not fit, for n samples; None where all does."""
        for name, array in self._asdict().items():
            if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != (n,):
                return f"{name}: expected one float64 per sample, {n} in all"
            if name not in ("low", "high") and not np.isfinite(array).all():
                return f"{name}: expected finite numbers"
        if not ((self.low <= 0.0) & (self.high >= 0.0)).all():
            return "low, high: expected low <= 0 <= high"
        if not ((self.curvature >= 0.0) & (self.entropy >= 0.0)).all():
            return "curvature, entropy: expected numbers >= 0"
        endless = ~(np.isfinite(self.low) & np.isfinite(self.high))
        if (endless & ((self.curvature == 0.0) | (self.entropy > 0.0))).any():
            return "low, high: an infinite end needs a curvature > 0 and no entropy"
        return None

    def conjugate(self, a: Floats) -> Floats:
        """phi*(-a) of each sample; inf outside the interval."""
        found: Floats = -self.target * a + 0.5 * self.curvature * a * a
        if (some := self.entropy > 0.0).any():
            from scipy.special import xlog1py, xlogy

            span = np.where(some, self.high - self.low, 1.0)
            share = np.clip((a - np.where(some, self.low, 0.0)) / np.where(span > 0.0, span, 1.0), 0.0, 1.0)
            negative_entropy = xlogy(share, share) + xlog1py(1.0 - share, -share)  # 0 at both ends
            found += np.where(some, self.entropy * span * negative_entropy, 0.0)
        return np.where((a >= self.low) & (a <= self.high), found, np.inf)

    def step(self, old: Floats, z: Floats, q: ArrayLike) -> Floats:
        """For each sample the a with the largest  -phi*(-a) - z (a - old) - q/2 (a - old)^2."""
        from structpred.rows._scalar_kernels import dual_steps

        out = np.empty(len(self.target))
        start, scores, steep = (
            np.array(np.broadcast_to(np.asarray(x, np.float64), out.shape)) for x in (old, z, q)
        )  # the kernel's own copies
        dual_steps(start, scores, steep, *self, out)
        return out

    def scaled(self, c: Floats) -> "DualTable":
        """The table of c phi* as a function of c a, for c >= 0; of c = 0 the table of nothing."""
        safe = np.where(c > 0.0, c, 1.0)
        low, high = (np.where(c > 0.0, end, 0.0) * safe for end in (self.low, self.high))
        return DualTable(self.target, self.curvature / safe, low, high, self.entropy)


class ScalarLoss:
    """A convex phi(z; y) >= 0, and so a surrogate, H_i(w) = phi(<w, x_i>; y_i), of LinearTask and RegressionTask.

    For two classes the score is the margin y <w, x>, and every target 1. One of your own is a subclass. With `dual_table` it
    needs no other method; without it, it writes `value` and `derivative`, and trainers that ascend the dual refuse it. Settings
    are attributes of the object. `structpred.check_scalar_loss` tries it.

    Attributes
    ----------
    name : str
        What users call it. Names are looked for in structpred/objectives/scalar; a class elsewhere needs none.
    signs : bool
        Whether the targets are +1 and -1; else they are any numbers.
    gamma : float
        The largest one known for which phi is (1/gamma)-smooth: its derivative changes by at most |z - z'| / gamma; 0 for none.
    piecewise_linear : bool
        Whether phi is a maximum of linear functions, so that cutting planes apply.
    """

    name: ClassVar[str] = ""
    requires: tuple[str | tuple[str, ...], ...] = ("rows",)
    signs: ClassVar[bool] = False
    gamma: float = 0.0
    piecewise_linear: bool = False

    def value(self, z: Floats, y: Floats) -> Floats:
        """phi(z_i; y_i) of each sample."""
        table = self._table(y)
        a = table.step(np.zeros(len(y)), z, 0.0)
        return 0.0 - a * z - table.conjugate(a)

    def derivative(self, z: Floats, y: Floats) -> Floats:
        """phi'(z_i; y_i), the subgradient next to zero at a kink with a target of its own."""
        return -self._table(y).step(np.zeros(len(y)), z, 0.0)

    def conjugate(self, a: Floats, y: Floats) -> Floats:
        """phi*(-a_i) of each sample; inf where there is none."""
        return self._table(y).conjugate(a)

    def dual_step(self, old: Floats, z: Floats, q: ArrayLike, y: Floats) -> Floats:
        """For each sample the a with the largest  -phi*(-a) - z (a - old) - q/2 (a - old)^2."""
        return self._table(y).step(old, z, q)

    def r_loss(self, y: Floats, shares: Floats | None = None) -> float:
        """sum_i shares_i phi(0; y_i), 1/n each if not given: no optimal w has lam r(w) above it."""
        losses = self.value(np.zeros(len(y)), y)
        return float(losses.mean() if shares is None else shares @ losses)

    def check_task(self, task: TaskLike) -> None:
        """Raise unless the targets are such as it is defined for: MissingCapabilityError where there are none, DataError."""
        task.require(self.requires, f"surrogate {type(self).__name__}")
        targets: Floats = task.targets  # type: ignore[attr-defined]
        if self.signs and (wrong := np.flatnonzero(np.abs(targets) != 1.0)).size:
            raise DataError(
                f"y: {type(self).__name__} is for two classes, +1 and -1; got {targets[wrong[0]]:g} for sample {wrong[0]}; "
                "losses for numbers are squared, absolute and huber"
            )
        if type(self).value is not ScalarLoss.value or type(self).derivative is not ScalarLoss.derivative:
            rng = np.random.default_rng(0)
            some = targets[rng.permutation(len(targets))[:_PROBED]]
            fixed = np.repeat(np.array(_PROBES)[:, None], len(some), axis=1)
            self._refuse_contradictions(some, np.vstack((fixed, rng.normal(size=fixed.shape))))
            self._refuse_contradictions(targets, rng.normal(size=(2, len(targets))))

    def _refuse_contradictions(self, y: Floats, z: Floats) -> None:
        """LossError where a tangent at the scores z, rows of one a target, is above the loss, or the table gives other values."""
        values, slopes = (np.array([of(row, y) for row in z]) for of in (self.value, self.derivative))
        tangents = values[:, None] + slopes[:, None] * (z[None] - z[:, None])
        if (wrong := np.argwhere(~(tangents <= values + 1e-7 * (1.0 + np.abs(values))))).size:
            at, other, i = wrong[0]
            raise LossError(
                f"{type(self).__name__}: for target {y[i]:g} its tangent at z = {z[at, i]:g} is {tangents[at, other, i]:g} at "
                f"z = {z[other, i]:g}, where the loss is {values[other, i]:g}: value or derivative is wrong, or the loss is not "
                "convex; run check_scalar_loss on it"
            )
        if not hasattr(self, "dual_table"):
            return
        expected = np.array([ScalarLoss.value(self, row, y) for row in z])
        if (wrong := np.argwhere(~(np.abs(expected - values) <= 1e-7 * (1.0 + np.abs(values))))).size:
            at, i = wrong[0]
            raise LossError(
                f"{type(self).__name__}: for the target {y[i]:g} value gives {values[at, i]:g} at z = {z[at, i]:g}, and "
                f"dual_table {expected[at, i]:g}: one of them is wrong; run check_scalar_loss on it"
            )

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The tangent at scale * w: its slope is -difference, its constant `loss`, its value `violation`."""
        rows: Any = task
        indices, values = rows.row(i)
        factor, own = (scale.of(indices), 1.0) if isinstance(scale, GroupScales) else (1.0, scale)
        z = np.array([own * float(factor * w[indices] @ values)])
        y = rows.targets[i : i + 1]
        value, slope = float(self.value(z, y)[0]), float(self.derivative(z, y)[0])
        return Step(SparseVector(indices, -slope * values), value - slope * float(z[0]), value, value)

    def offset(self, step: Step) -> float:
        """The constant of the tangent."""
        return step.loss

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """H_i(w) of every sample."""
        rows: Any = task
        return self.value(rows.margins(w), rows.targets)

    def gradient(self, task: TaskLike, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """H_i of every sample, and the gradient of sum_i shares_i H_i."""
        rows: Any = task
        z = rows.margins(w)
        return self.value(z, rows.targets), rows.combined(shares * self.derivative(z, rows.targets))

    def terms(self, task: TaskLike, w: Vector, rows: ArrayLike, shares: ArrayLike | None = None) -> Terms:
        """The tangents of these rows summed up, with these shares (ones if not given)."""
        data: Any = task
        at = checked_rows(rows, len(task))
        weights = np.bincount(at, checked_shares(shares, len(at)), len(task))
        z, y = data.margins(w), data.targets
        values, slopes = self.value(z, y), self.derivative(z, y)
        offset = float(weights @ (values - slopes * z))
        return Terms(data.combined(-weights * slopes), offset, (values - slopes * z)[at], values[at], values[at])

    def _table(self, y: Floats) -> DualTable:
        make = getattr(self, "dual_table", None)
        if make is None:
            raise MissingCapabilityError(
                f"{type(self).__name__} has no dual_table(y), which is needed here; a loss with value and derivative "
                "alone trains without a dual (pegasos, sgd, lbfgs)"
            )
        return cast(DualTable, make(np.asarray(y, np.float64)))
