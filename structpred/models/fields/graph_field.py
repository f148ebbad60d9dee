"""Graphs whose nodes have labels: how users give them, as networkx graphs or arrays, and the field over their nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Oracle, Shape
from structpred.core.requirements import require
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.features.graphs import GraphFeatures
from structpred.features.rows import stack_rows
from structpred.models.chain.targets import LabelEncoder, where_known
from structpred.models.constrained import Constraints, constrained
from structpred.models.fields.kernel_columns import RowColumns
from structpred.models.fields.label_graphs import FieldNames, GraphSizes, graph_oracle
from structpred.models.signs import NameTable
from structpred.oracles.mrf import graph_shape
from structpred.task.inference import Inference


class GraphSample(NamedTuple):
    """One graph. names: of its nodes, in order. rows: (n, d), array or sparse. edges: (E, 2), each from its first to its second
    node.

    edge_rows: (E, d_e) or None. directed: False for an undirected networkx graph, whose edges have no first node.
    """

    names: Sequence[Any]
    rows: Any
    edges: Integers
    edge_rows: Any
    directed: bool


class GraphTable(NamedTuple):
    """Checked graphs, and FeatureRows of all nodes and of all edges; None where there are no graphs, or no features of edges."""

    samples: list[GraphSample]
    n_features: int
    n_edge_features: int | None
    rows: Any
    edge_rows: Any

    def shapes(self, n_states: int) -> list[Shape]:
        """The shape of each graph; equal ones are the same object."""
        known: dict[Shape, Shape] = {}
        found = []
        for i, sample in enumerate(self.samples):
            try:
                shape = graph_shape(len(sample.names), n_states, sample.edges)
            except DataError as error:
                raise DataError(f"sample {i}: {error}") from None
            found.append(known.setdefault(shape, shape))
        return found


def as_graphs(
    X: Any, node_features: str, edge_features: str | None, expected: tuple[int, int | None] | None = None
) -> GraphTable:
    """A list of graphs, checked.

    Each is a networkx graph, whose nodes (and edges, if edge_features is not None) have vectors of numbers under these names; or
    a tuple (node rows, edges) or (node rows, edges, edge rows). expected: the numbers of features of nodes and edges that the
    model was fitted with. Raises DataError, naming the sample: edges that name missing nodes, join a node to itself or come
    twice, no nodes, NaN, other numbers of columns.
    """
    is_one = isinstance(X, tuple) and 2 <= len(X) <= 3 and all(hasattr(part, "shape") for part in X)  # (node rows, edges)
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable) or _is_networkx(X) or is_one:
        raise DataError("X: expected a list of graphs; did you pass one graph instead of a list of graphs?")
    samples = [_sample(i, x, node_features, edge_features) for i, x in enumerate(X)]
    if not samples:
        return GraphTable([], *((0, None) if expected is None else expected), None, None)
    for i, sample in enumerate(samples):
        if not len(sample.names):
            raise DataError(f"sample {i}: the graph is empty: it has no nodes; leave it out")
        if (sample.edge_rows is None) != (samples[0].edge_rows is None):
            raise DataError(f"sample {i}: some graphs have edge features and some have none")
    rows, edge_rows = stack_rows([sample.rows for sample in samples]), None
    sides = [("nodes", "feature rows", rows, [len(sample.names) for sample in samples])]
    if samples[0].edge_rows is not None:
        edge_rows = stack_rows([sample.edge_rows for sample in samples], "edge features")
        sides.append(("edges", "rows of edge features", edge_rows, [len(sample.edges) for sample in samples]))
    for what, given, stacked, sizes in sides:
        for i, (count, size) in enumerate(zip(stacked.counts.tolist(), sizes, strict=True)):
            if count != size:
                raise DataError(f"sample {i}: the graph has {size} {what}, but there are {count} {given}")
    table = GraphTable(samples, rows.n_columns, None if edge_rows is None else edge_rows.n_columns, rows, edge_rows)
    table.shapes(1)
    if expected is None and not table.n_features:
        raise DataError("X: expected at least one feature a node, got none")
    for found, wanted, what in zip(table[1:3], expected or table[1:3], ("nodes", "edges"), strict=True):
        if found != wanted:
            raise DataError(f"X has {found or 'no'} features of {what}, but the model was fitted with {wanted or 'none'}")
    return table


def _is_networkx(x: Any) -> bool:
    return all(hasattr(x, name) for name in ("nodes", "edges", "is_directed"))


def _sample(i: int, x: Any, node_features: str, edge_features: str | None) -> GraphSample:
    if _is_networkx(x):
        return _of_networkx(i, x, node_features, edge_features)
    if not isinstance(x, tuple | list) or not 2 <= len(x) <= 3:
        raise DataError(
            f"sample {i}: expected a networkx graph, or a tuple (node rows, edges) or (node rows, edges, edge rows), got "
            f"{type(x).__name__}"
        )
    rows = x[0] if hasattr(x[0], "tocsr") else np.asarray(x[0])
    if rows.ndim != 2:
        raise DataError(f"sample {i}: expected node features as a 2-d array (n_nodes, n_features), got {rows.ndim}-d")
    pairs = np.asarray(x[1])
    if pairs.size == 0:
        pairs = np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise DataError(
            f"sample {i}: expected edges as pairs of node numbers, whole numbers (E, 2), got {pairs.dtype} {pairs.shape}"
        )
    return GraphSample(range(rows.shape[0]), rows, pairs.astype(np.int64), x[2] if len(x) == 3 else None, True)


def _of_networkx(i: int, x: Any, node_features: str, edge_features: str | None) -> GraphSample:
    names = list(x.nodes)
    place = {name: k for k, name in enumerate(names)}
    links = list(x.edges(data=True))
    edges = np.array([(place[u], place[v]) for u, v, _ in links], dtype=np.int64).reshape(-1, 2)
    rows = _vectors(i, ((f"node {name!r}", x.nodes[name]) for name in names), node_features)
    edge_rows = None
    if edge_features is not None:
        edge_rows = _vectors(i, ((f"edge ({u!r}, {v!r})", values) for u, v, values in links), edge_features)
    return GraphSample(names, rows, edges, edge_rows, bool(x.is_directed()))


def _vectors(i: int, items: Iterable[tuple[str, Mapping[str, Any]]], name: str) -> npt.NDArray[np.float64]:
    """The attribute of that name of each node or edge, as rows."""
    rows: list[npt.NDArray[np.float64]] = []
    for what, values in items:
        if name not in values:
            raise DataError(f"sample {i}: {what} has no attribute {name!r}; it has {', '.join(map(repr, values)) or 'none'}")
        try:
            vector = np.atleast_1d(np.asarray(values[name], dtype=np.float64))
        except (TypeError, ValueError):
            vector = np.empty((0, 0))
        if vector.ndim != 1 or (rows and len(vector) != len(rows[0])):
            raise DataError(
                f"sample {i}: {what}: expected {name!r} to be {len(rows[0]) if rows else 'some'} numbers, got {values[name]!r}"
            )
        rows.append(vector)
    return np.array(rows) if rows else np.zeros((0, 0))


def as_node_labels(y: Any, table: GraphTable) -> list[list[Any]]:
    """One label per node and graph, in the order of the nodes: y[i] is a sequence, or a mapping node -> label.

    Raises DataError, naming the sample, for missing labels and other numbers of them.
    """
    if isinstance(y, str | bytes | Mapping) or not isinstance(y, Iterable):
        raise DataError(f"y: expected a list with the node labels of each graph, got {type(y).__name__}")
    given = list(y)
    if len(given) != len(table.samples):
        raise DataError(f"X has {len(table.samples)} graphs but y has {len(given)} entries")
    lists = []
    for i, (labels, sample) in enumerate(zip(given, table.samples, strict=True)):
        if isinstance(labels, Mapping):
            missing = [name for name in sample.names if name not in labels]
            if missing:
                raise DataError(f"sample {i}: y has no label for node {missing[0]!r}")
            labels = [labels[name] for name in sample.names]
        if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
            raise DataError(f"sample {i}: expected one label per node, got {labels!r}")
        listed = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        if len(listed) != len(sample.names):
            raise DataError(f"sample {i}: the graph has {len(sample.names)} nodes but y has {len(listed)} labels")
        lists.append(listed)
    return lists


NodeLabels = list[npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class GraphField(RowColumns):
    """A node with a label of the encoder for each node of a graph. oracle: None for one that fits the graphs.

    n_features, n_edge_features: of nodes and of edges (None: edges have none). bias: the value of a constant feature; 0 for none.
    directed: whether label pairs (a, b) and (b, a) have weights of their own. node_name, edge_name: where networkx graphs hold
    their features. missing: the label that stands for one that is not known.
    """

    encoder: LabelEncoder
    n_features: int
    n_edge_features: int | None
    bias: float
    directed: bool
    oracle: Oracle | None
    node_name: str
    edge_name: str | None
    missing: Any = None

    @property
    def n_labels(self) -> int:
        """The number of labels of a node."""
        return len(self.encoder.classes)

    @property
    def n_weights(self) -> int:
        """The length of the flat weights."""
        k, constant = self.n_labels, self.bias != 0
        width = k * k if self.directed else k * (k + 1) // 2
        rows = 1 if self.n_edge_features is None else self.n_edge_features + constant
        return (self.n_columns + constant) * k + rows * width

    def attributes(self) -> dict[str, Any]:
        """Sizes, labels, and whether edges are directed."""
        own = {"n_edge_features_in_": self.n_edge_features, "classes_": self.encoder.classes, "directed_": self.directed}
        return super().attributes() | own

    def read(self, X: Any) -> GraphTable:
        """The checked graphs."""
        return as_graphs(X, self.node_name, self.edge_name, (self.n_features, self.n_edge_features))

    def truth(self, X: Any, y: Any, data: GraphTable) -> NodeLabels:
        """The labels of the nodes of each graph."""
        lists = as_node_labels(y, data)
        if not lists:
            raise DataError("X: expected at least one graph, got none")
        return [np.array(labels, dtype=object) for labels in lists]

    def codes(self, truth: NodeLabels) -> list[Integers]:
        """The labels as whole numbers; DataError for one that was not seen at fit."""
        ends = np.cumsum([len(labels) for labels in truth])[:-1]
        return np.split(self.encoder.encode([labels.tolist() for labels in truth]), ends)

    def inference(self, data: GraphTable) -> Inference:
        """Inference over at least one graph."""
        shapes = data.shapes(self.n_labels)
        oracle = graph_oracle(GraphSizes.of(shapes), self.n_labels) if self.oracle is None else self.oracle
        rows, edge_rows = self.columns_of(data.rows.matrix, data.rows.offsets), data.edge_rows
        if edge_rows is not None:
            edge_rows = replace(self, scale=None, columns=None).columns_of(edge_rows.matrix, edge_rows.offsets)
        flipped = [sample.edges[:, 0] > sample.edges[:, 1] for sample in data.samples]
        features = GraphFeatures(
            shapes, rows, edge_rows=edge_rows, edge_flipped=flipped, n_states=self.n_labels, symmetric=not self.directed
        )
        return Inference(features, oracle, shapes)

    decoding = inference

    def outputs(self, data: GraphTable, w: Vector, constraints: Constraints = None) -> NodeLabels:
        """The best labels of the nodes of each graph."""
        if not data.samples:
            return []
        names = self.encoder.classes.tolist()
        kept = constrained(self.inference(data), constraints, lambda entry: (entry[0], names.index(entry[1])))
        codes, offsets = kept.decode(w)
        return self.encoder.decode(codes, offsets)

    def marginals(self, data: GraphTable, w: Vector) -> list[Floats]:
        """p(label of node v is classes[k] | x) of each graph, an array (n_nodes, n_labels)."""
        if not data.samples:
            return []
        inference, k = self.inference(data), self.n_labels
        require(("marginals",), inference.oracle, "predict_marginals")  # the graphs of training may have had another oracle
        found = inference.marginals(w)
        return [mu[: shape[0] * k].reshape(-1, k) for mu, shape in zip(found, inference.shapes, strict=True)]

    def part_names(self) -> FieldNames:
        """Nodes and features have numbers."""
        bias, classes = ["bias"] if self.bias else [], list(map(str, self.encoder.classes.tolist()))
        edges = [""] if self.n_edge_features is None else [*map(str, range(self.n_edge_features)), *bias]
        support = [] if self.columns is None else self.columns.support.tolist()
        features = [f"node {v} of graph {i}" for i, v in support] or list(map(str, range(self.n_features)))
        return FieldNames("node", None, classes, [*features, *bias], edges)

    def one(self, x: Any) -> GraphTable:
        """One graph, checked."""
        return self.read([x])

    def given(self, labels: Any, data: GraphTable) -> Integers:
        """The labels of its nodes as whole numbers."""
        return self.codes(self.truth(None, [labels], data))[0]

    def shown(self, codes: Integers) -> list[Any]:
        """The labels of the nodes."""
        return self.encoder.classes[codes].tolist()

    def weight_names(self) -> list[NameTable]:
        """Those of nodes "FEATURE -> LABEL", those of edges "edge FEATURE -> LABEL, LABEL", or "edge -> ..." without features."""
        k, names = self.n_labels, self.part_names()
        rows, classes = names.features, names.states
        edges = [f"edge {name}".rstrip() for name in names.edge_features]
        pairs = [f"{a}, {b}" for a in classes for b in classes]
        if not self.directed:
            pairs = [f"{classes[low]}, {classes[high]}" for high in range(k) for low in range(high + 1)]
        nodes = NameTable(rows, classes, row_step=k, column_step=1)
        return [nodes, NameTable(edges, pairs, start=len(rows) * k, row_step=len(pairs), column_step=1)]

    def agreement(self, truth: NodeLabels, found: NodeLabels) -> float:
        """The share of nodes, over all graphs, whose label is right, of those whose label is known."""
        known, same = where_known([labels.tolist() for labels in truth], found, self.missing)
        return float(np.mean(np.concatenate([np.array(labels, dtype=object) for labels in known]) == np.concatenate(same)))
