"""What a decision model reads: one row of features an instance, or one a part, and the shapes."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from structpred.core.feature_map import FeatureMap
from structpred.core.instances import Instance, checked_shape
from structpred.core.oracle import Oracle
from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.features.label_rows import LabelRows
from structpred.features.parts import PartFeatures
from structpred.layers.record import Scores
from structpred.models.part_inputs import as_shapes, split_instances
from structpred.runtime.ranges import picked


class Design(NamedTuple):
    """Instances as rows of numbers: the part scores of all are theta = (rows @ W).ravel() for a table W (columns, n_outputs).

    One row an instance: n_outputs is the number of its parts, equal for all. One row a part: n_outputs = 1. places: instance i
    has the rows from places[i] to places[i + 1]. shapes: of the instances. per_part: which of the two.
    """

    rows: Floats
    places: Integers
    shapes: list[Any]
    n_outputs: int
    per_part: bool

    def take(self, at: Integers) -> "Design":
        """Some instances."""
        rows, places = picked(self.places, at)
        return self._replace(rows=self.rows[rows], places=places, shapes=[self.shapes[i] for i in at.tolist()])

    def features(self, scale: float) -> FeatureMap:
        """The feature map whose scores are `scale` times theta, for trainers of structural support vector machines."""
        if not self.per_part:
            return LabelRows(scale * self.rows, self.n_outputs, dtype=np.float64)
        return PartFeatures(np.split(scale * self.rows, self.places[1:-1]))


def read(X: Any, shapes: Any, shape: Hashable, oracle: Oracle, constant: bool) -> Design:
    """The instances of X.

    X: an array (n, d), one row of features an instance; or a list of arrays (n_parts_i, d), one row a part; either may be a list
    of Instance(features, shape). shapes: one for each instance; None: `shape` for all, or the oracle's only one. constant:
    whether a column of ones is appended. Raises DataError, naming the sample, for what does not fit.
    """
    samples, listed = _samples(X, shapes, oracle.only_shape if shape is None else shape)
    per_part = isinstance(samples, list)
    blocks = [_table(own, f"sample {i}: ") for i, own in enumerate(samples)] if per_part else [samples]
    if len({block.shape[1] for block in blocks}) > 1:
        i = next(i for i, block in enumerate(blocks) if block.shape[1] != blocks[0].shape[1])
        raise DataError(f"sample {i}: expected {blocks[0].shape[1]} features, got {blocks[i].shape[1]}")
    rows = np.concatenate(blocks)
    if not np.isfinite(rows).all():
        at = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        i = int(np.searchsorted(np.cumsum([len(block) for block in blocks]), at, side="right")) if per_part else at
        raise DataError(f"sample {i}: features must be finite, found NaN or infinity")
    counts = np.array([len(block) for block in blocks]) if per_part else np.ones(len(rows), np.int64)
    n_parts = Scores.of(oracle, listed).sizes
    if per_part and (wrong := np.flatnonzero(counts != n_parts)).size:
        i = int(wrong[0])
        raise DataError(f"sample {i}: the shape {listed[i]} has {n_parts[i]} parts, but there are {counts[i]} rows of features")
    if not per_part and (wrong := np.flatnonzero(n_parts != n_parts[0])).size:
        i = int(wrong[0])
        raise DataError(
            f"sample {i}: {n_parts[i]} parts, and {n_parts[0]} in sample 0: with one row of features an instance all have as "
            "many parts; for others give a list of arrays with a row of features for each part"
        )
    if constant:
        rows = np.column_stack((rows, np.ones(len(rows))))
    places = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return Design(rows, places, listed, 1 if per_part else int(n_parts[0]), per_part)


def _samples(X: Any, shapes: Any, shape: Hashable) -> tuple[Any, list[Any]]:
    """(a table or a list of samples, the shapes)."""
    if isinstance(X, list | tuple) and len(X) and isinstance(X[0], Instance):
        X, listed = split_instances(X, shapes)
    else:
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if shapes is None and shape is None:
            raise DataError("the shapes are missing: give DecisionModel(oracle, shape=...), of all instances, or shapes= here")
        listed = [checked_shape(shape, 0)] * n if shapes is None else as_shapes(shapes)
    if isinstance(X, list | tuple) and len(X) and getattr(X[0], "ndim", None) != 1 and np.ndim(X[0]) == 2:
        samples: Any = list(X)
    else:
        samples = _table(X, "X: ")
        samples = list(samples) if samples.ndim == 3 else samples
    if len(samples) != len(listed) or not listed:
        raise DataError(f"X has {len(samples)} samples, and there are {len(listed)} shapes: one shape a sample, at least one")
    known: dict[Any, Any] = {}
    return samples, [known.setdefault(own, own) for own in listed]  # equal ones are one object: oracles tell them apart by it


def _table(given: Any, where: str) -> Floats:
    """A table of numbers (or several on each other, where `given` is one array of three dimensions)."""
    try:
        found = np.asarray(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}expected numbers in rows of equal length: {error}") from None
    if found.ndim != 2 and not (found.ndim == 3 and where == "X: "):
        raise DataError(f"{where}expected a table of numbers, a row of features an instance or part, got {found.ndim} dimensions")
    return found
