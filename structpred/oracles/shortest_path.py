"""Paths from a source to a target in directed acyclic graphs: scores are maximised, so scores are minus costs."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import checked_scores, checked_sizes, kept_for_shapes
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.decisions._by_shape import by_shape, marginals_of_one
from structpred.projections.lockstep import nearest_mixture
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of, spans

_kernels = later("structpred.oracles.decisions._path_kernels")

_LEAST = 0.5 * FORBIDDEN
#: row 0, at place 0
_ONE = np.zeros(1, np.int64)
_TWO = np.zeros(2, np.int64)


class Graph(NamedTuple):
    """A graph as sweeps need it: the nodes that lie on a path, in topological order, and the edges into each.

    ends: (n_parts, 2), where each edge begins and ends. order: the useful nodes. starts, edges, tails: as the kernels say.
    longest: the largest number of edges of a path. n_paths: how many paths there are.
    """

    n_parts: int
    source: int
    target: int
    ends: Integers
    order: list[int]
    starts: Integers
    edges: Integers
    tails: Integers
    longest: int
    n_paths: int


def path_shape(n_nodes: int, edges: ArrayLike, source: int = 0, target: int = -1) -> Shape:
    """The shape of the paths from `source` to `target` in the graph with these edges (from, to), over the nodes 0..n_nodes-1.

    Part e is edges[e]. There may be several edges from one node to another. A negative source or target counts from the end.
    What is no directed acyclic graph is refused when the shape is used.

    >>> path_shape(3, [(0, 1), (1, 2), (0, 2)])
    (3, 0, 2, ((0, 1), (1, 2), (0, 2)))
    """
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    first, last = (node + n_nodes if node < 0 else node for node in (source, target))
    return int(n_nodes), first, last, tuple(map(tuple, pairs.tolist()))


def grid_edges(rows: int, columns: int) -> Integers:
    """(n_edges, 2): the edges of a grid whose cell in row r and column c is node r * columns + c.

    Row after row: the edges to the right within the row, then those down to the next one.

    >>> grid_edges(2, 2).tolist()
    [[0, 1], [0, 2], [1, 3], [2, 3]]
    """
    cells = np.arange(rows * columns).reshape(rows, columns)
    found = []
    for r in range(rows):
        found.append(np.stack((cells[r, :-1], cells[r, 1:]), axis=1))
        if r + 1 < rows:
            found.append(np.stack((cells[r], cells[r + 1]), axis=1))
    return np.concatenate(found).astype(np.int64)


@kept_for_shapes
def graph_of(shape: Shape) -> Graph:
    """The graph of a shape. Raises DataError for a shape that is none, or has a cycle; InfeasibleError where no path exists."""
    n_nodes, source, target, ends = _read(shape)
    children: list[list[int]] = [[] for _ in range(n_nodes)]
    parents: list[list[int]] = [[] for _ in range(n_nodes)]
    for e, (i, j) in enumerate(ends.tolist()):
        children[i].append(e)
        parents[j].append(e)
    # all nodes, each behind those from which edges lead to it (Kahn 1962)
    left = np.bincount(ends[:, 1], minlength=n_nodes).tolist()
    order = [v for v in range(n_nodes) if left[v] == 0]
    for v in order:
        for e in children[v]:
            w = int(ends[e, 1])
            left[w] -= 1
            if left[w] == 0:
                order.append(w)
    if len(order) < n_nodes:
        around = [v for v in range(n_nodes) if left[v] > 0]
        raise DataError(f"the graph has a cycle through some of the nodes {around[:8]}: best paths need a graph without cycles")
    after, before = {source}, {target}  # what the source leads to, and what leads to the target
    for v, w in zip(order, reversed(order), strict=True):
        after.update(ends[children[v], 1].tolist() if v in after else ())
        before.update(ends[parents[w], 0].tolist() if w in before else ())
    reached = after & before
    if source not in reached:
        raise InfeasibleError(f"no path leads from node {source} to node {target}")
    order = [v for v in order if v in reached]
    place = {v: k for k, v in enumerate(order)}
    into = [[e for e in parents[v] if int(ends[e, 0]) in place] if v != source else [] for v in order]
    edges = np.array([e for own in into for e in own], dtype=np.int64)
    tails = np.array([place[v] for v in ends[edges, 0].tolist()], dtype=np.int64)
    starts = np.cumsum([0, *map(len, into)], dtype=np.int64)
    begins, before = starts.tolist(), tails.tolist()
    lengths, counts = [0], [1]  # the edges of the longest path to each node, and the number of paths, at most 2^62
    for v in range(1, len(order)):
        own = before[begins[v] : begins[v + 1]]
        lengths.append(1 + max(lengths[t] for t in own))
        counts.append(min(sum(counts[t] for t in own), 1 << 62))
    return Graph(len(ends), source, target, ends, order, starts, edges, tails, lengths[-1], counts[-1])


def _read(shape: Shape) -> tuple[int, int, int, Integers]:
    """(n_nodes, source, target, ends) of a shape of either kind."""
    if isinstance(shape, tuple) and len(shape) == 4 and isinstance(shape[3], tuple):
        n_nodes, source, target = checked_sizes((shape[0], shape[1] + 1, shape[2] + 1), "nodes", "source + 1", "target + 1")
        ends = np.array(shape[3], dtype=np.int64).reshape(-1, 2)
        if len(ends) and not 0 <= ends.min() <= ends.max() < n_nodes:
            raise DataError(f"edges lead from node to node, 0 to {n_nodes - 1}, got {ends.min()} to {ends.max()}")
        if max(source, target) > n_nodes or source == target:
            raise DataError(f"source and target must be two of {n_nodes} nodes, got {source - 1} and {target - 1}")
        return n_nodes, source - 1, target - 1, ends
    rows, columns = checked_sizes(shape, "rows", "columns")
    if rows * columns == 1:
        raise DataError("a grid of one cell has no edges: a path needs two cells")
    check_fits(64 * rows * columns, f"a grid of {rows:,} x {columns:,} cells")
    return rows * columns, 0, rows * columns - 1, grid_edges(rows, columns)


class ShortestPathOracle(Oracle):
    """shape = (rows, columns), or path_shape(n_nodes, edges, source, target); labels are the edges of a path, in their order.

    Part e is edge e; scores are maximised, so give minus costs: the best path is then the shortest, and costs of any sign will
    do, as the graph has no cycles. On a grid paths lead from the first cell to the last one by moves to the right and down, and
    `grid_edges` lists the edges. Everything takes one sweep over the edges, or two (the k best: k sweeps). Ties go to the first
    edge into a node. Where fixed scores of -1e30 forbid all paths, argmax gives one of them.

    Raises DataError for shapes that are no directed acyclic graph, InfeasibleError where no path leads to the target.

    >>> costs = np.array([1.0, 5.0, 1.0, 1.0])  # of a grid of 2 x 2: to the right, down, down, to the right
    >>> ShortestPathOracle().argmax(-costs, (2, 2)).tolist()
    [0, 2]
    """

    output = "path"

    def n_parts(self, shape: Shape) -> int:
        """The number of edges."""
        return graph_of(shape).n_parts

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The path with the largest sum of scores."""
        graph = graph_of(shape)
        given, labels, ends = checked_scores(scores, graph.n_parts, shape), np.empty(graph.longest, np.int64), _TWO.copy()
        _kernels().best_paths(given, _ONE, _ONE, graph.starts, graph.edges, graph.tails, ends, labels, ends)
        return labels[: ends[1]]

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best path of each instance, in one compiled call for each shape."""
        scores, offsets, groups = by_shape(graph_of, scores, offsets, shapes)
        if len(groups) == 1:
            [(graph, rows)] = groups
            labels, ends = np.empty(len(rows) * graph.longest, np.int64), np.zeros(len(rows) + 1, np.int64)
            _kernels().best_paths(scores, offsets, rows, graph.starts, graph.edges, graph.tails, ends, labels, ends)
            return labels[: ends[-1]], ends
        longest = np.empty(len(shapes), np.int64)
        for graph, rows in groups:
            longest[rows] = graph.longest
        room = ends_of(longest)
        labels, stops = np.empty(int(room[-1]), np.int64), room.copy()
        for graph, rows in groups:
            _kernels().best_paths(scores, offsets, rows, graph.starts, graph.edges, graph.tails, room, labels, stops)
        return labels[spans(room[:-1], stops[1:])], ends_of(stops[1:] - room[:-1])

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """The edges themselves. ValueError where they do not lead from the source to the target."""
        graph = graph_of(shape)
        wanted = graph.ends, graph.source, graph.target
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or not _kernels().is_path(labels, *wanted):
            raise ValueError(f"the edges {labels.tolist()} are no path from node {graph.source} to node {graph.target}")
        return labels

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each output: the labels themselves."""
        return labels, ends

    marginals = marginals_of_one

    def marginals_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Floats, Floats]:
        """The marginals of each instance, in one compiled call for each shape.

        Raises InfeasibleError where every path has a forbidden edge.
        """
        scores, offsets, groups = by_shape(graph_of, scores, offsets, shapes)
        log_zs, mu = np.empty(len(shapes)), np.zeros(len(scores))
        for graph, rows in groups:
            _kernels().path_sums(scores, offsets, rows, graph.starts, graph.edges, graph.tails, _LEAST, log_zs, mu)
        if (log_zs == -np.inf).any():
            where = f"sample {int(log_zs.argmin())}: " if len(shapes) > 1 else ""
            raise InfeasibleError(f"{where}every path uses a forbidden edge (a score of -1e30): no marginals exist")
        return log_zs, mu

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best paths without forbidden edges, best first: the k best paths to each node, from those to the nodes before."""
        graph = graph_of(shape)
        given, n, k = checked_scores(scores, graph.n_parts, shape), len(graph.order), min(k, graph.n_paths)
        check_fits(24 * n * k, f"the {k:,} best paths to {n:,} nodes")
        values, (froms, ranks) = np.full((n, k), -np.inf), np.zeros((2, n, k), np.int64)
        _kernels().best_ways(given, graph.starts, graph.edges, graph.tails, k, _LEAST, values, froms, ranks)
        return [self._way(graph, froms, ranks, rank) for rank in range(np.count_nonzero(values[-1] > -np.inf))]

    def _way(self, graph: Graph, froms: Integers, ranks: Integers, rank: int) -> Labels:
        """The way of this rank to the target, read from its end."""
        found, v = [], len(graph.order) - 1
        while v > 0:
            at, rank = int(froms[v, rank]), int(ranks[v, rank])
            found.append(int(graph.edges[at]))
            v = int(graph.tails[at])
        return np.array(found[::-1], dtype=np.int64)

    project = nearest_mixture

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every path."""
        graph = graph_of(shape)
        useful = set(graph.edges.tolist())
        leaving: dict[int, list[int]] = {}
        for e, (i, _) in enumerate(graph.ends.tolist()):
            if e in useful:
                leaving.setdefault(i, []).append(e)
        stack: list[tuple[int, ...]] = [(e,) for e in reversed(leaving[graph.source])]
        while stack:
            path = stack.pop()
            if (v := int(graph.ends[path[-1], 1])) == graph.target:
                yield np.array(path, dtype=np.int64)
            else:
                stack.extend((*path, e) for e in reversed(leaving[v]))

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Small grids, and a graph with two edges between two nodes, paths of several lengths and a node that leads nowhere."""
        graph = path_shape(
            6, [(2, 0), (0, 1), (2, 1), (2, 1), (0, 3), (1, 3), (1, 5), (5, 4), (3, 4), (2, 4)], source=2, target=4
        )
        return [(1, 2), (2, 2), (3, 1), (3, 4), graph, path_shape(4, [(0, 1), (0, 2), (1, 2), (1, 3)], target=2)]
