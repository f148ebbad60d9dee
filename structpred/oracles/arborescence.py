"""Dependency trees with crossing arcs allowed: maximum spanning arborescences (McDonald, Pereira, Ribarov & Hajič 2005).

Under linear constraints, branch and bound over Lagrangian bounds, then CP-SAT if that is too long. A cell is the set of trees
without certain arcs. Its bound is the linear program over mixtures of its trees, some ten maximum spanning arborescences; trees
met on the way that satisfy the constraints are the first answers. The best mixture says where to split: one part without an arc
that it half contains, one without all other arcs into the same token.
"""

import heapq
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import checked_sizes, checked_sums
from structpred.core.types import ArrayLike, Flags, Floats, Integers
from structpred.errors import ConvergenceError, InfeasibleError, ParameterError
from structpred.oracles.solvers._constraint_rows import checked_rows, keeps
from structpred.oracles.solvers._ortools import Answer, load_cp_model, power_of_two, solve, whole_rows
from structpred.oracles.trees._trees import KEPT, Kept, TreeOracle, all_trees, arc_scores, arcs_of, tree_room
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

#: trees that are kept for later cells
_POOL = 64
#: bounds and scores are compared with this tolerance, relative to the size of the sums, or to the largest score for the k best
_EQUAL = 1e-12
#: a constraint that is broken by less (its largest coefficient being one) is looked at with float64's own sums
_NEAR = 1e-9


class _Bounded(NamedTuple):
    """bound: no tree without arcs outside `allowed` that satisfies the constraints scores above. split: the arc to split at."""

    bound: float
    allowed: Flags
    split: int


def best_tree_within(
    scores: Scores, shape: Shape, single_root: bool, A: ArrayLike, b: ArrayLike, max_cells: int, limit: float,
    solver_for: str | None,
) -> Answer:  # fmt: skip
    """The best tree of n tokens with A mu <= b and no forbidden arc.

    Branch and bound looks at `max_cells` cells at most. What is open then goes to CP-SAT, for `limit` of its deterministic time;
    solver_for: whose errors name it, None: it stays open. Raises DataError and ParameterError for invalid arguments,
    DependencyError where OR-Tools is missing.
    """
    scores, n = arc_scores(scores, shape)
    rows = checked_rows(A, b, len(scores))
    allowed = scores > 0.5 * FORBIDDEN
    allowed.reshape(n, n + 1)[np.arange(n), np.arange(1, n + 1)] = False
    if rows is None or not allowed.reshape(n, n + 1).any(axis=1).all():
        return Answer(None, -np.inf, True)
    search = _Search(np.where(allowed, scores, 0.0), allowed, single_root, *rows)
    left = search.run(max_cells)
    proven = left == -np.inf
    if not proven and solver_for is not None:
        proven, left = _finish(search, left, limit, solver_for)
    if proven:
        return Answer(search.best, search.score, True)
    rounding = 8.0 * float(np.finfo(np.float64).eps) * n * (1.0 + search.size)
    return Answer(search.best, max(search.score, left) + rounding, False)


class _Search:
    """One question: scores (zero where not allowed), constraints, the best answer so far, and trees met on the way."""

    def __init__(self, scores: Floats, allowed: Flags, single_root: bool, A: Floats, b: Floats) -> None:
        self.width = int(np.sqrt(len(scores))) + 1
        self.n = self.width - 1
        self.scores, self.allowed, self.single_root, self.A, self.b = scores, allowed, single_root, A, b
        sizes = np.maximum(np.abs(A[:, allowed]).max(axis=1, initial=0.0), 1e-300)
        sizes = np.exp2(np.ceil(np.log2(sizes)))
        self._rows, self._limits = np.ascontiguousarray(A / sizes[:, None]), b / sizes
        table = np.where(allowed, scores, np.inf).reshape(self.n, self.width)
        self.size = float(np.abs(scores).reshape(table.shape).max(axis=1).sum())
        # every tree scores more: a cell whose bound is less has none that satisfies the constraints
        self._lowest = float(table.min(axis=1).sum()) - 1e-9 * (1.0 + self.size)
        self.best: Labels | None = None
        self.score = -np.inf
        self._pool, self._values = np.empty((_POOL, self.n), np.int64), np.empty((_POOL, 1 + len(b)))
        self._n_pool = 0
        self._room, self._arcs = tree_room(self.n), np.empty(len(scores))

    @property
    def floor(self) -> float:
        """Bounds up to here are of no more interest."""
        return self.score + _EQUAL * (1.0 + self.size)

    def keeps(self, arcs: Integers) -> bool:
        """Whether a tree satisfies the constraints as float64 computes them."""
        return keeps(self.A, self.b, arcs)

    def offer(self, heads: Labels) -> None:
        """Take a tree for the answer if it satisfies the constraints and scores more than the present one."""
        arcs = arcs_of(heads)
        score = float(self.scores[arcs].sum())
        if score > self.score and self.keeps(arcs):
            self.best, self.score = heads.copy(), score

    def run(self, max_cells: int) -> float:
        """Look at cells, best bound first; returns the bound of those that are left, -inf if none is."""
        root = self._cell(self.allowed, np.inf)
        heap, count = [(-root.bound, 0, root)], 1
        while heap:
            cell = heapq.heappop(heap)[2]
            if not self._open(cell):
                return -np.inf
            if count >= max_cells:
                return cell.bound
            for part in self._parts(cell):
                child = self._cell(part, cell.bound)
                count += 1
                if self._open(child):
                    heapq.heappush(heap, (-child.bound, count, child))
        return -np.inf

    def _open(self, cell: _Bounded) -> bool:
        return cell.bound > self.floor and cell.bound >= self._lowest

    def _cell(self, allowed: Flags, limit: float) -> _Bounded:
        """A cell of which nothing scores above `limit`."""
        from structpred.oracles.trees._constrained_tree_kernels import bound_cell

        before = self._n_pool
        bound, self._n_pool = bound_cell(
            self.scores, self._rows, self._limits, allowed, int(self.single_root), self.floor, self._lowest,
            self._lowest - 100.0 * (1.0 + self.size), self._pool, self._values, before, self._room, self._arcs,
        )  # fmt: skip
        new = np.arange(max(before, self._n_pool - _POOL), self._n_pool) % _POOL
        near = (self._values[new, 1:] <= _NEAR).all(axis=1) & (self._values[new, 0] > self.score)
        for k in new[near].tolist():
            self.offer(self._pool[k])
        return _Bounded(min(bound, limit), allowed, int(np.abs(self._arcs - 0.5).argmin()))

    def _parts(self, cell: _Bounded) -> list[Flags]:
        """Two parts of a cell, none where it has a single tree."""
        k = cell.split
        if not cell.allowed[k] or cell.allowed[self._row(k)].sum() < 2:
            # no mixture, but one tree, which breaks a constraint by a rounding: any token with a choice will do
            free = np.flatnonzero(cell.allowed.reshape(self.n, self.width).sum(axis=1) > 1)
            if not len(free):
                return []
            k = int(free[0]) * self.width + int(cell.allowed.reshape(self.n, self.width)[free[0]].argmax())
        without, with_it = cell.allowed.copy(), cell.allowed.copy()
        without[k] = False
        with_it[self._row(k)] = False
        with_it[k] = True
        return [without, with_it]

    def _row(self, k: int) -> slice:
        return slice(k // self.width * self.width, (k // self.width + 1) * self.width)


def _finish(search: _Search, bound: float, limit: float, needed_by: str) -> tuple[bool, float]:
    """CP-SAT for what is left: (whether that is proven, what none of it scores above)."""
    cp_model = load_cp_model(needed_by)
    model = cp_model.CpModel()
    arcs = np.flatnonzero(search.allowed)
    x = {k: model.new_bool_var("") for k in arcs.tolist()}
    _tree_rules(model, x, search)

    def total(coefficients: Integers) -> Any:
        return cp_model.LinearExpr.weighted_sum(list(x.values()), coefficients[arcs].tolist())

    scale = power_of_two(search.size)
    score = total(np.rint(search.scores * scale).astype(np.int64))
    for row, most in zip(*whole_rows(search.A, search.b, search.n), strict=True):
        model.add(total(row) <= int(most))
    model.add(score <= int(np.ceil(bound * scale)) + search.n)
    if search.best is not None:
        model.add(score >= int(np.floor(search.score * scale)) - search.n)
    model.maximize(score)
    while True:
        found = solve(cp_model, model, len(arcs), limit)
        limit -= found.spent
        if found.bound is not None:
            bound = min(bound, (found.bound + 0.5 * search.n) / scale)
        if found.values is None:
            return found.proven, bound
        on = arcs[found.values == 1]
        search.offer((on % search.width).astype(np.int64))
        if search.keeps(on) or not found.proven:
            return found.proven, bound
        model.add(sum(x[k] for k in on.tolist()) <= search.n - 1)  # it breaks a constraint by a rounding: not this one


def _tree_rules(model: Any, x: dict[int, Any], search: _Search) -> None:
    """One head a token, one root if so wished, and every token deeper than its head."""
    n, width = search.n, search.width
    depth = [model.new_int_var(min(h, 1), min(h, 1) * n, "") for h in range(width)]
    for m in range(n):
        heads = [h for h in range(width) if m * width + h in x]
        model.add_exactly_one(x[m * width + h] for h in heads)
        for h in heads:
            model.add(depth[m + 1] >= depth[h] + 1).only_enforce_if(x[m * width + h])
            back = (h - 1) * width + m + 1
            if h > m + 1 and back in x:
                model.add_at_most_one(x[m * width + h], x[back])
    if search.single_root:
        model.add_exactly_one(x[m * width] for m in range(n) if m * width in x)


_kernels = later("structpred.oracles.trees._arborescence_best_kernels")
_sum_kernels = later("structpred.oracles.trees._matrix_tree_kernels")

_INT = np.dtype(np.int64)


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
