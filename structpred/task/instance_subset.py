"""Instances by their row numbers, in any order: checked row numbers, and feature maps of these instances only."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from structpred.core.feature_map import FeatureMap
from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.runtime.moved import renamed


def checked_rows(rows: npt.ArrayLike, n: int) -> Integers:
    """At least one whole number in [0, n), in any order, repeats allowed; DataError for others.

    >>> checked_rows([2, 0, 2], 3).tolist()
    [2, 0, 2]
    """
    array = np.asarray(rows)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise DataError(f"rows: expected a flat list of whole numbers, got {array.dtype} of shape {array.shape}")
    if not array.size:
        raise DataError("rows: expected at least one row, got none: a task needs instances")
    if array.min() < 0 or array.max() >= n:
        raise DataError(f"rows: expected numbers of {n} instances, 0..{n - 1}, got {array.min()}..{array.max()}")
    return array.astype(np.int64)


def take_features(features: FeatureMap, rows: Integers) -> FeatureMap:
    """The features of these rows: the map's own `take`, unless it is missing or does not know what a subclass changed."""
    own = stand_in(features, "take", ("scores", "adjoint", "n_parts", "fixed_scores", "__len__"))
    return InstanceSubset(features, rows) if own is None else cast(FeatureMap, own(rows))


class InstanceSubset(FeatureMap):
    """Some rows of a user's feature map, which stays whole behind it: instance k is instance rows[k] there."""

    def __init__(self, features: FeatureMap, rows: Integers) -> None:
        self.features, self.rows = features, rows
        self.dim, self.dtype, self.groups = features.dim, features.dtype, features.groups

    def __len__(self) -> int:
        """The number of its instances."""
        return len(self.rows)

    def n_parts(self, i: int) -> int:
        """Those of instance rows[i]."""
        return self.features.n_parts(int(self.rows[i]))

    def scores(self, w: Vector, i: int) -> Floats:
        """Those of instance rows[i]."""
        return self.features.scores(w, int(self.rows[i]))

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """That of instance rows[i]."""
        return self.features.adjoint(int(self.rows[i]), parts, counts)

    def fixed_scores(self, i: int) -> Floats | None:
        """Those of instance rows[i]."""
        return self.features.fixed_scores(int(self.rows[i]))

    def scratch(self) -> Floats:
        """What the whole map works in."""
        return self.features.scratch()

    def spread(self, i: int, mu: Floats, scratch: Floats) -> float:
        """As instance rows[i] is spread."""
        return self.features.spread(int(self.rows[i]), mu, scratch)

    def flush(self, i: int, scratch: Floats, coef: float, w: Vector) -> None:
        """As instance rows[i] is flushed."""
        self.features.flush(int(self.rows[i]), scratch, coef, w)

    def take(self, rows: Integers) -> "InstanceSubset":
        """Rows of these rows."""
        return InstanceSubset(self.features, self.rows[rows])

    def arrays(self) -> Sequence[npt.NDArray[Any]]:
        """All data of the whole map, and which rows they are."""
        return (*self.features.arrays(), self.rows)


__getattr__ = renamed(__name__, {"TakenFeatures": "InstanceSubset"})
