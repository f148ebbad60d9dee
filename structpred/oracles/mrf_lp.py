"""Pairwise MRFs relaxed to the local polytope: a linear program, by OR-Tools (Schlesinger 1976; Werner 2007)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.types import ArrayLike, Flags, Floats, Integers
from structpred.errors import ParameterError
from structpred.oracles.fields._local_polytope import (
    allowed_labels,
    allowed_parts,
    improved,
    marginal_rows,
    message_bound,
    repaired,
    rounded,
)
from structpred.oracles.mrf import NOTHING_LEFT, PairwiseOracle, graph_of, refuse
from structpred.oracles.solvers._constraint_rows import checked_rows
from structpred.oracles.solvers._linear_programs import Optimum, solve_glop, solve_pdlp
from structpred.projections.clique_marginals import Cliques, cliques_of, project_onto_clique_marginals
from structpred.runtime.ranges import ends_of


@dataclass(frozen=True)
class Relaxation:
    """A best point of the relaxation and what it says of the outputs.

    mu: (n_parts,), fractions. value: no output scores above it, whatever the solver's accuracy; it is recomputed from the dual.
    integral: mu is an output, and then a best one. labels: mu rounded, without forbidden parts. rounding_loss: value less the
    score of the labels, >= 0; what the labels lack at most.
    """

    mu: Floats
    value: float
    integral: bool
    labels: Labels
    rounding_loss: float


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
    >>> found = RelaxedMRF().relaxation(scores, shape)
    >>> found.mu[:6].tolist(), round(found.value, 6), found.integral, round(found.rounding_loss, 6)
    ([0.5, 0.5, 0.5, 0.5, 0.5, 0.5], 3.0, False, 1.0)
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
        found = self.relaxation(scores, shape)
        return found.labels, found.value

    def argmax_relaxed(self, scores: Scores, shape: Shape) -> Floats:
        """The best point of the local polytope; among several the same one each time."""
        given, allowed = allowed_parts(scores, shape)
        return self._best(given, allowed, shape).mu

    def argmax_relaxed_constrained(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> Floats | None:
        """The best point of the local polytope with A mu <= b, to the solver's accuracy; None if there is none."""
        given, allowed = allowed_parts(scores, shape)
        graph = graph_of(shape)
        rows = checked_rows(A, b, graph.n_parts)
        found = None if rows is None else self._optimum(given, allowed, *rows, shape)
        return None if found is None else found.mu

    def relaxation(self, scores: Scores, shape: Shape) -> Relaxation:
        """The best point, the relaxation's value as a bound on all outputs, and labels with what they may lack."""
        given, allowed = allowed_parts(scores, shape)
        graph = graph_of(shape)
        best = self._best(given, allowed, shape)
        labels = _allowed(given, allowed, best.mu, shape)
        value = message_bound(graph, given, allowed, best.messages)
        score = float(given[graph.parts(labels)].sum())
        nodes = best.mu[: graph.n * graph.n_states]
        integral = bool(np.minimum(nodes, 1.0 - nodes).max() <= 1e-6)
        return Relaxation(best.mu, value, integral, labels, max(0.0, value - score))

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
