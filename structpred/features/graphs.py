"""Joint features of graphs: weight tables over the feature rows of nodes and edges."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from structpred.core.feature_map import FeatureMap
from structpred.core.oracle import Shape
from structpred.core.sparse import SparseVector
from structpred.core.types import AnyArray, ArrayLike, DTypeLike, Floats, Integers
from structpred.core.weights import Vector, check_length
from structpred.errors import DataError, ParameterError
from structpred.features.fixed_scores import FixedParts
from structpred.features.rows import FeatureRows, checked_places, one_each, stack_rows
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

_kernels = later("structpred.features._graph_kernels")


class GraphFeatures(FeatureMap):
    """Tables of weights (type, feature, state) for nodes and (type, feature, pair of states) for edges.

    The score of state a at a node of type t with feature row x is sum_f x[f] * table[t, f, a]; edges likewise, with pairs of
    states. So labels of one example are nodes of different types that share a row, pixels are nodes of one type with a row each.

    graphs: the shape (n, K, i1, j1, ...) of each instance. rows: for each instance a matrix of feature rows, array or sparse; or
    one matrix with a single row per instance. row_of: for each instance which row each node uses; None: node v uses row v.
    node_type: for each instance the table of each node; None: table 0. edge_rows, edge_row_of, edge_type: the same for edges, in
    the shape's order; without edge_rows every edge has the constant 1. edge_flipped: for each instance True for edges whose table
    is meant from the larger node to the smaller one. symmetric: the pairs (a, b) and (b, a) share their weights.
    fixed: for each instance scores added to its parts, or None.

    Flat weights: node tables (n_node_types, d, K), then edge tables (n_edge_types, d_e, P); P = K^2, pair (a, b) at a * K + b, or
    K (K + 1) / 2 for symmetric ones. `groups` are these two, or the first alone where edges have rows without columns, and so no
    weights. Parts: as the oracles over graphs number them, n * K states of nodes, then K^2 pairs per edge. Instances that are
    given the same objects as row_of, node_type and so on share them in memory.
    Raises DataError, naming the sample, for what does not fit.

    >>> two = GraphFeatures([(2, 2, 0, 1)], [np.array([[1.0, 0.5]])], [[0, 0]], [[0, 1]], n_node_types=2, n_states=2)
    >>> two.dim, two.scores(np.arange(12.0), 0).tolist()
    (12, [1.0, 2.5, 7.0, 8.5, 8.0, 9.0, 10.0, 11.0])
    """

    def __init__(
        self, graphs: Sequence[Shape], rows: Any, row_of: Sequence[ArrayLike] | None = None,
        node_type: Sequence[ArrayLike] | None = None, *, edge_rows: Any = None,
        edge_row_of: Sequence[ArrayLike] | None = None, edge_type: Sequence[ArrayLike] | None = None,
        edge_flipped: Sequence[ArrayLike] | None = None, n_node_types: int = 1, n_edge_types: int = 1, n_states: int,
        symmetric: bool = False, fixed: Sequence[Floats | None] | None = None, dtype: DTypeLike = np.float64,
    ) -> None:  # fmt: skip
        for name, value in (("n_node_types", n_node_types), ("n_edge_types", n_edge_types), ("n_states", n_states)):
            if value < 1:
                raise ParameterError(f"{name} must be at least 1, got {value}")
        n = len(graphs)
        self.n_states, self.n_node_types, self.n_edge_types, self.symmetric = n_states, n_node_types, n_edge_types, symmetric
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.nodes = _stacked(rows, n, "features")
        # one row with the constant 1 for all edges of all instances
        self._constant = edge_rows is None
        self.edges = stack_rows(np.ones((1, 1))) if self._constant else _stacked(edge_rows, n, "edge features")
        self._columns, self.width = _pair_columns(n_states, symmetric)
        self.start = n_node_types * self.nodes.n_columns * n_states
        self.dim = self.start + n_edge_types * self.edges.n_columns * self.width
        check_fits(self.dim * (self.dtype.itemsize + 8), f"{self.dim:,} weights")
        ends, self.group_names = (([self.start], ["nodes"]), ([self.start, self.dim], ["nodes", "edges"]))[self.dim > self.start]
        self.groups = np.array([0, *ends], dtype=np.int64)
        lists = (row_of, node_type, edge_row_of, edge_type, edge_flipped)
        names = ("row_of", "node_type", "edge_row_of", "edge_type", "edge_flipped")
        self._lay_out(list(graphs), [one_each(given, n, name) for given, name in zip(lists, names, strict=True)])
        self.fixed = FixedParts(None if fixed is None else self._checked_fixed(one_each(fixed, n, "fixed")))

    def _lay_out(self, graphs: list[Shape], lists: list[list[Any]]) -> None:
        """What each instance's nodes and edges use, once for all instances that are given the same objects."""
        known: dict[tuple[int, ...], int] = {}
        nodes, edges = [np.zeros((0, 2), np.int64)], [np.zeros((0, 3), np.int64)]
        self._pattern = np.empty(len(graphs), np.int64)
        counts = self.nodes.counts, np.zeros(len(graphs), np.int64) if self._constant else self.edges.counts
        for i, shape in enumerate(graphs):
            entries = [listed[i] for listed in lists]
            key = (id(shape), *map(id, entries), int(counts[0][i]), int(counts[1][i]))
            if key not in known:
                known[key] = len(known)
                nodes.append(self._nodes_of(i, shape, *entries[:2]))
                edges.append(self._edges_of(i, shape, *entries[2:]))
            self._pattern[i] = known[key]
        self._node_at = np.cumsum([len(block) for block in nodes])
        self._edge_at = np.cumsum([len(block) for block in edges])
        self._nodes, self._edges = np.concatenate(nodes), np.concatenate(edges)

    def _nodes_of(self, i: int, shape: Shape, row_of: Any, node_type: Any) -> Integers:
        if len(shape) < 2 or len(shape) % 2 or shape[0] < 1 or shape[1] != self.n_states:
            raise DataError(f"sample {i}: expected a shape (n, {self.n_states}, i1, j1, ...), got {shape[:6]}")
        n, n_rows = shape[0], int(self.nodes.counts[i])
        if row_of is None and n_rows != n:
            raise DataError(f"sample {i}: the graph has {n} nodes, but there are {n_rows} feature rows")
        rows = checked_places(np.arange(n) if row_of is None else row_of, n, n_rows, i, "row_of")
        types = checked_places(np.zeros(n, np.int64) if node_type is None else node_type, n, self.n_node_types, i, "node_type")
        return np.stack((rows, types), axis=1)

    def _edges_of(self, i: int, shape: Shape, row_of: Any, edge_type: Any, flipped: Any) -> Integers:
        n = (len(shape) - 2) // 2
        none = np.zeros(n, np.int64)
        n_rows = 1 if self._constant else int(self.edges.counts[i])
        if row_of is None and not self._constant and n_rows != n:
            raise DataError(f"sample {i}: the graph has {n} edges, but there are {n_rows} rows of edge features")
        own = none if self._constant else np.arange(n)
        rows = checked_places(own if row_of is None else row_of, n, n_rows, i, "edge_row_of")
        types = checked_places(none if edge_type is None else edge_type, n, self.n_edge_types, i, "edge_type")
        turned = none if flipped is None else np.asarray(flipped, dtype=np.int64)
        return np.stack((rows, types, checked_places(turned, n, 2, i, "edge_flipped")), axis=1)

    def _checked_fixed(self, fixed: list[Any]) -> list[Floats | None]:
        known: dict[int, Floats] = {}
        for i, row in enumerate(fixed):
            if row is None:
                continue
            if id(row) not in known:
                known[id(row)] = np.ascontiguousarray(row, dtype=np.float64)
                if not np.isfinite(known[id(row)]).all():
                    raise DataError(f"sample {i}: fixed scores must be finite; -1e30 forbids a part")
            if (shape := known[id(row)].shape) != (self.n_parts(i),):
                raise DataError(f"sample {i}: fixed: expected {self.n_parts(i)} scores, one per part, got shape {shape}")
        return [None if row is None else known[id(row)] for row in fixed]

    @property
    def capabilities(self) -> frozenset[str]:
        """What trainers may ask for: "label_sets" where graphs are labels that share one row, each with a table of its own.

        All graphs are alike then, with two states; edges have a constant table each, or no features at all.
        """
        if self.n_states != 2 or not len(self) or (self._pattern != self._pattern[0]).any() or (self.nodes.counts != 1).any():
            return frozenset()
        nodes, edges = self._sides[self._pattern[0]]
        own = np.array_equal(nodes, np.stack((np.zeros(self.n_node_types), np.arange(self.n_node_types)), axis=1))
        tables = np.stack((np.zeros(len(edges)), np.arange(len(edges)), np.zeros(len(edges))), axis=1)
        plain = self._constant and not self.symmetric and np.array_equal(edges, tables)
        return frozenset({"label_sets"}) if own and (plain or not self.edges.n_columns) else frozenset()

    def __len__(self) -> int:
        """The number of graphs."""
        return len(self._pattern)

    def n_parts(self, i: int) -> int:
        """n * K + E * K^2."""
        p = self._pattern[i]
        n, e = self._node_at[p + 1] - self._node_at[p], self._edge_at[p + 1] - self._edge_at[p]
        return int(n * self.n_states + e * self.n_states**2)

    def tables(self, w: Vector) -> tuple[AnyArray, AnyArray]:
        """The flat weights as node tables (n_node_types, d, K) and edge tables (n_edge_types, d_e, P), views."""
        check_length(w, self.dim)
        nodes, edges = w[: self.start], w[self.start :]
        return nodes.reshape(self.n_node_types, -1, self.n_states), edges.reshape(self.n_edge_types, -1, self.width)

    @cached_property
    def _sides(self) -> list[tuple[Integers, Integers]]:
        """What nodes and edges of each pattern use."""
        nodes, edges = np.split(self._nodes, self._node_at[1:-1]), np.split(self._edges, self._edge_at[1:-1])
        return list(zip(nodes, edges, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        """Without views, which would be written as copies."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_sides", "kernel_arguments")}

    def _arguments(self, i: int) -> tuple[Any, ...]:
        """What the kernels need of instance i: tables, nodes and edges."""
        a, b = self.nodes, self.edges
        nodes, edges = self._sides[self._pattern[i]]
        edge_row = 0 if self._constant else b.offsets[i]
        return (
            (self.n_states, self._columns, self.width, self.start),
            (nodes, a.offsets[i], a.indptr, a.indices, a.values, a.n_columns),
            (edges, edge_row, b.indptr, b.indices, b.values, b.n_columns),
        )

    def scores(self, w: Vector, i: int) -> Floats:
        """Scores of the states of nodes (n * K), then of the pairs of edges (E * K^2), flat."""
        check_length(w, self.dim)
        out = np.empty(self.n_parts(i))
        _kernels().score_graph(w, *self._arguments(i), out)
        return out

    def score_block(self, w: Vector, scale: float, start: int, stop: int, places: Integers, out: Floats) -> None:
        """out[places[i - start]:]: scale times the scores of instance i, plus its fixed scores; for many threads at once."""
        check_length(w, self.dim)
        if stop == start + 1:  # fewer arguments, which are what takes time
            _kernels().score_graph(w, *self._arguments(start), out[places[0] : places[1]])
        else:
            _kernels().score_graphs(w, start, stop, places, *self.kernel_arguments, out)
        if scale != 1.0:
            out *= scale
        self.fixed.add(start, stop, places, out)

    def fixed_scores(self, i: int) -> Floats | None:
        """What is added to the scores of instance i; None for nothing."""
        return self.fixed.of(i)

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """The joint features of sparse part counts."""
        kernels, arguments = _kernels(), self._arguments(i)
        done, idx, val = kernels.combine_graph(parts, counts, self.dim, *arguments)
        if done:
            return SparseVector(idx, val)
        dense, mu = np.zeros(self.dim), np.zeros(self.n_parts(i))
        np.add.at(mu, parts, counts)
        kernels.add_graph(mu, 1.0, *arguments, dense)
        at = np.flatnonzero(dense)
        return SparseVector(at, dense[at])

    @cached_property
    def kernel_arguments(self) -> tuple[Any, ...]:
        """What the kernels for many instances need: (where, table, node_side, edge_side), as their file says."""
        a, b = self.nodes, self.edges
        edge_rows = np.zeros(len(self), np.int64) if self._constant else np.asarray(b.offsets, dtype=np.int64)
        where = (self._pattern, self._node_at, self._edge_at, np.asarray(a.offsets, dtype=np.int64), edge_rows)
        return (
            where,
            (self.n_states, self._columns, self.width, self.start),
            (self._nodes, 0, a.indptr, a.indices, a.values, a.n_columns),
            (self._edges, 0, b.indptr, b.indices, b.values, b.n_columns),
        )

    def adjoint_block(self, start: int, parts: Integers, counts: Floats, ends: Integers) -> tuple[Integers, Floats, Integers]:
        """What `adjoint` gives for the graphs from `start` on, whose parts ascend: (indices, values, offsets), flat."""
        out = np.empty(len(ends), np.int64)
        return *_kernels().combine_graphs(parts, counts, ends, start, out, self.dim, *self.kernel_arguments), out

    def corner_calls(self) -> tuple[ModuleType, tuple[Any, ...]]:
        """Compiled visits of blocks of corners, and the arguments that they take: see trainers/blocks/corner_spaces.py."""
        from structpred.features import _graph_corner_kernels

        return _graph_corner_kernels, self.kernel_arguments

    def spread(self, i: int, mu: Floats, scratch: Floats) -> float:
        """scratch = Psi_i^T mu for dense mu, where scratch was zero; returns its squared norm."""
        return float(_kernels().add_graph(mu, 1.0, *self._arguments(i), scratch))

    def flush(self, i: int, scratch: Floats, coef: float, w: Vector) -> None:
        """w += coef * scratch; scratch, which `spread` filled for instance i, becomes zero again."""
        _kernels().flush_graph(scratch, coef, *self._arguments(i), w)

    def total(self, mu: Floats, places: Integers, coefs: Floats) -> Floats:
        """sum_i coefs[i] Psi_i^T mu_i, float64, for the dense mu_i = mu[places[i]:places[i+1]] of all instances."""
        out = np.zeros(self.dim)
        for i in range(len(self)):
            _kernels().add_graph(mu[places[i] : places[i + 1]], float(coefs[i]), *self._arguments(i), out)
        return out

    def take(self, rows: Integers) -> "GraphFeatures":
        """The graphs with these numbers, in this order."""
        new = copy(self)
        new.__dict__.pop("kernel_arguments", None)
        new.nodes, new._pattern = self.nodes.take(rows), self._pattern[rows]
        new.edges = self.edges if self._constant else self.edges.take(rows)
        new.fixed = self.fixed.take(rows)
        return new

    def arrays(self) -> Sequence[AnyArray]:
        """The rows, and which of them nodes and edges use."""
        rows = (a for side in (self.nodes, self.edges) for a in (side.indptr, side.indices, side.values, side.offsets))
        return (*rows, self._pattern, self._nodes, self._node_at, self._edges, self._edge_at, *self.fixed.arrays())


def _stacked(rows: Any, n: int, what: str) -> FeatureRows:
    stacked = stack_rows(rows, what)
    if len(stacked.counts) != n:
        raise DataError(f"{n} graphs but {what} of {len(stacked.counts)} samples")
    return stacked


def _pair_columns(n_states: int, symmetric: bool) -> tuple[Integers, int]:
    """For each pair a * K + b its column in an edge table, and that of (b, a); and the number of columns."""
    a, b = np.divmod(np.arange(n_states**2), n_states)
    if not symmetric:
        return np.stack((a * n_states + b, b * n_states + a)), n_states**2
    low, high = np.minimum(a, b), np.maximum(a, b)
    column = high * (high + 1) // 2 + low
    return np.stack((column, column)), n_states * (n_states + 1) // 2
