"""The neighbours of each node of a pairwise MRF, as flat arrays for compiled inference."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Shape
from structpred.core.scores import kept_for_shapes
from structpred.core.types import Floats, Integers
from structpred.oracles.mrf import graph_of, pairwise_scores


class Links(NamedTuple):
    """Node i's links are first[i] to first[i + 1], by the number of the other node.

    edges: (E, 2), the graph's. other: the node at the other end. edge: the edge's number. twin: the same edge's link at the other
    node. All int64.
    """

    edges: Integers
    first: Integers
    other: Integers
    edge: Integers
    twin: Integers


@kept_for_shapes
def links_of(shape: Shape) -> Links:
    """The links of a shape's graph; kept for the 1,024 shapes used last. Raises DataError as `graph_of`."""
    graph = graph_of(shape)
    ends, n_edges = graph.edges, len(graph.edges)
    node = np.concatenate((ends[:, 0], ends[:, 1]))
    other = np.concatenate((ends[:, 1], ends[:, 0]))
    order = np.lexsort((other, node))
    place = np.empty(2 * n_edges, np.int64)
    place[order] = np.arange(2 * n_edges)
    twin = place[(order + n_edges) % max(1, 2 * n_edges)]
    first = np.concatenate(([0], np.cumsum(np.bincount(node, minlength=graph.n))))
    # writable: kernels are compiled once for each kind of array
    return Links(ends.copy(), first.astype(np.int64), other[order], order % max(1, n_edges), twin)


def given(scores: npt.ArrayLike, shape: Shape) -> Floats:
    """A contiguous float64 copy of the scores of all parts. Raises DataError as `pairwise_scores`."""
    return pairwise_scores(scores, shape).copy()
