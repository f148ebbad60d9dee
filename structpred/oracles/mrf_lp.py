"""Pairwise MRFs relaxed to the local polytope: a linear program, by OR-Tools (Schlesinger 1976; Werner 2007).

In the simplex method (GLOP) it is built once and solved again from the last basis; graphs that are too big for that take the
first-order method (PDLP).
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.types import ArrayLike, Flags, Floats, Integers
from structpred.errors import ConvergenceError, ParameterError
from structpred.oracles.fields._local_polytope import (
    Compact,
    allowed_labels,
    allowed_parts,
    compact_form,
    improved,
    marginal_rows,
    message_bound,
    repaired,
    rounded,
)
from structpred.oracles.mrf import NOTHING_LEFT, PairwiseOracle, graph_of, refuse
from structpred.oracles.solvers._constraint_rows import checked_rows
from structpred.oracles.solvers._ortools import check_ortools
from structpred.projections.clique_marginals import Cliques, cliques_of, project_onto_clique_marginals
from structpred.runtime.ranges import ends_of

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


class RelaxedMRF(PairwiseOracle):
    """The best point of the local polytope, and labels rounded from it: inexact, with a bound.

    pdlp_from: graphs with at least this many parts are solved by a first-order method (PDLP), to the relative accuracy `tol`; the
    others by a simplex method (GLOP), which gives vertices and solves similar programs again from the last basis.
    max_iterations: the most steps of either method (GLOP: pivots; PDLP: products with the program's matrix).
    Needs OR-Tools (the extra `solvers`; DependencyError says so). Raises DataError for scores that are not finite,
    InfeasibleError where every output is forbidden, ConvergenceError where a solver gives up or reaches its limit, and where
    labels without forbidden parts are not found.

    Labels never have a forbidden part: where rounding leaves one, states are searched for that go together, the rounded ones
    first, and improved one by one.

    >>> import numpy as np
    >>> from structpred.oracles.mrf import graph_shape
    >>> shape = graph_shape(3, 2, [(0, 1), (0, 2), (1, 2)])
    >>> scores = np.array([0.0] * 6 + [0.0, 1.0, 1.0, 0.0] * 3)  # all three want to differ: no output can
    >>> RelaxedMRF().argmax_relaxed(scores, shape)[:6].tolist(), round(RelaxedMRF().argmax_bound(scores, shape)[1], 6)
    ([0.5, 0.5, 0.5, 0.5, 0.5, 0.5], 3.0)
    """

    exact = False

    def __init__(self, pdlp_from: int = 50_000, tol: float = 1e-7, max_iterations: int = 200_000) -> None:
        if not (pdlp_from >= 0 and 0.0 < tol < 1.0 and max_iterations >= 1):
            raise ParameterError(
                f"expected pdlp_from >= 0, 0 < tol < 1 and max_iterations >= 1, got {pdlp_from}, {tol} and {max_iterations}"
            )
        self.pdlp_from, self.tol, self.max_iterations = int(pdlp_from), float(tol), int(max_iterations)

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """Labels rounded from the best point: the best output where the relaxation is tight, else perhaps not."""
        given, allowed = allowed_parts(scores, shape)
        return _allowed(given, allowed, self._best(given, allowed, shape).mu, shape)

    def argmax_bound(self, scores: Scores, shape: Shape) -> tuple[Labels, float]:
        """Labels rounded from the best point, and what no output scores above, recomputed from the dual."""
        given, allowed = allowed_parts(scores, shape)
        best = self._best(given, allowed, shape)
        return _allowed(given, allowed, best.mu, shape), message_bound(graph_of(shape), given, allowed, best.messages)

    def argmax_relaxed(self, scores: Scores, shape: Shape) -> Floats:
        """The best point of the local polytope; among several the same one each time."""
        given, allowed = allowed_parts(scores, shape)
        return self._best(given, allowed, shape).mu

    def argmax_relaxed_constrained(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> Floats | None:
        """The best point of the local polytope with A mu <= b, to the solver's accuracy; None if there is none."""
        given, allowed = allowed_parts(scores, shape)
        rows = checked_rows(A, b, self.n_parts(shape))
        found = None if rows is None else self._optimum(given, allowed, *rows, shape)
        return None if found is None else found.mu

    def polytope(self, shape: Shape) -> tuple[Any, Floats, Floats]:
        """Sparse rows: sums of nodes, sums of tables over rows and columns, and every part >= 0."""
        return _polytope(shape)

    def clique_parts(self, shape: Shape) -> tuple[Integers, Integers]:
        """The clique marginals, of nodes and of edges, are the part counts themselves."""
        n_parts = graph_of(shape).n_parts
        return np.arange(n_parts + 1), np.arange(n_parts)

    def project_cliques(
        self, points: Scores, offsets: Integers, shapes: Sequence[Shape], start: Floats | None = None, n_jobs: int = 1
    ) -> tuple[Floats, Floats]:
        """The nearest points of the local polytope, and multipliers. It holds the hull of all outputs, so that training over it
        maximises the dual of the relaxed objective, the one that `argmax_bound` gives.
        """
        found, multipliers = [np.empty(0)], [np.empty(0)]
        places = ends_of(np.array([graph_cliques(shape).equations.shape[0] for shape in shapes], dtype=np.int64))
        for i, shape in enumerate(shapes):
            point = points[offsets[i] : offsets[i + 1]]
            warm = None if start is None else start[places[i] : places[i + 1]]
            x, nu = project_onto_clique_marginals(point, graph_cliques(shape), warm, tol=1e-9)
            found.append(repaired(graph_of(shape), point > 0.5 * FORBIDDEN, x))
            multipliers.append(nu)
        return np.concatenate(found), np.concatenate(multipliers)

    def _best(self, scores: Floats, allowed: Flags, shape: Shape) -> Optimum:
        found = self._optimum(scores, allowed, np.zeros((0, len(scores))), np.zeros(0), shape)
        if found is None:
            refuse(NOTHING_LEFT, shape)
        return found

    def _optimum(self, scores: Floats, allowed: Flags, A: Floats, b: Floats, shape: Shape) -> Optimum | None:
        graph, who = graph_of(shape), type(self).__name__
        if graph.n_states == 1:
            mu = np.ones(len(scores))
            fits = bool(allowed.all() and (A @ mu <= b).all())
            return Optimum(mu, np.zeros((len(graph.edges), 2, 1)), np.zeros(len(b))) if fits else None
        if graph.n_parts >= self.pdlp_from:
            near = solve_pdlp(scores, allowed, A, b, shape, self.tol, self.max_iterations, who)
            if near is None:
                return None
            return near._replace(mu=np.where(allowed, near.mu, 0.0) if len(b) else repaired(graph, allowed, near.mu))
        return solve_glop(scores, allowed, A, b, shape, self.max_iterations, who)


@lru_cache(maxsize=64)
def _polytope(shape: Shape) -> tuple[Any, Floats, Floats]:
    from scipy import sparse

    equations, right = marginal_rows(shape)
    n_parts = graph_of(shape).n_parts
    rows = sparse.vstack((equations, sparse.eye_array(n_parts, format="csr")), format="csr")
    return rows, np.concatenate((right, np.zeros(n_parts))), np.concatenate((right, np.full(n_parts, np.inf)))


@lru_cache(maxsize=64)
def graph_cliques(shape: Shape) -> Cliques:
    """The nodes and the edges of a graph as cliques; tables one after the other are its parts."""
    graph = graph_of(shape)
    return cliques_of([*((i,) for i in range(graph.n)), *map(tuple, graph.edges.tolist())], [graph.n_states] * graph.n)


def _allowed(scores: Floats, allowed: Flags, mu: Floats, shape: Shape) -> Labels:
    """mu rounded to labels without forbidden parts. Raises InfeasibleError where there are none."""
    graph = graph_of(shape)
    labels = rounded(graph, scores, allowed, mu)
    if allowed[graph.parts(labels)].all():
        return labels
    found = allowed_labels(graph, allowed, labels)
    if found is None:
        refuse(NOTHING_LEFT, shape)
    better = improved(graph, scores, allowed, found)
    return better if allowed[graph.parts(better)].all() else found  # scores of 1e30 could outweigh what forbids
