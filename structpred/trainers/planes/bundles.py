"""What BMRM (bmrm.py) and its line search (ls_bmrm.py) share: one bulk sweep a pass, the best weights, the certificate.

The objective is J(w) = lam r(w) + R(w), with the risk R(w) = sum_i p_i H_i(w). Pass t sweeps over all samples at w_{t-1}, which
gives J(w_{t-1}) and the plane  R(w) >= b_t - <w, a_t>,  a_t = sum_i p_i psi_i,  b_t = sum_i p_i offset_i. The model J_t has the
planes in place of R, and w_t minimises it (Saha, Zhang & Vishwanathan 2009, equation 3; there a_t has the other sign). The gap of
equation 4 is

    min over the iterates w of J(w)  -  max over the passes of J_t's dual value.

Any convex combination of planes is below R, so the dual value is a lower bound however roughly J_t was minimised; the value of
J_t itself, at weights that are not quite its minimiser, would not be one. The zero plane is there from the start: no H_i is
negative.
"""

from abc import abstractmethod
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.products import dot
from structpred.core.regulariser import DualMap
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.runtime.interrupts import may_be_abandoned
from structpred.task.steps import Terms
from structpred.trainers.problem import Problem, Surrogate, Trainer, is_convex, lacks_slack
from structpred.trainers.states import Values


class Plane(NamedTuple):
    """R(w) >= offset - <w, slope>; slope is dense."""

    slope: Floats
    offset: Floats


class Bundle(NamedTuple):
    """model: the planes, in the form that the trainer keeps. w: the model's minimiser, in the task's type.

    best: the iterate with the smallest objective, `primal` (inf: none yet). dual: the largest lower bound.
    """

    model: Any
    w: Vector
    best: Vector
    primal: Annotated[Floats, Values(-np.inf, np.inf)]
    dual: Annotated[Floats, Values(0)]


class BestSoFar:
    """What trainers share whose state, or the sweep in it, keeps the best weights so far, `best`, their objective, `primal` (inf:
    none yet), and the largest lower bound, `dual`. To be named before `Trainer` among the parents.
    """

    def weights(self, problem: Problem, state: Any) -> Vector:
        """The weights with the smallest objective that is known; before the first sweep ends, zero."""
        return getattr(state, "sweep", state).best.copy()

    def objective(self, problem: Problem, state: Any) -> tuple[float, float]:
        """The objective at the weights to return, known from their sweep, and the largest dual value."""
        kept = getattr(state, "sweep", state)
        return float(kept.primal) if np.isfinite(kept.primal) else problem.primal(kept.best), float(kept.dual)

    def gap_estimate(self, problem: Problem, state: Any) -> float:
        """The gap itself: it is free."""
        kept = getattr(state, "sweep", state)
        return float(kept.primal) - float(kept.dual)


class BundleMethod(BestSoFar, Trainer):
    """The parent of both: one pass is one sweep over all samples and one step of the model."""

    surrogates = (MarginRescaling, LogLoss)
    certified = True
    least_passes = 200
    bulk = True
    asks = "sums"

    @classmethod
    def minimises(cls, surrogate: Surrogate) -> bool:
        """Any that has bulk terms, is convex and never negative: a plane needs no more than a value and a subgradient."""
        unfit = getattr(surrogate, "may_be_negative", False) or lacks_slack(cls, surrogate)
        return hasattr(surrogate, "terms") and is_convex(surrogate) and not unfit

    @abstractmethod
    def empty(self, problem: Problem) -> Any:
        """The model without planes but the zero plane."""

    @abstractmethod
    def improved(self, problem: Problem, model: Any, plane: Plane) -> Any:
        """The model with one more plane, minimised."""

    @abstractmethod
    def solution(self, problem: Problem, model: Any) -> tuple[Floats, float]:
        """The model's minimiser and its dual value."""

    def init_state(self, problem: Problem) -> Bundle:
        """w_0 = 0; zero is a lower bound, since neither r nor an H_i is negative."""
        w = np.zeros(problem.task.dim, problem.task.dtype)
        return Bundle(self.empty(problem), w, w.copy(), np.array(np.inf), np.array(0.0))

    def update(self, problem: Problem, state: Bundle, item: int) -> tuple[Bundle, bool]:
        """The sweep at w_{t-1}, which gives J there and the plane t; then w_t."""
        with may_be_abandoned():
            plane, risk = sweep(problem, state.w)
            model = self.improved(problem, state.model, plane)
            found, value = self.solution(problem, model)
        primal = problem.lam * problem.regulariser.value(state.w) + risk
        best, least = (state.w, np.array(primal)) if primal < state.primal else (state.best, state.primal)
        w = cast(Vector, found.astype(problem.task.dtype, copy=False))
        dual = np.array(max(value, float(state.dual)))
        return Bundle(model, w, best, least, dual), not np.array_equal(w, state.w)


def sweep(problem: Problem, w: Vector) -> tuple[Plane, float]:
    """The plane at w, and R(w): an upper bound of it where the oracle gives bounds."""
    rows = np.arange(len(problem.task))
    terms: Terms = problem.surrogate.terms(problem.task, w, rows, problem.p)  # type: ignore[attr-defined]
    return Plane(terms.difference, np.array(terms.offset)), dot(problem.p, np.maximum(terms.bounds, 0.0))


def line_search(dual_map: DualMap, model: Plane, plane: Plane, lam: float) -> float:
    """The eta in [0, 1] at which the dual value of the two planes is largest."""
    from structpred.trainers.blocks._bcfw_kernels import root_of_slope

    u = model.slope / lam
    direction = plane.slope / lam - u
    rise = float(plane.offset) - float(model.offset)
    gain = rise - lam * dot(direction, dual_map.weights(u))
    if not gain > 0.0:
        return 0.0
    steepest = dual_map._replace(low=np.zeros_like(dual_map.low), high=np.zeros_like(dual_map.high))
    bend = 2.0 * lam * steepest.conjugate([direction])  # the slope falls at most so fast
    eta = 1.0 if bend <= gain else gain / bend
    if dual_map.linear or eta == 1.0:
        return eta
    at = np.flatnonzero(direction)
    arrays = dual_map.ends, dual_map.scale, dual_map.low, dual_map.high
    return float(root_of_slope(u, arrays, (at, np.zeros(len(at)), direction[at]), rise, lam, gain, eta))
