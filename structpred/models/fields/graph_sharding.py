"""Graphs on shards: their labels, and which oracle serves them, are those of all of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from structpred.core.feature_map import names_of_groups
from structpred.core.oracle import Oracle
from structpred.core.result import Result
from structpred.core.task import Task
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.models.chain.partial import partial_labels
from structpred.models.chain.sharding import about_labels, encoder_of_shards
from structpred.models.chain.targets import LabelEncoder
from structpred.models.fields.estimator import dev_scorer
from structpred.models.fields.graph_field import GraphField
from structpred.models.fields.label_graphs import GraphSizes, graph_oracle
from structpred.models.sharding import Columns, Further, refuse_token_weight


class GraphScan(NamedTuple):
    """One shard: its labels, how many features nodes and edges have, whether some graph is directed, and how large they are."""

    labels: list[Any]
    n_features: int
    n_edge_features: int | None
    directed: bool
    sizes: GraphSizes


class GraphPlan(NamedTuple):
    """All shards: the field, and the oracle of training, which the field has only where the user gave one."""

    field: GraphField
    oracle: Oracle


class GraphSharding:
    """How `GraphLabeler` is trained on shards. Every shard has all weights."""

    def scan(self, model: Any, X: Any, y: Any) -> GraphScan:
        """Labels and sizes of a shard."""
        table, lists = model._graphs_of(X, y)
        known = partial_labels(lists, model.missing, whole=False)
        labels = LabelEncoder.fit(lists if known is None else known.known()).classes.tolist()
        sizes = GraphSizes.of(table.shapes(1))
        return GraphScan(labels, table.n_features, table.n_edge_features, table.directed, sizes)

    def plan(self, model: Any, scans: Sequence[GraphScan], classes: Sequence[Any] | None) -> GraphPlan:
        """Labels: `classes`, or all that occur. The oracle fits the graphs of all shards."""
        first = scans[0]
        for k, scan in enumerate(scans):
            for found, wanted, what in zip(scan[1:3], first[1:3], ("nodes", "edges"), strict=True):
                if found != wanted:
                    raise DataError(
                        f"shard {k}: expected {_number(wanted)} features of {what} as in shard 0, got {_number(found)}"
                    )
        encoder = encoder_of_shards([scan.labels for scan in scans], classes)
        made = model._field_of(encoder, *first[1:3], any(scan.directed for scan in scans))
        sizes = GraphSizes.merged([scan.sizes for scan in scans])
        return GraphPlan(made, graph_oracle(sizes, made.n_labels) if made.oracle is None else made.oracle)

    def task(
        self, model: Any, plan: GraphPlan, X: Any, y: Any, sample_weight: Any = None, token_weight: Any = None
    ) -> tuple[Task, Columns]:
        """The task of a shard, over all weights."""
        refuse_token_weight(model, token_weight)
        table, lists = model._graphs_of(X, y)
        made = replace(plan.field, oracle=plan.oracle)
        with about_labels():
            truth, choices = made.given_labels(lists, partial_labels(lists, model.missing, whole=False))
            task: Task = model._task_of(made, table, truth, sample_weight=sample_weight, choices=choices)
        groups = np.asarray(task.groups, dtype=np.int64), tuple(names_of_groups(task.features))
        return task, Columns(None, task.dim, 1, 0, *groups)

    def dev_scorer(self, model: Any, plan: GraphPlan, dev: tuple[Any, Any]) -> Callable[[Vector], float]:
        """The share of right labels on held-out graphs of weights of the model."""
        return dev_scorer(plan.field, dev)

    def keep(self, model: Any, plan: GraphPlan, result: Result, whole: Columns, further: Further) -> None:
        """The fitted labeler."""
        model._keep_field(plan.field, plan.oracle)
        model._keep(whole.spread_result(result))
        model._stop_if_interrupted()


def _number(n: int | None) -> int | str:
    return "no" if n is None else n
