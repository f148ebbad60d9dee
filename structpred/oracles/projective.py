"""Dependency trees without crossing arcs: the dynamic program of Eisner (1996)."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import check_listed, checked_scores, checked_sizes, checked_sums, shaped_scores
from structpred.errors import InfeasibleError
from structpred.oracles.trees._tree_labels import arc_batch, arc_scores, arcs_of, arcs_of_each, refuse_infinite, tree_parts
from structpred.oracles.trees._tree_scratch import projective_scratch
from structpred.projections.active_set import project_onto_hull
from structpred.runtime.entries import entry_of
from structpred.runtime.memory import check_fits

_INT = np.dtype(np.int64)
#: scratch for sentences up to this length stays allocated between calls (2 MiB per thread)
_KEPT = 250


class _Tools(NamedTuple):
    """The compiled search, and scratch for sentences of up to `size` tokens."""

    size: int
    search: Callable[..., bool]
    tables: npt.NDArray[np.float64]
    pointers: npt.NDArray[np.int32]


def _none_yet(*_: object) -> bool:
    raise AssertionError("no sentence has fewer than one token")


class _Kept(threading.local):
    """A thread's tools: importing and allocating take longer than a short sentence."""

    tools = _Tools(0, _none_yet, np.empty((0, 0, 0)), np.empty((0, 0), np.int32))


_kept = _Kept()


def _tools_for(n: int) -> _Tools:
    """Tools for n tokens, kept by this thread unless they are large."""
    if n <= _kept.tools.size:
        return _kept.tools
    from structpred.oracles.trees._projective_kernels import best_heads

    size = n if n > _KEPT else min(_KEPT, max(n, 2 * _kept.tools.size, 32))
    room = projective_scratch(size)
    tools = _Tools(size, entry_of(best_heads, np.empty(2), 1, *room, np.empty(1, _INT)), *room)
    if size <= _KEPT:
        _kept.tools = tools
    return tools


class ProjectiveOracle(Oracle):
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

    output = "tree"

    def __init__(self, single_root: bool = True) -> None:
        self.single_root = bool(single_root)
        self._single = int(self.single_root)

    def n_parts(self, shape: tuple[int, ...]) -> int:
        """n * (n + 1), the parts of tokens that head themselves included; those are never on."""
        (n,) = checked_sizes(shape, "tokens")
        return n * (n + 1)

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best tree. Raises DataError for other than n * (n + 1) finite scores, and before what cannot fit."""
        (n,) = checked_sizes(shape, "tokens")
        scores = shaped_scores(scores, n * (n + 1), shape)
        size, search, tables, pointers = _kept.tools
        if n > size:
            _, search, tables, pointers = _tools_for(n)
        heads = np.empty(n, _INT)
        if not search(scores, self._single, tables, pointers, heads):
            checked_scores(scores, n * (n + 1), shape)  # says which one is not finite
        return heads

    def argmax_batch(
        self, scores: Scores, offsets: npt.NDArray[np.int64], shapes: Sequence[Shape]
    ) -> tuple[Labels, npt.NDArray[np.int64]]:
        """The best tree of each instance, in one compiled call."""
        from structpred.oracles.trees._projective_kernels import decode_projective

        scores, offsets, sizes = arc_batch(scores, offsets, shapes)
        ends = np.concatenate(([0], np.cumsum(sizes)))
        heads = np.empty(int(ends[-1]), _INT)
        if len(sizes):
            _, _, tables, pointers = _tools_for(int(sizes.max()))
            if not decode_projective(scores, offsets, sizes, self.single_root, tables, pointers, heads):
                refuse_infinite(scores, offsets, sizes)
        return heads, ends

    def parts(self, labels: Labels, shape: Shape) -> npt.NDArray[np.int64]:
        """One arc per token. ValueError for heads that are not a projective tree, or have several roots against single_root."""
        from structpred.oracles.trees._geometry_kernels import mark_crossing

        found = tree_parts(labels, shape[0], self.single_root)
        crossing = np.zeros(len(labels), np.uint8)
        mark_crossing(np.asarray(labels, _INT), np.array([0, len(labels)]), crossing)
        if crossing.any():
            m = int(crossing.argmax()) + 1
            raise ValueError(f"not projective: the arc {labels[m - 1]} -> {m} crosses another one")
        return found

    def parts_batch(
        self, labels: Labels, ends: npt.NDArray[np.int64], shapes: Sequence[Shape]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The parts of each output, flat, in one compiled call."""
        return arcs_of_each(labels, ends, shapes), ends

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, npt.NDArray[np.float64]]:
        """log Z, and the probability of each arc, by the inside-outside algorithm; stable for any scores.

        Raises InfeasibleError where every tree uses a forbidden arc.
        """
        from structpred.oracles.trees._projective_sum_kernels import projective_marginals

        scores, n = arc_scores(scores, shape)
        check_fits(2 * 8 * 8 * (n + 1) ** 2, f"marginals of the projective trees of {n:,} tokens")
        x, e = np.empty((2, 8, n + 1, n + 1))
        mu = np.zeros(len(scores))
        log_z = projective_marginals(scores, n, self.single_root, x, e, mu)
        if log_z == -np.inf:
            raise InfeasibleError("every projective tree uses a forbidden arc (a score of -1e30): no marginals exist")
        return checked_sums(log_z, mu, scores, shape)

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

    def project(self, point: npt.NDArray[np.float64], shape: Shape) -> npt.NDArray[np.float64]:
        """The nearest point of the convex hull of all trees, by the active set method; as many calls of argmax as it needs."""
        point, _ = arc_scores(point, shape)
        return project_onto_hull(
            point, lambda scores: self.argmax(scores, shape), lambda labels: self.parts(labels, shape), len(point)
        )

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every projective tree: binom(3 n + 1, n) / (3 n + 1) of them; with a single root binom(3 n - 2, n - 1) / n."""
        (n,) = checked_sizes(shape, "tokens")
        check_listed(n)
        return (np.array(heads, dtype=_INT) for heads in _families(0, 1, n, self.single_root))

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """n tokens, each labelled with its head, 0..n."""
        return shape[0], shape[0] + 1

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 728 trees, 1,428 with several roots."""
        return [(1,), (2,), (3,), (4,), (6,)]


def _families(head: int, start: int, stop: int, only_child: bool = False) -> Iterable[tuple[int, ...]]:
    """All ways to hang the tokens start..stop below `head`, by the head of each: its children and all that descends from them."""
    if start > stop:
        return ((),)
    return ((head,),) if start == stop else _wide_families(head, start, stop, only_child)


def _wide_families(head: int, start: int, stop: int, only_child: bool) -> Iterator[tuple[int, ...]]:
    """The first child covers the tokens up to `end`, the others (none where it is the only child) the rest."""
    for end in range(stop if only_child else start, stop + 1):
        for child in range(start, end + 1):
            for before in _families(child, start, child - 1):
                for after in _families(child, child + 1, end):
                    for rest in _families(head, end + 1, stop):
                        yield (*before, head, *after, *rest)
