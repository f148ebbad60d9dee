"""What the oracles over OR-Tools share: whether it can work, and CP-SAT, whose answers depend on nothing but the model."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from structpred.core.oracle import Labels
from structpred.core.types import Floats, Integers
from structpred.errors import OracleError, ParameterError
from structpred.runtime.dependencies import check_solver_versions, require_installed

#: the sum of the largest scaled numbers stays below this: float64 and int64 hold all sums exactly
_LARGEST = 2.0**50


class Outcome(NamedTuple):
    """values: of all variables, None if no solution was found. bound: no solution is above, None where that is not known.

    proven: nothing is left to search; without values there is then no solution. spent: the deterministic time that it took.
    """

    values: Integers | None
    bound: int | None
    proven: bool
    spent: float


class Answer(NamedTuple):
    """The best output found, None if none was; what no output scores above (-inf: there is none); whether that is proven."""

    labels: Labels | None
    bound: float
    proven: bool


@lru_cache(maxsize=64)
def check_ortools(needed_by: str) -> None:
    """Raise DependencyError, with the command that helps, where OR-Tools is missing or clashes with another library.

    Looking up versions takes longer than solving a small program, so that what was found once is not asked again.
    """
    require_installed("ortools", extra="solvers", needed_by=needed_by)
    check_solver_versions()


def load_cp_model(needed_by: str) -> Any:
    """The modelling module of CP-SAT. Raises DependencyError where OR-Tools is missing or cannot work."""
    check_ortools(needed_by)
    from ortools.sat.python import cp_model

    return cp_model


def checked_limit(limit: float) -> float:
    """A number > 0 of deterministic time, else ParameterError."""
    if not limit > 0.0:
        raise ParameterError(f"expected a limit > 0 of deterministic time, got {limit}")
    return float(limit)


def power_of_two(total: float) -> float:
    """The scale for numbers whose largest sum is `total`: a power of two, so that only what is below the last place is lost."""
    return float(2.0 ** np.floor(np.log2(_LARGEST / total))) if total > 0.0 else 1.0


def whole_rows(A: Floats, b: Floats, n_on: int) -> tuple[Integers, Integers]:
    """Whole-number rows that hold wherever A mu <= b does, for mu with at most n_on parts on (counts); what they let in
    besides is off by 2^-50 of the rows' size, and the caller looks again."""
    scales = np.array([power_of_two(n_on * float(size)) for size in np.abs(A).max(axis=1, initial=0.0)])
    rows = np.floor(A * scales[:, None])
    # a limit beyond all sums says the same as one there; 1 more: the sums that are compared are rounded ones
    limits = np.floor(np.clip(b * scales, -2.0 * _LARGEST, 2.0 * _LARGEST)) + 1.0
    return rows.astype(np.int64), limits.astype(np.int64)


def solve(cp_model: Any, model: Any, n_variables: int, limit: float) -> Outcome:
    """Run CP-SAT with one worker, a fixed seed and a limit on its deterministic time: the same answer on each machine and day."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.linearization_level = 2
    # the presolve of OR-Tools 9.15 takes one model in a hundred with general rows for infeasible when it is not
    solver.parameters.cp_model_presolve = False
    # probing in presolve loses solutions of some models with large coefficients (OR-Tools 9.15): "optimal" is then not
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.max_deterministic_time = max(limit, 0.0)
    status = solver.solve(model)
    spent = float(solver.response_proto.deterministic_time)
    if status == cp_model.INFEASIBLE:
        return Outcome(None, None, True, spent)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        raise OracleError(f"CP-SAT refused the model ({solver.status_name(status)}): {model.validate() or 'no reason given'}")
    found = status != cp_model.UNKNOWN
    values = np.fromiter(solver.response_proto.solution, np.int64, n_variables) if found else None
    bound = solver.best_objective_bound
    # 0 is also the value before anything is known
    known = status == cp_model.OPTIMAL or bound != 0.0
    return Outcome(values, int(np.ceil(bound - 1e-6)) if known else None, status == cp_model.OPTIMAL, spent)
