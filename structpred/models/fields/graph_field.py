"""The field over the nodes of graphs: how graphs are read, decoded and compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Oracle
from structpred.core.requirements import require
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.features.graphs import GraphFeatures
from structpred.models.chain.partial import where_known
from structpred.models.chain.targets import LabelEncoder
from structpred.models.fields.estimator import FieldNames
from structpred.models.fields.graph_inputs import GraphTable, as_graphs, as_node_labels
from structpred.models.fields.label_graphs import GraphSizes, graph_oracle
from structpred.models.signs import NameTable
from structpred.task.inference import Inference

NodeLabels = list[npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class GraphField:
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
        return (self.n_features + constant) * k + rows * width

    def attributes(self) -> dict[str, Any]:
        """Sizes, labels, and whether edges are directed."""
        sizes = {"n_features_in_": self.n_features, "n_edge_features_in_": self.n_edge_features}
        return {**sizes, "classes_": self.encoder.classes, "directed_": self.directed}

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
        rows, edge_rows = [_with_bias(sample.rows, self.bias) for sample in data.samples], None
        if data.n_edge_features is not None:
            edge_rows = [_with_bias(sample.edge_rows, self.bias, data.n_edge_features) for sample in data.samples]
        flipped = [sample.edges[:, 0] > sample.edges[:, 1] for sample in data.samples]
        features = GraphFeatures(
            shapes, rows, edge_rows=edge_rows, edge_flipped=flipped, n_states=self.n_labels, symmetric=not self.directed
        )
        return Inference(features, oracle, shapes)

    def outputs(self, data: GraphTable, w: Vector) -> NodeLabels:
        """The best labels of the nodes of each graph."""
        if not data.samples:
            return []
        codes, offsets = self.inference(data).decode(w)
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
        return FieldNames("node", None, classes, [*map(str, range(self.n_features)), *bias], edges)

    def one(self, x: Any) -> GraphTable:
        """One graph, checked."""
        return self.read([x])

    def given(self, labels: Any, data: GraphTable) -> Integers:
        """The labels of its nodes as whole numbers."""
        return self.codes(self.truth(None, [labels], data))[0]

    def shown(self, codes: Integers) -> list[Any]:
        """The labels of the nodes."""
        labels: list[Any] = self.encoder.classes[codes].tolist()
        return labels

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


def _with_bias(rows: Any, bias: float, width: int | None = None) -> Any:
    from scipy import sparse

    matrix: Any = sparse.csr_array(np.asarray(rows, dtype=np.float64)) if not hasattr(rows, "tocsr") else rows.tocsr()
    if width is not None and not matrix.shape[0]:
        matrix = sparse.csr_array((0, width))
    constant: Any = np.full((matrix.shape[0], 1), bias)
    return sparse.hstack((matrix, constant), format="csr") if bias else matrix
