"""Stochastic dual coordinate ascent for linear classifiers (Hsieh et al. 2008; Shalev-Shwartz and Zhang 2013).

The dual of  min_w lam/2 |w|^2 + sum_i p_i max(0, t - <w, a_i>),  a_i = y_i x_i the signed rows, is

    max_alpha  t lam sum_i alpha_i - lam/2 |w|^2,   w = sum_i alpha_i a_i,   0 <= alpha_i <= p_i / lam,

and one step maximises it along one alpha_i: alpha_i + (t - <w, a_i>) / |a_i|^2, clipped.
"""

from typing import Annotated, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from structpred.core.linear_task import LinearTask
from structpred.core.regulariser import pieces_of
from structpred.core.weights import Vector
from structpred.objectives.margin import MarginRescaling
from structpred.trainers.label_ascent import CALL, LabelAscent, bad_places
from structpred.trainers.problem import Problem, Surrogate, Trainer, once_per_problem
from structpred.trainers.states import Values

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ANY = Values(-np.inf, np.inf)


class SDCAState(NamedTuple):
    """w, alpha: the primal and the dual point. active: a permutation of the rows, the ones that are visited first.

    counts, limits: how far the sweep is, and what its violations are, as the kernels name them.
    """

    w: Floats
    alpha: Annotated[Floats, Values(0.0)]
    active: Annotated[Integers, Values(0)]
    counts: Annotated[Integers, Values(0)]
    limits: Annotated[Floats, _ANY]

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        return bad_places(self.active, self.counts)


class SDCA(Trainer):
    """Dual coordinate ascent with shrinking: the fastest trainer of linear classifiers, with a certificate over all rows.

    For `LinearTask`, two classes, and for tasks over `LabelRows` and `MulticlassOracle`, many (see `label_ascent`). A pass does
    as much work as one visit of all rows (and labels). Rows that have settled at a bound are left out until the others have
    settled, too, so that late passes hold many sweeps over few rows. With many labels, dual variables between their bounds are
    solved for after a pass, by an active-set method, once they are few enough to cost no more than the passes do: small problems
    are then solved to rounding.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), A dual coordinate descent method for large-scale linear SVM.
    Keerthi, Sundararajan, Chang, Hsieh and Lin (2008), A sequential dual method for large scale multi-class linear SVMs.

    Examples
    --------
    >>> from structpred.core.linear_task import LinearTask
    >>> from structpred.trainers.loop import RunSettings, train
    >>> task = LinearTask([[2.0], [1.0], [-1.0]], [1, 1, -1])
    >>> result = train(Problem(task, MarginRescaling(), 0.1), SDCA(), RunSettings(max_iter=50, tol=1e-9))
    >>> result.stop_reason, result.weights.round(6).tolist()
    ('tol', [1.0])
    """

    name = "sdca"
    requires = (("signed_rows", "label_rows"),)
    surrogates = (MarginRescaling,)
    certified = True

    @classmethod
    def minimises(cls, surrogate: Surrogate) -> bool:
        """The margin-rescaled hinge alone: the dual is its own."""
        return isinstance(surrogate, MarginRescaling)

    def init_state(self, problem: Problem) -> Any:
        """Every dual variable at the truth, w = 0; all rows are active."""
        return _ascent(problem).init_state()

    def order(self, problem: Problem, state: Any, rng: np.random.Generator, n_pass: int) -> Integers:
        """A random number for each compiled call of the pass."""
        return rng.integers(0, len(problem.task), 1 + _ascent(problem).work() // CALL)

    def update(self, problem: Problem, state: Any, item: int) -> tuple[Any, bool]:
        """One compiled call."""
        ascent = _ascent(problem)
        seed = np.uint64((item + 1) * 0x9E3779B97F4A7C15 % 2**64 | 1)
        return state, ascent.ascend(state, seed, min(ascent.work(), CALL)) > 0

    def finish_pass(self, problem: Problem, state: Any) -> Any:
        """The next one begins with the active rows; after `patience` passes over these alone all are visited."""
        ascent = _ascent(problem)
        if ascent.solve_face(state):
            state.counts[:4] = (len(problem.task), 0, 1, 0)
            return state
        over = state.counts[2] == 2
        state.counts[2:4] = (0, 0) if over else (state.counts[2], state.counts[3] + 1)
        if state.counts[3] >= ascent.patience:
            state.limits[4] = np.inf  # settled or not: they may be the wrong ones
        return state

    def weights(self, problem: Problem, state: Any) -> Vector:
        """The present weights."""
        return cast(Vector, state.w.astype(problem.task.dtype))

    def objective(self, problem: Problem, state: Any) -> tuple[float, float]:
        """Primal at the weights, and the dual value of the dual point, with its own weights: rounding cannot add up."""
        return _ascent(problem).objective(state)

    def gap_estimate(self, problem: Problem, state: Any) -> float:
        """The gap of the rows visited in the last sweep, each when it was visited."""
        return problem.lam * float(state.limits[6])


class RowAscent:
    """The steps of one problem over signed rows."""

    #: passes over the active rows alone
    patience = 32

    def __init__(self, problem: Problem) -> None:
        self.task, self.p, self.lam, self.regulariser = (
            cast(LinearTask, problem.task),
            problem.p,
            problem.lam,
            problem.regulariser,
        )
        self.upper = self.p / self.lam
        self.target = cast(MarginRescaling, problem.surrogate).loss_weight

    def init_state(self) -> SDCAState:
        """alpha = 0."""
        n, start = len(self.task), max(self.target, 1e-300)
        limits = np.array([np.inf, -np.inf, -np.inf, np.inf, start, 0.0, np.inf, 0.0])
        return SDCAState(np.zeros(self.task.dim), np.zeros(n), np.arange(n), np.array([n, 0, 0, 0]), limits)

    def work(self) -> int:
        """The numbers that a sweep over all rows reads."""
        return len(self.task.values) + len(self.task)

    def ascend(self, state: SDCAState, seed: np.uint64, budget: int) -> int:
        """One compiled call."""
        from structpred.trainers._sdca_kernels import ascend

        task = self.task
        found: int = ascend(
            task.indptr, task.indices, task.values, task.squared_norms(), self.upper, self.target, state.w, state.alpha,
            state.active, state.counts, state.limits, seed, budget,
        )  # fmt: skip
        return found

    def solve_face(self, state: SDCAState) -> bool:
        """Nothing is solved: rows are many, and their steps cheap."""
        return False

    def objective(self, state: SDCAState) -> tuple[float, float]:
        """Primal and dual, in two passes over all rows."""
        alpha = np.minimum(state.alpha, self.upper)
        primal = self.lam * self.regulariser.value(state.w) + float(self.p @ self.task.violations(state.w, self.target))
        loss = self.target * self.lam * float(alpha.sum())
        return primal, self.regulariser.bound(loss, self.lam, pieces_of(self.task.combined(alpha)))


@once_per_problem
def _ascent(problem: Problem) -> RowAscent | LabelAscent:
    """The steps for the task's kind: passes over few rows take less time than making them."""
    return LabelAscent(problem) if hasattr(problem.task, "features") else RowAscent(problem)
