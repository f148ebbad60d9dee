"""Sets of labels on shards: what the shards must agree on before a field can be made."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.feature_map import names_of_groups
from structpred.core.result import Result
from structpred.core.task import Task
from structpred.core.types import Integers
from structpred.core.weights import Vector
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError
from structpred.models.fields.estimator import dev_scorer
from structpred.models.fields.feature_scale import FeatureScale, Spread
from structpred.models.fields.label_field import LabelField
from structpred.models.fields.label_graphs import LabelCounts, label_edges
from structpred.models.fields.label_inputs import feature_names_of, label_choices, labelled_rows
from structpred.models.sharding import Columns, Further, refuse_classes, refuse_token_weight


class Needs(NamedTuple):
    """The hierarchy of a shard; what all of its rows are ("path", "leaf"); whether labels are missing."""

    hierarchy: LabelHierarchy
    kept: tuple[str, ...]
    missing: bool


class LabelScan(NamedTuple):
    """One shard: examples, features, the names of the labels and of the features; how features spread; what labels say."""

    n: int
    n_features: int
    names: list[str]
    feature_names: list[str] | None
    spread: Spread | None
    labels: Any


class LabelPlan(NamedTuple):
    """All shards: the field, and the number of examples."""

    field: LabelField
    n: int


class LabelSharding:
    """How `MultiLabelMRF` is trained on shards; `scale` and `edges` are measured on all of them. Every shard has all weights."""

    def scan(self, model: Any, X: Any, y: Any) -> LabelScan:
        """Sizes, names and counts of a shard."""
        rows, Y, names = labelled_rows(X, y, missing=True)
        listed = [str(k) for k in range(Y.shape[1])] if names is None else names
        n, n_features = rows.shape
        spread, labels = Spread.of(model.scale, rows), self._labels(model, X, Y, names)
        return LabelScan(n, n_features, listed, feature_names_of(X), spread, labels)

    def _labels(self, model: Any, X: Any, Y: Integers, names: list[str] | None) -> Any:
        counted = isinstance(model.edges, int | np.integer) or (isinstance(model.edges, str) and model.edges == "tree")
        return LabelCounts.of(np.maximum(Y, 0)) if counted else LabelCounts(0.0, np.zeros((Y.shape[1], Y.shape[1])))

    def plan(self, model: Any, scans: Sequence[LabelScan], classes: Sequence[Any] | None) -> LabelPlan:
        """One field for all shards."""
        refuse_classes(model, classes)
        first = scans[0]
        for k, scan in enumerate(scans):
            if scan.n_features != first.n_features:
                raise DataError(f"shard {k}: expected {first.n_features} features as in shard 0, got {scan.n_features}")
            if scan.names != first.names or scan.feature_names != first.feature_names:
                raise DataError(f"shard {k}: its labels or features have other names than those of shard 0")
        scale = FeatureScale.merged(model.scale, [scan.spread for scan in scans if scan.spread is not None])
        return LabelPlan(self._field(model, scans, scale), sum(scan.n for scan in scans))

    def _field(self, model: Any, scans: Sequence[LabelScan], scale: FeatureScale | None) -> LabelField:
        first, n = scans[0], sum(scan.labels.n for scan in scans)
        edges = label_edges(model.edges, LabelCounts(n, np.sum([scan.labels.both for scan in scans], axis=0)))
        made: LabelField = model._field_of(first.n_features, first.names, first.feature_names, edges, scale)
        return made

    def task(
        self, model: Any, plan: LabelPlan, X: Any, y: Any, sample_weight: Any = None, token_weight: Any = None
    ) -> tuple[Task, Columns]:
        """The task of a shard, over all weights."""
        refuse_token_weight(model, token_weight)
        rows, Y, _ = labelled_rows(X, y, missing=True)
        made = plan.field
        if made.hierarchy is not None:
            Y = made.hierarchy.implied(Y)
        weights, choices = made.token_weights(len(Y)), label_choices(Y)
        task: Task = model._task_of(
            made, rows, np.maximum(Y, 0), sample_weight=sample_weight, token_weights=weights, choices=choices
        )
        groups = np.asarray(task.groups, dtype=np.int64), tuple(names_of_groups(task.features))
        return task, Columns(None, task.dim, 1, 0, *groups)

    def dev_scorer(self, model: Any, plan: LabelPlan, dev: tuple[Any, Any]) -> Callable[[Vector], float]:
        """The agreement on held-out data of weights of the model."""
        return dev_scorer(plan.field, dev)

    def keep(self, model: Any, plan: LabelPlan, result: Result, whole: Columns, further: Further) -> None:
        """The fitted model."""
        model._keep_field(plan.field, plan.field.oracle)
        model._keep(whole.spread_result(result))
        model._stop_if_interrupted()


class HierarchySharding(LabelSharding):
    """How `HierarchicalMultiLabel` is trained on shards: require="auto" is what the rows of all shards are."""

    def _labels(self, model: Any, X: Any, Y: Integers, names: list[str] | None) -> Needs:
        hierarchy = model._hierarchy_of(X, Y.shape[1], names)
        Y = hierarchy.implied(Y)
        model._required(hierarchy, Y)  # rows that contradict the setting are named here
        return Needs(hierarchy, model._kept(hierarchy, Y), bool((Y < 0).any()))

    def _field(self, model: Any, scans: Sequence[LabelScan], scale: FeatureScale | None) -> LabelField:
        needs: list[Needs] = [scan.labels for scan in scans]
        first, hierarchy = scans[0], needs[0].hierarchy
        for k, other in enumerate(needs):
            if not np.array_equal(other.hierarchy.edges, hierarchy.edges):
                raise DataError(f"shard {k}: its hierarchy is another one than that of shard 0")
        needed = model.require
        if needed == "auto":
            general = model._is_general(hierarchy, any(one.missing for one in needs))
            kept = [need for need in needs[0].kept if all(need in one.kept for one in needs)]
            needed = None if general or not kept else kept[0]
        made: LabelField = model._field_of(hierarchy, first.n_features, first.feature_names, scale, needed)
        return made
