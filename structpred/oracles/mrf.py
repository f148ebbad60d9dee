"""Pairwise Markov random fields: the graph, the numbering of parts, and the parent of all oracles over them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple, NoReturn

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import LARGEST, check_listed, checked_batch, checked_scores, kept_for_shapes, runs_of, short
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError, InfeasibleError
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import ends_of

_graph_parts = later("structpred.oracles.fields._graph_parts_kernels")

#: what the kernels answer; `refuse` says it in words
OK, NOTHING_LEFT, NOT_FINITE = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph with the same number of states at every node.

    n: the number of nodes. n_states: K. edges: int64 (E, 2), read-only, the smaller node first, none repeated.
    """

    n: int
    n_states: int
    edges: Integers

    @property
    def n_parts(self) -> int:
        """n * K + E * K^2."""
        return self.n * self.n_states + len(self.edges) * self.n_states**2

    def parts(self, labels: Labels) -> Integers:
        """The parts that are on, one per node and then one per edge. ValueError for labels that are not states."""
        found = np.empty(self.n + len(self.edges), np.int64)
        states = labels.astype(np.int64, casting="safe", copy=False)
        if not _graph_parts().graph_parts(states, self.edges, self.n_states, found):
            raise ValueError(f"states must lie in [0, {self.n_states}), got {labels.min()}..{labels.max()}")
        return found


def graph_shape(n: int, n_states: int, edges: ArrayLike | Sequence[tuple[int, int]]) -> Shape:
    """The shape (n, K, i1, j1, i2, j2, ...) of n nodes with K states each and the given edges, in the order given.

    An edge is stored with its smaller node first, however it is given: the rows of its table are the smaller node's states.
    Raises DataError for an invalid graph, as `graph_of`.

    >>> graph_shape(3, 2, [(0, 1), (2, 1)])
    (3, 2, 0, 1, 1, 2)
    """
    pairs = np.asarray(edges)
    if pairs.size == 0:
        pairs = np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise DataError(f"edges must be pairs of node numbers, an integer array (E, 2); got {pairs.dtype} {pairs.shape}")
    shape = (int(n), int(n_states), *np.sort(pairs, axis=1).ravel().tolist())
    graph_of(shape)
    return shape


@kept_for_shapes
def graph_of(shape: Shape) -> Graph:
    """The graph that a shape describes; kept for the 1,024 shapes used last.

    Raises DataError for n < 1, K < 1, and edges that name missing nodes, join a node to itself, come twice or have the larger
    node first.

    >>> graph_of((3, 2, 0, 1, 1, 2)).edges.tolist()
    [[0, 1], [1, 2]]
    """
    if len(shape) < 2 or len(shape) % 2:
        raise DataError(f"a graph's shape is (n, K, i1, j1, i2, j2, ...), got {len(shape)} numbers: {short(shape)}")
    n, n_states = shape[:2]
    if n < 1:
        raise DataError(f"a graph needs at least one node, got n = {n}")
    if n_states < 1:
        raise DataError(f"a node needs at least one state, got K = {n_states}")
    if max(shape) > LARGEST or any(number != int(number) for number in shape):
        raise DataError(f"a graph's shape has whole numbers up to {LARGEST}, got {short(shape)}")
    n, n_states = int(n), int(n_states)
    edges = np.array(shape[2:], dtype=np.int64).reshape(-1, 2)
    first, second = edges.T
    wrong = (((edges < 0) | (edges >= n)).any(axis=1), first == second, first > second)
    reasons = (
        f"names a node that is missing: nodes are 0..{n - 1}",
        "joins a node to itself; put such scores on the node",
        "has its larger node first; build the shape with graph_shape(n, K, edges)",
    )
    for rows, reason in zip(wrong, reasons, strict=True):
        if rows.any():
            e = int(rows.argmax())
            raise DataError(f"edge {e}, ({first[e]}, {second[e]}), {reason}")
    _, at, times = np.unique(edges, axis=0, return_index=True, return_counts=True)
    if (times > 1).any():
        e = int(at[times > 1][0])
        raise DataError(f"edge {e}, ({first[e]}, {second[e]}), comes more than once; add its tables up")
    edges.flags.writeable = False
    return Graph(n, n_states, edges)


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


def refuse(status: int, shape: Shape, where: str = "") -> NoReturn:
    """Raise what a kernel's status stands for: InfeasibleError for NOTHING_LEFT, else DataError; `where` goes in front."""
    if status == NOTHING_LEFT:
        raise InfeasibleError(f"{where}every output uses a forbidden part (a score of -1e30)")
    raise DataError(f"{where}scores must be finite numbers (-1e30 forbids a part), got NaN or infinity")


def pairwise_scores(scores: ArrayLike, shape: Shape) -> Scores:
    """The scores of all parts, contiguous float64. Raises DataError where they are not finite or of another number."""
    return checked_scores(scores, graph_of(shape).n_parts, shape)


def given(scores: ArrayLike, shape: Shape) -> Floats:
    """A contiguous float64 copy of the scores of all parts. Raises DataError as `pairwise_scores`."""
    return pairwise_scores(scores, shape).copy()


def pairwise_batch(scores: ArrayLike, offsets: ArrayLike, shapes: Sequence[Shape]) -> tuple[Scores, Integers]:
    """The same for a batch, scores and offsets. Raises DataError naming the sample."""
    return checked_batch(scores, offsets, [graph_of(shape).n_parts for shape in shapes])


class PairwiseOracle(Oracle):
    """The parent of the oracles over pairwise MRFs: shapes, parts and outputs; each child adds its inference.

    shape = (n, K, i1, j1, ...), from `graph_shape`: n nodes with K states each, joined by edges. Labels: the state of each node.
    Parts: i * K + a is on when node i has state a; n * K + e * K^2 + a * K + b is on when edge e has state a at its first
    (smaller) node and b at its second. Scores are finite; those of -1e30 forbid a state or a pair: where nodes differ in their
    number of states, K is the largest, and the states that a node lacks are forbidden. Where that leaves no output, the children
    raise InfeasibleError.
    """

    expensive = True

    def n_parts(self, shape: Shape) -> int:
        """n * K + E * K^2."""
        return graph_of(shape).n_parts

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """One part per node, then one per edge."""
        graph = graph_of(shape)
        if labels.shape != (graph.n,):
            raise ValueError(f"expected {graph.n} states, one per node, got shape {labels.shape}")
        return graph.parts(labels)

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each output, flat; neighbours of one shape are done in one compiled call."""
        places = ends_of(np.array([graph_of(shape).n + len(graph_of(shape).edges) for shape in shapes], dtype=np.int64))
        out = np.empty(int(places[-1]), np.int64)
        for shape, first, last in runs_of(shapes):
            graph = graph_of(shape)
            rows = labels[ends[first] : ends[last]].reshape(-1, graph.n), out[places[first] : places[last]]
            _graph_parts().graph_parts_of_each(rows[0], graph.edges, graph.n_states, rows[1].reshape(len(rows[0]), -1))
        return out, places

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """All K^n outputs, the last node's state changing fastest."""
        graph = graph_of(shape)
        check_listed(graph.n)
        return (np.array(y, dtype=np.int64) for y in product(range(graph.n_states), repeat=graph.n))

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """n nodes, K states."""
        return shape[0], shape[1]

    @staticmethod
    def example_shapes() -> list[Shape]:
        """One node, no edges, a complete graph, a tree, a cycle, two parts; one to four states; up to 256 outputs."""
        return [
            graph_shape(1, 1, []),
            graph_shape(1, 3, []),
            graph_shape(3, 1, [(0, 1), (1, 2)]),
            graph_shape(4, 2, []),
            graph_shape(2, 4, [(0, 1)]),
            graph_shape(5, 2, [(i, j) for i in range(5) for j in range(i + 1, 5)]),
            graph_shape(5, 3, [(0, 2), (1, 2), (2, 3), (0, 4)]),
            graph_shape(4, 3, [(0, 1), (1, 2), (2, 3), (0, 3)]),
            graph_shape(6, 2, [(0, 5), (1, 3), (3, 4), (1, 4)]),
        ]
