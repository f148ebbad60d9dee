"""Cutting planes for maxima of linear functions: n-slack (Tsochantaridis et al. 2005, alg. 1; Joachims, Finley & Yu 2009,
alg. 2), where every sample has its own planes, and 1-slack (Joachims et al. 2009, alg. 3), where a plane is the mean over all.

One pass asks the oracle once for every sample, at fixed weights, and then solves the master problem. The sweep itself gives the
objective at those weights; the best weights so far are returned, and the master's dual value is the lower bound.
"""

from typing import Annotated, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from structpred.core.sparse import SparseVector
from structpred.core.steps import Step
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.trainers.arena import Arena
from structpred.trainers.master_qp import Master
from structpred.trainers.problem import Problem, squared_norm
from structpred.trainers.states import Values

Floats = npt.NDArray[np.float64]


class CuttingPlaneState(NamedTuple):
    """master: the planes, and w = its solution in the task's type. best, values: the best weights so far, and float64 [their
    objective (inf: none), the largest dual value, the sum of p_i H_i of the present sweep, samples in it]. found, found_offsets:
    the planes of the present sweep (n-slack: one block a sample; NaN: none). mean: the sum over samples so far (1-slack). slacks:
    what the planes so far say of p_i H_i at w (n-slack).
    """

    master: Master
    w: Vector
    best: Vector
    values: Annotated[Floats, Values(-np.inf, np.inf)]
    found: Arena
    found_offsets: Annotated[Floats, Values(nan=True)]
    mean: Floats
    slacks: Floats


class _CuttingPlane:
    """What both have in common: the sweep, the master problem, the best weights."""

    requires: tuple[str | tuple[str, ...], ...] = ("argmax",)
    one_block: bool

    def __init__(self, *, precision: float = 1e-6, max_idle: int = 20) -> None:
        if not (np.isfinite(precision) and precision >= 0) or max_idle < 1:
            raise ParameterError(f"precision must be >= 0 and max_idle >= 1, got {precision} and {max_idle}")
        self.precision, self.max_idle = precision, max_idle

    def init_state(self, problem: Problem) -> CuttingPlaneState:
        """No planes, w = 0."""
        if not problem.surrogate.piecewise_linear:
            raise ParameterError(
                f"cutting planes need a maximum of linear functions; {type(problem.surrogate).__name__} is not one"
            )
        n, dim = len(problem.task), problem.task.dim
        w = np.zeros(dim, problem.task.dtype)
        blocks = 0 if self.one_block else n
        return CuttingPlaneState(
            Master.empty(1 if self.one_block else n), w, w.copy(), np.array([np.inf, -np.inf, 0.0, 0.0]), Arena.empty(blocks),
            np.full(blocks, np.nan), np.zeros(dim + 1 if self.one_block else 0), np.zeros(blocks),
        )  # fmt: skip

    def order(self, problem: Problem, state: CuttingPlaneState, rng: np.random.Generator, n_pass: int) -> npt.NDArray[np.int64]:
        """Every sample once, then the master problem (item -1)."""
        return np.append(np.arange(len(problem.task)), -1).astype(np.int64)

    def update(self, problem: Problem, state: CuttingPlaneState, item: int) -> tuple[CuttingPlaneState, bool]:
        """The plane of one sample at the present weights; or, after the last one, new weights."""
        if item < 0:
            return self._solve(problem, state)
        step, share = self._step(problem, state, item), float(problem.p[item])
        psi = step.difference
        state.values[2] += share * max(step.bound, 0.0)
        state.values[3] += 1.0
        if not step.violation > 0.0:
            return state, False
        offset = share * problem.surrogate.offset(step)
        if self.one_block:
            state.mean[psi.indices] += share * psi.values
            state.mean[-1] += offset
            return state, False
        state.found_offsets[item] = offset
        found = state.found.store(item, psi.indices.copy(), share * psi.values)
        return state if found is state.found else state._replace(found=found), False

    def _step(self, problem: Problem, state: CuttingPlaneState, item: int) -> Step:
        """A plane of the sample; a surrogate that can search above a threshold need not look at what would cut nothing off."""
        search = getattr(problem.surrogate, "term_above", None)
        share = float(problem.p[item])
        if self.one_block or search is None or share == 0.0:
            return problem.surrogate.term(problem.task, state.w, item)
        found: Step = search(problem.task, state.w, item, float(state.slacks[item]) / share + self.precision)
        return found

    def _new_planes(self, problem: Problem, state: CuttingPlaneState) -> tuple[list[tuple[int, SparseVector, float]], float]:
        """Those that cut off the present weights by more than the precision, and by how much the deepest one does."""
        w = state.w.astype(np.float64)
        if self.one_block:
            at = np.flatnonzero(state.mean[:-1])
            candidates = [(0, SparseVector(at, state.mean[at]), float(state.mean[-1]))]
        else:
            listed = np.flatnonzero(~np.isnan(state.found_offsets)).tolist()
            candidates = [(i, copied(*state.found.block(i)), float(state.found_offsets[i])) for i in listed]
        slacks = state.master.slacks(problem.lam)
        share = 1.0 if self.one_block else 1.0 / len(problem.task)
        cuts = [b - float(w[a.indices] @ a.values) - slacks[j] for j, a, b in candidates]
        planes = [plane for plane, cut in zip(candidates, cuts, strict=True) if cut > self.precision * share]
        return planes, max(cuts, default=0.0)

    def _solve(self, problem: Problem, state: CuttingPlaneState) -> tuple[CuttingPlaneState, bool]:
        primal = 0.5 * problem.lam * squared_norm(state.w) + float(state.values[2])
        whole = state.values[3] == len(problem.task)
        better = whole and primal < state.values[0]
        best = state.w.copy() if better else state.best
        planes, deepest = self._new_planes(problem, state)
        share = 1.0 if self.one_block else 1.0 / len(problem.task)
        # early on a rough solution does: any feasible alpha is a bound, and the next planes change the problem anyway
        tolerance = max(0.1 * self.precision * share, 0.02 * deepest)
        master = state.master.add(planes, problem.task.dim).solve(problem.lam, tolerance)
        values = np.array(
            [primal if better else state.values[0], max(float(state.values[1]), master.dual(problem.lam)), 0.0, 0.0]
        )
        w = cast(Vector, master.weights(problem.lam, problem.task.dim).astype(problem.task.dtype))
        blocks = len(state.found_offsets)
        fresh = state._replace(
            master=master.pruned(self.max_idle), w=w, best=best, values=values, found=Arena.empty(blocks),
            found_offsets=np.full(blocks, np.nan), mean=np.zeros_like(state.mean),
            slacks=state.slacks if self.one_block else master.slacks(problem.lam),
        )  # fmt: skip
        return fresh, not np.array_equal(w, state.w)

    def weights(self, problem: Problem, state: CuttingPlaneState) -> Vector:
        """The best weights whose objective is known; before the first sweep ends, zero."""
        return state.best.copy()

    def objective(self, problem: Problem, state: CuttingPlaneState) -> tuple[float, float]:
        """The objective at the weights to return, known from the sweep, and the master's dual value."""
        if not np.isfinite(state.values[0]):
            return problem.primal(state.best), 0.0  # the zero plane alone: w = 0 costs nothing, and no H_i is negative
        return float(state.values[0]), float(max(state.values[1], 0.0))

    def gap_estimate(self, problem: Problem, state: CuttingPlaneState) -> float:
        """The gap itself: it is free."""
        return float(state.values[0] - max(state.values[1], 0.0))


class NSlackCuttingPlane(_CuttingPlane):
    """Planes of each sample by itself: few passes, many planes. For dear oracles and up to some thousands of samples.

    precision: a plane is added if it cuts off more than this (in units of one sample's H_i). max_idle: planes without weight in
    so many solutions of the master problem are dropped.
    """

    one_block = False


class OneSlackCuttingPlane(_CuttingPlane):
    """One plane a pass, the mean over all samples: more passes, few planes, for any number of samples.

    precision, max_idle: as for NSlackCuttingPlane, in units of the mean of the H_i.
    """

    one_block = True


def copied(idx: npt.NDArray[np.int64], val: Floats) -> SparseVector:
    """A sparse vector of its own from views of an arena."""
    return SparseVector(idx.copy(), val.copy())
