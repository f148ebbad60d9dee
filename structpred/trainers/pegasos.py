"""Pegasos with signs: projected subgradient steps over mini-batches (Kato, Kobayashi and Sano 2018, algorithms 1 and 3).

Minimises  lam/2 |w|^2 + sum_i p_i H_i(w)  over the w whose entries have given signs, for losses of one score and of one label out
of many. Step t takes a random set A of k samples, and then

    w <- (1 - 1/t) w - 1/(lam t) 1/k sum_{i in A} n p_i grad H_i(w),
    w <- the nearest point with the right signs,      w <- min(1, sqrt(r / lam) / |w|) w,      r = sum_i p_i H_i(0).

The optimum has lam |w|^2 <= r where no H_i is negative, so the ball holds it. Repaired: line 5 lacks 1/k and has w_{t-1} for w_t,
line 8 of algorithm 3 lacks the square root. Without signs it is Pegasos (Shalev-Shwartz, Singer, Srebro and Cotter 2011).
"""

from copy import copy
from functools import cached_property
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.products import dot
from structpred.core.regulariser import DualMap, Regulariser
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.rows.linear_task import RowTask
from structpred.rows.multiclass_loss import MulticlassLoss
from structpred.rows.scalar_loss import ScalarLoss
from structpred.runtime.settings import checked_whole
from structpred.task.steps import offers
from structpred.trainers.problem import Problem, Trainer, once_per_problem
from structpred.trainers.rows.label_ascent import CALL, label_loss, label_rows
from structpred.trainers.states import COUNT, Values

AVERAGES = ("suffix", "full", "last")


class PegasosState(NamedTuple):
    """v: the weights without their scale, flat. u, before: what the average is made of, empty without one: scales v - u is the
    sum of the iterates of the present block, `before` that of the block before. numbers: the scale, |v|^2, the sum of the scales
    of the block and how many iterates it has, and how many the block before has. steps: t, a single number. places: a permutation
    of the rows.
    """

    v: Floats
    u: Floats
    before: Floats
    numbers: Annotated[Floats, Values(0.0)]
    steps: Annotated[Integers, COUNT]
    places: Annotated[Integers, Values(0)]

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        if not np.array_equal(np.sort(self.places), np.arange(len(self.places))):
            return "places: expected a permutation of the rows"
        return None if 1e-9 <= self.numbers[0] <= 1.0 else f"numbers: expected a scale from 1e-9 to 1, got {self.numbers[0]}"


class Pegasos(Trainer):
    """Stochastic projected subgradient descent for linear models: no gap, but near the optimum after few passes over much data.

    For the tasks of `sdca`, with any loss of one score, also one without a `dual_table`, and any loss of one label out of many.
    The regulariser is 1/2 |w|^2 with or without signs of the weights. A step costs what its rows touch.

    Parameters
    ----------
    batch : int
        k, the rows of a step, from 1 to their number. A pass has n / k steps, rounded up, each on a random set of its own.
    average : str
        What is returned. "suffix": the mean of the last third to two thirds of the iterates, from a power of two of steps on.
        "full": the mean of all, as printed, early ones of size 1/lam included. "last": the last.

    Raises
    ------
    ParameterError
        For another average, or a batch that is no such number.

    References
    ----------
    Shalev-Shwartz, Singer, Srebro and Cotter (2011), Pegasos; Kato, Kobayashi and Sano (2018), Sign-constrained regularized loss
    minimization; Rakhlin, Shamir and Sridharan (2012) for the suffix average.

    Examples
    --------
    >>> from structpred.rows.linear_task import LinearTask
    >>> from structpred.trainers.loop import RunSettings, train
    >>> task = LinearTask([[2.0], [1.0], [-1.0]], [1, 1, -1])
    >>> result = train(Problem(task, MarginRescaling(), 0.1), Pegasos(batch=3), RunSettings(max_iter=2000))
    >>> result.weights.round(2).tolist()
    [1.0]
    """

    name = "pegasos"
    requires = (("rows", "label_rows"),)
    regulariser_requires = ("dual_map",)
    kinds = (MarginRescaling, ScalarLoss, MulticlassLoss)

    def __init__(self, *, batch: int = 1, average: str = "suffix") -> None:
        if average not in AVERAGES:
            raise ParameterError(f"average: expected one of {', '.join(AVERAGES)}, got {average!r}")
        self.batch, self.average = checked_whole(batch, "batch"), average

    @classmethod
    def fits(cls, regulariser: Regulariser) -> bool:
        """Whether it is 1/2 |w|^2 with or without signs: the next iterate is then a scale, a sum and a projection."""
        found = regulariser.dual_map()  # type: ignore[attr-defined]
        if regulariser.adapts or not isinstance(found, DualMap):
            return False
        signs = np.isin(found.low, (0.0, -np.inf)) & np.isin(found.high, (0.0, np.inf))
        return bool((signs & np.isin(found.scale, (0.0, 1.0))).all())

    def init_state(self, problem: Problem) -> PegasosState:
        """Line 2: w = 0."""
        n, dim = len(problem.task), problem.task.dim
        if self.batch > n:
            raise ParameterError(f"batch: expected at most the number of samples, {n}, got {self.batch}")
        kept = dim if self.average != "last" else 0
        numbers = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
        before = np.zeros(dim if self.average == "suffix" else 0)
        return PegasosState(np.zeros(dim), np.zeros(kept), before, numbers, np.array(0), np.arange(n))

    def order(self, problem: Problem, state: Any, rng: np.random.Generator, n_pass: int) -> Integers:
        """A random number for each compiled call of the pass."""
        steps, at_once = self._steps(problem)
        return rng.integers(0, len(problem.task), -(-steps // at_once))

    def update(self, problem: Problem, state: PegasosState, item: int) -> tuple[PegasosState, bool]:
        """One compiled call, or as many steps with a loss that is not compiled."""
        steps, at_once = self._steps(problem)
        done = state.steps.item()
        number = min(at_once, steps - done % steps)
        seed = np.uint64(((item + 1) * 0x9E3779B97F4A7C15 + (done + 1) * 0xBF58476D1CE4E5B9) % 2**64 | 1)
        touched = _rows(problem).advance(self, state, number, seed)
        state.steps.fill(done + number)
        return state, touched > 0

    def finish_pass(self, problem: Problem, state: PegasosState) -> PegasosState:
        """|v|^2 anew: what rounding added to it is gone."""
        state.numbers[1] = dot(state.v, state.v)
        return state

    def weights(self, problem: Problem, state: PegasosState) -> Vector:
        """The iterate or the average asked for; rounding cannot give the average a wrong sign."""
        scale, _, scales, mass, mass_before = state.numbers.tolist()
        if not len(state.u) or mass + mass_before == 0.0:
            return cast(Vector, (scale * state.v).astype(problem.task.dtype))
        total = scales * state.v - state.u
        if mass < mass_before:  # too few iterates in this block
            total, mass = total + state.before, mass + mass_before
        mean, (least, most) = total / mass, _rows(problem).bounds
        return cast(Vector, (np.clip(mean, least, most) if len(least) else mean).astype(problem.task.dtype))

    def objective(self, problem: Problem, state: PegasosState) -> tuple[float, None]:
        """Primal at the weights to return."""
        return problem.primal(self.weights(problem, state)), None

    def _steps(self, problem: Problem) -> tuple[int, int]:
        """The steps of a pass, and those of one compiled call."""
        n = len(problem.task)
        return -(-n // self.batch), max(1, n * CALL // (_rows(problem).work * self.batch))


class _Rows:
    """What the steps of one problem read: rows, the loss as arrays, bounds of the weights, the ball."""

    def __init__(self, problem: Problem) -> None:
        from structpred.trainers.rows._pegasos_kernels import SCALAR

        self.problem, n = copy(problem), len(problem.task)  # it keeps these rows: a cycle would keep its data in memory
        self.shares = problem.p * n
        self.loss: tuple[Any, ...] | None  # None: one without the table of a conjugate
        if offers(problem.task, "rows"):
            task = cast(RowTask, problem.task)
            self.rows, self.n_labels, self.loss = (task.indptr, task.indices, task.values), 1, None
            if hasattr(problem.surrogate, "dual_table"):
                duals = np.ascontiguousarray(np.stack(list(problem.surrogate.dual_table(task.targets)), axis=1))
                self.loss = SCALAR, 1, duals, np.empty(0, np.int64), np.empty((0, 0))
        else:
            many, features = label_rows(problem)
            data = features.rows
            self.rows, self.n_labels = (data.indptr, data.indices, data.values), int(features.n_labels)
            loss, costs = label_loss(problem)
            self.loss = (loss.points, loss.k, np.empty((0, 5)), np.concatenate(many.labels), costs)
        self.work = (len(self.rows[1]) + 8 * n) * self.n_labels
        scale, low, high = problem.dual_map.expanded(problem.task.dim)
        least = np.where((low == -np.inf) | (scale == 0.0), 0.0, -np.inf)
        most = np.where((high == np.inf) | (scale == 0.0), 0.0, np.inf)
        #: the least and the largest each weight may be, 0 or infinite; empty where all may be anything
        some = np.isfinite(least).any() or np.isfinite(most).any()
        self.bounds = (least, most) if some else (np.empty(0), np.empty(0))

    @cached_property
    def radius(self) -> float:
        """Of the ball that holds the optimum; inf where losses may be negative."""
        if getattr(self.problem.surrogate, "may_be_negative", False):
            return np.inf
        zero: Vector = np.zeros(self.problem.task.dim)
        return float(np.sqrt(max(self.problem.primal(zero), 0.0) / self.problem.lam))

    def advance(self, trainer: Pegasos, state: PegasosState, number: int, seed: np.uint64) -> int:
        """This many steps; returns how many weights were added to."""
        from structpred.trainers.rows import _pegasos_kernels as kernels

        m, lam, first, halves = self.n_labels, self.problem.lam, state.steps.item() + 1, trainer.average == "suffix"
        table, u, before = (x.reshape(-1, m) for x in (state.v, state.u, state.before))
        z = np.empty((trainer.batch, m))
        fixed = self.rows, self.shares, *self.bounds, self.radius, lam
        if self.loss is not None:
            return int(
                kernels.run(fixed, self.loss, first, number, halves, state.places, seed, z, table, u, before, state.numbers)
            )
        batch, touched = state.places[: trainer.batch], 0
        loss, targets = cast(ScalarLoss, self.problem.surrogate), cast(RowTask, self.problem.task).targets
        for t in range(first, first + number):
            seed = np.uint64(kernels.draw_batch(state.places, trainer.batch, seed))
            kernels.batch_scores(self.rows, batch, state.numbers[0], table, z)
            z[:, 0] = loss.derivative(z[:, 0], targets[batch])
            touched += kernels.apply_batch(fixed, t, batch, z, table, u, state.numbers)
            kernels.include(t, halves, table, u, before, state.numbers)
        return touched


_rows = once_per_problem(_Rows)
