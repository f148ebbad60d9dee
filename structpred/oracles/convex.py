"""An oracle from a description of the polytope of outputs: cvxpy solves what is asked over it."""

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import checked_scores
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import ConvergenceError, InfeasibleError, OracleError, ParameterError
from structpred.oracles.solvers._constraint_rows import checked_rows
from structpred.runtime.dependencies import check_solver_versions, require_installed
from structpred.runtime.settings import checked_whole

#: shape -> (a cvxpy Variable with one number per part, the constraints that it satisfies)
Description = Callable[[Shape], tuple[Any, Sequence[Any]]]

#: programs that a thread keeps compiled
KEPT = 32
#: the interior point method converges in far fewer steps, or never
_CLARABEL_STEPS = 200
#: the accuracy of the interior point method in projections onto polytopes; round sets get its own 1e-8
#: HiGHS's own 1e-7 is of the size of the largest score: what is added to a common offset would be lost
_LP_ACCURACY = {"dual_feasibility_tolerance": 1e-10}
#: Clarabel's name of an accuracy that will do where the one aimed at is not reached
_REDUCED = "reduced_tol_gap_abs"
_ACCURACY = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-11}


class _Program(NamedTuple):
    """A compiled problem: its variable and the parameters that are set for each question (None: it has none such)."""

    problem: Any
    mu: Any
    scores: Any
    weight: Any
    rows: Any
    limits: Any
    closed: Any


class ConvexOracle(Oracle):
    """The structure whose outputs lie in the convex set of `describe(shape)`: relaxed, constrained and projected by cvxpy.

    describe: returns (mu, constraints): mu a cvxpy Variable with one number per part, 1-d; other variables may help. Linear
    questions go to HiGHS (the answer is a vertex), projections and round sets to Clarabel. A description is requested once per
    shape and kind of question, and compiled once (DPP).

    Outputs: labels are the parts with mu >= 1/2, ascending, unless `rounding(mu, shape) -> labels` and `parts(labels, shape)` say
    otherwise. argmax rounds (ConvexPoints does not), so that it is exact only where the set is the convex hull of all outputs:
    exact=True says so. enumerate: lists all outputs of small shapes, for check_oracle. label_grid: (n_positions, n_labels) if the
    parts begin with such a grid. max_iterations: the most steps of a solver (HiGHS: pivots; Clarabel stops after 200).
    accuracy: what Clarabel aims at for linear scores over round sets, of which a tenth must be reached; None: its own 1e-8.

    How to: matchings of n rows with n columns, of which some may stay alone.

    >>> import numpy as np
    >>> def matchings(shape):
    ...     import cvxpy as cp
    ...     n = shape[0]
    ...     mu = cp.Variable(n * n)
    ...     table = cp.reshape(mu, (n, n), order="C")
    ...     return mu, [mu >= 0, cp.sum(table, axis=0) <= 1, cp.sum(table, axis=1) <= 1]
    >>> oracle = ConvexOracle(matchings, example_shapes=[(1,), (2,)], exact=True)
    >>> scores = np.array([3.0, 4.0, 2.0, 5.0])
    >>> oracle.argmax(scores, (2,)).tolist()
    [0, 3]
    >>> few = oracle.argmax_relaxed_constrained(scores, (2,), np.ones((1, 4)), np.array([1.5]))  # at most one pair and a half
    >>> (few.round(6) + 0.0).tolist()
    [0.5, 0.0, 0.0, 1.0]
    >>> (oracle.project(np.array([0.75, 0.75, -1.0, 0.0]), (2,)).round(6) + 0.0).tolist()
    [0.5, 0.5, 0.0, 0.0]

    Needs cvxpy (the extra `solvers`). Raises DependencyError where it is missing, OracleError for an invalid description
    (not convex, unbounded), InfeasibleError where the set is empty, DataError for scores that are not finite, ConvergenceError
    where a solver gives up.
    """

    expensive = True
    enumerate: Callable[[Shape], Iterable[Labels]]
    label_grid: Callable[[Shape], tuple[int, int]]

    def __init__(
        self, describe: Description, *, example_shapes: Iterable[Shape],
        rounding: Callable[[Floats, Shape], Labels] | None = None, parts: Callable[[Labels, Shape], Integers] | None = None,
        enumerate: Callable[[Shape], Iterable[Labels]] | None = None,
        label_grid: Callable[[Shape], tuple[int, int]] | None = None, exact: bool = False, max_iterations: int = 100_000,
        accuracy: float | None = None,
    ) -> None:  # fmt: skip
        if accuracy is not None and not 0.0 < accuracy < 1.0:
            raise ParameterError(f"expected an accuracy above 0 and below 1, got {accuracy}")
        self.max_iterations = checked_whole(max_iterations, "max_iterations")
        self._accuracy = {} if accuracy is None else _aims(float(accuracy))
        self._describe, self._rounding, self._parts = describe, rounding, parts
        self._example_shapes = list(example_shapes)
        self.exact = bool(exact)
        self._sizes: dict[Shape, int] = {}
        self._kept = threading.local()
        if enumerate is not None:
            self.enumerate = enumerate
        if label_grid is not None:
            self.label_grid = label_grid

    def n_parts(self, shape: Shape) -> int:
        """The size of mu."""
        if shape not in self._sizes:
            self._sizes[shape] = int(self._described(shape)[0].size)
        return self._sizes[shape]

    def example_shapes(self) -> list[Shape]:  # type: ignore[override]  # each instance has its own
        """Those given."""
        return list(self._example_shapes)

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """As the function says; else the labels are the parts."""
        if self._parts is not None:
            return self._parts(labels, shape)
        if labels.ndim != 1 or (len(labels) and not (labels.min() >= 0 and labels.max() < self.n_parts(shape))):
            raise ValueError(f"expected parts in [0, {self.n_parts(shape)}) as labels, got {labels.tolist()}")
        return labels

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best point, rounded. Raises OracleError where that leaves the set and no `rounding` was given."""
        mu = self.argmax_relaxed(scores, shape)
        if self._rounding is not None:
            return self._rounding(mu, shape)
        labels = np.flatnonzero(mu >= 0.5).astype(np.int64)
        if np.abs(mu - np.rint(mu)).max(initial=0.0) > 1e-6 and self.distance(np.rint(mu), shape) > 1e-6:
            raise OracleError(
                f"shape {_named(shape)}: the best point is fractional, and the parts with mu >= 1/2 are not a valid output: give "
                "rounding=(mu, shape) -> labels"
            )
        return labels

    def argmax_relaxed(self, scores: Scores, shape: Shape) -> Floats:
        """The best point of the set."""
        given = self._checked(scores, shape)
        found = self._best(given, shape, np.zeros((0, len(given))), np.zeros(0))
        if found is None:
            raise InfeasibleError(
                f"shape {_named(shape)}: no point satisfies the constraints of the description, or all are forbidden"
            )
        return found

    def argmax_relaxed_constrained(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> Floats | None:
        """The best point of the set with A mu <= b, None if there is none."""
        given = self._checked(scores, shape)
        rows = checked_rows(A, b, len(given))
        return None if rows is None else self._best(given, shape, *rows)

    def project(self, point: Floats, shape: Shape) -> Floats:
        """The nearest point of the set (Euclidean), to about 1e-9, or 1e-4 where the set is round."""
        point = self._checked(point, shape)
        program = self._program(shape, "project", 0, False)
        # |mu|^2 - 2 point . mu, the point scaled down to numbers that a solver's tolerances are made for
        size = max(1.0, float(np.abs(point).max(initial=0.0)))
        program.scores.value, program.weight.value = 2.0 * point / size, 1.0 / size
        self._find(program, shape, _ACCURACY if program.problem.is_qp() else {})
        return np.asarray(program.mu.value, dtype=np.float64)

    def distance(self, point: Floats, shape: Shape) -> float:
        """How far the nearest point of the set is, as the largest difference of a part; 0 for its own points."""
        program = self._program(shape, "distance", 0, False)
        program.scores.value = self._checked(point, shape)
        self._find(program, shape, {})
        return float(-program.problem.value)

    def _checked(self, scores: Scores, shape: Shape) -> Scores:
        return checked_scores(scores, self.n_parts(shape), shape)

    def _best(self, scores: Scores, shape: Shape, A: Floats, b: Floats) -> Floats | None:
        forbidden = scores <= 0.5 * FORBIDDEN
        program = self._program(shape, "argmax", len(b), bool(forbidden.any()))
        given = np.where(forbidden, 0.0, scores)
        # solvers have absolute tolerances
        program.scores.value = given / max(float(np.abs(given).max(initial=0.0)), 1e-300)
        if len(b):
            sizes = np.maximum(np.abs(A).max(axis=1), 1e-300)
            program.rows.value, program.limits.value = A / sizes[:, None], b / sizes
        if program.closed is not None:
            program.closed.value = forbidden.astype(np.float64)
        if self._solve(program, shape, {} if program.problem.is_lp() else self._accuracy) == "infeasible":
            return None
        return np.where(forbidden, 0.0, np.asarray(program.mu.value, dtype=np.float64))

    def _find(self, program: _Program, shape: Shape, accuracy: dict[str, float]) -> None:
        """Solve; InfeasibleError where the set is empty."""
        if self._solve(program, shape, accuracy) == "infeasible":
            raise InfeasibleError(f"shape {_named(shape)}: no point satisfies the constraints of the description")

    def _solve(self, program: _Program, shape: Shape, accuracy: dict[str, float]) -> str:
        """Solve; "optimal" or "infeasible"."""
        import cvxpy as cp

        limit: dict[str, float] = {"max_iter": min(self.max_iterations, _CLARABEL_STEPS)}
        solver = cp.CLARABEL
        if program.problem.is_lp() and "HIGHS" in cp.installed_solvers():
            solver, limit = cp.HIGHS, {"simplex_iteration_limit": self.max_iterations, **_LP_ACCURACY}
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Solution may be inaccurate")  # the status says so, and is looked at
                program.problem.solve(solver=solver, warm_start=False, **accuracy, **limit)
        except cp.error.SolverError as error:
            raise ConvergenceError(f"shape {_named(shape)}: {solver} gave up: {error}") from error
        status = str(program.problem.status)
        if status == "infeasible_or_unbounded" or (status.startswith("infeasible") and solver == cp.CLARABEL):
            status = self._which(program)
        if status.startswith("unbounded"):
            raise OracleError(
                f"shape {_named(shape)}: the description has no bounds in the direction of the scores: add 0 <= mu, mu <= 1"
            )
        if status.startswith("infeasible"):
            return "infeasible"
        if status != "optimal" and not (status == "optimal_inaccurate" and _REDUCED in accuracy):
            reached = f" (max_iterations={self.max_iterations:,})" if status == "user_limit" else ""
            raise ConvergenceError(f"shape {_named(shape)}: {solver} ended with the status {status!r}{reached}")
        return "optimal"

    def _which(self, program: _Program) -> str:
        """Whether the set is really empty: solvers mistake unbounded and badly scaled objectives for that."""
        import cvxpy as cp

        program.scores.value = np.zeros(program.scores.shape)
        program.problem.solve(solver=cp.CLARABEL, warm_start=False)
        if str(program.problem.status).startswith("infeasible"):
            return "infeasible"
        return "badly scaled" if program.weight is not None else "unbounded"

    def _described(self, shape: Shape) -> tuple[Any, list[Any]]:
        """What the user's function gives for a shape, looked at before anything is solved."""
        require_installed("cvxpy", extra="solvers", needed_by=type(self).__name__)
        check_solver_versions()
        import cvxpy as cp

        found = self._describe(shape)
        expected = (
            f"shape {_named(shape)}: describe must return (mu, constraints), a 1-d cvxpy Variable and a list of constraints"
        )
        if not (isinstance(found, tuple) and len(found) == 2):
            raise OracleError(f"{expected}; got {type(found).__name__}")
        mu, constraints = found[0], list(found[1])
        if not isinstance(mu, cp.Variable) or mu.ndim != 1 or mu.attributes["integer"] or mu.attributes["boolean"]:
            raise OracleError(f"{expected}; got mu = {mu!r} (it must be continuous, and the variable itself, not an expression)")
        for constraint in constraints:
            if not isinstance(constraint, cp.constraints.constraint.Constraint):
                raise OracleError(f"{expected}; got the constraint {constraint!r}")
            if not constraint.is_dcp():
                raise OracleError(f"shape {_named(shape)}: cvxpy cannot verify that this constraint is convex: {constraint}")
        return mu, constraints

    def _program(self, shape: Shape, question: str, n_rows: int, forbids: bool) -> _Program:
        """The compiled problem for a kind of question; each thread has its own, as parameters are set on it."""
        kept: OrderedDict[Any, _Program] | None = getattr(self._kept, "programs", None)
        if kept is None:
            kept = self._kept.programs = OrderedDict()
        key = (shape, question, n_rows, forbids)
        if key not in kept:
            import cvxpy

            cp: Any = cvxpy  # its functions are not all known to type checkers

            mu, constraints = self._described(shape)
            scores = cp.Parameter(mu.size)
            rows = cp.Parameter((n_rows, mu.size)) if n_rows else None
            limits = cp.Parameter(n_rows) if n_rows else None
            closed = cp.Parameter(mu.size, nonneg=True) if forbids else None
            if n_rows:
                constraints.append(rows @ mu <= limits)
            if closed is not None:
                constraints.append(cp.multiply(closed, mu) == 0.0)
            weight = cp.Parameter(nonneg=True) if question == "project" else None
            if question == "distance":
                aim = -cp.norm_inf(mu - scores)
            else:
                aim = scores @ mu if weight is None else scores @ mu - weight * cp.sum_squares(mu)
            kept[key] = _Program(cp.Problem(cp.Maximize(aim), constraints), mu, scores, weight, rows, limits, closed)
            if len(kept) > KEPT:
                kept.popitem(last=False)
        kept.move_to_end(key)
        return kept[key]

    def __getstate__(self) -> dict[str, Any]:
        """Without what is compiled, which other processes cannot use."""
        return {**self.__dict__, "_kept": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _kept=threading.local())


def _aims(accuracy: float) -> dict[str, float]:
    """Clarabel's options for it: ten times less will do."""
    reduced = (_REDUCED, "reduced_tol_gap_rel", "reduced_tol_feas")
    return {**dict.fromkeys(_ACCURACY, accuracy), **dict.fromkeys(reduced, 10.0 * accuracy)}


def _named(shape: Shape) -> str:
    """A shape in words: one that holds tables is cut."""
    text = str(shape)
    return text if len(text) <= 80 else f"{text[:77]}..."
