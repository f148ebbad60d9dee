"""How fields over graphs are trained: their labels, and which oracle serves them, are those of all of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from structpred.errors import DataError
from structpred.models.chain.partial import PartialLabels, partial_labels
from structpred.models.chain.sharding import encoder_of_shards
from structpred.models.chain.targets import LabelEncoder, about_labels
from structpred.models.chain.tasks import checked_token_weights
from structpred.models.fields.graph_field import GraphField
from structpred.models.fields.graph_inputs import GraphTable, as_graphs, as_node_labels
from structpred.models.fields.label_graphs import GraphSizes, graph_oracle
from structpred.models.fields.sharding import FieldPlan, FieldSharding, field_task
from structpred.models.partial import warn_of_minus_one
from structpred.task.task import Task


class Graphs(NamedTuple):
    """Graphs, the labels of their nodes, and what is known of these where some are missing."""

    table: GraphTable
    lists: list[list[Any]]
    partial: PartialLabels | None


class GraphScan(NamedTuple):
    """One shard: its labels, how many features nodes and edges have, whether some graph is directed, and how large they are."""

    labels: list[Any]
    n_features: int
    n_edge_features: int | None
    directed: bool
    sizes: GraphSizes


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
        return GraphScan(labels, table.n_features, table.n_edge_features, directed, sizes)

    def plan(self, model: Any, scans: Sequence[GraphScan], classes: Sequence[Any] | None) -> FieldPlan:
        """Labels: `classes`, or all that occur. The oracle fits the graphs of all shards."""
        first = scans[0]
        for k, scan in enumerate(scans):
            for found, wanted, what in zip(scan[1:3], first[1:3], ("nodes", "edges"), strict=True):
                if found != wanted:
                    raise DataError(
                        f"shard {k}: expected {_number(wanted)} features of {what} as in shard 0, got {_number(found)}"
                    )
        encoder = encoder_of_shards([scan.labels for scan in scans], classes)
        warn_of_minus_one(encoder.classes, model.missing)
        made = model._field_of(encoder, *first[1:3], any(scan.directed for scan in scans))
        sizes = GraphSizes.merged([scan.sizes for scan in scans])
        return FieldPlan(made, graph_oracle(sizes, made.n_labels) if made.oracle is None else made.oracle)

    def built(self, model: Any, plan: FieldPlan, data: Graphs, sample_weight: Any, token_weight: Any) -> Task:
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
            return field_task(model, made, data.table, truth, **options)


def _number(n: int | None) -> int | str:
    return "no" if n is None else n
