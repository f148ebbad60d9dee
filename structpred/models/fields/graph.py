"""Labelling the nodes of graphs: a pairwise Markov random field on any graph."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.costs import PartLoss
from structpred.core.inference import Inference
from structpred.core.oracle import Oracle, Shape
from structpred.core.requirements import require
from structpred.core.task import Task
from structpred.core.weights import Vector
from structpred.errors import DataError, ParameterError
from structpred.features.graphs import GraphFeatures
from structpred.models.base import StructuredEstimator, about_dev, checked_sample_weight, dev_parts
from structpred.models.chain.targets import LabelEncoder
from structpred.models.chain.tasks import checked_token_weights
from structpred.models.fields.graph_inputs import GraphTable, as_graphs, as_node_labels
from structpred.models.fields.label_graphs import ENUMERATED, checked_oracle, is_forest
from structpred.models.fields.multilabel import checked_bias
from structpred.models.settings import resolve_loss
from structpred.trainers.loop import Callback
from structpred.trainers.problem import Surrogate, Trainer

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class GraphLabeler(StructuredEstimator):
    """A label for each node of each graph, all decided together: weights of node features, and of edge features for label pairs.

        score(x, y) = sum_v <w[y_v], (x_v, bias)> + sum_{(u, v) in E} <t[y_u, y_v], (x_uv, bias)>

    Minimises  1/2 |w|^2 + C sum_i s_i H_i(w), H_i the rescaled hinge (or log loss) of graph i with the number of wrong nodes as
    loss.

    Parameters
    ----------
    trainer, C, max_iter, tol, surrogate, loss, check_every, patience, callbacks, checkpoint, resume, random_state: as for
    MultiLabelMRF.
    oracle: the inference, an object: TreeMRF(), EnumerationMRF(), QPBO(), GraphCut(), DualMRF(), RelaxedMRF(), CpSatMRF() ...;
    None: TreeMRF where no graph has a cycle, EnumerationMRF where all have at most 2^16 labellings, else, inexact but with a
    bound that the certificate uses, QPBO for two labels and DualMRF for more (oracle_ says which; other graphs may get another
    in predict). directed: whether label pairs (a, b) and (b, a) along an edge have weights of their own; then an edge runs from
    the node that is given first. None: True, unless all graphs are undirected networkx graphs.
    bias: the value of a constant feature of nodes and edges; 0 for none (edges without features always have the constant 1).
    node_features, edge_features: the names of the attributes of networkx graphs that hold vectors; edge_features None: edges have
    no features.

    X is a list of graphs: networkx graphs, or tuples (node rows (n, d), edges (E, 2)) or (node rows, edges, edge rows (E, d_e)).
    y: for each graph one label a node (strings or whole numbers), in the order of the nodes, or a dict node -> label.

    After fit: coef_, certificate_, history_, n_iter_, stop_reason_, converged_; classes_, oracle_, directed_, n_features_in_,
    n_edge_features_in_.

    >>> path = (np.array([[2.0], [0.1], [-0.1], [-2.0]]), [(0, 1), (1, 2), (2, 3)])
    >>> model = GraphLabeler(C=10.0).fit([path] * 3, [["a", "a", "b", "b"]] * 3)
    >>> model.predict([path])[0].tolist()
    ['a', 'a', 'b', 'b']
    """

    n_features_in_: int
    n_edge_features_in_: int | None

    def __init__(
        self,
        trainer: str | Trainer = "bcfw",
        C: float = 1.0,
        max_iter: int = 50,
        tol: float = 0.001,
        *,
        surrogate: str | Surrogate | None = None,
        oracle: Oracle | None = None,
        directed: bool | None = None,
        bias: float = 1.0,
        node_features: str = "x",
        edge_features: str | None = None,
        loss: str | PartLoss = "hamming",
        check_every: int = 10,
        patience: int | None = None,
        callbacks: Callback | Sequence[Callback] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        random_state: Any = None,
    ) -> None:
        self.trainer = trainer
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.surrogate = surrogate
        self.oracle = oracle
        self.directed = directed
        self.bias = bias
        self.node_features = node_features
        self.edge_features = edge_features
        self.loss = loss
        self.check_every = check_every
        self.patience = patience
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.resume = resume
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: npt.ArrayLike | None = None,
        node_weight: Sequence[npt.ArrayLike] | None = None,
        dev: tuple[Any, Any] | None = None,
    ) -> "GraphLabeler":
        """Train. node_weight: what a wrong label of each node costs, for each graph an array. dev: held-out (X, y); the weights
        that do best on it are kept.

        Raises DataError, naming the sample, before training starts: edges that name missing nodes, NaN, empty graphs, wrong
        shapes.
        """
        table = self._table(X)
        if not table.samples:
            raise DataError("X: expected at least one graph, got none")
        lists = as_node_labels(y, table)
        encoder = LabelEncoder.fit(lists)
        n_states, bias = len(encoder.classes), checked_bias(self.bias)
        shapes, gold = table.shapes(n_states), np.split(encoder.encode(lists), np.cumsum(table.lengths)[:-1])
        directed = self._is_directed(table)
        features = graph_features(table, shapes, n_states, bias, directed)
        weights = None if node_weight is None else checked_token_weights(node_weight, table.lengths)
        oracle = graph_oracle(shapes) if self.oracle is None else checked_oracle(self.oracle)
        task = Task(
            features, oracle, gold, shapes, resolve_loss(self.loss), token_weights=weights,
            sample_weight=checked_sample_weight(sample_weight, len(gold)),
        )  # fmt: skip
        scorer = None if dev is None else self._dev_scorer(dev, table, encoder, bias, directed)
        result = self._train(task, scorer)
        self.n_features_in_, self.n_edge_features_in_ = table.n_features, table.n_edge_features
        self._encoder, self.classes_ = encoder, encoder.classes
        self.oracle_, self.directed_, self._bias = oracle, directed, bias
        self._keep(result)
        self._stop_if_interrupted()
        return self

    def _table(self, X: Any, expected: tuple[int, int | None] | None = None) -> GraphTable:
        return as_graphs(X, self.node_features, self.edge_features, expected)

    def _is_directed(self, table: GraphTable) -> bool:
        if self.directed is not None and not isinstance(self.directed, bool | np.bool_):
            raise ParameterError(f"directed: expected True, False or None, got {self.directed!r}")
        return any(sample.directed for sample in table.samples) if self.directed is None else bool(self.directed)

    def _dev_scorer(
        self, dev: Any, table: GraphTable, encoder: LabelEncoder, bias: float, directed: bool
    ) -> Callable[[Vector], float]:
        with about_dev():
            X, y = dev_parts(dev, "X, y")
            held_out = self._table(X, (table.n_features, table.n_edge_features))
            if not held_out.samples:
                raise DataError("X: expected at least one graph, got none")
            gold = encoder.encode(as_node_labels(y, held_out))
        oracle = self.oracle
        return lambda w: float((_decode(held_out, len(encoder.classes), bias, directed, oracle, w) == gold).mean())

    def predict(self, X: Any) -> list[npt.NDArray[Any]]:
        """The labels of the nodes of each graph, in the order of its nodes."""
        table = self._ready(X)
        if not table.samples:
            return []
        codes = _decode(table, len(self.classes_), self._bias, self.directed_, self.oracle, self.coef_)
        return self._encoder.decode(codes, np.concatenate(([0], np.cumsum(table.lengths))))

    def predict_marginals(self, X: Any) -> list[Floats]:
        """p(label of node v is classes_[k] | x) of each graph, an array (n_nodes, n_classes).

        Probabilities of the model if it was trained with surrogate="log"; for any other the same formula of its scores. Raises
        MissingCapabilityError where the oracle has no marginals.
        """
        table = self._ready(X)
        if not table.samples:
            return []
        n_states = len(self.classes_)
        shapes = table.shapes(n_states)
        features = graph_features(table, shapes, n_states, self._bias, self.directed_)
        oracle: Any = graph_oracle(shapes) if self.oracle is None else self.oracle
        require(("marginals",), oracle, "predict_marginals")
        found = Inference(features, oracle, shapes).marginals(self.coef_)
        return [mu[: shape[0] * n_states].reshape(-1, n_states) for mu, shape in zip(found, shapes, strict=True)]

    def _ready(self, X: Any) -> GraphTable:
        self._check_fitted()
        return self._table(X, (self.n_features_in_, self.n_edge_features_in_))

    def score(self, X: Any, y: Any) -> float:
        """The share of nodes, over all graphs, whose label is right."""
        table = self._ready(X)
        gold = as_node_labels(y, table)
        if not gold:
            raise DataError("X: expected at least one graph to score, got none")
        found = self.predict(X)
        right = [truth == label for a, b in zip(gold, found, strict=True) for truth, label in zip(a, b.tolist(), strict=True)]
        return float(np.mean(right))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one file, atomically, without pickle; an oracle of yours is named in it, not held."""
        from structpred.models.fields.graph_files import save_graph_labeler

        self._check_fitted()
        save_graph_labeler(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], oracle: Oracle | None = None) -> "GraphLabeler":
        """Read a model file. oracle: of the same class as in training, where one was given then."""
        from structpred.models.files import load_estimator

        model = load_estimator(path, cls.__name__, oracle=oracle)
        assert isinstance(model, cls)
        return model


def graph_features(table: GraphTable, shapes: list[Shape], n_states: int, bias: float, directed: bool) -> GraphFeatures:
    """The joint features of graphs: all nodes share a table, and all edges."""
    rows = [_with_bias(sample.rows, bias) for sample in table.samples]
    edge_rows = None
    if table.n_edge_features is not None:
        edge_rows = [_with_bias(sample.edge_rows, bias, table.n_edge_features) for sample in table.samples]
    flipped = [sample.edges[:, 0] > sample.edges[:, 1] for sample in table.samples]
    return GraphFeatures(shapes, rows, edge_rows=edge_rows, edge_flipped=flipped, n_states=n_states, symmetric=not directed)


def _with_bias(rows: Any, bias: float, width: int | None = None) -> Any:
    from scipy import sparse

    matrix: Any = sparse.csr_array(np.asarray(rows, dtype=np.float64)) if not hasattr(rows, "tocsr") else rows.tocsr()
    if width is not None and not matrix.shape[0]:
        matrix = sparse.csr_array((0, width))
    constant: Any = np.full((matrix.shape[0], 1), bias)
    return sparse.hstack((matrix, constant), format="csr") if bias else matrix


def graph_oracle(shapes: Sequence[Shape]) -> Oracle:
    """TreeMRF for forests, EnumerationMRF up to 2^16 outputs, else QPBO for two states and DualMRF for more."""
    distinct = {id(shape): shape for shape in shapes}.values()
    n_states = max(shape[1] for shape in distinct)
    if all(is_forest(shape[0], np.array(shape[2:], dtype=np.int64).reshape(-1, 2)) for shape in distinct):
        from structpred.oracles.tree_mrf import TreeMRF

        return TreeMRF()
    if max(shape[0] for shape in distinct) * np.log2(n_states) <= ENUMERATED:
        from structpred.oracles.mrf_enumeration import EnumerationMRF

        return EnumerationMRF()
    if n_states == 2:
        from structpred.oracles.qpbo import QPBO

        return QPBO()
    from structpred.oracles.dual_mrf import DualMRF

    return DualMRF()


def _decode(table: GraphTable, n_states: int, bias: float, directed: bool, oracle: Oracle | None, w: Vector) -> Integers:
    """The label codes of all nodes, flat."""
    shapes = table.shapes(n_states)
    features = graph_features(table, shapes, n_states, bias, directed)
    chosen = graph_oracle(shapes) if oracle is None else oracle
    return Inference(features, chosen, shapes).decode(w)[0]
