"""Losses phi(z; y) of the scores z of m classes, y the true one: what they must do, and the dual that they follow from.

Each is a maximum over points p of a part of the simplex, with costs 1 of the wrong classes or with the entropy of p,

    phi(z; y) = max_p  <z, p> - z_y + <costs, p>    or    max_p  <z, p> - z_y + entropy(p).

The dual variable of a sample is alpha = e_y - p, and phi*(-alpha) is minus the last term. One step of dual ascent is one
projection onto the points, or Newton's method where there is an entropy. Shalev-Shwartz and Zhang (2013); Kato, Kobayashi and
Sano (2018), equations 20 to 30, with the curvature |x|^2 / (2 lam n) in (30), where lam^2 is printed.
"""

from typing import Any, ClassVar, cast

import numpy as np

from structpred.core.group_scales import Scale
from structpred.core.sparse import SparseVector
from structpred.core.types import ArrayLike, Floats
from structpred.core.weights import Vector
from structpred.errors import DataError, LossError, ParameterError
from structpred.task.steps import Step, SummedPieces, TaskLike, offers
from structpred.task.task import Task

#: how far scores spread at which a loss is looked at before training, and for how many true classes
_PROBES, _PROBED = (0.0, 0.3, 0.3, 1.0, 1.0, 4.0, 4.0), 3


class MulticlassLoss(SummedPieces):
    """A convex loss of one label out of many, and so a surrogate, H_i(w) = phi(x_i W; y_i), of tasks over `LabelRows`.

    What a wrong class costs is 1; the loss of the task plays no part. One of your own is a subclass with `points`, and `k` where
    it is not 1: trainers go by these. LossError is raised before training where its `value` or `subgradient` say otherwise.

    Attributes
    ----------
    name : str
        What users call it.
    points : int
        The set of the points p: ENTROPIC, CAPPED or FILLED of structpred/rows/_column_kernels.py.
    k : int
        How many labels share the maximum; no p_j is above 1/k.
    gamma : float
        The largest one known for which phi is (1/gamma)-smooth in the Euclidean norm; 0 for none.
    piecewise_linear : bool
        Whether phi is a maximum of linear functions.
    may_be_negative : bool
        Whether phi may be below 0: bounds that rely on phi >= 0 then do not hold.
    """

    name: ClassVar[str] = ""
    requires: tuple[str | tuple[str, ...], ...] = ("label_rows",)
    points: ClassVar[int]
    k: int = 1
    gamma: ClassVar[float] = 0.0
    piecewise_linear: bool = True
    may_be_negative: ClassVar[bool] = False

    @property
    def label_costs(self) -> Floats:
        """What each wrong label costs, as the compiled steps read it."""
        return np.ones((1, 1))

    def value(self, z: ArrayLike, y: int) -> float:
        """phi(z; y) for the scores z (m,)."""
        return self._best(z, y)[0]

    def subgradient(self, z: ArrayLike, y: int) -> Floats:
        """A subgradient (m,) of phi at z: p - e_y for a p of the maximum. The gradient where there is one."""
        p = self._best(z, y)[1]
        p[y] -= 1.0
        return p

    def conjugate(self, alpha: ArrayLike, y: int) -> float:
        """phi*(-alpha); inf where e_y - alpha is none of the points."""
        from structpred.rows._column_kernels import dual_value

        p, near = -np.array(alpha, dtype=np.float64), 1e-12
        p[y] += 1.0
        inside = p.min() >= -near and abs(float(p.sum()) - 1.0) <= near and self._contains(p, np.delete(p, y), near)
        return -float(dual_value(self.points, p, y, self.label_costs)) if inside else np.inf

    def dual_step(self, alpha: ArrayLike, z: ArrayLike, q: float, y: int) -> Floats:
        """The new alpha (m,) with the largest  -phi*(-new) - <z, new - alpha> - q/2 |new - alpha|^2, for q >= 0."""
        from structpred.rows._column_kernels import column_step

        p, scores = -np.array(alpha, dtype=np.float64), self._scores(z, y).copy()
        p[y] += 1.0
        column_step(self.points, self.k, scores, y, self.label_costs, float(q), p)
        p = -p
        p[y] += 1.0
        return p

    def start(self, n_labels: int, y: int) -> Floats:
        """A point p that is near e_y: e_y itself where it is one, for which alpha = 0."""
        p = np.zeros(n_labels)
        p[y] = 1.0
        return p

    def r_loss(self, n_labels: int) -> float:
        """phi(0; y): no optimal w has lam |w|^2 above it, where phi >= 0."""
        return self.value(np.zeros(n_labels), 0)

    def check_labels(self, n_labels: int) -> None:
        """ParameterError where k is not below the number of classes."""
        if not self.k < max(n_labels, 2):
            raise ParameterError(
                f"{type(self).__name__}: k must be below the number of classes, got k={self.k} for {n_labels} classes: with all "
                "of them among the k best every prediction is right"
            )

    def check_task(self, task: TaskLike) -> None:
        """MissingCapabilityError unless outputs are one label for each row, ParameterError where k is not below their number,
        LossError where the loss contradicts itself.
        """
        if offers(task, "rows"):
            raise ParameterError(
                f"surrogate {type(self).__name__} is for the scores of more than two classes, but these rows have one each: "
                "for two classes take a loss of one score, such as 'logistic' or 'hinge'"
            )
        task.require(self.requires, f"surrogate {type(self).__name__}")
        n_labels = cast(Any, task).features.n_labels
        self.check_labels(n_labels)
        # a tangent above the loss, a `value` that is not that of the points, or one below zero unannounced
        z = np.random.default_rng(0).normal(size=(len(_PROBES), n_labels)) * np.array(_PROBES)[:, None]
        for y in range(min(n_labels, _PROBED)):
            values = np.array([self.value(row, y) for row in z])
            slopes = np.array([self.subgradient(row, y) for row in z])
            near, expected = 1e-7 * (1.0 + np.abs(values)), np.array([self._best(row, y)[0] for row in z])
            tangents = values[:, None] + slopes @ z.T - (slopes * z).sum(axis=1)[:, None]
            for i, value in enumerate(values.tolist()):
                problem = None
                if not abs(value - expected[i]) <= near[i]:
                    problem = f"value gives {value:g}, and its points {expected[i]:g}, which trainers go by"
                elif not (tangents[:, i] <= value + near[i]).all():
                    problem = f"it is {value:g}, and a tangent is above: the subgradient is wrong, or the loss is not convex"
                elif value < -near[i] and not self.may_be_negative:
                    problem = f"it is {value:g}, below zero; set may_be_negative = True, or change points"
                if problem is not None:
                    at = np.array2string(z[i], precision=3, threshold=6)
                    raise LossError(f"{type(self).__name__}: for the scores {at} and the true class {y} {problem}")

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """A tangent at scale * w: its slope is -difference, its constant `loss`, its value `violation`."""
        rows = cast(Task, task)
        z, y = rows.scores(w, i, scale), int(rows.labels[i][0])
        value, p = self._best(z, y)
        constant = value - float(p @ z) + float(z[y])
        p[y] -= 1.0
        at = np.flatnonzero(p)
        difference = rows.adjoint(i, at, -p[at]) if len(at) else SparseVector(np.empty(0, np.int64), np.empty(0))
        return Step(difference, constant, value, value)

    def offset(self, step: Step) -> float:
        """The constant of the tangent."""
        return step.loss

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """H_i(w) of every instance."""
        from structpred.rows._column_kernels import row_losses

        rows = cast(Task, task)
        features: Any = rows.features
        out, table = np.empty(len(task)), features.table(np.asarray(w, dtype=np.float64))
        data = features.rows.indptr, features.rows.indices, features.rows.values
        row_losses(data, np.concatenate(rows.labels), self.label_costs, self.points, self.k, table, out)
        return out

    def _best(self, z: ArrayLike, y: int) -> tuple[float, Floats]:
        from structpred.rows._column_kernels import best_point

        scores = self._scores(z, y)
        p = np.empty(len(scores))
        return float(best_point(self.points, self.k, scores, y, self.label_costs, p)), p

    def _scores(self, z: ArrayLike, y: int) -> Floats:
        scores = np.ascontiguousarray(z, dtype=np.float64)
        if scores.ndim != 1 or not 0 <= y < len(scores):
            raise DataError(f"expected the scores (m,) of all classes and the true one of them, got {scores.shape} and {y}")
        self.check_labels(len(scores))
        return scores

    def _contains(self, p: Floats, v: Floats, near: float) -> bool:
        """Whether p, which is in the simplex, is one of the points, to rounding; v: its entries at the wrong classes."""
        return bool(p.max() <= 1.0 / self.k + near)
