"""Stochastic subgradient descent with Pegasos' step size (Shalev-Shwartz et al. 2011, fig. 1) and a k-weighted average.

With the step size 1/(lam k) the k-th iterate is w_k = (1/(lam k)) sum_{j<=k} n p_i psi_j: a sum that is only added to, and
a scale. The average sum_k k w_k / sum_k k (Lacoste-Julien, Schmidt & Bach 2012) converges in O(1/(lam k)).

After whole passes every instance was used equally often, so w_k is itself a feasible dual point (each update gives its
output 1/passes of the instance's dual mass) with the value (1/k) sum_j n p_i offset_j - lam/2 |w_k|^2: a free certificate.

Under another regulariser whose dual map w = grad r*(u) is homogeneous, such as the projection on a cone, that sum is u_k, and
w_k = grad r*(u_k) minimises lam r(w) plus the mean of the linear pieces so far: regularised dual averaging (Xiao 2010). As
w(u / (lam k)) = w(u) / (lam k), the sum and the weights share the scale, and a step costs what it touches.

Where slopes have no bound (the squared error), k counts on from L / lam, L of the longest row: the first step is 1 / (L + lam).
"""

from typing import Annotated, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from structpred.core.regulariser import Regulariser, pieces_of
from structpred.core.sparse import SparseVector
from structpred.core.weights import Vector, Weights
from structpred.errors import ConvergenceError
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.rows.linear_task import RowTask
from structpred.task.fast.update_rules import CONSTANT, UpdateRule
from structpred.task.steps import offers
from structpred.trainers.bcfw import moved
from structpred.trainers.problem import Problem, Surrogate, Trainer, is_convex, once_per_problem
from structpred.trainers.states import COUNT


class SGDState(NamedTuple):
    """weights: v is the sum of steps, or its dual map; the scale is 1/(lam k). steps: k. offsets: the sum of n p_i offset. Both
    single numbers. point: the sum of steps, where v is not the sum itself; else empty.
    """

    weights: Weights
    steps: Annotated[npt.NDArray[np.int64], COUNT]
    offsets: npt.NDArray[np.float64]
    point: npt.NDArray[np.float64]


class SGD(Trainer):
    """Stochastic subgradient descent: cheap steps that come near the optimum soon; Pegasos without the projection step.

    Parameters
    ----------
    averaged : bool
        Whether to return the k-weighted average of the iterates; False: the last iterate.

    References
    ----------
    Shalev-Shwartz, Singer, Srebro and Cotter (2011), fig. 1; Lacoste-Julien, Schmidt and Bach (2012) for the average;
    Xiao (2010), Dual Averaging Methods for Regularized Stochastic Learning and Online Optimization, where r has a cone.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=SGD(averaged=False), max_iter=5).fit([np.eye(2)], [["a", "b"]])
    >>> model.predict([np.eye(2)])[0].tolist()
    ['a', 'b']
    """

    name = "sgd"
    regulariser_requires = ("dual_map",)
    surrogates = (MarginRescaling, LogLoss)
    certified = True
    online = True
    needs_n_total = True
    nonconvex = True

    def __init__(self, *, averaged: bool = True) -> None:
        self.averaged = averaged

    @classmethod
    def certifies(cls, surrogate: Surrogate) -> bool:
        """Whether there is a gap: only a maximum of linear functions has the dual value."""
        return surrogate.piecewise_linear and is_convex(surrogate)

    @classmethod
    def fits(cls, regulariser: Regulariser) -> bool:
        """Only fixed dual maps that are homogeneous: the weights and the sum of the steps have one scale."""
        return not regulariser.adapts and bool(getattr(regulariser.dual_map(), "conic", False))  # type: ignore[attr-defined]

    def init_state(self, problem: Problem) -> SGDState:
        """Zero weights."""
        weights = Weights.zeros(problem.task.dim, problem.task.dtype, averaged=self.averaged)
        mapped = not (problem.dual_map.linear and (problem.dual_map.scale == 1.0).all())
        return SGDState(weights, np.array(0), np.array(0.0), np.zeros(problem.task.dim if mapped else 0))

    def state_at(self, problem: Problem, w: npt.NDArray[np.float64], steps: int) -> SGDState:
        """At weights after this number of steps, for parameter mixing; there is no dual value from there."""
        state = self.init_state(problem)
        if steps:
            state.weights.v[:] = w * (problem.lam * (steps + _steps_before(problem)))
            state.weights.set_scale(1.0 / (problem.lam * (steps + _steps_before(problem))))
            state.steps.fill(steps)
        return state

    def update(self, problem: Problem, state: SGDState, item: int) -> tuple[SGDState, bool]:
        """w <- (1 - 1/k) w + n p_i psi / (lam k)."""
        weights = state.weights
        step = problem.surrogate.term(problem.task, weights.v, item, weights.scale)
        share = problem.share(item)
        changed = len(step.difference.indices) > 0
        if changed and len(state.point):
            changes = moved(state, step.difference, share, problem.dual_map, problem.dual_map.scale)
            weights.add(SparseVector(step.difference.indices, changes), 1.0)
        elif changed:
            weights.add(step.difference, share)
        k = state.steps.item() + 1
        state.steps.fill(k)
        if problem.surrogate.piecewise_linear:
            state.offsets.fill(state.offsets.item() + share * problem.surrogate.offset(step))
        weights.set_scale(1.0 / (problem.lam * (k + _steps_before(problem))))
        if self.averaged:
            weights.include(float(k))
        return state, changed

    def update_rule(self, problem: Problem, state: SGDState) -> UpdateRule | None:
        """`update` as numbers, where the weights are the sum of steps."""
        if len(state.point):
            return None
        average = (0.0, 1.0 if self.averaged else 0.0)
        return UpdateRule(CONSTANT, problem.shares, state.weights, problem.lam, average, steps=state.steps, offsets=state.offsets)

    def weights(self, problem: Problem, state: SGDState) -> Vector:
        """The average, or the present weights; in the regulariser's domain, which rounding may have left."""
        found = state.weights.average()
        return problem.regulariser.prox(found, 0.0) if len(state.point) else found

    def objective(self, problem: Problem, state: SGDState) -> tuple[float, float | None]:
        """Primal at the returned weights; the dual value of the last iterate if the passes so far were whole."""
        return _primal(problem, self.weights(problem, state)), self._dual(problem, state)

    def last_objective(self, problem: Problem, state: SGDState) -> tuple[Vector, float | None, float | None]:
        """`weights` and `objective` of a state that is not used again: the dual value, then the average in place."""
        dual = self._dual(problem, state)
        weights = self.weights(problem, state) if len(state.point) else state.weights.average_in_place()
        return weights, _primal(problem, weights), dual

    def _dual(self, problem: Problem, state: SGDState) -> float | None:
        k, total = state.steps.item(), state.point if len(state.point) else state.weights.v
        if not self.certifies(problem.surrogate) or k == 0 or k % len(problem.task) or not exactly_summed(total):
            return None
        # r* is homogeneous of degree two: lam r*(scale v) = lam scale^2 r*(v)
        lam = problem.lam * state.weights.scale**2
        return problem.regulariser.bound(state.offsets.item() / k, lam, pieces_of(total))

    def report(self, problem: Problem, state: SGDState) -> dict[str, npt.NDArray[np.float64]]:
        """dual_point: u, where w is not u itself."""
        return {"dual_point": state.weights.scale * state.point} if len(state.point) else {}


@once_per_problem
def _takes_any_slope(problem: Problem) -> bool:
    """Whether a loss of one score may be arbitrarily steep: its slopes, the dual variables, have no ends that are known."""
    loss = problem.surrogate
    if loss.piecewise_linear or not offers(problem.task, "rows"):
        return False
    table = loss.dual_table(cast(RowTask, problem.task).targets) if hasattr(loss, "dual_table") else None
    return table is None or not np.isfinite([table.low, table.high]).all()


@once_per_problem
def _steps_before(problem: Problem) -> float:
    """L / lam for a smooth loss of any slope; else 0."""
    gamma = getattr(problem.surrogate, "gamma", 0.0)
    if not (gamma > 0.0 and _takes_any_slope(problem)):
        return 0.0
    squares = cast(RowTask, problem.task).squared_norms()
    most = float((problem.shares * squares).max()) * float(problem.dual_map.scale.max())
    return most / (gamma * problem.lam) if np.isfinite(most / (gamma * problem.lam)) else 0.0


def _primal(problem: Problem, w: Vector) -> float:
    """The objective; ConvergenceError where steps that were too long for the loss left it far above that of w = 0."""
    found = problem.primal(w)
    if _takes_any_slope(problem) and found > 1e9 * (least := problem.primal(np.zeros_like(w))):
        raise ConvergenceError(
            f"SGD: the objective is {found:.3g}, at w = 0 it is {least:.3g}: its steps are too long for this loss. "
            f"{type(problem.surrogate).__name__} must say how smooth it is (gamma) if its slope has no bound; or take trainer "
            "'pegasos', a smaller C, or scale the features"
        )
    return found


def exactly_summed(v: Vector) -> bool:
    """Whether v is free of rounding errors that would spoil the dual value.

    float64 sums are good to 1e-15. float32 sums are exact as long as all of them are whole numbers below 2^24 (features that
    are zero or one); with other features their rounding errors add up unseen, and no dual value is claimed.
    """
    if v.dtype == np.float64:
        return True
    pieces = (v[k : k + (1 << 18)] for k in range(0, len(v), 1 << 18))
    return all(np.array_equal(np.rint(piece), piece) and np.abs(piece).max(initial=0) < 2**23 for piece in pieces)
