"""Full rankings of n items, whose hull is the permutahedron, and the choice of the k best of n items."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import combinations, count, permutations

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import check_listed, checked_batch, checked_scores, checked_sizes, checked_sums, checked_table
from structpred.core.types import Floats, Integers
from structpred.errors import DataError, InfeasibleError
from structpred.projections.simplex import project_onto_capped_simplex
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

_kernels = later("structpred.oracles.decisions._ranking_kernels")


class RankingOracle(Oracle):
    """shape = (n,): rankings of n items; labels[j] says how many items stand behind item j, so that the first one has n - 1.

    Part j counts labels[j] times, so that the part counts are the labels, and a ranking scores sum_j scores[j] labels[j]: the
    best one sorts the scores, and items with equal scores keep their order. The hull is the permutahedron. `project` gives
    soft ranks: ``project(scores / t, shape)`` is the ranking for small t, and the mean of all rankings for large t.
    Blondel, Teboul, Berthet & Djolonga, Fast differentiable sorting and ranking, ICML 2020.

    >>> RankingOracle().argmax(np.array([0.1, 7.0, 0.2]), (3,)).tolist()
    [0, 2, 1]
    >>> RankingOracle().project(np.array([0.5, 7.0, 0.6]), (3,)).round(6).tolist()
    [0.45, 2.0, 0.55]
    """

    output = "ranking"

    def n_parts(self, shape: Shape) -> int:
        """n."""
        return checked_sizes(shape, "items")[0]

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The ranking by score, O(n log n)."""
        return _ranks(checked_scores(scores, self.n_parts(shape), shape)[None, :]).ravel()

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The ranking of each instance; all at once where all have the same number of items."""
        scores, offsets = checked_batch(scores, offsets, checked_table(shapes, "items")[:, 0])
        if len(set(shapes)) == 1:
            return _ranks(scores.reshape(len(shapes), -1)).ravel(), offsets.copy()
        found = [_ranks(scores[None, offsets[i] : offsets[i + 1]])[0] for i in range(len(shapes))]
        return np.concatenate([np.empty(0, np.int64), *found]), offsets.copy()

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """Part j labels[j] times: n (n - 1) / 2 in all. ValueError for labels that are no permutation of 0..n-1."""
        n = self.n_parts(shape)
        if labels.shape != (n,) or not np.array_equal(np.sort(labels), np.arange(n)):
            raise ValueError(f"a ranking of {n} items is a permutation of 0..{n - 1}, got {labels.tolist()}")
        check_fits(4 * n * n, f"the parts of a ranking of {n:,} items")
        return np.repeat(np.arange(n), labels)

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each ranking, flat."""
        sizes = np.diff(ends)
        items = np.arange(len(labels)) - np.repeat(np.asarray(ends[:-1], np.int64), sizes)
        return np.repeat(items, labels), np.concatenate(([0], np.cumsum(sizes * (sizes - 1) // 2)))

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best rankings, best first (Lawler 1972).

        Each ranking found splits those whose best one it was: the others share its first q places and put, at the next one, an
        item that comes later in the order of the scores; the best of these puts the next such item, and sorts the rest.
        """
        given, number = checked_scores(scores, self.n_parts(shape), shape), count()
        by_score = np.argsort(-given, kind="stable")
        points = np.arange(len(given) - 1, -1, -1)
        queue = [(-float(points @ given[by_score]), next(number), tuple(range(len(given))), 0)]
        found: list[Labels] = []
        while queue and len(found) < k:
            _, _, order, first = heappop(queue)  # places in by_score
            labels = np.empty(len(given), np.int64)
            labels[by_score[list(order)]] = points
            found.append(labels)
            for q in range(first, len(given) - 1 if len(found) < k else first):
                if later := [place for place in order[q:] if place > order[q]]:
                    rest = sorted(set(order[q:]) - {min(later)})
                    other = (*order[:q], min(later), *rest)
                    heappush(queue, (-float(points @ given[by_score[list(other)]]), next(number), other, q))
        return found

    def project(self, point: Scores, shape: Shape) -> Floats:
        """The nearest point of the permutahedron, by sorting and isotonic regression, O(n log n)."""
        given = checked_scores(point, self.n_parts(shape), shape)
        return self.project_batch(given, np.array([0, len(given)]), [shape])

    def project_batch(self, points: Scores, offsets: Integers, shapes: Sequence[Shape]) -> Floats:
        """The nearest points of a batch, in one compiled call."""
        points, offsets = checked_batch(points, offsets, checked_table(shapes, "items")[:, 0])
        out = np.empty(len(points))
        _kernels().project_rankings(points, offsets, out)
        return out

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """All n! rankings."""
        n = self.n_parts(shape)
        check_listed(n)
        return (np.array(labels, dtype=np.int64) for labels in permutations(range(n)))

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 120 rankings."""
        return [(1,), (2,), (3,), (5,)]


class TopKOracle(Oracle):
    """shape = (n, k): sets of k of n items, 1 <= k <= n; labels are the items, ascending; part j is on when item j is chosen.

    The best set has the k largest scores; of equal ones the first. The hull is the simplex with the total k whose entries have
    the cap 1: `project` is a sparse choice of k.

    >>> TopKOracle().argmax(np.array([0.1, 7.0, 0.2, 0.3]), (4, 2)).tolist()
    [1, 3]
    >>> TopKOracle().project(np.array([0.1, 7.0, 0.2, 0.3]), (4, 2)).round(6).tolist()
    [0.233333, 1.0, 0.333333, 0.433333]
    """

    output = "set of items"

    def n_parts(self, shape: Shape) -> int:
        """n."""
        return _sizes(shape)[0]

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The k items with the largest scores."""
        n, k = _sizes(shape)
        return _largest(checked_scores(scores, n, shape)[None, :], k).ravel()

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The choice of each instance; all at once where all have the same shape."""
        sizes = checked_table(shapes, "items", "chosen")
        for shape in set(shapes):
            _sizes(shape)
        scores, offsets = checked_batch(scores, offsets, sizes[:, 0])
        ends = np.concatenate(([0], np.cumsum(sizes[:, 1])))
        if len(set(shapes)) == 1:
            return _largest(scores.reshape(len(shapes), -1), int(sizes[0, 1])).ravel(), ends
        found = [_largest(scores[None, offsets[i] : offsets[i + 1]], int(sizes[i, 1]))[0] for i in range(len(shapes))]
        return np.concatenate([np.empty(0, np.int64), *found]), ends

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """The items themselves. ValueError where they are not k different ones, ascending."""
        n, k = _sizes(shape)
        if labels.shape != (k,) or not 0 <= labels[0] <= labels[-1] < n or (np.diff(labels) <= 0).any():
            raise ValueError(f"expected {k} of the items 0..{n - 1}, ascending, got {labels.tolist()}")
        return labels

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The items of each choice: the labels themselves."""
        return labels, ends

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """(log Z, how likely each item is chosen): sums over the first items and over the last ones, by their number, O(n k).

        Raises InfeasibleError where fewer than k items are left that are not forbidden.
        """
        n, k = _sizes(shape)
        given = checked_scores(scores, n, shape)
        if np.count_nonzero(given > 0.5 * FORBIDDEN) < k:
            raise InfeasibleError(f"fewer than {k} items are not forbidden (a score of -1e30): no marginals exist")
        top = float(given.max())
        front, back = _sums(given - top, k), _sums((given - top)[::-1], k)[::-1]
        log_z = front[n, k]
        mu = np.array([np.exp(front[j, :k] + back[j + 1, k - 1 :: -1] + (given[j] - top) - log_z).sum() for j in range(n)])
        return checked_sums(float(log_z + k * top), mu, given, shape)

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best sets, best first (Lawler 1972): the others share the best items of a set and then go on one later."""
        n, size = _sizes(shape)
        given, number = checked_scores(scores, n, shape), count()
        by_score = np.argsort(-given, kind="stable")
        ordered = given[by_score]
        queue = [(-float(ordered[:size].sum()), next(number), np.arange(size), 0)]
        found: list[Labels] = []
        while queue and len(found) < k:
            _, _, chosen, first = heappop(queue)  # places in by_score, ascending
            found.append(np.sort(by_score[chosen]).astype(np.int64))
            for q in range(first, size if len(found) < k else first):
                other = np.concatenate((chosen[:q], chosen[q] + 1 + np.arange(size - q)))
                if other[-1] < n:
                    heappush(queue, (-float(ordered[other].sum()), next(number), other, q))
        return found

    def project(self, point: Scores, shape: Shape) -> Floats:
        """The nearest point of the capped simplex, O(n)."""
        n, k = _sizes(shape)
        return project_onto_capped_simplex(checked_scores(point, n, shape), 1.0, float(k))

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every set of k items."""
        n, k = _sizes(shape)
        check_listed(n)
        return (np.array(labels, dtype=np.int64) for labels in combinations(range(n), k))

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 35 sets."""
        return [(1, 1), (3, 1), (4, 4), (5, 2), (7, 3)]


def _sizes(shape: Shape) -> tuple[int, int]:
    n, k = checked_sizes(shape, "items", "chosen")
    if k > n:
        raise DataError(f"{k} of {n} items cannot be chosen")
    return n, k


def _ranks(scores: Floats) -> Integers:
    """(rows, n): how many items stand behind each; of items with equal scores the first one stands first."""
    n_rows, n = scores.shape
    ranks = np.empty((n_rows, n), np.int64)
    ranks[np.arange(n_rows)[:, None], np.argsort(-scores, axis=1, kind="stable")] = np.arange(n - 1, -1, -1)
    return ranks


def _largest(scores: Floats, k: int) -> Integers:
    """(rows, k): the items with the largest scores, ascending."""
    return np.sort(np.argsort(-scores, axis=1, kind="stable")[:, :k], axis=1).astype(np.int64)


def _sums(scores: Floats, k: int) -> Floats:
    """(n + 1, k + 1): the log of the sum of exp(score) over the sets of c of the first j items."""
    sums = np.full((len(scores) + 1, k + 1), -np.inf)
    sums[0, 0] = 0.0
    for j, score in enumerate(scores.tolist()):
        sums[j + 1] = sums[j]
        sums[j + 1, 1:] = np.logaddexp(sums[j, 1:], sums[j, :-1] + score)
    return sums
