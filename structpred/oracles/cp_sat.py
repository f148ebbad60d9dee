"""Pairwise MRFs exactly, with any linear constraints on parts, by OR-Tools' CP-SAT."""

from typing import Any

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.types import ArrayLike, Flags, Floats, Integers
from structpred.errors import ConvergenceError
from structpred.oracles.fields._local_polytope import Compact, allowed_parts, compact_form, rounded
from structpred.oracles.mrf import NOTHING_LEFT, Graph, PairwiseOracle, graph_of, graph_shape, refuse
from structpred.oracles.solvers._constraint_rows import checked_rows, keeps
from structpred.oracles.solvers._ortools import Answer, checked_limit, load_cp_model, power_of_two, solve, whole_rows


def _few_shapes() -> list[Shape]:
    """Few, as each question takes milliseconds."""
    return [
        graph_shape(1, 3, []),
        graph_shape(3, 1, [(0, 1), (1, 2)]),
        graph_shape(5, 2, [(i, j) for i in range(5) for j in range(i + 1, 5)]),
        graph_shape(3, 3, [(0, 2), (0, 1), (1, 2)]),
    ]


class CpSatMRF(PairwiseOracle):
    """The best output of any graph, also with constraints A mu <= b; some milliseconds at least.

    limit: CP-SAT's deterministic time (about seconds of work, the same on every machine); where that is not enough to prove the
    maximum, ConvergenceError says what was reached. CP-SAT counts in whole numbers: scores are rounded to multiples of r, the
    power of two below 2^-49 times the sum of the largest |score| of each node and edge. Outputs whose scores differ by less than
    (n_nodes + n_edges) * r count as equal; the constraints are kept exactly as float64 computes them.
    One thread, a fixed seed: the same answer each time. Needs OR-Tools (the extra `solvers`; DependencyError says so). Raises
    DataError for scores that are not finite, InfeasibleError where every output is forbidden.

    >>> import numpy as np
    >>> from structpred.oracles.mrf import graph_shape
    >>> shape = graph_shape(2, 2, [(0, 1)])
    >>> scores = np.array([0.0, 1.0, 0.0, 1.0] + [0.0] * 4)
    >>> CpSatMRF().argmax(scores, shape).tolist()
    [1, 1]
    >>> A = np.array([[0.0, 1.0, 0.0, 1.0] + [0.0] * 4])  # how many nodes have state 1
    >>> int(CpSatMRF().argmax_constrained(scores, shape, A, np.array([1.0])).sum())
    1
    """

    def __init__(self, limit: float = 60.0) -> None:
        self.limit = checked_limit(limit)

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output."""
        labels = self._proven(_search(scores, shape, (), (), self.limit, type(self).__name__))
        if labels is None:
            refuse(NOTHING_LEFT, shape)
        return labels

    def argmax_constrained(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> Labels | None:
        """The best output with A mu <= b, None if there is none."""
        return self._proven(_search(scores, shape, A, b, self.limit, type(self).__name__))

    def _proven(self, answer: Answer) -> Labels | None:
        if not answer.proven:
            raise ConvergenceError(
                f"CP-SAT did not prove the maximum within limit={self.limit:g}: {'some' if answer.labels is not None else 'no'} "
                f"output was found, none scores above {answer.bound:.9g}; raise the limit, or use CpSatBoundMRF"
            )
        return answer.labels

    example_shapes = staticmethod(_few_shapes)


class CpSatBoundMRF(PairwiseOracle):
    """As CpSatMRF, but where the limit is reached the best output so far is the answer, with a bound: inexact.

    >>> import numpy as np
    >>> from structpred.oracles.mrf import graph_shape
    >>> labels, bound = CpSatBoundMRF().argmax_bound(np.array([0.0, 1.0]), graph_shape(1, 2, []))
    >>> labels.tolist(), bound >= 1.0
    ([1], True)
    """

    exact = False

    def __init__(self, limit: float = 1.0) -> None:
        self.limit = checked_limit(limit)

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output that was found."""
        return self.argmax_bound(scores, shape)[0]

    def argmax_bound(self, scores: Scores, shape: Shape) -> tuple[Labels, float]:
        """The best output that was found, and what no output scores above."""
        answer = _search(scores, shape, (), (), self.limit, type(self).__name__)
        if answer.labels is None:
            if answer.proven:
                refuse(NOTHING_LEFT, shape)
            raise ConvergenceError(f"CP-SAT found no output without forbidden parts within limit={self.limit:g}: raise the limit")
        return answer.labels, answer.bound

    def argmax_constrained_bound(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> tuple[Labels | None, float]:
        """The best output with A mu <= b that was found, and what none of them scores above; (None, -inf): there is none."""
        answer = _search(scores, shape, A, b, self.limit, type(self).__name__)
        return answer.labels, answer.bound

    example_shapes = staticmethod(_few_shapes)


def _search(scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike, limit: float, who: str) -> Answer:
    given, allowed = allowed_parts(scores, shape)
    graph = graph_of(shape)
    rows = checked_rows(A, b, graph.n_parts)
    if rows is None:
        return Answer(None, -np.inf, True)
    if graph.n_states == 1:  # nothing to choose
        fits = bool(allowed.all() and keeps(*rows, np.arange(graph.n_parts)))
        return Answer(np.zeros(graph.n, np.int64), float(given.sum()), True) if fits else Answer(None, -np.inf, True)
    return _Program(given, allowed, shape, *rows, who).search(limit)


class _Program:
    """The model of one question: a Boolean for each kept part of the compact form, a row for each dropped one."""

    def __init__(self, scores: Floats, allowed: Flags, shape: Shape, A: Floats, b: Floats, who: str) -> None:
        self._cp: Any = load_cp_model(who)
        self._graph: Graph = graph_of(shape)
        self._form: Compact = compact_form(shape)
        form, n, k, sizes = self._form, self._graph.n, self._graph.n_states, np.abs(scores)
        self._given = (scores, allowed, A, b)
        self._model: Any = self._cp.CpModel()
        self._z = [self._model.new_int_var(0, int(may), "") for may in allowed[self._form.kept]]
        # whole numbers from here on: every part's score is rounded once, sums of them are exact
        self._matrix = self._form.matrix.astype(np.int64)
        self._start = self._form.start.astype(np.int64)
        self._n_on = self._graph.n + len(self._graph.edges)
        # what no output's score exceeds in size
        self._most = float(sizes[: n * k].reshape(n, k).max(axis=1).sum() + sizes[n * k :].reshape(-1, k * k).max(axis=1).sum())
        self._scale = power_of_two(self._most)
        self._scores = np.rint(scores * self._scale).astype(np.int64)
        matrix = self._matrix[form.dropped]
        for r, part in enumerate(form.dropped.tolist()):
            entries = slice(matrix.indptr[r], matrix.indptr[r + 1])
            terms = [self._z[at] for at in matrix.indices[entries].tolist()]
            row = self._cp.LinearExpr.weighted_sum(terms, matrix.data[entries].tolist())
            least = -int(self._start[part])
            self._model.add(row >= least if allowed[part] else row == least)
        rows, limits = whole_rows(A, b, self._n_on)
        for coefficients, most in zip(rows @ self._matrix, (limits - rows @ self._start).tolist(), strict=True):
            self._model.add(self._sum(coefficients) <= most)
        self._model.maximize(self._sum(self._matrix.T @ self._scores))

    def _sum(self, coefficients: Integers) -> Any:
        used = np.flatnonzero(coefficients).tolist()
        return self._cp.LinearExpr.weighted_sum([self._z[k] for k in used], coefficients[used].tolist())

    def search(self, limit: float) -> Answer:
        """Solve; labels that break a row as float64 computes it are ruled out one by one and the rest is searched.

        All searches together take no more than the limit.
        """
        A, b = self._given[2:]
        first = None if len(b) else self._hint()
        while True:
            found = solve(self._cp, self._model, len(self._z), limit)
            limit -= found.spent
            bound = -np.inf if found.proven and found.values is None else self._bound(found.bound)
            if found.values is None:
                return Answer(None if found.proven else first, bound, found.proven)
            n, k = self._graph.n, self._graph.n_states
            mu = self._start + self._matrix @ found.values
            labels = mu[: n * k].reshape(n, k).argmax(axis=1).astype(np.int64)
            if keeps(A, b, self._graph.parts(labels)):
                return Answer(labels, bound, found.proven)
            chosen = np.arange(n) * k + labels
            most = n - 1 - int(self._start[chosen].sum())
            self._model.add(self._sum(np.asarray(self._matrix[chosen].sum(axis=0)).ravel()) <= most)

    def _hint(self) -> Labels | None:
        """Labels to begin with, where they are easily found."""
        scores, allowed = self._given[:2]
        labels = rounded(self._graph, scores, allowed, np.zeros(len(scores)))
        on = np.zeros(len(scores), np.int64)
        on[self._graph.parts(labels)] = 1
        for z, value in zip(self._z, on[self._form.kept].tolist(), strict=True):
            self._model.add_hint(z, value)
        return labels if allowed[self._graph.parts(labels)].all() else None

    def _bound(self, whole: int | None) -> float:
        if whole is None:
            return self._most
        return (whole + int(self._scores @ self._start) + 0.5 * self._n_on) / self._scale
