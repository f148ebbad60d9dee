"""What a StructuredPredictor takes as X, y and shapes: matrices or feature dicts of parts, instances, feature maps."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.feature_map import FeatureMap
from structpred.core.instances import Instance, checked_shape
from structpred.data.vocabulary import FeatureDictionary
from structpred.errors import DataError
from structpred.features.parts import PartFeatures
from structpred.models.signs import NameTable

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
