"""Labelling the nodes of graphs: a pairwise Markov random field on any graph."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Oracle
from structpred.core.types import Floats
from structpred.errors import DataError, ParameterError
from structpred.models.bundles import CLASSES, COMMON, restore_weights, restored
from structpred.models.chain.sharding import checked_token_weights, encoder_of_shards
from structpred.models.chain.targets import LabelEncoder, PartialLabels, about_labels, partial_labels
from structpred.models.explanations import Explanation, WeightInspection, top_weights
from structpred.models.fields.estimator import BIAS, ORACLE, FieldEstimator, FieldPlan, FieldSharding, field_task
from structpred.models.fields.explain import explain_field
from structpred.models.fields.graph_field import GraphField, GraphTable, NodeLabels, as_graphs, as_node_labels
from structpred.models.fields.kernel_columns import KERNEL, agreed, measured
from structpred.models.fields.label_graphs import GraphSizes, graph_oracle
from structpred.models.partial import warn_of_minus_one
from structpred.models.settings import checked_oracle
from structpred.runtime.settings import checked_nonnegative
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, Flag, Record, Text, Whole, maybe
from structpred.task.task import Task


class Graphs(NamedTuple):
    """Graphs, the labels of their nodes, and what is known of these where some are missing."""

    table: GraphTable
    lists: list[list[Any]]
    partial: PartialLabels | None


class GraphScan(NamedTuple):
    """One shard: labels, numbers of features, whether some graph is directed, sizes; what `measured` says of node features."""

    labels: list[Any]
    n_features: int
    n_edge_features: int | None
    directed: bool
    sizes: GraphSizes
    rows: Any


class GraphSharding(FieldSharding):
    """How `GraphLabeler` is trained."""

    def read(self, model: Any, X: Any, y: Any, *, whole: bool) -> Graphs:
        """The graphs."""
        table = as_graphs(X, model.node_features, model.edge_features)
        if not table.samples:
            raise DataError("X: expected at least one graph, got none")
        lists = as_node_labels(y, table)
        return Graphs(table, lists, partial_labels(lists, model.missing, whole=whole))

    def scanned(self, model: Any, data: Graphs) -> GraphScan:
        """Labels and sizes."""
        table, known = data.table, data.lists if data.partial is None else data.partial.known()
        labels, sizes = LabelEncoder.fit(known).classes.tolist(), GraphSizes.of(table.shapes(1))
        directed = any(sample.directed for sample in table.samples)
        rows = measured(model, table.rows.matrix, table.rows.offsets)
        return GraphScan(labels, table.n_features, table.n_edge_features, directed, sizes, rows)

    def plan(self, model: Any, scans: Sequence[GraphScan], classes: Sequence[Any] | None) -> FieldPlan:
        """Labels: `classes`, or all that occur. The oracle fits the graphs of all shards."""
        first = scans[0]
        for k, scan in enumerate(scans):
            for found, wanted, what in zip(scan[1:3], first[1:3], ("nodes", "edges"), strict=True):
                if found != wanted:
                    expected, came = ("no" if n is None else n for n in (wanted, found))
                    raise DataError(f"shard {k}: expected {expected} features of {what} as in shard 0, got {came}")
        encoder = encoder_of_shards([scan.labels for scan in scans], classes)
        warn_of_minus_one(encoder.classes, model.missing)
        made = model._field_of(encoder, *first[1:3], any(scan.directed for scan in scans))
        made = replace(made, **agreed(model, scans))
        sizes = GraphSizes.merged([scan.sizes for scan in scans])
        return FieldPlan(made, graph_oracle(sizes, made.n_labels) if made.oracle is None else made.oracle)

    def built(  # type: ignore[override]
        self, model: Any, plan: FieldPlan, data: Graphs, *, sample_weight: Any = None, token_weight: Any = None
    ) -> Task:
        """The task of the graphs."""
        assert isinstance(plan.field, GraphField)
        made = replace(plan.field, oracle=plan.oracle)
        lengths = np.array([len(labels) for labels in data.lists], dtype=np.int64)
        weights = None if token_weight is None else checked_token_weights(token_weight, lengths)
        with about_labels("in `classes`"):
            lists, choices = data.lists, dict[int, Any]()
            if data.partial is not None:
                made.encoder.encode(data.partial.known())
                choices, lists = data.partial.codes(made.encoder), data.partial.filled(made.encoder.classes[0].item())
            truth = [np.array(labels, dtype=object) for labels in lists]
            options = {"sample_weight": sample_weight, "token_weights": weights, "choices": choices}
            return field_task(model.loss, made, data.table, truth, **options)


@dataclass(eq=False, repr=False)
class GraphLabeler(FieldEstimator[NodeLabels, list[Floats]]):
    """A label for each node of each graph, all decided together: weights of node features, and of edge features for label pairs.

        score(x, y) = sum_v <w[y_v], (x_v, bias)> + sum_{(u, v) in E} <t[y_u, y_v], (x_uv, bias)>

    Minimises  1/2 |w|^2 + C sum_i s_i H_i(w), H_i the rescaled hinge (or log loss) of graph i with the number of wrong nodes as
    loss.

    X is a list of graphs: networkx graphs, or tuples (node rows (n, d), edges (E, 2)) or (node rows, edges, edge rows (E, d_e)).
    y: for each graph one label per node (strings or whole numbers), in the order of the nodes, or a dict node -> label.

    Parameters
    ----------
    trainer, C, max_iter, tol, loss, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state, regulariser
        As for every estimator: see `StructuredEstimator`.
    oracle : Oracle, optional
        The inference: TreeMRF(), EnumerationMRF(), QPBO(), GraphCutMRF(), DualMRF(), RelaxedMRF(), CpSatMRF() ...; None: TreeMRF
        where no graph has a cycle, EnumerationMRF where all have at most 2^16 labellings, else, inexact but with a bound that
        the certificate uses, QPBO for two labels and DualMRF for more (other graphs may get another in predict).
    scale, kernel, gamma, n_components : str, optional; str, Kernel or callable, optional; float or str; float
        Of nodes, as for MultiLabelMRF, but "auto" is None without a kernel; "precomputed" has a column for each training node.
    directed : bool, optional
        Whether label pairs (a, b) and (b, a) along an edge have weights of their own; then an edge runs from the node that is
        given first. None: True, unless all graphs are undirected networkx graphs.
    bias : float
        The value of a constant feature of nodes and edges; 0 for none (edges without features always have the constant 1).
    node_features, edge_features : str
        The names of the attributes of networkx graphs that hold vectors; edge_features None: edges have no features.
    missing : str or int, optional
        A label in y that means, as None does, that the label is not known: -1 in scikit-learn's convention. Without it, and
        without sets of labels in y, None raises a MissingLabelsWarning.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    oracle_ : Oracle
        The inference that was used in training.
    directed_ : bool
        Whether label pairs along an edge have weights of their own.
    scale_, support_ : str or None; ndarray (n_support, 2) or None
        How node features were scaled; graph and node of the training nodes that predictions with a kernel compare with.
    n_features_in_, n_edge_features_in_ : int
        The numbers of features of nodes and of edges, None for edges without.
    coef_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for every estimator.

    Examples
    --------
    >>> path = (np.array([[2.0], [0.1], [-0.1], [-2.0]]), [(0, 1), (1, 2), (2, 3)])
    >>> model = GraphLabeler(C=10.0).fit([path] * 3, [["a", "a", "b", "b"]] * 3)
    >>> model.predict([path])[0].tolist()
    ['a', 'a', 'b', 'b']
    """

    _: KW_ONLY
    directed: bool | None = None
    node_features: str = "x"
    edge_features: str | None = None
    missing: Any = None

    n_edge_features_in_: int | None = field(init=False)
    classes_: npt.NDArray[Any] = field(init=False)
    directed_: bool = field(init=False)

    _field: GraphField = field(init=False)
    _sharding = GraphSharding()
    _INSTEAD, _DENSE, _GENERAL = "", None, "corrective"
    _HEADER = Record({
        **COMMON,
        "oracle": ORACLE,
        "classes": Field(CLASSES, "classes_", np.ndarray.tolist),
        **KERNEL,
        "n_features": Field(Whole(1), "n_features_in_"),
        "n_edge_features": Field(maybe(Whole()), "n_edge_features_in_"),
        "bias": BIAS,
        "directed": Field(Flag(), "directed_"),
        "node_features": Field(Text(), "node_features"),
        "edge_features": Field(maybe(Text()), "edge_features"),
    })  # fmt: skip

    def fit(
        self, X: Any, y: Any, *, sample_weight: npt.ArrayLike | None = None, node_weight: Sequence[npt.ArrayLike] | None = None,
        dev: tuple[Any, Any] | None = None,
    ) -> Self:  # fmt: skip
        """Train. node_weight: what a wrong label of each node costs, for each graph an array. dev: held-out (X, y); the weights
        that do best on it are kept.

        Labels of y may be missing: None, or a set of the labels that the node may have, as for ChainLabeler.

        Raises DataError, naming the sample, before training starts: edges that name missing nodes, NaN, empty graphs, wrong
        shapes.
        """
        self._sharding.fit(self, X, y, dev=dev, sample_weight=sample_weight, token_weight=node_weight)
        return self

    def explain(self, x: Any, labels: Any = None, *, node: int | None = None, against: Any = None) -> Explanation:
        """Why the nodes of a graph get their labels: what each feature of each node and edge adds to the score.

        x: one graph in the form of fit's X. labels: what to explain, one for each node; None: what is predicted. against: other
        labels, or "runner-up" (the best other ones): only what differs, as differences. node: why has this node its label? The
        alternative is then the best output in which it has another one. Raises DataError for labels that the model does not
        know.
        """
        return explain_field(self, x, labels, node, against)

    def top_features(self, n: int = 20) -> WeightInspection:
        """The n strongest positive and negative weights of nodes and edges by name; with a kernel those of similarities."""
        self._check_fitted()
        return top_weights(self, n, self._field.expanded(self.coef_)[1])

    def _field_of(self, encoder: LabelEncoder, n_features: int, n_edge_features: int | None, directed: bool) -> GraphField:
        """The field over nodes with these labels. directed: whether some graph is."""
        if self.directed is not None and not isinstance(self.directed, bool | np.bool_):
            raise ParameterError(f"directed: expected True, False or None, got {self.directed!r}")
        return GraphField(
            encoder, n_features, n_edge_features, checked_nonnegative(self.bias, "bias"),
            directed if self.directed is None else bool(self.directed),
            None if self.oracle is None else checked_oracle(self.oracle), self.node_features, self.edge_features,
            self.missing,
        )  # fmt: skip

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Oracle | None) -> Self:
        model = restored(cls, head, directed=head["directed"], oracle=oracle)
        made = model._field_of(LabelEncoder(head["classes"]), head["n_features"], head["n_edge_features"], head["directed"])
        made, model.scale = made.of_file(head, bundle), head["scale"]
        model._keep_field(made, graph_oracle(GraphSizes(True, 1), made.n_labels) if oracle is None else oracle)
        restore_weights(model, bundle.arrays, made.n_weights)
        return model
