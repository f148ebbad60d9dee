"""Limited-memory quasi-Newton with an l1 term, signs or both, orthant by orthant (Andrew & Gao 2007)."""

import hashlib
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from structpred.core.products import dot
from structpred.core.regulariser import Regulariser, Smooth
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import L2
from structpred.trainers.lbfgs import LBFGS, Kinks, LBFGSState
from structpred.trainers.problem import Problem


class OWLQN(LBFGS):
    """Sparse conditional random fields: the regulariser is smooth except for a multiple of |w|_1, as L1 is, and for signs.

    A sign takes one of the two orthants of a weight away, and of the slopes at zero the one that leads there.

    The certificate is about this objective over the free weights: by strong convexity the optimum is at least
    objective - |v|^2 / (2 lam m), where v is the shortest subgradient and m the regulariser's strong convexity.

    Parameters
    ----------
    l1 : float
        Short for the regulariser L1(l1), that is 1/2 |w|^2 + l1 |w|_1, where the problem has the usual one.
    free : ndarray of int64, optional
        The indices of the weights that may move, sorted; all others stay zero. None: all may move. States hold the free
        weights only, so a hundred thousand free weights among millions are cheap. With l1=0 this is L-BFGS on them.
    memory, max_trials : int
        As for LBFGS.

    Raises
    ------
    ParameterError
        For l1 < 0, and for `free` that is not sorted or not within the weights.

    References
    ----------
    Andrew and Gao (2007).

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=OWLQN(l1=0.1), tol=0.01).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    name = "owlqn"
    regulariser_requires = ("smooth_part",)

    def __init__(
        self, *, l1: float = 0.0, free: npt.NDArray[np.int64] | None = None, memory: int = 6, max_trials: int = 20
    ) -> None:
        super().__init__(memory=memory, max_trials=max_trials)
        self.l1 = L1(l1).mu
        self.free = None if free is None else np.asarray(free, dtype=np.int64)
        # a long array is abbreviated where settings are compared, so that checkpoints need this
        self.free_digest = None if self.free is None else hashlib.sha256(self.free.tobytes()).hexdigest()

    def init_state(self, problem: Problem) -> LBFGSState:
        """Start at zero."""
        free = self.free
        if free is not None and len(free) and not (free[0] >= 0 and free[-1] < problem.task.dim and (np.diff(free) > 0).all()):
            raise ParameterError(f"free: expected sorted, distinct numbers of weights in [0, {problem.task.dim})")
        if self.l1 and not isinstance(problem.regulariser, L2):
            raise ParameterError(f"l1={self.l1:g} of OWLQN and regulariser {type(problem.regulariser).__name__}: give one")
        return self.state_at(problem, np.zeros(problem.task.dim))

    def _size(self, problem: Problem) -> int:
        return problem.task.dim if self.free is None else len(self.free)

    def _start(self, problem: Problem, w: Vector, scale: Floats) -> LBFGSState:
        """Only the free weights count."""
        z = (w if self.free is None else w[self.free]).astype(np.float64)
        z[self._signs(problem) * z < 0.0] = 0.0
        value, gradient = self._objective(problem, z)
        own = scale if self.free is None or not len(scale) else scale[self.free]
        return LBFGSState.start(z, gradient, value, self.memory, self._strength(problem), own)

    def _slopes(self, problem: Problem, state: LBFGSState) -> tuple[Floats, Kinks]:
        kinks = np.True_ if self._split(problem)[1] else self._signs(problem) != 0
        return self._shortest(problem, state), kinks if kinks.any() else np.False_

    def _signs(self, problem: Problem) -> npt.NDArray[np.int8]:
        """Those of the free weights, or one for all of them."""
        found = np.asarray(getattr(problem.regulariser, "signs", 0), np.int8)
        return found if self.free is None or not found.ndim else found[self.free]

    def _point(
        self, state: LBFGSState, direction: Floats, slopes: Floats, step: float, slope: float, kinks: Kinks
    ) -> tuple[Floats, float]:  # fmt: skip
        """Within the orthant, where there are kinks."""
        z = state.w + step * direction
        if kinks.any():  # what would change its sign becomes zero
            orthant = np.where(state.w != 0.0, state.w, -slopes)
            z[kinks & (z * orthant <= 0.0)] = 0.0
        return z, 1e-4 * dot(slopes, z - state.w)

    def _regulariser(self, problem: Problem) -> Regulariser:
        return L1(self.l1) if self.l1 else problem.regulariser

    def _split(self, problem: Problem) -> tuple[Smooth, float]:
        """The regulariser's smooth part, and its mu."""
        return cast(Any, self._regulariser(problem)).smooth_part()

    def _objective(self, problem: Problem, z: Floats) -> tuple[float, Floats]:
        """The whole objective, and the gradient of its smooth part."""
        surrogate, (smooth, mu) = cast(Any, problem.surrogate), self._split(problem)
        values, gradient = surrogate.gradient(problem.task, self._full(problem, z), problem.p)
        if self.free is not None:
            gradient = gradient[self.free]
        r, slope = smooth.gradient(z)
        gradient += problem.lam * slope
        value = problem.lam * r + dot(problem.p, values)
        return value + problem.lam * mu * float(np.abs(z).sum()), gradient

    def _full(self, problem: Problem, z: Floats) -> Floats:
        if self.free is None:
            return z
        w = np.zeros(problem.task.dim)
        w[self.free] = z
        return w

    def _shortest(self, problem: Problem, state: LBFGSState) -> Floats:
        """The shortest subgradient; without l1 and signs the gradient."""
        g, z, kink, signs = state.gradient, state.w, problem.lam * self._split(problem)[1], self._signs(problem)
        if not kink and not signs.any():
            return g
        at_zero = np.sign(g) * np.maximum(np.abs(g) - kink, 0.0)
        at_zero = np.where(signs * at_zero > 0.0, 0.0, at_zero)  # down is where the sign forbids
        return np.where(z != 0.0, g + kink * np.sign(z), at_zero)

    def weights(self, problem: Problem, state: LBFGSState) -> Vector:
        """The present point, in the type of the task's weights."""
        return cast(Vector, self._full(problem, state.w).astype(problem.task.dtype))

    def primal(self, problem: Problem, w: Vector) -> float:
        """The objective at any weights, with the l1 term where the trainer brings one."""
        return replace(problem, regulariser=self._regulariser(problem)).primal(w)

    def _strength(self, problem: Problem) -> float:
        """Tangents bound an objective without a kink."""
        smooth, mu = self._split(problem)
        return 0.0 if mu or self._signs(problem).any() or not problem.convex else problem.lam * smooth.strong_convexity

    def _gap(self, problem: Problem, state: LBFGSState) -> float:
        if len(state.tangent.slope):
            return super()._gap(problem, state)
        v = self._shortest(problem, state)
        return L2().squared_norm(v) / (2.0 * problem.lam * self._split(problem)[0].strong_convexity)

    def report(self, problem: Problem, state: LBFGSState) -> dict[str, Floats]:
        """dual_point, under signs: minus the slope of the losses, over lam."""
        if not self._signs(problem).any() or not problem.convex:
            return {}
        _, slope = self._split(problem)[0].gradient(state.w)
        return {"dual_point": self._full(problem, slope - state.gradient / problem.lam)}
