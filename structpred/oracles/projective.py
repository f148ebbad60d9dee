"""Dependency trees without crossing arcs: the dynamic program of Eisner (1996)."""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import check_listed, checked_sizes, checked_sums
from structpred.core.types import Floats
from structpred.errors import InfeasibleError
from structpred.oracles.trees._trees import KEPT_PROJECTIVE, Kept, TreeOracle, arc_scores, arcs_of, projective_scratch
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

_tree_kernels = later("structpred.oracles.trees._tree_kernels")
_sum_kernels = later("structpred.oracles.trees._projective_sum_kernels")

_INT = np.dtype(np.int64)


class ProjectiveOracle(TreeOracle):
    """shape = (n,): the projective trees of n tokens 1..n; the artificial root 0 precedes them. O(n^3).

    Projective: each token between a head and its modifier descends from the head, so that no arcs cross, those of the root
    included. Labels: the head of each token. Parts: (m - 1) * (n + 1) + h is on when token m has head h. single_root: exactly one
    token has head 0. Scores of -1e30 forbid an arc: where no tree is left, argmax gives one with forbidden arcs and their score.
    Ties always go to the same tree.

    >>> import numpy as np
    >>> scores = np.full((3, 4), -1.0)  # a row for each of three tokens; heads 0 (the root), 1, 2, 3
    >>> scores[0, 3] = scores[1, 0] = scores[2, 2] = 5.0  # 3 -> 1, 0 -> 2, 2 -> 3: the first arc would cross the second
    >>> ProjectiveOracle().argmax(scores.ravel(), (3,)).tolist()
    [2, 0, 2]
    """

    _kept = Kept(KEPT_PROJECTIVE)
    _kernels = staticmethod(later("structpred.oracles.trees._projective_kernels"))
    _room = staticmethod(projective_scratch)

    def _refuse(self, heads: Labels) -> None:
        crossing = np.zeros(len(heads), np.uint8)
        _tree_kernels().mark_crossing(np.asarray(heads, _INT), np.array([0, len(heads)]), crossing)
        if crossing.any():
            m = int(crossing.argmax()) + 1
            raise ValueError(f"not projective: the arc {heads[m - 1]} -> {m} crosses another one")

    def _sums(self, scores: Scores, n: int) -> tuple[float, Floats]:
        """By the inside-outside algorithm."""
        check_fits(2 * 8 * 8 * (n + 1) ** 2, f"marginals of the projective trees of {n:,} tokens")
        x, e = np.empty((2, 8, n + 1, n + 1))
        mu = np.zeros(len(scores))
        log_z = _sum_kernels().projective_marginals(scores, n, self.single_root, x, e, mu)
        if log_z == -np.inf:
            raise InfeasibleError("every projective tree uses a forbidden arc (a score of -1e30): no marginals exist")
        return checked_sums(log_z, mu, scores, (n,))

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best trees without forbidden arcs, best first (Lawler 1972). O(k n^4) at worst.

        Each tree found splits the set whose best one it was: the rest shares the heads of its first q tokens and
        has another one for the next, for some q; the best of each of these is searched for.
        """
        scores, n = arc_scores(scores, shape)
        check_fits(8 * max(k, 1) * n * (n + 16), f"the {k:,} best projective trees of {n:,} tokens")
        number = count()
        queue: list[tuple[float, int, Labels, int, list[int]]] = []
        best = self.argmax(scores, shape)
        if scores[arcs_of(best)].min() > 0.5 * FORBIDDEN:
            queue.append((-float(scores[arcs_of(best)].sum()), next(number), best, 0, []))
        found: list[Labels] = []
        while queue and len(found) < k:
            _, _, heads, first, banned = heappop(queue)
            found.append(heads)
            if len(found) == k:
                break
            for value, other, q in self._best_others(scores, heads, first, banned):
                # the heads that token q must not have: those banned before, and the one it had
                heappush(queue, (-value, next(number), other, q, [*(banned if q == first else []), int(heads[q])]))
        return found

    def _best_others(self, scores: Scores, heads: Labels, first: int, banned: list[int]) -> Iterator[tuple[float, Labels, int]]:
        """(score, tree, q): the best tree with the heads of the first q tokens and another one for the next, q = first, ..."""
        n = len(heads)
        rows = scores.reshape(n, n + 1)
        kept, theta = np.arange(n), rows.copy()
        theta[:first] = FORBIDDEN
        theta[kept[:first], heads[:first]] = rows[kept[:first], heads[:first]]
        theta[first, banned] = FORBIDDEN
        for q in range(first, n):
            theta[q, heads[q]] = FORBIDDEN
            if theta[q].max() > 0.5 * FORBIDDEN:
                other = self.argmax(theta.ravel(), (n,))
                if theta.ravel()[arcs_of(other)].min() > 0.5 * FORBIDDEN:
                    yield float(scores[arcs_of(other)].sum()), other, q
            theta[q] = FORBIDDEN
            theta[q, heads[q]] = rows[q, heads[q]]

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every projective tree: binom(3 n + 1, n) / (3 n + 1) of them; with a single root binom(3 n - 2, n - 1) / n."""
        (n,) = checked_sizes(shape, "tokens")
        check_listed(n)
        return (np.array(heads, dtype=_INT) for heads in _families(0, 1, n, self.single_root))

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 728 trees, 1,428 with several roots."""
        return [(1,), (2,), (3,), (4,), (6,)]


def _families(head: int, start: int, stop: int, only_child: bool = False) -> Iterator[tuple[int, ...]]:
    """All ways to hang the tokens start..stop below `head`, by the head of each.

    The first child covers the tokens up to `end`, the others (none where it is the only child) the rest.
    """
    if start > stop:
        yield ()
        return
    for end in range(stop if only_child else start, stop + 1):
        for child in range(start, end + 1):
            for before in _families(child, start, child - 1):
                for after in _families(child, child + 1, end):
                    for rest in _families(head, end + 1, stop):
                        yield (*before, head, *after, *rest)
