"""The local polytope in OR-Tools: in the simplex method (GLOP), built once and solved again from the last basis, and, for graphs
that are too big for it, in the first-order method (PDLP).
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from structpred.core.oracle import Shape
from structpred.core.types import Flags, Floats
from structpred.errors import ConvergenceError
from structpred.oracles.fields._local_polytope import Compact, compact_form, marginal_rows
from structpred.oracles.mrf import graph_of
from structpred.oracles.solvers._ortools import check_ortools

#: models that a thread keeps: together they have at most this number of parts (some hundred bytes each)
KEPT_PARTS = 1 << 17
#: the accuracy of the simplex method, for coefficients scaled to one
_TOLERANCE = 1e-9
#: mu is rounded to multiples of this, so that it does not depend on the way by which the solver came to a vertex
_GRID = 2.0**40


class Optimum(NamedTuple):
    """A best point, the messages (E, 2, K) of its dual, and the multipliers of the rows A mu <= b."""

    mu: Floats
    messages: Floats
    multipliers: Floats


class GlopModel:
    """One linear program: maximise scores . mu over the local polytope of a shape, with `n_rows` further rows A mu <= b."""

    def __init__(self, shape: Shape, n_rows: int) -> None:
        from ortools.linear_solver import pywraplp

        self._lp: Any = pywraplp
        self._graph = graph_of(shape)
        self._form = form = compact_form(shape)
        self._solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        infinity = self._solver.infinity()
        self._z = [self._solver.NumVar(0.0, infinity, "") for _ in range(len(form.kept))]
        self._rows = [self._solver.Constraint(-float(lower), infinity, "") for lower in form.start[form.dropped]]
        self._extra = [self._solver.Constraint(-infinity, infinity, "") for _ in range(n_rows)]
        for row, values in zip(self._rows, _lines(form), strict=True):
            for k, value in values:
                row.SetCoefficient(self._z[k], value)
        self._columns = form.matrix.T.tocsr()
        self._allowed: Flags = np.ones(len(form.start), np.bool_)
        self._parameters: Any = pywraplp.MPSolverParameters()
        # without presolve, so that the last basis is used
        self._parameters.SetIntegerParam(self._parameters.PRESOLVE, self._parameters.PRESOLVE_OFF)
        self._parameters.SetDoubleParam(self._parameters.PRIMAL_TOLERANCE, _TOLERANCE)
        self._parameters.SetDoubleParam(self._parameters.DUAL_TOLERANCE, _TOLERANCE)

    def solve(self, scores: Floats, allowed: Flags, A: Floats, b: Floats, max_iterations: int) -> tuple[Optimum | None, bool]:
        """The best point, None where there is none; and whether that answer is the only one and beyond doubt."""
        # what is forbidden is held at zero, by its own bound or by that of its row
        changed, infinity = allowed != self._allowed, self._solver.infinity()
        for places, items in ((self._form.kept, self._z), (self._form.dropped, self._rows)):
            for k in np.flatnonzero(changed[places]).tolist():
                part = int(places[k])
                items[k].SetUb(infinity if allowed[part] else -float(self._form.start[part]))
        self._allowed = allowed.copy()
        row_sizes = _powers(A)
        limits = (b - A @ self._form.start) / row_sizes
        for constraint, row, limit in zip(self._extra, A / row_sizes[:, None], limits.tolist(), strict=True):
            constraint.SetUb(limit)
            _set(constraint, self._z, (self._columns @ row).tolist())
        size = float(_powers(scores[None, :])[0])
        objective = self._solver.Objective()
        _set(objective, self._z, (self._columns @ (scores / size)).tolist())
        objective.SetMaximization()
        self._solver.SetSolverSpecificParametersAsString(f"max_number_of_iterations: {max_iterations}")
        status = self._solver.Solve(self._parameters)
        if status == self._lp.Solver.INFEASIBLE:
            return None, False
        if status in (self._lp.Solver.FEASIBLE, self._lp.Solver.NOT_SOLVED):
            raise ConvergenceError(f"GLOP did not finish within max_iterations={max_iterations:,}: raise it")
        if status != self._lp.Solver.OPTIMAL:
            raise ConvergenceError(
                f"GLOP ended without an optimum (status {status}): are the scores or the rows extremely scaled?"
            )
        return self._optimum(scores, A, size, row_sizes)

    def _optimum(self, scores: Floats, A: Floats, size: float, row_sizes: Floats) -> tuple[Optimum, bool]:
        form = self._form
        z = np.array([v.solution_value() for v in self._z])
        mu = np.clip(np.rint((form.start + form.matrix @ z) * _GRID) / _GRID, 0.0, 1.0)
        mu[~self._allowed] = 0.0
        costs = [v.reduced_cost() for v in self._z]
        duals = [row.dual_value() for row in self._rows]
        further = [row.dual_value() for row in self._extra]
        slack = np.empty(len(mu))
        slack[form.kept], slack[form.dropped] = costs, duals
        multipliers = np.maximum(further, 0.0) * size / row_sizes
        # every number off the basis has its price: then no other point is as good
        items, prices = (*self._z, *self._rows, *self._extra), (*costs, *duals, *further)
        basic = self._lp.Solver.BASIC
        only = all(abs(p) > _TOLERANCE or item.basis_status() == basic for item, p in zip(items, prices, strict=True))
        # how far each score is from being used is added: such tables are sums of two messages
        k, sums = self._graph.n_states, scores - multipliers @ A + slack * -size
        tables = sums[self._graph.n * k :].reshape(-1, k, k)
        messages = np.stack((tables[:, :, -1] - tables[:, -1:, -1], tables[:, -1, :]), axis=1)
        return Optimum(mu, messages, multipliers), only


def _lines(form: Compact) -> list[list[tuple[int, float]]]:
    """The coefficients of each dropped part's row."""
    matrix = form.matrix[form.dropped]
    ends, columns, values = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    return [list(zip(columns[i:j], values[i:j], strict=True)) for i, j in pairwise(ends)]


def _set(row: Any, variables: Sequence[Any], values: Sequence[float]) -> None:
    for variable, value in zip(variables, values, strict=True):
        row.SetCoefficient(variable, value)


def _powers(rows: Floats) -> Floats:
    """For each row the power of two next to its largest number: dividing by it rounds nothing."""
    sizes: Floats = np.exp2(np.ceil(np.log2(np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1e-300))))
    return np.where(np.abs(rows).max(axis=1, initial=0.0) > 0.0, sizes, 1.0)


class _Kept(threading.local):
    """A thread's models, the one used last at the end."""

    def __init__(self) -> None:
        self.models: OrderedDict[tuple[Shape, int], GlopModel] = OrderedDict()


_kept = _Kept()


def solve_glop(
    scores: Floats, allowed: Flags, A: Floats, b: Floats, shape: Shape, max_iterations: int, needed_by: str
) -> Optimum | None:
    """The best point of the local polytope with A mu <= b, None where there is none; raises ConvergenceError.

    A thread keeps its models and solves them again from the last basis. Where several points are as good, or none was found, a
    new model decides: what is answered depends on the arguments alone, never on the calls before (those may only spare it from
    reaching the limit).
    """
    key = (shape, len(b))
    model = _kept.models.pop(key, None)
    solution, sure = None, False
    if model is not None:
        try:
            solution, sure = model.solve(scores, allowed, A, b, max_iterations)
        except ConvergenceError:
            model = None
    if not sure:
        check_ortools(needed_by)
        model = GlopModel(shape, len(b))
        solution, _ = model.solve(scores, allowed, A, b, max_iterations)
    assert model is not None
    _kept.models[key] = model
    while len(_kept.models) > 1 and sum(graph_of(s).n_parts for s, _ in _kept.models) > KEPT_PARTS:
        _kept.models.popitem(last=False)
    return solution


def solve_pdlp(
    scores: Floats, allowed: Flags, A: Floats, b: Floats, shape: Shape, tol: float, max_products: int, needed_by: str
) -> Optimum | None:
    """A point near the best one; None: there is none.

    tol: how far the objective and the equations may be off, relative to the size of the numbers. max_products: the most products
    with the program's matrix. Deterministic: one thread.
    Raises ConvergenceError.
    """
    check_ortools(needed_by)
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp
    from scipy import sparse

    equations, right = marginal_rows(shape)
    program = pdlp.QuadraticProgram()
    program.objective_vector = -scores
    program.constraint_matrix = sparse.csc_matrix(sparse.vstack((equations, sparse.csr_array(A))))
    program.constraint_lower_bounds = np.concatenate((right, np.full(len(b), -np.inf)))
    program.constraint_upper_bounds = np.concatenate((right, b))
    program.variable_lower_bounds = np.zeros(len(scores))
    program.variable_upper_bounds = np.where(allowed, np.inf, 0.0)
    parameters = solvers_pb2.PrimalDualHybridGradientParams(num_threads=1)
    parameters.termination_criteria.simple_optimality_criteria.eps_optimal_relative = tol
    parameters.termination_criteria.simple_optimality_criteria.eps_optimal_absolute = tol
    parameters.termination_criteria.kkt_matrix_pass_limit = max_products
    result = pdlp.primal_dual_hybrid_gradient(program, parameters)
    reason = result.solve_log.termination_reason
    if reason == solve_log_pb2.TERMINATION_REASON_PRIMAL_INFEASIBLE:
        return None
    if reason != solve_log_pb2.TERMINATION_REASON_OPTIMAL:
        name = solve_log_pb2.TerminationReason.Name(reason).removeprefix("TERMINATION_REASON_").lower()
        raise ConvergenceError(
            f"PDLP did not reach the relative accuracy {tol:g} on {len(scores):,} parts: {name}; set a larger tol, or more "
            f"iterations than max_iterations={max_products:,}"
        )
    graph, dual = graph_of(shape), -np.asarray(result.dual_solution)
    split = len(right)
    messages = dual[graph.n : split].reshape(len(graph.edges), 2, graph.n_states)
    return Optimum(np.asarray(result.primal_solution), messages, np.maximum(dual[split:], 0.0))
