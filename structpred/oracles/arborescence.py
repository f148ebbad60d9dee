"""Dependency trees with crossing arcs allowed: maximum spanning arborescences (McDonald, Pereira, Ribarov & Hajič 2005)."""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import checked_sizes, checked_sums
from structpred.core.types import ArrayLike, Flags, Floats, Integers
from structpred.errors import ConvergenceError, InfeasibleError, ParameterError
from structpred.oracles.trees._constrained_trees import best_tree_within
from structpred.oracles.trees._trees import KEPT, Kept, TreeOracle, all_trees, arc_scores, arcs_of, tree_room
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

_kernels = later("structpred.oracles.trees._arborescence_best_kernels")
_sum_kernels = later("structpred.oracles.trees._matrix_tree_kernels")

_INT = np.dtype(np.int64)
#: arcs whose scores differ by less, relative to the largest score, may be taken for equal when the k best are ordered
_EQUAL = 1e-12


class _Cell(NamedTuple):
    """A set of trees and its best one, `heads`: all that share its arcs into the tokens in `fixed` and have none in `banned`."""

    heads: Labels
    fixed: Flags
    banned: Integers


class ArborescenceOracle(TreeOracle):
    """shape = (n,): the trees of n tokens 1..n below the artificial root 0. argmax O(n^2), marginals O(n^3).

    Labels: the head of each token. Parts: (m - 1) * (n + 1) + h is on when token m has head h. single_root: exactly one token has
    head 0. Scores of -1e30 forbid an arc: where no tree is left, argmax gives one with as few such arcs as possible, which its
    score shows. Ties always go to the same tree. max_cells: how many sets of trees a search under constraints looks at.
    limit: the deterministic time of CP-SAT after that (about seconds of work, the same on every machine).

    >>> import numpy as np
    >>> scores = np.array([[9.0, 0.0, 6.0], [9.0, 1.0, 0.0]])  # a row for each of two tokens; heads 0 (the root), 1, 2
    >>> ArborescenceOracle().argmax(scores.ravel(), (2,)).tolist()
    [2, 0]
    >>> ArborescenceOracle(single_root=False).argmax(scores.ravel(), (2,)).tolist()
    [0, 0]
    """

    _kept = Kept(KEPT)
    _kernels = staticmethod(later("structpred.oracles.trees._arborescence_kernels"))
    _room = staticmethod(tree_room)

    def __init__(self, single_root: bool = True, *, max_cells: int = 2000, limit: float = 10.0) -> None:
        if not (max_cells >= 1 and limit > 0.0):
            raise ParameterError(f"expected max_cells >= 1 and a limit > 0, got {max_cells} and {limit}")
        super().__init__(single_root)
        self.max_cells, self.limit = int(max_cells), float(limit)

    def _sums(self, scores: Scores, n: int) -> tuple[float, Floats]:
        """By the matrix-tree theorem."""
        return matrix_tree(scores, n, self.single_root)

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best trees without forbidden arcs, best first (Camerini, Fratta & Maffioli 1980). O(k n^2).

        Each tree that is found splits the set of trees it was the second best of: those with and those without the one arc
        that it lacks.
        """
        scores, n = arc_scores(scores, shape)
        best = self.argmax(scores, shape)
        if k < 1 or scores[arcs_of(best)].min() <= 0.5 * FORBIDDEN:
            return []
        check_fits(k * n * 32, f"the {k:,} best trees of {n:,} tokens")
        room = tree_room(n)
        allowed = np.empty(len(scores))
        usable = scores[scores > 0.5 * FORBIDDEN]
        tolerance = _EQUAL * max(1.0, float(np.abs(usable).max()))
        number = count()
        queue: list[tuple[float, int, int, Labels, _Cell]] = []

        def enqueue(cell: _Cell) -> None:
            heads = np.empty(n, _INT)
            m = _kernels().second_best(scores, n, self.single_root, *cell, tolerance, allowed, room, heads)
            if m > 0:
                heappush(queue, (-float(scores[arcs_of(heads)].sum()), next(number), m, heads, cell))

        found = [best]
        enqueue(_Cell(best, np.zeros(n, np.bool_), np.empty(0, _INT)))
        while queue and len(found) < k:
            _, _, m, heads, cell = heappop(queue)
            found.append(heads)
            fixed = cell.fixed.copy()
            fixed[m - 1] = True
            arc = (m - 1) * (n + 1) + cell.heads[m - 1]
            enqueue(cell._replace(fixed=fixed))
            enqueue(_Cell(heads, cell.fixed, np.append(cell.banned, arc)))
        return found

    def argmax_constrained(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> Labels | None:
        """The best tree with A mu <= b and without forbidden arcs, None if there is none.

        Branch and bound over Lagrangian bounds; where `max_cells` sets of trees do not prove the maximum, OR-Tools' CP-SAT takes
        over (the extra `solvers`; sums of scores that differ by less than n 2^-49 of their size are equal to it). Raises
        ConvergenceError where that does not either, DataError for NaN, ParameterError for rows of another size.
        """
        found = best_tree_within(scores, shape, self.single_root, A, b, self.max_cells, self.limit, type(self).__name__)
        if not found.proven:
            raise ConvergenceError(
                f"the best tree of {shape[0]} tokens under these {np.size(b)} constraints was not proven: none scores above "
                f"{found.bound:.9g}; raise max_cells={self.max_cells} or limit={self.limit:g}, or use argmax_constrained_bound"
            )
        return found.labels

    def argmax_constrained_bound(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> tuple[Labels | None, float]:
        """The best tree with A mu <= b that `max_cells` sets of trees show, and what none scores above.

        (None, -inf): there is none. The limit counts, so that the answer is the same on each machine. Needs no solver.
        """
        found = best_tree_within(scores, shape, self.single_root, A, b, self.max_cells, self.limit, None)
        return found.labels, found.bound

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """All (n + 1)^(n - 1) trees, n^(n - 1) of them with a single root."""
        return all_trees(checked_sizes(shape, "tokens")[0], self.single_root)

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 1,296 trees."""
        return [(1,), (2,), (3,), (5,)]


def matrix_tree_scratch(n: int) -> Floats:
    """The working memory of `tree_marginals` for up to n tokens: (8 n + 130, n + 1) float64.

    Raises DataError where it cannot fit.
    """
    check_fits(8 * (8 * n + 130) * (n + 1), f"marginals of the trees of {n:,} tokens")
    return np.empty((8 * n + 130, n + 1))


def matrix_tree(scores: Scores, n: int, single_root: bool) -> tuple[float, Floats]:
    """log of the sum of exp(score) over all trees of n tokens, and the probability of each arc, (n * (n + 1),). O(n^3).

    scores[(m - 1) * (n + 1) + h] belongs to the arc from head h to token m; -1e30 forbids it. Every marginal has a small relative
    error, however small it is and whatever the scores are, up to n * |score| = 1e16; with both a single root and forbidden arcs
    a small absolute one (1e-11 at most).
    Raises InfeasibleError if no tree is left, DataError where the working memory cannot fit, or where scores lie too far apart.

    >>> log_z, mu = matrix_tree(np.zeros(2 * 3), 2, True)  # 0 -> 1 -> 2 and 0 -> 2 -> 1
    >>> round(float(np.exp(log_z)), 9), mu.tolist()
    (2.0, [0.5, 0.0, 0.5, 0.5, 0.5, 0.0])
    """
    work, mu = matrix_tree_scratch(n), np.zeros(len(scores))
    log_z = _sum_kernels().tree_marginals(scores, n, single_root, work, mu)
    if log_z == -np.inf:
        raise InfeasibleError("every tree uses a forbidden arc (a score of -1e30): no marginals exist")
    return checked_sums(log_z, mu, scores, (n,))
