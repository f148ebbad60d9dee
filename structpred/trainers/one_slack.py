"""1-slack cutting planes: a plane is the mean over all samples (Joachims, Finley & Yu 2009, algorithm 3).

And what n-slack (n_slack.py) shares with it: the sweep over the samples, the master problem, the best weights. One pass asks the
oracle once for every sample, at fixed weights, and then solves the master problem. The sweep itself gives the objective at those
weights; the best weights so far are returned, and the master's dual value is the lower bound.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.runtime.interrupts import may_be_abandoned
from structpred.runtime.lazy_names import later
from structpred.runtime.settings import checked_nonnegative, checked_whole
from structpred.task.steps import Step
from structpred.trainers.planes.bundles import BestSoFar
from structpred.trainers.planes.master_qp import MappedMaster, Master, dual_point, empty_master
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.states import COUNT, Values

_kernels = later("structpred.core._sparse_kernels")

Bound = Annotated[Floats, Values(-np.inf, np.inf)]


class Sweep(NamedTuple):
    """master: the planes. w: its solution, in the task's type. best: the best weights so far.

    primal: the objective of `best` (inf: none). dual: the largest dual value. hinge: the sum of p_i H_i(w) over the samples
    that the present sweep has seen. visited: how many they are. These four are single numbers.
    """

    master: Master | MappedMaster
    w: Vector
    best: Vector
    primal: Bound
    dual: Bound
    hinge: Floats
    visited: Annotated[npt.NDArray[np.int64], COUNT]

    @staticmethod
    def start(problem: Problem, n_blocks: int) -> "Sweep":
        """No planes, w = 0; zero is a lower bound: the zero plane alone says so, as no H_i is negative."""
        w = np.zeros(problem.task.dim, problem.task.dtype)
        numbers = np.array(np.inf), np.array(0.0), np.array(0.0), np.array(0)
        return Sweep(empty_master(problem, n_blocks), w, w.copy(), *numbers)

    def add(self, step: Step, share: float) -> None:
        """Add what one sample says about the objective at w."""
        self.hinge.fill(self.hinge.item() + share * max(step.bound, 0.0))
        self.visited.fill(self.visited.item() + 1)

    def with_planes(
        self, problem: Problem, planes: Sequence[tuple[int, SparseVector, float]], precision: float, share: float = 1.0
    ) -> "Sweep":
        """The next sweep, at the solution of the master problem with the planes that cut off w by more than precision * share."""
        w = self.w.astype(np.float64)
        slacks = self.master.slacks(problem.lam)
        cuts = [b - float(w[a.indices] @ a.values) - slacks[j] for j, a, b in planes]
        new = [plane for plane, cut in zip(planes, cuts, strict=True) if cut > precision * share]
        # early on a rough solution does: any feasible alpha is a bound, and the next planes change the problem anyway
        tolerance = max(0.1 * precision * share, 0.02 * max(cuts, default=0.0))
        with may_be_abandoned():
            master = self.master.add(new, problem.task.dim).solve(problem.lam, tolerance)
        best, primal = self.best, float(self.primal)
        reached = problem.lam * problem.regulariser.value(self.w) + float(self.hinge)
        if self.visited == len(problem.task) and reached < primal:  # the sweep was whole
            best, primal = self.w.copy(), reached
        dual = max(float(self.dual), master.dual(problem.lam))
        solution = cast(Vector, master.weights(problem.lam, problem.task.dim).astype(problem.task.dtype))
        return Sweep(master, solution, best, np.array(primal), np.array(dual), np.array(0.0), np.array(0))

    def pruned(self, max_idle: int) -> "Sweep":
        """Without the planes that had no weight in the last `max_idle` solutions."""
        return self._replace(master=self.master.pruned(max_idle))


class CuttingPlanes(BestSoFar, Trainer):
    """The parent of both: settings, the order of a pass, and what is known after it."""

    regulariser_requires = (("squared_norm", "dual_map"),)
    certified = True
    asks = "sums"

    def __init__(self, *, precision: float = 1e-6, max_idle: int = 20) -> None:
        self.precision, self.max_idle = checked_nonnegative(precision, "precision"), checked_whole(max_idle, "max_idle")

    def order(self, problem: Problem, state: Any, rng: np.random.Generator, n_pass: int) -> npt.NDArray[np.int64]:
        """Every sample once, then the master problem (item -1)."""
        return np.append(np.arange(len(problem.task)), -1).astype(np.int64)

    def report(self, problem: Problem, state: Any) -> dict[str, Floats]:
        """dual_point: u, where w is not linear in it."""
        return dual_point(problem, state.sweep.master)


class OneSlackState(NamedTuple):
    """mean, offset: slope and constant of the plane of the present sweep, summed up over the samples so far."""

    sweep: Sweep
    mean: Floats
    offset: Floats


class OneSlackCuttingPlane(CuttingPlanes):
    """One cutting plane per pass, the mean over all samples: more passes, few planes, for any number of samples.

    Parameters
    ----------
    precision : float
        A plane is added if it cuts off more than this, in units of the mean of the H_i.
    max_idle : int
        Planes without weight in this number of solutions of the master problem are dropped.

    Raises
    ------
    ParameterError
        For precision < 0 or max_idle < 1.

    References
    ----------
    Joachims, Finley and Yu (2009), algorithm 3.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=OneSlackCuttingPlane(), tol=0.01).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    name = "one_slack"
    least_passes = 200

    def init_state(self, problem: Problem) -> OneSlackState:
        """Line 2: no planes, w = 0."""
        return OneSlackState(Sweep.start(problem, 1), np.zeros(problem.task.dim), np.array(0.0))

    def update(self, problem: Problem, state: OneSlackState, item: int) -> tuple[OneSlackState, bool]:
        """Line 6 for one sample, what it adds to the plane; lines 8 and 4 after the last one."""
        if item < 0:  # line 8, the plane joins the others, and line 4, the optimum over them
            at = np.flatnonzero(state.mean)
            plane = (0, SparseVector(at, state.mean[at]), float(state.offset))
            sweep = state.sweep.with_planes(problem, [plane], self.precision)
            changed = not np.array_equal(sweep.w, state.sweep.w)
            return OneSlackState(sweep.pruned(self.max_idle), np.zeros_like(state.mean), np.array(0.0)), changed
        step, share = problem.surrogate.term(problem.task, state.sweep.w, item), float(problem.p[item])
        state.sweep.add(step, share)
        if step.violation > 0.0:
            _kernels().add_into(state.mean, step.difference.indices, step.difference.values, share)
            state.offset.fill(state.offset.item() + share * problem.surrogate.offset(step))
        return state, False
