"""Feature maps behind which another one stays whole: some of its instances, by their row numbers, or all with added scores."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from structpred.core.feature_map import FeatureMap, names_of_groups
from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.types import AnyArray, ArrayLike, Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError


def checked_rows(rows: ArrayLike, n: int) -> Integers:
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

    def take(self, rows: Integers) -> FeatureMap:
        """Rows of these rows."""
        return InstanceSubset(self.features, self.rows[rows])

    def arrays(self) -> Sequence[AnyArray]:
        """All data of the whole map, and which rows they are."""
        return (*self.features.arrays(), self.rows)


class AddedScores(InstanceSubset):
    """The instances of `features` with `added` to their fixed scores: one number per part, or None for nothing.

    What the map has of compiled calls for blocks is used. Raises DataError, naming the sample, for numbers that do not fit.
    """

    def __init__(self, features: FeatureMap, added: Sequence[Floats | None]) -> None:
        if len(added) != len(features):
            raise DataError(f"fixed scores: expected one entry per sample, {len(features)}, got {len(added)}")
        for i, own in enumerate(added):
            if own is not None and (own.shape != (features.n_parts(i),) or not np.isfinite(own).all()):
                raise DataError(f"sample {i}: expected {features.n_parts(i)} finite fixed scores, one per part, got {own.shape}")
        super().__init__(features, np.arange(len(added)))
        self.added, self.group_names = list(added), names_of_groups(features)
        self._block = stand_in(features, "score_block", ("scores", "fixed_scores", "n_parts"))
        if self._block is not None:
            self.score_block = self._score_block
        if (block := stand_in(features, "adjoint_block", ("adjoint", "n_parts"))) is not None:
            self.adjoint_block = block

    def fixed_scores(self, i: int) -> Floats | None:
        """Those of the map and those added."""
        base, own = self.features.fixed_scores(i), self.added[i]
        return base if own is None else own if base is None else base + own

    def _score_block(self, w: Vector, scale: float, first: int, last: int, places: Integers, out: Floats) -> None:
        """As the map scores a block, with the scores added."""
        assert self._block is not None
        self._block(w, scale, first, last, places, out)
        for k, own in enumerate(self.added[first:last]):
            if own is not None:
                out[places[k] : places[k + 1]] += own

    def take(self, rows: Integers) -> "AddedScores":
        """The instances with these numbers, in this order."""
        return AddedScores(take_features(self.features, rows), [self.added[i] for i in rows.tolist()])

    def __getstate__(self) -> dict[str, Any]:
        """Without bound methods, which are found again."""
        return {"features": self.features, "added": self.added}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find them."""
        self.__init__(**state)  # type: ignore[misc]

    def arrays(self) -> Sequence[AnyArray]:
        """The data of the map, and what was added."""
        return (*self.features.arrays(), *(own for own in self.added if own is not None))
