"""Limited-memory BFGS for smooth surrogates (Nocedal & Wright 2006, algorithms 7.4, 7.5 and 3.5)."""

import warnings
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.products import add_multiple, dot, dot_of_differences
from structpred.core.regulariser import Smooth
from structpred.core.types import Flags, Floats, Floats32, Integers
from structpred.core.weights import Vector
from structpred.errors import StructpredWarning
from structpred.objectives.log_loss import LogLoss
from structpred.runtime.interrupts import may_be_abandoned
from structpred.runtime.ranges import ends_of
from structpred.runtime.settings import checked_whole
from structpred.runtime.standard_error import callers_level
from structpred.task.steps import summed_squares
from structpred.task.task import Task
from structpred.trainers.problem import Problem, Surrogate, Trainer, is_convex
from structpred.trainers.states import COUNT, Values


class Tangent(NamedTuple):
    """A lower bound of a smooth, strongly convex objective by means of its tangents, the best of which costs one vector to keep.

    With f(x) - c/2 |x|^2 convex, the gradient g at w says  f(x) >= c/2 |x|^2 + <a, x> + b  for all x, where a = g - c w and
    b = f(w) - c/2 |w|^2 - <a, w>. The least value of the right side, b - |a|^2 / (2 c), is f(w) - |g|^2 / (2 c). Means of such
    pairs (a, b) are as good, and where gradients point to and fro their mean is short: its bound is far better, and never falls.

    slope: a, empty where there is none. height: b, a single number.
    """

    slope: Floats
    height: Floats

    @staticmethod
    def at(w: Floats, value: float, gradient: Floats, strength: float) -> "Tangent":
        """Of f at w. strength: c; 0 where no bound is known."""
        if strength == 0.0:
            return Tangent(np.empty(0), np.array(0.0))
        slope = -strength * w
        slope += gradient
        return Tangent(slope, np.array(value - 0.5 * strength * dot(w, w) - dot(slope, w)))

    def bound(self, strength: float) -> float:
        """The lower bound of f."""
        return float(self.height) - dot(self.slope, self.slope) / (2.0 * strength)

    def mixed(self, w: Floats, value: float, gradient: Floats, strength: float) -> "Tangent":
        """The mean of this and of the tangent at w with the largest bound, a concave parabola in the share of the new one."""
        if not len(self.slope):
            return self
        slope, height = Tangent.at(w, value, gradient, strength)
        slope -= self.slope  # from here on the way to the new one
        rise, bend = float(height - self.height) - dot(self.slope, slope) / strength, dot(slope, slope) / strength
        share = 0.0 if rise <= 0.0 else 1.0 if rise >= bend else rise / bend
        slope *= share
        slope += self.slope
        return Tangent(slope, np.array((1.0 - share) * self.height + share * height))


Count = Annotated[Integers, COUNT]
#: for each weight, or for all of them
Kinks = Flags | np.bool_


class LBFGSState(NamedTuple):
    """w, its gradient and objective. scale: about the inverse second derivatives along each weight; empty where all count alike.

    s, y (float32), rho: the last pairs. pairs: how many. following: the next to replace.

    evaluations: of the objective, so far. stuck: 1 where no step helps (rounding); nothing changes any more. tangent: the mean of
    tangents that gives the best bound so far. Single numbers are arrays of no dimension.
    """

    w: Floats
    gradient: Floats
    value: Floats
    s: Floats32
    y: Floats32
    rho: Annotated[Floats, Values(0)]
    pairs: Count
    following: Count
    evaluations: Count
    stuck: Annotated[Integers, Values(0, 1)]
    tangent: Tangent
    scale: Floats32

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        if self.pairs > len(self.rho) or self.following >= len(self.rho):
            return f"pairs: expected at most {len(self.rho)}, the next one among them"
        if not (self.scale > 0).all():
            return "scale: expected positive numbers"
        return None if (self.rho[: int(self.pairs)] > 0).all() else "rho: expected positive numbers"

    @staticmethod
    def start(w: Floats, gradient: Floats, value: float, memory: int, strength: float, scale: Floats) -> "LBFGSState":
        """At w, after one evaluation. strength: how strongly convex the objective is; 0 where tangents give no bound."""
        s, y = np.zeros((2, memory, len(w)), np.float32)
        numbers = np.array(0), np.array(0), np.array(1), np.array(0)
        tangent = Tangent.at(w, value, gradient, strength)
        return LBFGSState(w, gradient, np.array(value), s, y, np.zeros(memory), *numbers, tangent, scale.astype(np.float32))


class LBFGS(Trainer):
    """Limited-memory BFGS for smooth objectives, such as conditional random fields. One "pass" is one iteration.

    An iteration usually evaluates objective and gradient once, in float64; the pairs, in float32, only shape the direction.
    The dual bound comes from strong convexity: the optimum is at least objective - |gradient|^2 / (2 lam m), with m the
    regulariser's constant, and a mean of the tangents so far gives a better bound (`tangents.py`), which never falls. There is
    none where labels are missing: the end is then a local optimum.

    Parameters
    ----------
    memory : int
        How many pairs (change of w, change of the gradient) are kept, 8 bytes per weight each.
    max_trials : int
        How many step sizes are tried in an iteration.

    Raises
    ------
    ParameterError
        For memory < 1 or max_trials < 1.

    References
    ----------
    Nocedal and Wright (2006), algorithms 7.4, 7.5 and 3.5.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=LBFGS(), tol=0.01).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    name = "lbfgs"
    least_passes = 100  # after ten iterations, 12 % fewer letters are right on handwriting
    requires = ()  # what the surrogate needs: the log loss marginals
    regulariser_requires = ("gradient",)
    surrogates = (LogLoss,)
    certified = True
    nonconvex = True
    bulk = True
    asks = "sums"

    def __init__(self, *, memory: int = 6, max_trials: int = 20) -> None:
        self.memory, self.max_trials = checked_whole(memory, "memory"), checked_whole(max_trials, "max_trials")

    @classmethod
    def minimises(cls, surrogate: Surrogate) -> bool:
        """Any smooth one that has a gradient over all instances."""
        return hasattr(surrogate, "gradient") and getattr(surrogate, "gamma", 1.0) > 0.0

    @classmethod
    def certifies(cls, surrogate: Surrogate) -> bool:
        """Whether strong convexity bounds the optimum."""
        return is_convex(surrogate)

    def init_state(self, problem: Problem) -> LBFGSState:
        """Start at zero; near it where the problem is not convex: at zero all latent variables are alike, and would stay so."""
        if problem.convex:
            return self.state_at(problem, np.zeros(problem.task.dim))
        # small weights that prefer no output, so that weights without features stay zero; shards find them where they are
        of_shards = getattr(problem.task, "random_features", None)
        found = random_features(cast(Task, problem.task), 0) if of_shards is None else of_shards()
        return self.state_at(problem, cast(Floats, found * (0.01 / max(float(np.abs(found).max(initial=0.0)), 1e-300))))

    def state_at(self, problem: Problem, w: Vector) -> LBFGSState:
        """Start at these weights."""
        return self._start(problem, w, np.empty(0))

    def scaled_at(self, problem: Problem, w: Vector) -> LBFGSState:
        """Start at weights that explain the data already, with the loss's curvature there as the first guess of the Hessian.

        Features are as rare as words: along some weights the objective curves thousands of times as strongly as along others.
        The diagonal of the empirical Fisher information says how strongly, for the time of one more evaluation; where the model
        knows nothing yet, it misleads. From three rounds of exponentiated gradient on, it halves the iterations.
        """
        return self._start(problem, w, 1.0 / (problem.lam + squared_gradients(problem, w.astype(np.float64))))

    def like(self, problem: Problem) -> LBFGSState:
        """A state of the form of those that follow `scaled_at`, for nothing."""
        zeros = np.zeros(self._size(problem))
        return LBFGSState.start(zeros, zeros, 0.0, self.memory, self._strength(problem), zeros)

    def _size(self, problem: Problem) -> int:
        """How many weights may move."""
        return problem.task.dim

    def _start(self, problem: Problem, w: Vector, scale: Floats) -> LBFGSState:
        point = w.astype(np.float64)
        value, gradient = self._objective(problem, point)
        return LBFGSState.start(point, gradient, value, self.memory, self._strength(problem), scale)

    def update(self, problem: Problem, state: LBFGSState, item: int) -> tuple[LBFGSState, bool]:
        """A direction, a step that satisfies the weak Wolfe conditions by bisection, a new pair."""
        slopes, kinks = self._slopes(problem, state)
        kink = bool(np.any(kinks))
        direction = self._direction(state, slopes)
        if kink:
            direction[kinks & (direction * slopes >= 0.0)] = 0.0  # what would go uphill stays
        slope = dot(direction, slopes)
        if slope >= 0.0 or state.stuck:
            state.stuck[...] = 1
            return state, False
        # a whole step as soon as anything is known of the curvature
        step = 1.0 if state.pairs or len(state.scale) else min(1.0, 1.0 / max(float(np.abs(slopes).sum()), 1e-300))
        low, high = 0.0, np.inf
        good = state.w, float(state.value), state.gradient  # the point at `low`
        for trial in range(self.max_trials):
            w, asked = self._point(state, direction, slopes, step, slope, kinks)
            with may_be_abandoned():
                value, gradient = self._objective(problem, w)
            # beside the objective what is asked for may round to nothing: a shorter step would always do, and never end the run
            if not value <= state.value + asked or (kink and value == state.value):
                high = step
            elif not kink and dot(gradient, direction) < 0.9 * slope:  # along a kink Armijo's condition is all there is
                low, good = step, (w, value, gradient)
            else:
                return self._accept(problem, state, w, value, gradient, trial + 1), True
            step = 2.0 * low if high == np.inf else 0.5 * (low + high)
        if good[1] == state.value:
            return state, self._give_up(state, high, high * slope)
        return self._accept(problem, state, *good, self.max_trials), True

    def _slopes(self, problem: Problem, state: LBFGSState) -> tuple[Floats, Kinks]:
        """What the direction goes down, and along which weights the objective has kinks."""
        return state.gradient, np.False_

    def _point(
        self, state: LBFGSState, direction: Floats, slopes: Floats, step: float, slope: float, kinks: Kinks
    ) -> tuple[Floats, float]:  # fmt: skip
        """The point that a step leads to, and by how much the objective must change there at least."""
        w = step * direction
        w += state.w
        return w, 1e-4 * step * slope

    def _objective(self, problem: Problem, w: Floats) -> tuple[float, Floats]:
        """The objective and its gradient."""
        return objective(problem, w)

    def _give_up(self, state: LBFGSState, step: float, promised: float) -> bool:
        """No step helped. Returns, and says, whether the shortest was too long, though its slope promised such a change."""
        state.evaluations[...] += self.max_trials
        state.stuck[...] = 1
        failed = step < np.inf and -promised > 1e-9 * abs(float(state.value))  # else it is the optimum, to rounding
        if failed:
            text = (
                f"{self.name}: the line search failed: none of {self.max_trials} steps, down to {step:.3g}, lowered the "
                "objective, so the weights stay. Are features very large, or of very different sizes (scale them)? Is C small, "
                f"are bounds of the oracle loose? {type(self).__name__}(max_trials={4 * self.max_trials}) tries shorter steps"
            )
            warnings.warn(text, StructpredWarning, stacklevel=callers_level())
        return failed

    def _direction(self, state: LBFGSState, slopes: Floats) -> Floats:
        """The two-loop recursion, in place."""
        q = np.empty(len(slopes), np.float32)
        np.negative(slopes, out=q, casting="same_kind")
        n, m = int(state.pairs), self.memory
        newest_first = [(int(state.following) - 1 - k) % m for k in range(n)]
        alphas = []
        for k in newest_first:
            alphas.append(float(state.rho[k]) * dot(state.s[k], q))
            add_multiple(q, -alphas[-1], state.y[k])
        if len(state.scale):
            q *= state.scale
        if n:
            k = newest_first[0]
            y = state.y[k]
            q *= 1.0 / (state.rho[k] * dot(y * state.scale if len(state.scale) else y, y))
        for k, alpha in zip(reversed(newest_first), reversed(alphas), strict=True):
            add_multiple(q, alpha - float(state.rho[k]) * dot(state.y[k], q), state.s[k])
        return q.astype(np.float64)

    def _accept(self, problem: Problem, state: LBFGSState, w: Floats, value: float, gradient: Floats, trials: int) -> LBFGSState:
        state.evaluations[...] += trials
        curvature = dot_of_differences(w, state.w, gradient, state.gradient)
        if curvature > 0.0:
            k = int(state.following)
            np.subtract(w, state.w, out=state.s[k], casting="same_kind")
            np.subtract(gradient, state.gradient, out=state.y[k], casting="same_kind")
            state.rho[k] = 1.0 / curvature
            state.following[...] = (k + 1) % self.memory
            state.pairs[...] = min(int(state.pairs) + 1, self.memory)
        tangent = state.tangent.mixed(w, value, gradient, self._strength(problem))
        return state._replace(w=w, gradient=gradient, value=np.array(value), tangent=tangent)

    def weights(self, problem: Problem, state: LBFGSState) -> Vector:
        """The present point, in the type of the task's weights."""
        return cast(Vector, state.w.astype(problem.task.dtype))

    def objective(self, problem: Problem, state: LBFGSState) -> tuple[float, float | None]:
        """Primal at the float64 point, and the bound of strong convexity."""
        value, gap = float(state.value), self.gap_estimate(problem, state)
        return value, None if gap is None else value - gap

    def gap_estimate(self, problem: Problem, state: LBFGSState) -> float | None:
        """The gap itself: it is free. None where the problem is not convex."""
        return self._gap(problem, state) if problem.convex else None

    def finished(self, problem: Problem, state: LBFGSState) -> bool:
        """Whether no step lowers a function that is not convex; of a convex one the gap says more."""
        return bool(state.stuck) and not problem.convex

    def _gap(self, problem: Problem, state: LBFGSState) -> float:
        strength, square = self._strength(problem), dot(state.gradient, state.gradient)
        return max(min(square / (2.0 * strength), float(state.value) - state.tangent.bound(strength)), 0.0)

    def _strength(self, problem: Problem) -> float:
        """How strongly convex the objective is, where its tangents bound it; else 0."""
        return problem.lam * problem.regulariser.strong_convexity if problem.convex else 0.0


def random_features(task: Task, seed: int) -> Floats:
    """The sum of joint features of random part counts."""
    ends = ends_of(np.array([task.features.n_parts(i) for i in range(len(task))]))
    return task.features.total(np.random.default_rng(seed).normal(size=int(ends[-1])), ends, np.ones(len(task)))


def squared_gradients(problem: Problem, w: Floats) -> Floats:
    """sum_i p_i (dH_i / dw_j)^2 for each weight j, at once where the surrogate can, else term by term."""
    if hasattr(problem.surrogate, "squared_gradients"):
        return cast(Floats, cast(Any, problem.surrogate).squared_gradients(problem.task, w, problem.p))
    return summed_squares(problem.task.dim, problem.p, lambda i: problem.surrogate.term(problem.task, w, i))


def objective(problem: Problem, w: Floats) -> tuple[float, Floats]:
    """lam r + sum p_i H_i, and its gradient."""
    surrogate, regulariser = cast(Any, problem.surrogate), cast(Smooth, problem.regulariser)
    values, gradient = surrogate.gradient(problem.task, w, problem.p)
    r, slope = regulariser.gradient(w)
    add_multiple(gradient, problem.lam, slope)
    return problem.lam * r + dot(problem.p, values), gradient
