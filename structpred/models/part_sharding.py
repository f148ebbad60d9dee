"""Any structure on shards: instances with an oracle of their own."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.feature_map import FeatureMap, names_of_groups
from structpred.core.result import Result
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.features.parts import PartFeatures
from structpred.models.base import checked_sample_weight
from structpred.models.output_scores import checked_scoring
from structpred.models.part_inputs import PartInput, as_labels, as_list, split_instances
from structpred.models.partial import split_partial, task_of
from structpred.models.settings import checked_oracle, resolve_loss
from structpred.models.sharding import Columns, Further, refuse_classes, refuse_token_weight
from structpred.task.task import Task


class PartScan(NamedTuple):
    """One shard: the names of its features, None for numbered ones; how many features and instances there are."""

    names: list[str] | None
    n_columns: int
    n: int


class PartPlan(NamedTuple):
    """All shards: how rows of parts are read, and how many instances there are."""

    input_: PartInput
    n: int


class PartSharding:
    """How `StructuredPredictor` is trained on shards. X of a shard has shapes: Instances, or a feature map with `shapes`.

    Names of features are those of all shards, sorted. Of matrices and dicts a shard has the features that occur in it; maps
    of your own have all weights in every shard.
    """

    def scan(self, model: Any, X: Any, y: Any) -> PartScan:
        """Names and sizes of a shard."""
        checked_oracle(model.oracle)
        given, _ = split_instances(X, None)
        if not len(given):
            raise DataError("X: expected at least one sample, got none")
        input_ = PartInput()
        input_.fit(given)
        return PartScan(input_.names, int(input_.n_columns or 0), len(given))

    def plan(self, model: Any, scans: Sequence[PartScan], classes: Sequence[Any] | None) -> PartPlan:
        """All names, sorted; or one number of features."""
        refuse_classes(model, classes)
        first, n = scans[0], sum(scan.n for scan in scans)
        for k, scan in enumerate(scans):
            if (scan.names is None) != (first.names is None):
                raise DataError(f"shard {k}: expected rows of {'numbers' if first.names is None else 'dicts'} as in shard 0")
            if first.names is None and scan.n_columns != first.n_columns:
                raise DataError(f"shard {k}: expected {first.n_columns} features as in shard 0, got {scan.n_columns}")
        if first.names is None:
            return PartPlan(PartInput(None, first.n_columns), n)
        names = sorted(set().union(*(scan.names or () for scan in scans)))
        return PartPlan(PartInput(names, len(names)), n)

    def task(
        self, model: Any, plan: PartPlan, X: Any, y: Any, sample_weight: Any = None, token_weight: Any = None
    ) -> tuple[Task, Columns]:
        """The task over the features that occur in the shard."""
        refuse_token_weight(model, token_weight)
        given, listed = split_instances(X, None)
        features: Any = plan.input_.transform(given)
        groups = np.asarray(features.groups, dtype=np.int64), tuple(names_of_groups(features))
        columns = Columns(None, features.dim, 1, 0, *groups)
        if isinstance(features, PartFeatures) and features is not given:
            rows, features = features.compact()
            columns = columns._replace(rows=rows)
        return part_task(model, features, listed, y, sample_weight), columns

    def dev_scorer(self, model: Any, plan: PartPlan, dev: tuple[Any, ...]) -> Callable[[Vector], float]:
        """The score on held-out data of weights of the model."""
        loss, scoring = resolve_loss(model.loss), checked_scoring(model.scoring)
        score: Callable[[Vector], float] = model._dev_scorer(plan.input_, loss, scoring, dev)
        return score

    def keep(self, model: Any, plan: PartPlan, result: Result, whole: Columns, further: Further) -> None:
        """The fitted predictor."""
        model._keep_input(plan.input_)
        model._keep(whole.spread_result(result))
        model._stop_if_interrupted()


def part_task(model: Any, features: FeatureMap, shapes: list[Any], y: Any, sample_weight: Any, tokens: Any = None) -> Task:
    """The training set of a StructuredPredictor; outputs may be known in part. tokens: the token_weight of each sample."""
    weights = checked_sample_weight(sample_weight, len(features))
    known, ruled = split_partial(as_list(y, "y"), model.oracle, shapes)
    options = {"token_weights": tokens, "sample_weight": weights, "asks_costs": not model._minimises_log_loss()}
    return task_of(features, model.oracle, as_labels(known), shapes, resolve_loss(model.loss), ruled, **options)
