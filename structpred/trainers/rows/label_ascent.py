"""Dual block ascent for one label out of many: the parts of SDCA for tasks over LabelRows.

`LabelAscent` (Keerthi et al. 2008): the dual of  min_W lam/2 |W|^2 + sum_i p_i max_l (cost_il + <w_l - w_{y_i}, x_i>)  is

    max_mu  sum_i p_i <costs_i, mu_i> - lam/2 |W|^2,   W = sum_i p_i/lam x_i (e_{y_i} - mu_i)',   mu_i in the simplex,

and one step maximises it over one mu_i: a projection onto the simplex.

`ColumnAscent`, for any loss of the scores and any regulariser that has a dual map: the dual of
min_W lam r(W) + sum_i p_i phi(x_i W; y_i)  is

    max_A  - sum_i p_i phi*(-alpha_i) - lam r*(U),   U = sum_i p_i/lam x_i alpha_i',

and W is the gradient of r* at U. A step maximises the lower bound with the curvature s |x_i|^2 p_i/lam over one column alpha_i,
s the largest scale of the map. With r infinite where a weight has the wrong sign it is the sign-constrained SDCA for many classes
of Kato, Kobayashi and Sano (2018), algorithm 4, with the curvature of their equation 30 repaired.
"""

from abc import ABC, abstractmethod
from copy import copy
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.products import dot
from structpred.core.regulariser import pieces_of
from structpred.core.types import Floats, Integers, Integers32
from structpred.errors import ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.scalar.classes import MaxHinge
from structpred.rows.multiclass_loss import MulticlassLoss
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.task.task import Task
from structpred.trainers.problem import Problem
from structpred.trainers.states import Values

_kernels = later("structpred.trainers.rows._label_ascent_kernels")

#: non-zeros that one compiled call may read: a tenth of a second, so that Ctrl-C is heard
CALL = 20_000_000
#: as many free dual variables are always few
_FEW = 64
#: what linear systems may multiply after a pass, in units of what the pass did, and what each pass without one adds for the next
_SHARE, _SAVED = 12, 2
#: passes after which the u of columns is summed up anew
_DRIFT = 50


class LabelState(NamedTuple):
    """w: the flat table (features, labels). mu: (n, labels). labels: a permutation of the labels for each row, of which the first
    `sizes` are updated. active: a permutation of the rows. counts, limits: as for SDCAState; the last count is what passes saved
    for a linear system.
    """

    w: Floats
    mu: Annotated[Floats, Values(0.0, 2.0)]
    labels: Annotated[Integers32, Values(0)]
    sizes: Annotated[Integers, Values(0)]
    active: Annotated[Integers, Values(0)]
    counts: Annotated[Integers, Values(0)]
    limits: Annotated[Floats, Values(-np.inf, np.inf)]

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        n_labels = self.mu.shape[1]
        if not (np.sort(self.labels, axis=1) == np.arange(n_labels)).all() or self.sizes.max() > n_labels:
            return "labels: expected a permutation of the labels in each row"
        return bad_places(self.active, self.counts)


def bad_places(active: Integers, counts: Integers) -> str | None:
    """What is wrong with a saved order of the rows, or with the places in it; None where nothing is."""
    n = len(active)
    if not np.array_equal(np.sort(active), np.arange(n)):
        return "active: expected a permutation of the rows"
    return None if counts[:2].max() <= n and counts[2] <= 2 else f"counts: expected at most {n} rows and 3 phases"


class OverLabels:
    """What the steps of one problem over one label a row know of it. ParameterError where the task is of another kind."""

    def __init__(self, problem: Problem) -> None:
        task, self.features = label_rows(problem)
        self.rows = self.features.rows.indptr, self.features.rows.indices, self.features.rows.values
        self.truths, self.upper = np.concatenate(task.labels), problem.p / problem.lam
        self.shape = len(task), int(self.features.n_labels)

    def work(self) -> int:
        """The products of a sweep over all rows and labels, and one, so that the sweep is closed."""
        return (len(self.rows[1]) + 8 * self.shape[0]) * self.shape[1] + 1


class LabelAscent(OverLabels):
    """The steps of one problem. ParameterError where the samples do not share one table of costs."""

    #: passes over the active rows and labels alone: longer, and they are solved to the end where they are the wrong ones
    patience = 4

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.p, self.lam, self.regulariser, self.dim = problem.p, problem.lam, problem.regulariser, problem.task.dim
        self.costs, self.squares = label_costs(problem), self.features.squared_norms()

    def init_state(self) -> LabelState:
        """Every block at the truth: W = 0."""
        n, n_labels = self.shape
        check_fits(12 * n * n_labels, f"{n * n_labels:,} dual variables, one for each label of each sample,")
        mu = np.zeros(self.shape)
        mu[np.arange(n), self.truths] = 1.0
        labels = np.tile(np.arange(n_labels, dtype=np.int32), (n, 1))
        limits = np.array([np.inf, -np.inf, -np.inf, np.inf, max(float(self.costs.max()), 1e-300), 0.0, np.inf])
        w = np.zeros(self.dim)
        return LabelState(w, mu, labels, np.full(n, n_labels), np.arange(n), np.array([n, 0, 0, 0, 0]), limits)

    def ascend(self, state: LabelState, seed: np.uint64, budget: int) -> int:
        """One compiled call."""
        table = state.w.reshape(-1, self.shape[1])
        return _kernels().ascend_labels(
            self.rows, self.truths, self.squares, self.upper, self.costs, table, state.mu, state.labels, state.sizes,
            state.active, state.counts, state.limits, seed, budget,
        )  # fmt: skip

    def solve_face(self, state: LabelState) -> bool:
        """Solve for the free dual variables, if there are few; whether the dual is at its maximum over them.

        The time is in proportion to that of the passes: a large system waits until many have been made.
        """
        from structpred.trainers.rows._label_faces_kernels import solve_face

        effort = min(self.work(), CALL)
        saved = int(state.counts[4]) + _SAVED * effort
        budget = max(min(saved + _SHARE * effort, 10 * CALL), _FEW**3)
        solved, left = solve_face(
            self.rows, self.truths, self.squares, self.upper, self.costs, state.w.reshape(-1, self.shape[1]), state.mu,
            state.labels, state.sizes, int(np.cbrt(budget)), budget,
        )  # fmt: skip
        state.counts[4] = min(saved, 10 * CALL) if left == budget else 0
        if solved:  # what is left to gain is with the labels that were left out
            state.sizes[:] = self.shape[1]
            state.limits[2:6] = (-np.inf, np.inf, state.limits[4], 0.0)
        return bool(solved)

    def refresh(self, state: LabelState) -> None:
        """W stays as the steps made it."""

    def weights(self, state: LabelState) -> Floats:
        """W itself."""
        return state.w

    def objective(self, state: LabelState) -> tuple[float, float]:
        """Primal at the weights, and the dual value at mu, whose weights are computed anew."""
        n, n_labels = self.shape
        losses, points, own = np.empty(n), np.empty(n_labels), np.zeros(self.dim)
        _kernels().label_losses(
            self.rows, self.truths, self.costs, state.w.reshape(-1, n_labels), np.empty(n_labels, np.int64), points, losses
        )
        primal = self.lam * self.regulariser.value(state.w) + dot(self.p, np.maximum(losses, 0.0))
        picks = np.empty(n_labels, np.int64)
        total = _kernels().add_blocks(
            self.rows, self.truths, self.upper, self.costs, state.mu, picks, points, own.reshape(-1, n_labels)
        )
        return primal, self.regulariser.bound(self.lam * total, self.lam, pieces_of(own))


def label_rows(problem: Problem) -> tuple[Task, Any]:
    """The task and its features; ParameterError unless its outputs are one label for each row of LabelRows."""
    task = cast(Task, problem.task)
    features = cast(Any, task.features)
    grid = getattr(task.oracle, "label_grid", None)
    if grid is None or grid(task.shapes[0]) != (1, features.n_labels) or task.token_weights is not None:
        raise ParameterError("expected an oracle over one label for each row of LabelRows, without token weights")
    return task, features


def label_costs(problem: Problem) -> Floats:
    """The table of what labels cost, times the loss weight; ParameterError where the samples do not share one."""
    if (cost := cast(Task, problem.task).cost_grid) is None:
        raise ParameterError("expected one table of label costs for all samples: loss='hamming' or LabelCosts(matrix)")
    scale = cast(MarginRescaling, problem.surrogate).loss_weight
    return np.ascontiguousarray(scale * np.atleast_2d(np.asarray(cost.cost, dtype=np.float64)))


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
        return _kernels().ascend_columns(
            self.rows, self.truths, self.costs, self.loss.points, self.loss.k, self.steep, self.upper, self.table,
            state.w.reshape(-1, self.shape[1]), state.points, state.active, state.counts, state.limits, seed, budget,
        )  # fmt: skip

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
