"""Knapsacks of one row or several: sets of items that keep every capacity."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import check_listed, checked_scores, kept_for_shapes
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import ConvergenceError, DataError
from structpred.oracles.decisions._by_shape import by_shape, marginals_of_one, parts_of_rows
from structpred.projections.lockstep import nearest_mixture
from structpred.runtime.lazy_names import later
from structpred.runtime.settings import checked_whole

_kernels = later("structpred.oracles.decisions._knapsack_kernels")

#: a total may be above its capacity by this share of it: sums of decimal fractions are not exact; nor are sums of what is left
_SLACK = 1e-9
#: rooms are equal if they differ by less than this share of the capacity
_SHARE = 2.0**-40


class Rows(NamedTuple):
    """What a shape says: weights (n_parts, n_rows), and capacities with their slack."""

    n_parts: int
    weights: Floats
    capacities: Floats


def knapsack_shape(weights: ArrayLike, capacities: ArrayLike) -> Shape:
    """The shape of a knapsack: (capacities, weights), a number and a row of weights for each row, or one number and one row.

    >>> knapsack_shape([[3.0, 2.0, 2.0], [1.0, 4.0, 1.0]], [4.0, 5.0])
    ((4.0, 5.0), ((3.0, 2.0, 2.0), (1.0, 4.0, 1.0)))
    """
    rows = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    return tuple(np.atleast_1d(np.asarray(capacities, dtype=np.float64)).tolist()), tuple(map(tuple, rows.tolist()))


@kept_for_shapes
def rows_of(shape: Shape) -> Rows:
    """The numbers of a shape. Raises DataError for others than finite ones >= 0, one capacity and equally many weights a row."""
    try:
        capacities, weights = shape
        limits, rows = np.array(capacities, dtype=np.float64), np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"expected a shape of knapsack_shape(weights, capacities), got {str(shape)[:80]}") from None
    if rows.ndim != 2 or limits.shape != rows.shape[:1] or not rows.size:
        raise DataError(f"{limits.shape} capacities do not fit weights of shape {rows.shape}: one capacity for each row")
    if not (np.isfinite(rows).all() and np.isfinite(limits).all()) or min(rows.min(), limits.min()) < 0:
        raise DataError("weights and capacities must be finite and >= 0")
    return Rows(rows.shape[1], np.ascontiguousarray(rows.T), limits * (1.0 + _SLACK))


class Diagram(NamedTuple):
    """The sets of items that keep every capacity as paths: a node for each room that items before can leave.

    Many sets leave the same room, so that there are far fewer nodes than sets: with one row of weights in hundredths at most one
    for each hundredth of the capacity and each item; with several rows their product at most.

    Nodes starts[j] to starts[j + 1] stand before item j; the last one is behind all items.
    skip, take: the node that leaving item j out, or taking it, leads to; take is -1 where it does not fit.
    """

    n_parts: int
    starts: Integers
    skip: Integers
    take: Integers


@lru_cache(maxsize=8)  # one may hold millions of nodes
def _diagram_of(shape: Shape, max_states: int) -> Diagram:
    """The diagram of a shape's sets. Raises DataError where it has more than max_states nodes."""
    rows = rows_of(shape)
    items, room, n = rows.weights, rows.capacities[None], len(rows.weights)
    rest = np.concatenate((np.cumsum(items[::-1], axis=0)[::-1], np.zeros((1, items.shape[1]))))
    least = np.concatenate((np.minimum.accumulate(items[::-1], axis=0)[::-1], np.full((1, items.shape[1]), np.inf)))
    unit = np.where(room[0] > 0.0, room[0], 1.0) * _SHARE
    starts, skip, take = [0, 1], list[Integers](), list[Integers]()
    for j in range(n):
        fits = (room >= items[j]).all(axis=1)
        after = np.concatenate((room, room[fits] - items[j]))
        after = np.minimum(after, rest[j + 1] * (1.0 + _SLACK))  # more than all that is left takes is as good as that
        after[(after < least[j + 1]).any(axis=1)] = -unit  # nothing fits: all such rooms are alike
        keys, node = np.rint(after / unit).astype(np.int64), np.zeros(len(after), np.int64)
        for column in keys.T:  # rows of whole numbers are distinguished column by column
            _, value = np.unique(column, return_inverse=True)
            _, first, node = np.unique(node * (int(value.max()) + 1) + value, return_index=True, return_inverse=True)
        taken = np.full(len(room), -1, np.int64)
        taken[fits] = starts[-1] + node[len(room) :]
        skip.append(starts[-1] + node[: len(room)])
        take.append(taken)
        room = after[first]
        starts.append(starts[-1] + len(room))
        if starts[-1] > max_states:
            raise DataError(
                f"sums over sets of items need more than max_states={max_states:,} nodes: the items 0..{j} of {n} leave "
                f"{len(room):,} different rooms; raise max_states, or round the weights to fewer digits"
            )
    return Diagram(n, np.array(starts), np.concatenate(skip), np.concatenate(take))


class KnapsackOracle(Oracle):
    """shape = knapsack_shape(weights, capacities); labels[j] is 1 when item j is taken, part j is on then.

    A set of items must keep all capacities (to 1e-9 of them). Items that score 0 or less are never taken. Exact, by depth-first
    branch and bound: items by score per surrogate weight, which adds the rows up as shares of their capacities, and Dantzig's
    bound over the items that still fit. 0.01 ms for 32 items in two rows that hold a handful of them; some thousand items in
    one row. Hard knapsacks take exponential time: very many items of nearly equal score per weight.

    Sums over all sets run over what the items before leave of the capacities, which many sets leave alike: exact, whatever the
    scores. A shape is looked at once; see `marginals_batch` for what is too large.

    max_nodes: the most partial sets that one call looks at. Where they do not suffice, ConvergenceError is raised: an answer that
    comes is the best. max_states: the most different remainders that sums over sets keep, 40 bytes each, for all items in all.
    Raises DataError for shapes that are no knapsack.

    >>> oracle, shape = KnapsackOracle(), knapsack_shape([[3.0, 2.0, 2.0], [1.0, 4.0, 1.0]], [4.0, 5.0])
    >>> oracle.argmax(np.array([5.0, 3.0, 3.0]), shape).tolist()
    [0, 1, 1]
    >>> log_z, mu = oracle.marginals(np.zeros(3), shape)  # the sets {}, {0}, {1}, {2}, {1, 2}
    >>> round(float(np.exp(log_z)), 6), mu.round(6).tolist()
    (5.0, [0.2, 0.4, 0.4])
    """

    output = "set of items"

    def __init__(self, max_nodes: int = 50_000_000, max_states: int = 4_000_000) -> None:
        self.max_nodes, self.max_states = checked_whole(max_nodes, "max_nodes"), checked_whole(max_states, "max_states")

    def n_parts(self, shape: Shape) -> int:
        """The number of items."""
        return rows_of(shape).n_parts

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The set of items with the largest sum of scores."""
        rows = rows_of(shape)
        given, taken = checked_scores(scores, rows.n_parts, shape), np.empty(rows.n_parts, np.int64)
        self._search(given, np.array([0, len(given)]), np.zeros(1, np.int64), rows.weights, rows.capacities, taken)
        return taken

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best set of each instance, in one compiled call for each shape."""
        scores, offsets, groups = by_shape(rows_of, scores, offsets, shapes)
        taken = np.empty(len(scores), np.int64)
        for (_, weights, capacities), rows in groups:
            self._search(scores, offsets, rows, weights, capacities, taken)
        return taken, offsets.copy()

    def _search(
        self, scores: Scores, offsets: Integers, rows: Integers, weights: Floats, capacities: Floats, taken: Labels
    ) -> None:
        """Write the best sets of these rows."""
        if (failed := _kernels().best_sets(scores, offsets, rows, weights, capacities, self.max_nodes, taken)) >= 0:
            where = f"sample {failed}: " if len(offsets) > 2 else ""
            raise ConvergenceError(f"{where}not finished after {self.max_nodes:,} partial sets of items; raise max_nodes")

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """The items that are taken. ValueError for labels other than 0 and 1, and where a capacity is exceeded."""
        rows = rows_of(shape)
        if labels.shape != (rows.n_parts,) or ((labels != 0) & (labels != 1)).any():
            raise ValueError(f"expected {rows.n_parts} labels, 1 for the items taken and 0 for the others, got {labels.tolist()}")
        totals = labels @ rows.weights
        if (totals > rows.capacities).any():
            i = int((totals > rows.capacities).argmax())
            raise ValueError(
                f"the items {np.flatnonzero(labels).tolist()} weigh {totals[i]:.9g} in row {i}, more than its capacity"
            )
        return np.flatnonzero(labels)

    parts_batch = parts_of_rows
    marginals = marginals_of_one

    def marginals_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Floats, Floats]:
        """The marginals of each instance, in one compiled call for each shape.

        Raises DataError where a shape needs more than max_states remainders: one row needs at most as many for each item as
        there are different sums of weights within its capacity; several rows multiply them.
        """
        # a list: diagrams may be large, and are not kept with the batch
        scores, offsets, groups = by_shape(lambda shape: _diagram_of(shape, self.max_states), scores, offsets, list(shapes))
        log_zs, mu = np.empty(len(shapes)), np.empty(len(scores))
        for (_, starts, skip, take), rows in groups:
            _kernels().set_sums(scores, offsets, rows, starts, skip, take, log_zs, mu)
        return log_zs, mu

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best sets without forbidden items, best first (Lawler 1972): a search for each item of each set found.

        Each set found splits those whose best one it was: the others share the first q items and differ in the next, for some q.
        """
        given, number = checked_scores(scores, self.n_parts(shape), shape), count()
        best = self._completed(given, shape, np.empty(0, np.int64))
        queue = [] if best is None else [(-float(best @ given), next(number), best, 0)]
        found: list[Labels] = []
        while queue and len(found) < k:
            _, _, labels, first = heappop(queue)
            found.append(labels)
            for q in range(first, len(given) if len(found) < k else first):
                if (other := self._completed(given, shape, np.append(labels[:q], 1 - labels[q]))) is not None:
                    heappush(queue, (-float(other @ given), next(number), other, q + 1))
        return found

    def _completed(self, scores: Scores, shape: Shape, first: Labels) -> Labels | None:
        """The best set that begins with these labels; None where it exceeds a capacity, or has an item that is forbidden."""
        rows, n = rows_of(shape), len(first)
        left = rows.capacities - first @ rows.weights[:n]
        if (left < 0).any() or (scores[:n][first == 1] <= 0.5 * FORBIDDEN).any():
            return None
        labels = np.concatenate((first, np.zeros(len(scores) - n, np.int64)))
        if n < len(scores):
            ends = np.array([0, len(scores) - n])
            self._search(scores[n:], ends, np.zeros(1, np.int64), rows.weights[n:], left, labels[n:])
        return labels

    project = nearest_mixture

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every set that keeps the capacities, the empty one first."""
        rows = rows_of(shape)
        check_listed(rows.n_parts)
        stack: list[tuple[int, ...]] = [()]
        while stack:
            items = stack.pop()
            labels = np.zeros(rows.n_parts, np.int64)
            labels[list(items)] = 1
            if (labels @ rows.weights <= rows.capacities).all():
                yield labels
                stack.extend((*items, j) for j in reversed(range(items[-1] + 1 if items else 0, rows.n_parts)))

    @staticmethod
    def example_shapes() -> list[Shape]:
        """One row and two, fractions, items without weight and items that never fit."""
        return [
            knapsack_shape([2.0], [1.0]),
            knapsack_shape([[3.0, 2.0, 2.0], [1.0, 4.0, 1.0]], [4.0, 5.0]),
            knapsack_shape([[0.1, 0.2, 0.3, 0.0, 0.7, 0.1]], [0.6]),
            knapsack_shape([[3.0, 5.0, 4.0, 6.0, 3.5, 7.0, 0.0], [4.0, 3.0, 6.0, 3.0, 5.0, 2.0, 1.0]], [11.0, 10.0]),
        ]
