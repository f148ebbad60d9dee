"""The sets over which max-margin duals are maximised, and the linear maps between dual points and weights.

The margin-rescaled hinge is H_i(w) = max over m in M_i of <s_i(w), m - t_i>, with the slopes s_i(w) = costs_i + Psi_i w, M_i the
convex hull of the part counts of all outputs and t_i the true one. So the primal is

    min_w  lam/2 |w|^2 + sum_i p_i max over m_i in M_i of <s_i(w), m_i - t_i>,

and the dual, over all m_i in M_i, m for short,

    D(m) = sum_i p_i <costs_i, m_i - t_i> - lam/2 |w(m)|^2,   w(m) = 1/lam sum_i p_i Psi_i' (t_i - m_i),

whose gradient at m in the metric |m|^2 = sum_i p_i |m_i|^2 is s(w(m)). A sample that weighs twice is
then the same as two samples. For signed rows a_i the set is the box: m_i in [0, 1], Psi_i = -a_i', t_i = 0.
"""

from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import capabilities
from structpred.core.packing import parts_batch, project_batch
from structpred.core.products import dot
from structpred.core.types import Floats, Integers
from structpred.errors import ConvergenceError, ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l2 import FreeIntercept
from structpred.projections.box import nearest_in_box
from structpred.projections.lockstep import nearest_in_hulls
from structpred.rows.linear_task import LinearTask
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of
from structpred.task.steps import offers
from structpred.task.task import Task
from structpred.trainers.problem import Problem, once_per_problem

NONE = np.empty(0)
#: the largest entry of a point that is projected: sums of squares of such numbers do not overflow
_LARGEST = 1e100


class Boxes:
    """Of binary classification: m_i in [0, 1].

    What all sets know. Points are flat arrays over all samples; so are slopes, though of another length where points are clique
    marginals.
    """

    def __init__(self, problem: Problem) -> None:
        self.task, self.p, self.lam = cast(LinearTask, problem.task), problem.p, problem.lam
        self.margin = cast(MarginRescaling, problem.surrogate).loss_weight

    def centre(self) -> Floats:
        """A point of the set: zero, the truth."""
        return np.zeros(len(self.p))

    def slopes(self, w: Floats) -> Floats:
        """s(w): how far each margin is below what it should be."""
        out = self.task.margins(w)
        return np.subtract(self.margin, out, out=out)

    def weights(self, point: Floats) -> Floats:
        """w(point), 1/lam sum_i p_i m_i a_i."""
        return self.task.combined(self.p * point) / self.lam

    def loss(self, point: Floats) -> float:
        """sum_i p_i <costs_i, m_i - t_i>."""
        return self.margin * dot(self.p, point)

    def pairing(self, slopes: Floats, point: Floats) -> float:
        """sum_i p_i <s_i, m_i - t_i>."""
        return dot(self.p * slopes, point)

    def square(self, change: Floats) -> float:
        """sum_i p_i |change_i|^2."""
        return dot(self.p * change, change)

    def project(self, base: Floats, slopes: Floats, step: float, start: Floats) -> tuple[Floats, Floats]:
        """The point of the set next to base + step * slopes, here clipped, and what starts the next such search; `start` may be
        empty.
        """
        point = step * slopes
        point += base
        return np.clip(point, 0.0, 1.0, out=point), NONE

    def finished(self, w: Floats, slopes: Floats) -> tuple[Floats, float]:
        """w with the best values of those weights that are not regularised, here none, and sum_i p_i H_i there; slopes = s(w)."""
        return w, dot(self.p, np.maximum(slopes, 0.0))

    def operator(self, v: Floats) -> Floats:
        """B v, with the norm of B, divided by lam, the curvature of the dual: sum_i p_i <a_i, v> a_i."""
        return self.task.combined(self.p * self.task.margins(v))


class BalancedBoxes(Boxes):
    """With a free intercept, the last weight: m_i in [0, 1] and sum_i p_i m_i a_id = 0, else the dual is unbounded below."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        free = cast(FreeIntercept, problem.regulariser).free()
        if (free.start, free.stop) != (self.task.dim - 1, self.task.dim) or self.task.dim < 2:
            raise ParameterError("a free intercept needs a task with a constant feature: LinearTask(..., intercept=1.0)")
        self.constants = self.task.values[self.task.indptr[1:] - 1]
        self.normal = self.p * self.constants

    def check(self) -> None:
        """ParameterError unless there are samples of both signs, with weights above zero."""
        if not (self.normal.max() > 0.0 > self.normal.min()):
            raise ParameterError(
                "a free intercept needs samples of both signs, with weights above zero: with one sign alone it is unbounded"
            )

    def project(self, base: Floats, slopes: Floats, step: float, start: Floats) -> tuple[Floats, Floats]:
        """Onto the box with an equality; `start` is its multiplier."""
        metric = np.sqrt(np.where(self.p > 0.0, self.p, 1.0))
        first = float(start[0]) if len(start) else None
        point, multiplier = nearest_in_box(base + step * slopes, 0.0, 1.0, self.normal, 0.0, metric, first)
        return point, np.array([multiplier])

    def finished(self, w: Floats, slopes: Floats) -> tuple[Floats, float]:
        """With the best intercept."""
        best, change = w.copy(), self.intercept(slopes)
        best[-1] += change
        return best, super().finished(w, slopes - change * self.constants)[1]

    def intercept(self, slopes: Floats) -> float:
        """The change b of the last weight with the least sum_i p_i max(0, s_i - b a_id).

        That is convex and piecewise linear in b with kinks at s_i / a_id; its slope starts at minus the mass of the positive
        signs and rises by p_i |a_id| at each kink.
        """
        return weighted_quantile(slopes / self.constants, np.abs(self.normal), float(self.normal[self.normal > 0.0].sum()))

    def operator(self, v: Floats) -> Floats:
        """The same on the regularised weights: on the balanced set the last one of w(m) is zero."""
        v = v.copy()
        v[-1] = 0.0
        out = super().operator(v)
        out[-1] = 0.0
        return out


def weighted_quantile(values: Floats, masses: Floats, least: float) -> float:
    """The smallest of the values such that those up to it have at least this mass; O(n), by halving around medians.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0]), 1.5)
    2.0
    """
    while len(values) > 1:
        middle = (len(values) - 1) // 2
        order = np.argpartition(values, middle)
        low, high = order[: middle + 1], order[middle + 1 :]
        below = float(masses[low].sum())
        kept = low if below >= least else high
        least = least if below >= least else least - below
        values, masses = values[kept], masses[kept]
    return float(values[0])


class Hulls:
    """Of any task with an oracle: points are part counts in the convex hulls of the outputs."""

    def __init__(self, problem: Problem) -> None:
        self.task, self.p, self.lam = cast(Task, problem.task), problem.p, problem.lam
        self.inference, self.shapes = self.task.inference, self.task.shapes
        self.margin = cast(MarginRescaling, problem.surrogate).loss_weight
        self.places = ends_of(self.inference.sizes)
        check_fits(8 * int(self.places[-1]), f"{self.places[-1]:,} part counts, one for each part of each sample,")
        self.costs = self.margin * np.concatenate([self.task.costs(i)[1] for i in range(len(self.task))])
        parts = np.concatenate([own + first for own, first in zip(self.task.parts, self.places.tolist(), strict=False)])
        self.truth = np.bincount(parts, minlength=int(self.places[-1])).astype(np.float64)

    @cached_property
    def shares(self) -> Floats:
        """p_i of each entry of a point."""
        return np.repeat(self.p, np.diff(self.offsets))

    @cached_property
    def offsets(self) -> Integers:
        """The entries of sample i are offsets[i]:offsets[i+1] in a point."""
        return self.places

    def counts(self, point: Floats) -> Floats:
        """The part counts of a point."""
        return point

    def lifted(self, slopes: Floats) -> Floats:
        """The slopes for a point's entries: the adjoint of `counts`."""
        return slopes

    def centre(self) -> Floats:
        """The point next to the origin, without forbidden parts."""
        size, fixed = int(self.offsets[-1]), self.slopes(np.zeros(self.task.dim)) - self.costs
        return self.project(np.zeros(size), fixed, 1.0, NONE)[0]

    def slopes(self, w: Floats) -> Floats:
        """Scores, fixed ones included, and costs."""
        out = self.costs.copy()
        for first, last, places in self.inference.blocks(0, len(self.task)):
            out[self.places[first] : self.places[last]] += self.inference.score_block(w, 1.0, first, last, places)
        return out

    def weights(self, point: Floats) -> Floats:
        """As of `Boxes`."""
        return self.task.features.total(self.truth - self.counts(point), self.places, self.p / self.lam)

    def loss(self, point: Floats) -> float:
        """As of `Boxes`."""
        return self.pairing(self.costs, point)

    def pairing(self, slopes: Floats, point: Floats) -> float:
        """As of `Boxes`."""
        return dot(self.p, np.add.reduceat(slopes * (self.counts(point) - self.truth), self.places[:-1]))

    def square(self, change: Floats) -> float:
        """As of `Boxes`."""
        return dot(self.shares * change, change)

    def _moved(self, base: Floats, slopes: Floats, step: float) -> Floats:
        """base + step * slopes, for the entries of a point; what is forbidden stays so, whatever the step."""
        lifted = self.lifted(slopes)
        point = np.where(lifted <= 0.5 * FORBIDDEN, FORBIDDEN, base + step * lifted)
        if not np.abs(point).max(initial=0.0) <= _LARGEST:
            raise ConvergenceError("dual points are out of all range: features or weights are too large, or not numbers")
        return point

    def project(self, base: Floats, slopes: Floats, step: float, start: Floats) -> tuple[Floats, Floats]:
        """By the oracle's `project`, a block of samples at a time; by active sets and its argmax where it has none.

        An argmax that misses the maximum gives another point of the hull, whose dual value is a bound all the same.
        """
        point = self._moved(base, slopes, step)
        if "project" not in capabilities(self.task.oracle):
            return nearest_in_hulls(self.task.oracle, point, self.places, self.shapes, n_jobs=1).mu, NONE

        def of_block(first: int, last: int, places: Integers) -> Floats:
            own = point[self.places[first] : self.places[last]]
            return project_batch(self.task.oracle, own, places, self.shapes[first:last])

        return np.concatenate([*self.inference.in_blocks(of_block, 0, len(self.task), 1), NONE]), NONE

    def finished(self, w: Floats, slopes: Floats) -> tuple[Floats, float]:
        """By the oracle's `argmax`, or the bounds that it gives."""
        total = -dot(self.p, np.add.reduceat(slopes * self.truth, self.places[:-1]))
        if self.inference.bounded:
            blocks = zip(pairwise(self.places.tolist()), range(len(self.task)), strict=True)
            most = [cast(float, self.inference.best(slopes[a:b], i)[1]) for (a, b), i in blocks]
            return w, total + dot(self.p, np.array(most))
        for first, last, places in self.inference.blocks(0, len(self.task)):
            own = slopes[self.places[first] : self.places[last]]
            labels, ends, _ = self.inference.best_of_block(own, first, last, places)
            parts, part_ends = parts_batch(self.task.oracle, labels, ends, self.shapes[first:last], first)
            owners = np.repeat(np.arange(last - first), np.diff(part_ends))
            total += dot(self.p[first:last], np.bincount(owners, own[parts + places[owners]], last - first))
        return w, total

    def operator(self, v: Floats) -> Floats:
        """sum_i p_i Psi_i' A A' Psi_i v, with A = `counts`."""
        change = self.slopes(v) - self.slopes(np.zeros_like(v))
        return self.task.features.total(self.counts(self.lifted(change)), self.places, self.p)


class CliqueMarginals(Hulls):
    """Points are marginals of cliques, of which the part counts are sums: mu = A x."""

    @cached_property
    def sums(self) -> Any:
        """A, all samples on the diagonal, transposed."""
        from scipy import sparse

        known = {shape: cast(Any, self.task.oracle).clique_parts(shape) for shape in set(self.shapes)}
        ends = np.concatenate([np.diff(known[shape][0]) for shape in self.shapes])
        parts = np.concatenate([known[shape][1] + a for shape, a in zip(self.shapes, self.places.tolist(), strict=False)])
        check_fits(12 * len(parts), f"{len(ends):,} clique marginals")
        return sparse.csr_array((np.ones(len(parts)), parts, ends_of(ends)), shape=(len(ends), int(self.places[-1])))

    @cached_property
    def offsets(self) -> Integers:
        """The clique marginals of sample i are offsets[i]:offsets[i+1]."""
        known = {shape: len(cast(Any, self.task.oracle).clique_parts(shape)[0]) - 1 for shape in set(self.shapes)}
        return ends_of(np.array([known[shape] for shape in self.shapes], dtype=np.int64))

    def counts(self, point: Floats) -> Floats:
        """A x."""
        return np.asarray(self.sums.T @ point, dtype=np.float64)

    def lifted(self, slopes: Floats) -> Floats:
        """A' s."""
        return np.asarray(self.sums @ slopes, dtype=np.float64)

    def project(self, base: Floats, slopes: Floats, step: float, start: Floats) -> tuple[Floats, Floats]:
        """By the oracle's `project_cliques`; `start` are its multipliers."""
        oracle, point = cast(Any, self.task.oracle), self._moved(base, slopes, step)
        warm = start if len(start) else None
        return oracle.project_cliques(point, self.offsets, self.shapes, warm, self.task.n_jobs)


DualSet = Boxes | Hulls


@once_per_problem
def dual_set(problem: Problem) -> DualSet:
    """The one that fits the task."""
    if offers(problem.task, "signed_rows"):
        return Boxes(problem)
    return (CliqueMarginals if "project_cliques" in capabilities(cast(Task, problem.task).oracle) else Hulls)(problem)


#: the one of a free intercept
balanced_set = once_per_problem(BalancedBoxes)
