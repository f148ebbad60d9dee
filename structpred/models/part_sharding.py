"""How outputs of any structure are trained: instances with an oracle of their own."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.feature_map import FeatureMap, names_of_groups
from structpred.core.result import Result
from structpred.errors import DataError
from structpred.features.parts import PartFeatures
from structpred.models.base import as_floats, checked_sample_weight
from structpred.models.part_inputs import PartInput, as_labels, as_list, split_instances
from structpred.models.partial import split_partial, task_of
from structpred.models.settings import checked_oracle, resolve_loss
from structpred.models.sharding import Columns, Further, Sharding, refuse_classes
from structpred.models.signs import Names
from structpred.task.inference import Inference
from structpred.task.task import Task


class Shaped(NamedTuple):
    """Features, a list of samples or a feature map, and the shape of each sample: X and shapes of `fit`."""

    features: Any
    shapes: list[Any]


class Parts(NamedTuple):
    """What was read. features: of all weights, where these are all data there will be, else as they were given."""

    input_: PartInput
    features: Any
    shapes: list[Any]
    y: Any
    whole: bool


class PartScan(NamedTuple):
    """Some data: how their rows are read. settled: whether they are all, so that their names stay in the order of appearance."""

    input_: PartInput
    settled: bool


class PartSharding(Sharding):
    """How `StructuredPredictor` is trained; its plan is how rows of parts are read.

    X of a shard has shapes: Instances, or a feature map with `shapes`. Names of features are those of all shards, sorted. Of
    matrices and dicts a shard has the features that occur in it; maps of your own have all weights in every shard.
    """

    def read(self, model: Any, X: Any, y: Any, *, whole: bool) -> Parts:
        """Features and shapes."""
        checked_oracle(model.oracle)
        given, listed = X if isinstance(X, Shaped) else split_instances(X, None)
        input_ = PartInput()
        if not whole:
            return Parts(input_, given, listed, y, whole)
        features = input_.fit(given)
        Inference(features, model.oracle, listed).check_shapes()
        return Parts(input_, features, listed, y, whole)

    def scanned(self, model: Any, data: Parts) -> PartScan:
        """The names of the features, or their number."""
        if not data.whole:
            if not len(data.features):
                raise DataError("X: expected at least one sample, got none")
            data.input_.fit(data.features)
        return PartScan(data.input_, data.whole)

    def plan(self, model: Any, scans: Sequence[PartScan], classes: Sequence[Any] | None) -> PartInput:
        """All names, sorted; or one number of features."""
        refuse_classes(model, classes)
        first = scans[0].input_
        if scans[0].settled:
            return first
        for k, (own, _) in enumerate(scans):
            if (own.names is None) != (first.names is None):
                raise DataError(f"shard {k}: expected rows of {'numbers' if first.names is None else 'dicts'} as in shard 0")
            if first.names is None and own.n_columns != first.n_columns:
                raise DataError(f"shard {k}: expected {first.n_columns} features as in shard 0, got {own.n_columns}")
        if first.names is None:
            return PartInput(None, first.n_columns)
        names = sorted(set().union(*(own.names or () for own, _ in scans)))
        return PartInput(names, len(names))

    def own(self, plan: PartInput, data: Parts) -> tuple[Parts, Columns | None]:
        """The features that occur in the rows of a shard."""
        features: Any = plan.transform(data.features)
        if not isinstance(features, PartFeatures) or features is data.features:
            return data._replace(features=features), None
        rows, small = features.compact()
        groups = np.asarray(features.groups, dtype=np.int64), tuple(names_of_groups(features))
        return data._replace(features=small), Columns(rows, features.dim, 1, 0, *groups)

    def built(  # type: ignore[override]
        self, model: Any, plan: PartInput, data: Parts, *, sample_weight: Any = None, token_weight: Any = None
    ) -> Task:
        """The training set; outputs may be known in part."""
        tokens = None
        if token_weight is not None:
            tokens = [as_floats(w, f"token_weight, sample {i}") for i, w in enumerate(as_list(token_weight, "token_weight"))]
        features: FeatureMap = data.features
        weights = checked_sample_weight(sample_weight, len(features))
        known, ruled = split_partial(as_list(data.y, "y"), model.oracle, data.shapes)
        options = {"token_weights": tokens, "sample_weight": weights, "asks_costs": not model._minimises_log_loss()}
        return task_of(features, model.oracle, as_labels(known), data.shapes, resolve_loss(model.loss), ruled, **options)

    def names(self, plan: PartInput) -> Names:
        """Those of the features."""
        return plan.weight_names

    def keep(self, model: Any, plan: PartInput, result: Result, further: Further) -> None:
        """The fitted predictor."""
        model._keep_input(plan)
        model._keep(result)
        model._stop_if_interrupted()
