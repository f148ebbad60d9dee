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
from structpred.trainers.problem import Problem, Surrogate, Trainer
from structpred.trainers.states import Values

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: non-zeros that one compiled call may read: a tenth of a second, so that Ctrl-C is heard
CALL = 20_000_000
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
        n = len(self.alpha)
        if not np.array_equal(np.sort(self.active), np.arange(n)):
            return "active: expected a permutation of the rows"
        return None if self.counts[:2].max() <= n and self.counts[2] <= 2 else f"counts: expected at most {n} rows and 3 phases"


class SDCA(Trainer):
    """Dual coordinate ascent with shrinking: the fastest trainer for linear classifiers, with a certificate over all rows.

    A pass reads as many non-zeros as there are in the data; rows that have settled at a bound are left out, until the others have
    settled, too, so that late passes hold many sweeps over few rows.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), A dual coordinate descent method for large-scale linear SVM.

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
    requires = ("signed_rows",)
    surrogates = (MarginRescaling,)
    certified = True

    @classmethod
    def minimises(cls, surrogate: Surrogate) -> bool:
        """The margin-rescaled hinge alone: the dual is its own."""
        return isinstance(surrogate, MarginRescaling)

    def init_state(self, problem: Problem) -> SDCAState:
        """alpha = 0, w = 0; all rows are active."""
        n = len(problem.task)
        limits = np.array([np.inf, -np.inf, -np.inf, np.inf, 1.0, 0.0, np.inf])
        return SDCAState(np.zeros(problem.task.dim), np.zeros(n), np.arange(n), np.array([n, 0, 0]), limits)

    def order(self, problem: Problem, state: SDCAState, rng: np.random.Generator, n_pass: int) -> Integers:
        """A random number for each compiled call of the pass."""
        n_calls = 1 + len(cast(LinearTask, problem.task).values) // CALL
        return rng.integers(0, len(problem.task), n_calls)

    def update(self, problem: Problem, state: SDCAState, item: int) -> tuple[SDCAState, bool]:
        """One compiled call."""
        from structpred.trainers._sdca_kernels import ascend

        task, surrogate = cast(LinearTask, problem.task), cast(MarginRescaling, problem.surrogate)
        budget = min(len(task.values) + len(task), CALL)
        seed = np.uint64((item + 1) * 0x9E3779B97F4A7C15 % 2**64 | 1)
        changed = ascend(
            task.indptr, task.indices, task.values, task.squared_norms(), problem.p / problem.lam, surrogate.loss_weight,
            state.w, state.alpha, state.active, state.counts, state.limits, seed, budget,
        )  # fmt: skip
        return state, changed > 0

    def finish_pass(self, problem: Problem, state: SDCAState) -> SDCAState:
        """The next one begins with the active rows."""
        state.counts[2] %= 2
        return state

    def weights(self, problem: Problem, state: SDCAState) -> Vector:
        """The present weights."""
        return state.w.copy()

    def objective(self, problem: Problem, state: SDCAState) -> tuple[float, float]:
        """Primal at the weights, and the dual value at alpha, with its own weights computed anew: rounding cannot add up."""
        task, surrogate = cast(LinearTask, problem.task), cast(MarginRescaling, problem.surrogate)
        alpha = np.minimum(state.alpha, problem.p / problem.lam)
        loss = surrogate.loss_weight * problem.lam * float(alpha.sum())
        return problem.primal(state.w), problem.regulariser.bound(loss, problem.lam, pieces_of(task.combined(alpha)))

    def gap_estimate(self, problem: Problem, state: SDCAState) -> float:
        """The gap of the rows visited in the last sweep, each when it was visited."""
        return problem.lam * float(state.limits[6])
