"""The estimator over random fields: prediction, scores and training, on shards, too, for label sets, hierarchies and graphs.

They differ in a field, which is made by `fit` and kept: how X and y are read, and what an output looks like.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Oracle
from structpred.core.requirements import require
from structpred.core.result import Result
from structpred.core.types import Integers
from structpred.core.weights import Vector
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.io.multilabel.data import MultiLabelData
from structpred.models.base import StructuredEstimator, checked_sample_weight
from structpred.models.constrained import Constraints
from structpred.models.fields.graph_field import GraphField
from structpred.models.fields.kernel_columns import agreed, kernel_and_scale, measured
from structpred.models.fields.label_field import LabelField, as_rows, label_choices, labels_of, named_rows
from structpred.models.fields.label_graphs import LabelCounts, label_edges
from structpred.models.fields.rules import Against, rows_against, tightest
from structpred.models.kernels.functions import Precomputed, resolve_kernel
from structpred.models.partial import scores_of, task_of
from structpred.models.settings import about_dev, dev_parts, resolve_loss
from structpred.models.sharding import Further, Sharding, refuse_classes
from structpred.models.signs import Names, NameTable
from structpred.objectives.margin import SET_LOSSES, SetHinge
from structpred.storage import schema as storage
from structpred.storage.bundles import Bundle
from structpred.storage.schema import LARGEST, Flag, Number, Record, Text
from structpred.task.steps import TaskLike
from structpred.task.task import Task
from structpred.trainers.marginal_bcfw import MarginalBCFW

#: what `predict` returns, and what `predict_marginals` does
Outputs = TypeVar("Outputs")
Tables = TypeVar("Tables")

#: the class of the oracle, and whether the user gave it: one that was chosen for the user is chosen again
ORACLE = Record({"class": Text(), "given": Flag()})
BIAS = storage.Field(Number(0.0, LARGEST), "bias", float, float)
#: how samples of one kind are read and decoded; read samples go from method to method as `data`
Field = LabelField | GraphField


@dataclass(eq=False, repr=False)
class FieldEstimator(StructuredEstimator, Generic[Outputs, Tables]):
    """The parent of the estimators over random fields; each makes its field in `fit`."""

    _: KW_ONLY
    oracle: Oracle | None = None
    bias: float = 1.0
    scale: str | None = "auto"
    kernel: Any = None
    gamma: float | str = "scale"
    n_components: float = 0.99

    n_features_in_: int = field(init=False)
    oracle_: Oracle = field(init=False)
    _field: Any = field(init=False)  # a Field, made by `fit`

    #: what to use in place of probabilities, which a model of a margin does not have
    _INSTEAD: ClassVar = "use predict_scores, or "
    _DENSE: ClassVar[str | None] = "maxabs"  # what scale="auto" is for dense features without a kernel
    _GENERAL: ClassVar = "bcfw"  # what trains where marginal_bcfw does not apply

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Any:
        """Train on samples X with true outputs y."""

    def _default_for(self, task: TaskLike) -> str:
        """marginal_bcfw where it applies to task and settings, corrective for plain graphs, else as every estimator."""
        if self.surrogate not in (None, "margin") or str(self.loss) in SET_LOSSES or not self._is_plain(task):
            return super()._default_for(task)
        return MarginalBCFW.name if MarginalBCFW.applies(task) else self._GENERAL

    def _name_tables(self) -> list[NameTable]:
        return self._field.weight_names()

    def _keep_field(self, made: Field, oracle: Oracle) -> None:
        """Set the attributes of the field: after training, and when a model file has been read."""
        self._field, self.oracle_ = made, oracle
        self.__dict__.pop("feature_names_in_", None)
        for name, value in made.attributes().items():
            setattr(self, name, value)

    def _contents(self) -> Bundle:
        oracle, found = {"class": type(self.oracle_).__qualname__, "given": self.oracle is not None}, super()._contents()
        found.header |= {"oracle": oracle, "bias": self._field.bias}
        if (scale := self._field.scale) is not None:
            found.arrays = scale.arrays() | found.arrays
        if (columns := self._field.columns) is not None:
            found.add("kernel", part := columns.to_bundle())
            found.header["columns"] = part.header
        return found

    @classmethod
    def load(cls, path: Any, oracle: Oracle | None = None, *, kernel: Any = None) -> Self:
        """Read a model file. kernel: the function that the model was trained with, if it is your own: a file only names it."""
        model = super().load(path, oracle)
        if kernel is not None:
            if isinstance(model.kernel, str | None):
                raise ParameterError(f"{path}: this model needs no kernel function; leave kernel= out")
            model.kernel, model._field.columns.kernels = kernel, [resolve_kernel(kernel)]
        return model

    def predict(self, X: Any, *, constraints: Constraints = None) -> Outputs:
        """The best output of each sample: label sets as an array (n, n_labels) of 0 and 1, graphs as an array of labels each.
        constraints: rules that it keeps, see `Constraint`. InfeasibleError, naming the sample, where no output does."""
        self._check_fitted()
        return self._field.outputs(self._field.read(X), self.coef_, constraints)

    def predict_marginals(self, X: Any) -> Tables:
        """p(label | x): of label sets an array (n, n_labels), of graphs an array (n_nodes, n_classes) each.

        A sum of exp(score) over that of all outputs. Only for models trained with the log loss (surrogate="log", or a trainer
        such as "oeg"): scores learnt with a margin are not log-probabilities, and ParameterError says so.
        MissingCapabilityError where the oracle has no `marginals`.
        """
        self._check_fitted()
        data = self._field.read(X)
        require(("marginals",), self.oracle_, "predict_marginals")
        self._check_probabilistic(self._INSTEAD)
        return self._field.marginals(data, self.coef_)

    def score(self, X: Any, y: Any = None) -> float:
        """How well predictions agree with y. Of label sets the mean of |right labels| / |labels of either side| (Jaccard);
        of graphs the share of nodes whose label is right."""
        self._check_fitted()
        data = self._field.read(X)
        truth = self._field.truth(X, y, data)
        return float(self._field.agreement(truth, self._field.outputs(data, self.coef_)))


class FieldPlan(NamedTuple):
    """All shards: the field, and the oracle of training."""

    field: Field
    oracle: Oracle


class FieldSharding(Sharding):
    """How estimators over fields are trained. Every shard has all weights."""

    def dev_scorer(self, model: Any, plan: FieldPlan, dev: Any) -> Callable[[Vector], float]:
        """The agreement on held-out data of weights of the model."""
        made: Any = plan.field
        with about_dev():
            X, y = dev_parts(dev, "X, y")
            data = made.read(X)
            truth = made.truth(X, y, data)
            made.codes(truth)  # invalid outputs are refused before training
        return lambda w: made.agreement(truth, made.outputs(data, w))

    def names(self, plan: FieldPlan) -> Names:
        """Those of the field."""
        return plan.field.weight_names

    def keep(self, model: Any, plan: FieldPlan, result: Result, further: Further) -> None:
        """The fitted model."""
        model._keep_field(*plan)
        model._keep(result)
        model._stop_if_interrupted()


def field_task(
    loss: Any, made: Field, data: Any, truth: Any, *, sample_weight: Any = None,
    token_weights: Sequence[npt.ArrayLike] | None = None, choices: Mapping[int, Sequence[Any]] | None = None,
) -> Task:  # fmt: skip
    """The task of read samples. choices: of samples known in part the label codes that each node may have, None for any."""
    inference = made.inference(data)
    ruled, oracle = {}, inference.oracle
    for i, own in (choices or {}).items():
        shape = inference.shapes[i]
        ruled[i] = scores_of(own, oracle.label_grid(shape), oracle.n_parts(shape), i)  # type: ignore[attr-defined]
    return task_of(
        inference.features, oracle, made.codes(truth), inference.shapes, resolve_loss(loss), ruled,
        token_weights=token_weights, sample_weight=checked_sample_weight(sample_weight, len(inference)),
    )  # fmt: skip


class Examples(NamedTuple):
    """Rows of features and of labels, where -1 is missing; the names of both, None for their numbers; a hierarchy of labels."""

    rows: Any
    Y: Integers
    names: list[str] | None
    feature_names: list[str] | None
    hierarchy: LabelHierarchy | None = None


class LabelScan(NamedTuple):
    """One shard: features, the names of the labels and of the features; what `measured` says of rows, and what labels say."""

    n_features: int
    names: list[str]
    feature_names: list[str] | None
    rows: Any
    labels: Any


class LabelSharding(FieldSharding):
    """How `MultiLabelMRF` is trained; `scale` and `edges` are measured on all rows."""

    def read(self, model: Any, X: Any, y: Any, *, whole: bool) -> Examples:
        """The rows."""
        kernel, rows, known = kernel_and_scale(model)[0], as_rows(X), isinstance(X, MultiLabelData)
        if model.threshold is not None and not (model.threshold == "f1" and whole and model.bias):
            raise ParameterError(f"threshold: expected None, or 'f1' without shards and with a bias, got {model.threshold!r}")
        if model.threshold is not None and isinstance(kernel, Precomputed):
            raise ParameterError("threshold='f1' trains on folds, which a precomputed kernel does not have: give the kernel")
        if not rows.shape[0]:
            raise DataError("X: expected at least one sample, got none")
        y, listed = named_rows(y, self._known(model))
        Y = labels_of(X, y, rows.shape[0], missing=True)
        names = X.feature_names if known else getattr(X, "columns", None)  # of a data frame
        features = None if names is None else [str(name) for name in names]
        features = None if features == [str(k) for k in range(rows.shape[1])] else features
        return Examples(rows, Y, list(X.label_names) if known and y is None else listed, features)

    def _known(self, model: Any) -> Sequence[str] | None:
        """The names of the labels, where the settings of the model have them."""
        return None

    def scanned(self, model: Any, data: Examples) -> LabelScan:
        """Sizes, names and counts."""
        listed = [str(k) for k in range(data.Y.shape[1])] if data.names is None else data.names
        labels, rows = self._labels(model, data), measured(model, data.rows, np.arange(data.rows.shape[0] + 1))
        return LabelScan(data.rows.shape[1], listed, data.feature_names, rows, labels)

    def _labels(self, model: Any, data: Examples) -> Any:
        return LabelCounts.of(np.maximum(data.Y, 0))

    def plan(self, model: Any, scans: Sequence[LabelScan], classes: Sequence[Any] | None) -> FieldPlan:
        """One field for all shards."""
        refuse_classes(model, classes)
        first = scans[0]
        for k, scan in enumerate(scans):
            if scan.n_features != first.n_features:
                raise DataError(f"shard {k}: expected {first.n_features} features as in shard 0, got {scan.n_features}")
            if scan.names != first.names or scan.feature_names != first.feature_names:
                raise DataError(f"shard {k}: its labels or features have other names than those of shard 0")
        made = replace(self._field(model, scans), feature_names=first.feature_names, **agreed(model, scans))
        return FieldPlan(made, made.oracle)

    def _field(self, model: Any, scans: Sequence[LabelScan]) -> LabelField:
        first, edges = scans[0], label_edges(model.edges, LabelCounts.merged([scan.labels for scan in scans]))
        return model._field_of(first.n_features, first.names, edges)

    def built(self, model: Any, plan: FieldPlan, data: Examples, *, sample_weight: Any = None) -> Task:  # type: ignore[override]
        """The task of the rows. What a wrong label costs is for the field to say: there is no token_weight."""
        assert isinstance(plan.field, LabelField)
        costs, known = plan.field.token_weights(len(data.Y)), np.maximum(data.Y, 0)  # what is missing is not looked at
        asked, named = model._asked_surrogate(), str(model.loss) in SET_LOSSES
        alone = model.surrogate in (None, "margin") if named else model.loss == "hamming"
        if isinstance(asked, SetHinge) and not (hasattr(plan.oracle, "argmax_per_loss") and costs is None and alone):
            raise ParameterError(
                f"loss={asked.name!r} needs edges=[] or 'tree' (or 16 labels), require=None, equal label_weights, a margin"
            )
        options = {"sample_weight": sample_weight, "token_weights": costs, "choices": label_choices(data.Y)}
        return field_task("hamming" if named else model.loss, plan.field, data.rows, known, **options)


class HierarchySharding(LabelSharding):
    """How `HierarchicalMultiLabel` is trained: require="auto" is the strictest rule that all rows keep."""

    def _known(self, model: Any) -> Sequence[str] | None:
        """Those of the hierarchy."""
        return getattr(model.hierarchy, "names", None)

    def read(self, model: Any, X: Any, y: Any, *, whole: bool) -> Examples:
        """The rows, with what the hierarchy says of missing labels."""
        data = super().read(model, X, y, whole=whole)
        hierarchy: LabelHierarchy = model._hierarchy_of(X, data.Y.shape[1], data.names)
        return data._replace(Y=hierarchy.implied(data.Y), hierarchy=hierarchy)

    def _labels(self, model: Any, data: Examples) -> tuple[LabelHierarchy, Against]:
        """The hierarchy, and the rows against its rules."""
        assert data.hierarchy is not None
        return data.hierarchy, rows_against(model, data.hierarchy, data.Y)

    def _field(self, model: Any, scans: Sequence[LabelScan]) -> LabelField:
        first, hierarchy = scans[0], scans[0].labels[0]
        for k, scan in enumerate(scans):
            if not np.array_equal(scan.labels[0].edges, hierarchy.edges):
                raise DataError(f"shard {k}: its hierarchy is another one than that of shard 0")
        needed = tightest([scan.labels[1] for scan in scans])
        return model._field_of(hierarchy, model.label_weights, first.n_features, needed)
