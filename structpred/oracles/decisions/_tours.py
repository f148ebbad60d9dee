"""What every oracle of tours shares: its parts, its labels, and the list of all tours."""

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.scores import checked_sizes, kept_for_shapes
from structpred.core.types import Integers
from structpred.errors import DataError

#: a table of all pairs of nodes stays small, and sums of whole numbers over all edges stay below 2^63
MOST_NODES = 500


class Pairs(NamedTuple):
    """n_nodes, and edge_of (n, n): the part of each pair of nodes."""

    n_parts: int
    n_nodes: int
    edge_of: Integers


@kept_for_shapes
def pairs_of(shape: Shape) -> Pairs:
    """The edges of a shape. Raises DataError for fewer than 3 nodes, and more than 500."""
    (n,) = checked_sizes(shape, "nodes")
    if not 3 <= n <= MOST_NODES:
        raise DataError(f"a tour has 3 to {MOST_NODES} nodes, got {n}")
    edge_of = np.full((n, n), -1, np.int64)
    edge_of[np.triu_indices(n, 1)] = np.arange(n * (n - 1) // 2)
    return Pairs(n * (n - 1) // 2, n, np.maximum(edge_of, edge_of.T))


class TourOracle(Oracle):
    """shape = (n,), n >= 3 nodes; labels are the nodes in their order, from node 0 on, in the direction whose second node is
    smaller than the last. Parts are the edges between nodes j < k, sorted by j, then by k; those of the tour are on.
    """

    output = "tour"

    def n_parts(self, shape: Shape) -> int:
        """n (n - 1) / 2."""
        return pairs_of(shape).n_parts

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """The n edges of the tour. ValueError for what is no tour in its direction from node 0."""
        pairs = pairs_of(shape)
        if labels.shape != (pairs.n_nodes,) or not np.array_equal(np.sort(labels), np.arange(pairs.n_nodes)):
            raise ValueError(f"a tour of {pairs.n_nodes} nodes is a permutation of 0..{pairs.n_nodes - 1}, got {labels.tolist()}")
        if labels[0] != 0 or labels[1] > labels[-1]:
            raise ValueError(
                f"a tour starts at node 0 and continues with the smaller one of its neighbours, got {labels.tolist()}"
            )
        return pairs.edge_of[labels, np.roll(labels, -1)]

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every tour: (n - 1)! / 2."""
        rest = range(1, pairs_of(shape).n_nodes)
        return (np.array([0, *order], dtype=np.int64) for order in permutations(rest) if order[0] < order[-1])

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 60 tours."""
        return [(3,), (4,), (6,)]
