"""What a StructuredPredictor takes as X, y and shapes, and how it is trained: instances with an oracle of their own."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.feature_map import FeatureMap, names_of_groups
from structpred.core.instances import Instance, checked_shape
from structpred.core.result import Result
from structpred.data.vocabulary import FeatureDictionary
from structpred.errors import DataError
from structpred.features.parts import PartFeatures
from structpred.models.base import as_floats, checked_sample_weight
from structpred.models.partial import split_partial, task_of
from structpred.models.settings import checked_oracle, resolve_loss
from structpred.models.sharding import Columns, Further, Sharding, refuse_classes
from structpred.models.signs import Names, NameTable
from structpred.task.inference import Inference
from structpred.task.task import Task

_ONE_SAMPLE = "did you pass one sample instead of a list of samples?"


class PartInput:
    """Rows of parts, turned into a feature map. names: of the features, where rows are dicts; n_columns: of all rows."""

    def __init__(self, names: list[str] | None = None, n_columns: int | None = None) -> None:
        self.n_columns = n_columns
        self._dictionary = None if names is None else FeatureDictionary.from_names(names)

    @property
    def names(self) -> list[str] | None:
        """The names of the features; None for numbered ones."""
        return None if self._dictionary is None else self._dictionary.names

    def weight_names(self) -> list[NameTable]:
        """The weights are called as the features are; by their numbers where these have no names."""
        return [NameTable(self.names or [str(k) for k in range(int(self.n_columns or 0))])]

    def fit(self, features: Any) -> FeatureMap:
        """The feature map of the training set; keeps names and number of features."""
        if isinstance(features, FeatureMap):
            found: FeatureMap = features
        elif _is_named(features):
            self._dictionary = FeatureDictionary().fit(_as_rows(features))
            found = _packed(self._dictionary, features)
        else:
            found = PartFeatures(features)
        self.n_columns = found.dim
        return found

    def transform(self, features: Any) -> FeatureMap:
        """The feature map of other samples; unknown names are left out, other numbers of features are a DataError."""
        if isinstance(features, FeatureMap):
            if features.dim != self.n_columns:
                raise DataError(f"X: expected a feature map with {self.n_columns} features, got {features.dim}")
            return features
        if not features:
            return PartFeatures.of_rows([0], [], [], [0], int(self.n_columns or 0))
        named = _is_named(features)
        if named != (self._dictionary is not None) and any(len(x) for x in features if hasattr(x, "__len__")):
            had, got = ("dicts", "numbers") if named is False else ("numbers", "dicts")
            raise DataError(f"X: the model was trained with rows of {had}, got rows of {got}")
        if self._dictionary is not None:
            return _packed(self._dictionary, _as_rows(features))
        return PartFeatures(features, n_columns=self.n_columns)


def _is_named(samples: list[Any]) -> bool:
    """Whether rows are dicts or lists of strings; DataError where a sample is a dict or a string itself."""
    for i, x in enumerate(samples):
        if isinstance(x, Mapping | str):
            raise DataError(
                f"sample {i}: expected a matrix with a row per part, or a list with a dict per part, got one {type(x).__name__}; "
                "for named features a sample is a list of dicts, and X a list of samples"
            )
        if isinstance(x, list | tuple) and len(x):
            return isinstance(x[0], Mapping) or (isinstance(x[0], list | tuple) and any(isinstance(v, str) for v in x[0]))
        if hasattr(x, "shape"):
            return False
    return False


def _as_rows(samples: list[Any]) -> list[Any]:
    for i, x in enumerate(samples):
        if not isinstance(x, list | tuple):
            raise DataError(f"sample {i}: expected a list with a dict per part, as the samples before, got {type(x).__name__}")
    return samples


def _packed(dictionary: FeatureDictionary, samples: list[Any]) -> PartFeatures:
    packed = dictionary.transform(samples)
    return PartFeatures.of_rows(packed.indptr, packed.indices, packed.values, packed.offsets, packed.n_features)


def split_instances(X: Any, shapes: Any) -> tuple[Any, list[Any]]:
    """Features (a list of samples, or a feature map) and shapes, which Instances and some feature maps contain."""
    if isinstance(X, FeatureMap):
        found = getattr(X, "shapes", None) if shapes is None else shapes
        if found is None:
            raise DataError(f"X: {type(X).__name__} has no `shapes`: give shapes=, one shape per sample")
        return X, as_shapes(found)
    samples = as_list(X, "X")
    carrying = [isinstance(x, Instance) for x in samples]
    if any(carrying):
        if not all(carrying):
            i = carrying.index(False)
            raise DataError(f"sample {i}: expected an Instance as the others are, got {type(samples[i]).__name__}")
        if shapes is not None:
            raise DataError("X: its Instances carry their shapes; leave shapes= out")
        return [x.features for x in samples], [checked_shape(x.shape, i) for i, x in enumerate(samples)]
    if shapes is None and samples:
        raise DataError(
            "X: the shapes are missing. Make X a list of structpred.Instance(features, shape), or give shapes=; model selection "
            "(GridSearchCV, cross_val_score) splits X and y only, so there it must be Instances, or shapes= after "
            "sklearn.set_config(enable_metadata_routing=True)"
        )
    return samples, as_shapes(shapes if samples else shapes or [])


def as_list(values: Any, name: str) -> list[Any]:
    """The samples as a list; DataError for anything but a list of samples, such as one sparse matrix."""
    if isinstance(values, str | bytes | Mapping | Instance) or hasattr(values, "tocsr") or not isinstance(values, Iterable):
        raise DataError(f"{name}: expected a list with one entry per sample, got {type(values).__name__}; {_ONE_SAMPLE}")
    return list(values)


def as_labels(y: Any) -> list[npt.NDArray[np.int64]]:
    """The true labels, each a 1-d int64 array; DataError, naming the sample, for anything else."""
    return [_labels(given, i) for i, given in enumerate(as_list(y, "y"))]


def _labels(given: Any, i: int) -> npt.NDArray[np.int64]:
    try:
        array = np.asarray(given)
    except ValueError:  # lists of different lengths
        array = np.empty((0, 0), dtype=object)
    if array.ndim == 1 and (array.dtype.kind in "iu" or not array.size):
        return array.astype(np.int64)
    came = f"{array.ndim}-d {array.dtype}" if isinstance(given, list | tuple | np.ndarray) else f"{given!r}"
    hint = f"; one label is a list, too: [{given}]" if isinstance(given, int | np.integer) and array.ndim == 0 else ""
    raise DataError(f"sample {i}: expected labels as a 1-d array of whole numbers, as the oracle returns them, got {came}{hint}")


def as_shapes(shapes: Any) -> list[Any]:
    """The shapes; DataError, naming the sample, for an invalid one."""
    return [checked_shape(shape, i) for i, shape in enumerate(as_list(shapes, "shapes"))]


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
