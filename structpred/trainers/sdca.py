"""Stochastic dual coordinate ascent for linear models (Hsieh et al. 2008; Shalev-Shwartz and Zhang 2013).

The dual of  min_w lam r(w) + sum_i p_i phi_i(<w, a_i>),  with a_i = y_i x_i the signed rows of two classes, is

    max_alpha  - lam sum_i c_i phi_i*(-alpha_i / c_i) - lam r*(u),   u = sum_i alpha_i a_i,   c_i = p_i / lam,

and w is the gradient of r* at u. One step maximises the dual along one alpha_i, or, where r* is not quadratic, the lower bound
that has the curvature q = sum_j s_j a_ij^2 (Shalev-Shwartz and Zhang 2016): for the hinge max(0, t - <w, a_i>) and 1/2 |w|^2 that
is alpha_i + (t - <w, a_i>) / |a_i|^2, clipped to [0, c_i]. With r infinite where a weight has the wrong sign it is the
sign-constrained SDCA of Kato, Kobayashi and Sano (2018), algorithm 2.
"""

from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.regulariser import Regulariser, capabilities, pieces_of
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.rows.linear_task import RowTask
from structpred.rows.multiclass_loss import MulticlassLoss
from structpred.rows.scalar_loss import DualTable, ScalarLoss
from structpred.task.steps import offers
from structpred.trainers.problem import Problem, Trainer, once_per_problem
from structpred.trainers.rows.label_ascent import CALL, ColumnAscent, LabelAscent, MappedAscent, bad_places
from structpred.trainers.states import Values


class SDCAState(NamedTuple):
    """w: u = sum_i alpha_i a_i, the weights before the map of the regulariser. alpha: the dual point.

    active: a permutation of the rows, the ones that are updated first. counts, limits: how far the sweep is, and what its
    violations are, as the kernels name them; the last count is of the passes since w was summed up.
    """

    w: Floats
    alpha: Floats
    active: Annotated[Integers, Values(0)]
    counts: Annotated[Integers, Values(0)]
    limits: Annotated[Floats, Values(-np.inf, np.inf)]

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        return bad_places(self.active, self.counts)


class SDCA(Trainer):
    """Dual coordinate ascent with shrinking: the fastest trainer of linear models, with a certificate over all rows.

    For `LinearTask`, two classes, and `RegressionTask`, numbers, with any scalar loss that has a `dual_table` and any regulariser
    that has a `dual_map`; and for tasks over `LabelRows` and `MulticlassOracle`, many classes, with any loss of their scores
    (see `LabelAscent` and `ColumnAscent`). A pass does as much work as one update of all rows (and labels). Rows that have
    settled at a bound are left out until the others have settled, too, so that late passes hold many sweeps over few rows. With
    many labels and the hinge under 1/2 |w|^2, dual variables between their bounds are solved for after a pass, by an active-set
    method, once they are few enough to cost no more than the passes do: small problems are then solved to rounding.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), A dual coordinate descent method for large-scale linear SVM.
    Shalev-Shwartz and Zhang (2016), Accelerated proximal stochastic dual coordinate ascent for regularized loss minimization.
    Kato, Kobayashi and Sano (2018), Sign-constrained regularized loss minimization.
    Keerthi, Sundararajan, Chang, Hsieh and Lin (2008), A sequential dual method for large scale multi-class linear SVMs.

    Examples
    --------
    >>> from structpred.rows.linear_task import LinearTask
    >>> from structpred.trainers.loop import RunSettings, train
    >>> task = LinearTask([[2.0], [1.0], [-1.0]], [1, 1, -1])
    >>> result = train(Problem(task, MarginRescaling(), 0.1), SDCA(), RunSettings(max_iter=50, tol=1e-9))
    >>> result.stop_reason, result.weights.round(6).tolist()
    ('tol', [1.0])
    """

    name = "sdca"
    requires = (("rows", "label_rows"),)
    regulariser_requires = ("dual_map",)
    kinds = (MarginRescaling, ScalarLoss, MulticlassLoss)
    certified = True

    @classmethod
    def fits(cls, regulariser: Regulariser) -> bool:
        """Whether the map from u to w stays the same."""
        return not regulariser.adapts

    def init_state(self, problem: Problem) -> Any:
        """Every dual variable at the truth, w = 0; all rows are active."""
        return ascent_of(problem).init_state()

    def order(self, problem: Problem, state: Any, rng: np.random.Generator, n_pass: int) -> Integers:
        """A random number for each compiled call of the pass."""
        return rng.integers(0, len(problem.task), 1 + ascent_of(problem).work() // CALL)

    def update(self, problem: Problem, state: Any, item: int) -> tuple[Any, bool]:
        """One compiled call."""
        ascent = ascent_of(problem)
        seed = np.uint64((item + 1) * 0x9E3779B97F4A7C15 % 2**64 | 1)
        return state, ascent.ascend(state, seed, min(ascent.work(), CALL)) > 0

    def finish_pass(self, problem: Problem, state: Any) -> Any:
        """The next one begins with the active rows; after `patience` passes over these alone all are updated."""
        ascent = ascent_of(problem)
        ascent.refresh(state)
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
        return cast(Vector, ascent_of(problem).weights(state).astype(problem.task.dtype))

    def objective(self, problem: Problem, state: Any) -> tuple[float, float]:
        """Primal at the weights, and the dual value of the dual point, with its own weights: rounding cannot add up."""
        return ascent_of(problem).objective(state)

    def gap_estimate(self, problem: Problem, state: Any) -> float:
        """The gap of the rows of the last sweep, each as the sweep found it."""
        return problem.lam * float(state.limits[6])

    def report(self, problem: Problem, state: Any) -> dict[str, Floats]:
        """dual_point: u, where w is not linear in it."""
        return {} if problem.dual_map.linear else {"dual_point": state.w}


class RowAscent(MappedAscent):
    """The steps of one problem over rows: u = sum_i alpha_i a_i, alpha_i = p_i/lam of the a_i in the loss's table."""

    #: passes over the active rows alone
    patience = 32

    def __init__(self, problem: Problem) -> None:
        from structpred.trainers.rows._sdca_kernels import WIDTH

        super().__init__(problem)
        self.task = cast(RowTask, problem.task)
        self.duals = _dual_table(problem).scaled(problem.p / problem.lam)
        self.rows = np.empty((len(self.task), WIDTH))
        for k, column in enumerate((*self.duals, self.task.squared_norms(None if self.table is None else self.table[0]))):
            self.rows[:, k] = column

    def init_state(self) -> SDCAState:
        """alpha = 0."""
        n, start = len(self.task), max(float(np.abs(self.duals.target).max()), 1e-300)
        limits = np.array([np.inf, -np.inf, -np.inf, np.inf, start, 0.0, np.inf, 0.0])
        return SDCAState(np.zeros(self.task.dim), np.zeros(n), np.arange(n), np.array([n, 0, 0, 0, 0]), limits)

    def work(self) -> int:
        """The numbers that a sweep over all rows reads."""
        return len(self.task.values) + len(self.task)

    def ascend(self, state: SDCAState, seed: np.uint64, budget: int) -> int:
        """One compiled call."""
        from structpred.trainers.rows._sdca_kernels import ascend

        task = self.task
        return ascend(
            task.indptr, task.indices, task.values, self.rows, self.table, state.w, state.alpha, state.active, state.counts,
            state.limits, seed, budget,
        )  # fmt: skip

    def dual_point(self, state: SDCAState) -> Floats:
        """Of the alphas."""
        return self.task.combined(state.alpha)

    def objective(self, state: SDCAState) -> tuple[float, float]:
        """Primal and dual, in two passes over all rows."""
        alpha = np.clip(state.alpha, self.duals.low, self.duals.high)
        loss = -self.lam * float(self.duals.conjugate(alpha).sum())
        bound = self.problem.regulariser.bound(loss, self.lam, pieces_of(self.task.combined(alpha)))
        return self.problem.primal(self.weights(state)), bound


def _dual_table(problem: Problem) -> DualTable:
    """That of the surrogate; ParameterError where it has none that fits."""
    n, surrogate, name = len(problem.task), problem.surrogate, type(problem.surrogate).__name__
    if not hasattr(surrogate, "dual_table"):
        raise ParameterError(f"surrogate: sdca needs the table of phi*: {name} has no dual_table(y); pegasos needs none")
    found = surrogate.dual_table(cast(RowTask, problem.task).targets)
    fault = found.fault(n) if isinstance(found, DualTable) else f"expected a DualTable, got {type(found).__name__}"
    if fault is not None:
        raise ParameterError(f"dual_table of {name}: {fault}; run check_scalar_loss for details")
    return cast(DualTable, found)


@once_per_problem
def ascent_of(problem: Problem) -> RowAscent | LabelAscent | ColumnAscent:
    """The steps for the task's kind: passes over few rows take less time than making them."""
    if offers(problem.task, "rows"):
        return RowAscent(problem)
    plain = not hasattr(problem.surrogate, "points") and "squared_norm" in capabilities(problem.regulariser)
    return LabelAscent(problem) if plain else ColumnAscent(problem)


def steps_for(problem: Problem, eps: float) -> tuple[int, int]:
    """(T, T_0), known before training: the mean of the iterates T_0 + 1 to T of random single steps is expected within eps of the
    optimum (Kato, Kobayashi and Sano 2018, Theorem 2, (17) to (19), the latter at the T - T_0 that makes T least).

    Raises ParameterError for eps that is not positive, for weights of samples, and for a loss neither smooth nor Lipschitz.

    >>> from structpred.rows.linear_task import LinearTask
    >>> steps_for(Problem(LinearTask([[2.0], [1.0], [-1.0]], [1, 1, -1]), MarginRescaling(), 0.1), 0.5)
    (400, 320)
    """
    if not (np.isfinite(eps) and eps > 0.0) or np.ptp(problem.p) > 1e-12:
        raise ParameterError(f"expected eps > 0, and samples of equal weight, got eps = {eps}")
    n, lam, table, first = len(problem.task), problem.lam, _dual_table(problem), problem.primal(np.zeros(problem.task.dim))
    square = float(cast(RowTask, problem.task).squared_norms().max())
    if (gamma := float(getattr(problem.surrogate, "gamma", 0.0))) > 0.0:
        least = n + square / (lam * gamma)
        start = int(np.ceil(least * np.log(max(first / eps, 1.0))))
        return start + int(np.ceil(least)), start
    size = square * float((table.high - table.low).max()) ** 2  # G
    if not np.isfinite(size):
        raise ParameterError(f"{type(problem.surrogate).__name__} is neither smooth nor Lipschitz continuous")
    before = max(0, int(np.ceil(n * np.log(2.0 * lam * n * first / size)))) if size else 0
    start = int(np.ceil(4.0 * size / (lam * eps))) + before
    return start + int(np.ceil(max(n, size / (lam * eps)))), start
