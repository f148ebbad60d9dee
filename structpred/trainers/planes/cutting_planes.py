"""What n-slack (n_slack.py) and 1-slack (one_slack.py) share: the sweep over the samples, the master problem, the best weights.

One pass asks the oracle once for every sample, at fixed weights, and then solves the master problem. The sweep itself gives the
objective at those weights; the best weights so far are returned, and the master's dual value is the lower bound.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.sparse import SparseVector
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.runtime.interrupts import may_be_abandoned
from structpred.runtime.settings import checked_nonnegative, checked_whole
from structpred.task.steps import Step
from structpred.trainers.planes.bundles import BestSoFar
from structpred.trainers.planes.master_qp import MappedMaster, Master, dual_point, empty_master
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.states import COUNT, Values

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
    visited: Annotated[Integers, COUNT]

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

    def order(self, problem: Problem, state: Any, rng: np.random.Generator, n_pass: int) -> Integers:
        """Every sample once, then the master problem (item -1)."""
        return np.append(np.arange(len(problem.task)), -1).astype(np.int64)

    def report(self, problem: Problem, state: Any) -> dict[str, Floats]:
        """dual_point: u, where w is not linear in it."""
        return dual_point(problem, state.sweep.master)
