"""Dual ascent for one label out of many with any loss of its scores and any regulariser that has a dual map: a part of SDCA.

The dual of  min_W lam r(W) + sum_i p_i phi(x_i W; y_i)  is

    max_A  - sum_i p_i phi*(-alpha_i) - lam r*(U),   U = sum_i p_i/lam x_i alpha_i',

and W is the gradient of r* at U. A step maximises the lower bound with the curvature s |x_i|^2 p_i/lam over one column alpha_i,
s the largest scale of the map. With r infinite where a weight has the wrong sign it is the sign-constrained SDCA for many classes
of Kato, Kobayashi and Sano (2018), algorithm 4, with the curvature of their equation 30 repaired.
"""

from abc import ABC, abstractmethod
from copy import copy
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.regulariser import pieces_of
from structpred.core.types import Floats, Integers
from structpred.objectives.scalar.classes import MaxHinge
from structpred.rows.multiclass_loss import MulticlassLoss
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.trainers.problem import Problem
from structpred.trainers.rows.label_ascent import OverLabels, bad_places, label_costs
from structpred.trainers.states import Values

_kernels = later("structpred.trainers.rows._column_ascent_kernels")

#: passes after which u is summed up anew
_DRIFT = 50


class ColumnState(NamedTuple):
    """w: the flat dual point u, which the regulariser maps to the weights. points: e_{y_i} - alpha_i of each row (n, labels).
    active: a permutation of the rows, the ones that are updated first. counts, limits: as for SDCAState; the last count is of the
    passes since w was summed up.
    """

    w: Floats
    points: Annotated[Floats, Values(0.0, 2.0)]
    active: Annotated[Integers, Values(0)]
    counts: Annotated[Integers, Values(0)]
    limits: Annotated[Floats, Values(-np.inf, np.inf)]

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        return bad_places(self.active, self.counts)


class MappedAscent(ABC):
    """What the steps over rows and over columns share: the dual point u, of which the regulariser's map makes the weights."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.lam = copy(problem), problem.lam  # it keeps these steps: a cycle would keep its data in memory
        scale, low, high = problem.dual_map.expanded(problem.task.dim)
        self.table = None if problem.dual_map.linear and bool((scale == 1.0).all()) else (scale, low, high)

    @abstractmethod
    def dual_point(self, state: Any) -> Floats:
        """u, summed up anew."""

    def solve_face(self, state: Any) -> bool:
        """Nothing is solved at once: steps are cheap."""
        return False

    def refresh(self, state: Any) -> None:
        """After `_DRIFT` passes u is summed up anew: what rounding added to it is gone."""
        state.counts[4] += 1
        if state.counts[4] >= _DRIFT:
            state.counts[4] = 0
            state.w[:] = self.dual_point(state)

    def weights(self, state: Any) -> Floats:
        """The regulariser's image of u: exactly in its domain."""
        return state.w.copy() if self.table is None else self.problem.dual_map.weights(state.w)


class ColumnAscent(OverLabels, MappedAscent):
    """The steps of one problem."""

    #: passes over the active rows alone
    patience = 4

    def __init__(self, problem: Problem) -> None:
        MappedAscent.__init__(self, problem)
        OverLabels.__init__(self, problem)
        self.loss, self.costs = label_loss(problem)
        steepest = 1.0 if self.table is None else float(self.table[0].max(initial=0.0))
        self.steep = steepest * self.upper * self.features.squared_norms()

    def init_state(self) -> ColumnState:
        """Every point at the truth, alpha = 0, or next to it."""
        n, n_labels = self.shape
        check_fits(8 * n * n_labels, f"{n * n_labels:,} dual variables, one for each label of each sample,")
        starts = np.array([self.loss.start(n_labels, y) for y in range(n_labels)])
        limits = np.array([-1.0, -np.inf, -np.inf, np.inf, np.inf, 0.0, np.inf])
        points, counts = starts[self.truths], np.array([n, 0, 0, 0, 0])
        return ColumnState(self._dual_point(points)[0], points, np.arange(n), counts, limits)

    def ascend(self, state: ColumnState, seed: np.uint64, budget: int) -> int:
        """One compiled call."""
        found: int = _kernels().ascend_columns(
            self.rows, self.truths, self.costs, self.loss.points, self.loss.k, self.steep, self.upper, self.table,
            state.w.reshape(-1, self.shape[1]), state.points, state.active, state.counts, state.limits, seed, budget,
        )  # fmt: skip
        return found

    def dual_point(self, state: ColumnState) -> Floats:
        """Of the points."""
        return self._dual_point(state.points)[0]

    def objective(self, state: ColumnState) -> tuple[float, float]:
        """Primal at the weights, and the dual value at the points, whose u is computed anew."""
        u, value = self._dual_point(state.points)
        bound = self.problem.regulariser.bound(self.lam * value, self.lam, pieces_of(u))
        return self.problem.primal(self.weights(state)), bound

    def _dual_point(self, points: Floats) -> tuple[Floats, float]:
        """u, and sum_i p_i/lam (-phi*_i)."""
        u = np.zeros(self.problem.task.dim)
        table: Any = u.reshape(-1, self.shape[1])
        return u, float(_kernels().add_columns(self.rows, self.truths, self.costs, self.loss.points, self.upper, points, table))


def label_loss(problem: Problem) -> tuple[MulticlassLoss, Floats]:
    """The loss of all scores, and what labels cost: the hinge is one of these, too."""
    if not hasattr(problem.surrogate, "points"):
        return cast(MulticlassLoss, MaxHinge()), label_costs(problem)
    loss = cast(MulticlassLoss, problem.surrogate)
    return loss, loss.label_costs
