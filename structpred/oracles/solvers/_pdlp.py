"""The local polytope in OR-Tools' first-order method (PDLP), for graphs that are too big for a simplex method."""

import numpy as np

from structpred.core.oracle import Shape
from structpred.core.types import Floats
from structpred.errors import ConvergenceError
from structpred.oracles.fields._local_polytope import Mask, marginal_rows
from structpred.oracles.mrf import graph_of
from structpred.oracles.solvers._solvers import check_ortools


def solve_pdlp(
    scores: Floats, allowed: Mask, A: Floats, b: Floats, shape: Shape, tol: float, max_products: int, needed_by: str
) -> tuple[Floats, Floats, Floats] | None:
    """A point near the best one, the messages (E, 2, K) of its dual, the multipliers of the rows A mu <= b; None: there is none.

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
    return np.asarray(result.primal_solution), messages, np.maximum(dual[split:], 0.0)
