"""A feature map with further fixed scores: what rules parts out of instances whose features are there already."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.feature_map import FeatureMap, names_of_groups
from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError


class AddedScores(FeatureMap):
    """The instances of `features` with `added` to their fixed scores: one number per part, or None for nothing.

    What the map has of compiled calls for blocks is used. Raises DataError, naming the sample, for numbers that do not fit.
    """

    def __init__(self, features: FeatureMap, added: Sequence[Floats | None]) -> None:
        if len(added) != len(features):
            raise DataError(f"fixed scores: expected one entry per sample, {len(features)}, got {len(added)}")
        for i, own in enumerate(added):
            if own is not None and (own.shape != (features.n_parts(i),) or not np.isfinite(own).all()):
                raise DataError(f"sample {i}: expected {features.n_parts(i)} finite fixed scores, one per part")
        self.features, self.added = features, list(added)
        self.dim, self.dtype, self.groups = features.dim, features.dtype, features.groups
        self.group_names = names_of_groups(features)
        self._block = stand_in(features, "score_block", ("scores", "fixed_scores", "n_parts"))
        if self._block is not None:
            self.score_block = self._score_block
        if (block := stand_in(features, "adjoint_block", ("adjoint", "n_parts"))) is not None:
            self.adjoint_block = block

    def __len__(self) -> int:
        """The number of instances."""
        return len(self.features)

    def n_parts(self, i: int) -> int:
        """Those of the map."""
        return self.features.n_parts(i)

    def scores(self, w: Vector, i: int) -> Floats:
        """Those of the map."""
        return self.features.scores(w, i)

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """That of the map."""
        return self.features.adjoint(i, parts, counts)

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
        from structpred.task.instance_subset import take_features

        return AddedScores(take_features(self.features, rows), [self.added[i] for i in rows.tolist()])

    def __getstate__(self) -> dict[str, Any]:
        """Without bound methods, which are found again."""
        return {"features": self.features, "added": self.added}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find them."""
        self.__init__(**state)  # type: ignore[misc]

    def arrays(self) -> Sequence[npt.NDArray[Any]]:
        """The data of the map, and what was added."""
        return (*self.features.arrays(), *(own for own in self.added if own is not None))
