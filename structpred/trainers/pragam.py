"""The excessive gap method for max-margin duals over sets with a quick projection (Saha, Zhang and Vishwanathan 2009).

In the notation of `dual_sets`: with d(m) = 1/2 sum_i p_i |m_i - c_i|^2, zero at the centre c, the smoothed primal is

    J_mu(w) = lam/2 |w|^2 + max over m of sum_i p_i <s_i(w), m_i - t_i> - mu d(m),

and the method keeps J_mu(w) <= D(m) while mu falls as 4 L / ((k + 1)(k + 2)), with L the curvature of D. As
J <= J_mu + mu max d, the gap J(w) - D(m) is at most mu max d after k steps (eq. 26). Two repairs of the printed algorithm 1: it
must start at the centre, where J_mu <= D holds, and L is that of the dual, with the factor 1 / lam.

Any r with a dual map takes the place of 1/2 |w|^2 (eq. 10): w = grad r*(u) at the u that a dual point gives, and its scales are
part of L. Scales that adapt do so where the centre moves: between two such moves r is that of fixed scales.
"""

from collections.abc import Callable
from typing import Annotated, ClassVar, NamedTuple, cast

import numpy as np

from structpred.core.products import dot
from structpred.core.regulariser import DualMap, capabilities
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import ConvergenceError, ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.runtime.interrupts import may_be_abandoned
from structpred.trainers.blocks.dual_sets import NONE, DualSet, Hulls, dual_set
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.states import COUNT, Values

Positive = Annotated[Floats, Values(5e-324)]

#: the smallest curvature that is tried, in units of the first: at the optimum any is accepted, and mu would fall to zero
_LEAST = 1e-10
#: a step first tries this share of the curvature of the step before; halving it finds no smaller ones, but doubles the work
_EASED = 0.8
#: mu and curvatures of any run are in this range, in units of the first
_RANGE = (1e-40, 1e40)
#: so often a curvature may be doubled in one step
_DOUBLINGS = 200


class PragamState(NamedTuple):
    """w, slopes: w_k and s(w_k). point: m_k. answer: the maximiser in J_mu(w_k). centre: c. from_point, from_answer: what starts
    the next projection of either kind. best: the weights with the smallest objective so far, `primal`. bound: the largest D(m) so
    far. mu, curvature: mu_k and the estimate of L. first: the first such estimate. steps: k. outset: the gap when the centre
    was chosen. Those from primal on are single numbers. scale, memory: of each group of the dual map since then, and what the
    regulariser remembers of earlier ones; empty where w is the dual point itself.
    """

    w: Floats
    slopes: Floats
    point: Floats
    answer: Floats
    centre: Floats
    from_point: Floats
    from_answer: Floats
    best: Floats
    primal: Floats
    bound: Floats
    mu: Positive
    curvature: Positive
    first: Positive
    steps: Annotated[Integers, COUNT]
    outset: Floats
    scale: Annotated[Floats, Values(0)]
    memory: Floats

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        for name in ("mu", "curvature"):
            ratio = float(getattr(self, name)) / float(self.first)
            if not _RANGE[0] <= ratio <= _RANGE[1]:
                return f"{name}: expected a number of the order of `first`, the ratio is {ratio:.3g}"
        return None

    @property
    def gap(self) -> float:
        """Between the best bounds so far."""
        return float(self.primal) - float(self.bound)


class _Step(NamedTuple):
    """A projected gradient step from `base` to `point`, with the slopes and weights of base and the u of point; start: what
    starts the next such projection.
    """

    w_base: Floats
    slopes: Floats
    point: Floats
    u: Floats
    start: Floats

    @staticmethod
    def of(dual: DualSet, link: DualMap | None, lam: float, base: Floats, curvature: float, start: Floats) -> "_Step | None":
        """The step with this curvature, None where the dual bends more along it. link: None where w is u itself.

        D lies above its model with curvature L at the new point exactly if 2 lam (r*(u') - r*(u) - <w, u' - u>) <= L |change|^2;
        the left side is lam |u' - u|^2 where w is u.
        """
        before = dual.weights(base)
        w_base = before if link is None else link.weights(before)
        slopes = dual.slopes(w_base)
        point, start = dual.project(base, slopes, 1.0 / curvature, start)
        u = dual.weights(point)
        change = u - before
        size = dot(change, change) if link is None else 2.0 * link.divergence(u, before)
        rounding = 1e-15 * dot(u, u) * (1.0 if link is None else float(link.scale.max()))
        bends = lam * (size - rounding) > curvature * dual.square(point - base)
        return None if bends else _Step(w_base, slopes, point, u, start)


class Pragam(Trainer):
    """The excessive gap method: after k steps, "passes" here, the gap is at most 4 L max(d) / ((k + 1)(k + 2)).

    For binary tasks and for max-margin Markov networks whose oracle projects, over clique marginals where it can. A step takes
    two projections and three products with the features, more where the curvature has to be searched for. The lower bound is
    the dual value of a point of the set, so it holds whatever the estimate of the curvature was.

    Parameters
    ----------
    adaptive : bool
        Whether to look for the smallest curvature that serves, from step to step: as a rule far fewer steps, each a little
        longer. Without it, the curvature is the operator's norm by power iteration. In both cases a step whose curvature was
        estimated too low is seen by exact comparison, and made again with twice the estimate.
    recentre : float
        Once the gap has fallen to this share, the present dual point becomes the centre and k starts again: smoothing then costs
        little where it counts. Far fewer steps for structured tasks and high accuracy, a few more for low accuracy. 0: never, as
        printed.

    Raises
    ------
    ParameterError
        For a `recentre` outside [0, 1).

    References
    ----------
    Saha, Zhang and Vishwanathan (2009), algorithm 1; Nesterov (2005), Excessive gap technique in nonsmooth convex minimization.

    Examples
    --------
    >>> from structpred.rows.linear_task import LinearTask
    >>> from structpred.trainers.loop import RunSettings, train
    >>> problem = Problem(LinearTask([[1.0], [2.0]], [1, -1]), MarginRescaling(), 0.1)
    >>> train(problem, Pragam(), RunSettings(max_iter=200, tol=1e-3)).certificate.gap < 1e-3
    True
    """

    name = "pragam"
    requires: tuple[str | tuple[str, ...], ...] = (("signed_rows", "project"),)
    regulariser_requires: ClassVar[tuple[str | tuple[str, ...], ...]] = (("squared_norm", "dual_map"),)
    kinds = (MarginRescaling,)
    certified = True
    bulk = True

    def __init__(self, *, adaptive: bool = True, recentre: float = 0.1) -> None:
        if not 0.0 <= recentre < 1.0:
            raise ParameterError(f"recentre must be at least 0 and below 1, got {recentre}")
        self.adaptive, self.recentre = bool(adaptive), float(recentre)

    def dual_set(self, problem: Problem) -> DualSet:
        """Where the dual points are."""
        return dual_set(problem)

    def init_state(self, problem: Problem) -> PragamState:
        """At the centre of the set."""
        dual = self.dual_set(problem)
        norm = largest_eigenvalue(dual.operator, problem.task.dim, tol=0.1 if self.adaptive else 1e-4) / problem.lam
        scales = NONE, NONE
        if not _is_point(problem):
            scale = problem.dual_map.scale.copy()
            scales = scale, problem.regulariser.first_memory(len(scale))
            norm *= float(scale.max())
        return self._centred(problem, dual, dual.centre(), norm or 1.0, scales, None)

    def _centred(
        self, problem: Problem, dual: DualSet, centre: Floats, curvature: float, scales: tuple[Floats, Floats],
        before: PragamState | None,
    ) -> PragamState:  # fmt: skip
        """Lines 1 and 2: m_0 is the projected gradient step from the centre, w_0 = w(centre), mu_0 = 2 L."""
        link = _link(problem, scales[0])
        found, curvature = _search(lambda L: _Step.of(dual, link, problem.lam, centre, L, NONE), curvature)
        mu = 2.0 * curvature
        answer, start = dual.project(centre, found.slopes, 1.0 / mu, NONE)
        best, primal, bound, gap = _bounds(problem, dual, link, found, found.w_base, found.slopes, before)
        return PragamState(
            found.w_base, found.slopes, found.point, answer, centre, found.start, start, best, primal, bound, np.array(mu),
            np.array(curvature), before.first if before else np.array(curvature), np.array(0), np.array(gap), *scales,
        )  # fmt: skip

    def update(self, problem: Problem, state: PragamState, item: int) -> tuple[PragamState, bool]:
        """Algorithm 1, lines 3 to 7, with the first curvature that the dual does not exceed."""
        dual, link, curvature = self.dual_set(problem), _link(problem, state.scale), float(state.curvature)
        if self.adaptive:
            curvature = max(_EASED * curvature, _LEAST * float(state.first))

        def attempt(curvature: float) -> _Step | None:
            tau = self._tau(state, curvature)
            base = (1.0 - tau) * state.point + tau * state.answer  # line 4
            return _Step.of(dual, link, problem.lam, base, curvature, state.from_point)  # line 6

        with may_be_abandoned():
            found, curvature = _search(attempt, curvature)
            tau = self._tau(state, curvature)
            w = (1.0 - tau) * state.w + tau * found.w_base  # line 5
            slopes = (1.0 - tau) * state.slopes + tau * found.slopes
            mu = (1.0 - tau) * float(state.mu)  # line 7
            answer, start = dual.project(state.centre, slopes, 1.0 / mu, state.from_answer)
            best, primal, bound, gap = _bounds(problem, dual, link, found, w, slopes, state)
            state = PragamState(
                w, slopes, found.point, answer, state.centre, found.start, start, best, primal, bound, np.array(mu),
                np.array(curvature), state.first, np.array(state.steps + 1), state.outset,
                state.scale, state.memory,
            )  # fmt: skip
            if gap < self.recentre * float(state.outset):
                scales = state.scale, state.memory
                if problem.regulariser.adapts:
                    scales = problem.regulariser.rescale(*scales, problem.dual_map.squares([found.u]))
                state = self._centred(problem, dual, state.point, curvature, scales, state)
        return state, True

    def _tau(self, state: PragamState, curvature: float) -> float:
        """The longest step that keeps J_mu <= D, from tau^2 / (1 - tau) = mu / L; without adapting that of line 3, if shorter."""
        longest = min(2.0 / (1.0 + float(np.sqrt(1.0 + 4.0 * curvature / float(state.mu)))), 0.99)  # mu stays above zero
        return longest if self.adaptive else min(longest, 2.0 / (float(state.steps) + 3.0))

    def weights(self, problem: Problem, state: PragamState) -> Vector:
        """The best so far, in the type of the task's weights."""
        return cast(Vector, state.best.astype(problem.task.dtype))

    def objective(self, problem: Problem, state: PragamState) -> tuple[float, float]:
        """The objective at the weights to return, and the largest dual value so far."""
        return problem.primal(self.weights(problem, state)), float(state.bound)

    def gap_estimate(self, problem: Problem, state: PragamState) -> float:
        """The gap itself: it is free."""
        return state.gap

    def report(self, problem: Problem, state: PragamState) -> dict[str, Floats]:
        """dual_point: u, where w is not linear in it."""
        linear = _is_point(problem) or problem.dual_map.linear
        return {} if linear else {"dual_point": self.dual_set(problem).weights(state.point)}


def _search(attempt: Callable[[float], _Step | None], curvature: float) -> tuple[_Step, float]:
    """What the attempt gives at the first of curvature, 2 curvature, ... that it accepts, and which one that is."""
    for _ in range(_DOUBLINGS):
        if (found := attempt(curvature)) is not None:
            return found, curvature
        curvature *= 2.0
    raise ConvergenceError("no estimate of the dual's curvature serves: features or weights are too large, or not numbers")


def _is_point(problem: Problem) -> bool:
    """Whether w is the dual point itself, but for weights that are free."""
    return bool(capabilities(problem.regulariser) & {"squared_norm", "free"})


def _link(problem: Problem, scale: Floats) -> DualMap | None:
    """From the u of a dual point to w, with these scales; None where they are the same."""
    return None if _is_point(problem) else problem.dual_map._replace(scale=scale)


def _bounds(
    problem: Problem, dual: DualSet, link: DualMap | None, found: _Step, w: Floats, slopes: Floats, before: PragamState | None
) -> tuple[Floats, Floats, Floats, float]:
    """best, primal and bound with the objective at w and the dual value of the point found; the truth's dual value is 0.

    The last is the gap that moves the centre: between best and bound, with scales that adapt that of w and the point with these.
    Where the objective takes a program a sample, only steps 1, 2, ..., 10, and then ever rarer ones, look at it.
    """
    loss = dual.loss(found.point)
    bound = max(problem.regulariser.bound(loss, problem.lam, [found.u]), 0.0 if before is None else float(before.bound))
    if before is not None and isinstance(dual, Hulls) and dual.inference.bounded and not _looks(int(before.steps)):
        return before.best, before.primal, np.array(bound), float(before.primal) - bound
    w, hinge = dual.finished(w, slopes)
    primal = problem.lam * problem.regulariser.value(w) + hinge
    own: float | None = None
    if link is not None and problem.regulariser.adapts:
        own = problem.lam * link.value([w]) + hinge - loss + problem.lam * link.conjugate([found.u])
    if before is not None and before.primal <= primal:
        w, primal = before.best, float(before.primal)
    return w, np.array(primal), np.array(bound), primal - bound if own is None else own


def _looks(k: int) -> bool:
    """Whether a tenth more steps have been made since the last look."""
    return int(np.log(k + 1) / np.log(1.1)) > int(np.log(max(k, 1)) / np.log(1.1))


def largest_eigenvalue(operator: Callable[[Floats], Floats], size: int, *, tol: float, max_iter: int = 100) -> float:
    """max_v <v, B v> / |v|^2 for B = operator on vectors of this size, from below, by power iteration from a random start.

    It ends where an iteration adds less than tol in proportion. The estimate is never above the eigenvalue but for rounding, and
    no number of iterations proves that it is near: who needs an upper bound must test what follows from it.

    >>> round(largest_eigenvalue(lambda v: np.array([3.0, 1.0]) * v, 2, tol=1e-9), 6)
    3.0
    """
    v = np.random.Generator(np.random.PCG64(0)).normal(size=size)
    found = 0.0
    for _ in range(max_iter):
        v /= np.linalg.norm(v)
        product = operator(v)
        before, found = found, float(v @ product)
        if not found > before * (1.0 + tol):
            break
        v = product
    return max(found, 0.0)
