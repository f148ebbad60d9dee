"""Chains over functions of kernels: factors of groups are no obstacle to compiled steps."""

from typing import Any

import numpy as np

from structpred.core.group_scales import GroupScales, Scale
from structpred.core.types import Floats
from structpred.core.weights import Vector, check_length
from structpred.features.fixed_scores import FixedScores
from structpred.features.positions import PositionFeatures
from structpred.fused.chains import ChainPair
from structpred.oracles.chain import ChainOracle


class PositionPair(ChainPair):
    """PositionFeatures and ChainOracle."""

    takes_groups = True

    def __init__(self, features: PositionFeatures, oracle: ChainOracle) -> None:
        offsets, n_labels, n_kernels = features.offsets, features.n_labels, len(features.space.grams)
        fixed = features.fixed or FixedScores.none(int(offsets[-1]), n_labels)
        # every position wrong: its values twice, a transition, and start and stop
        most_pairs = int(np.diff(offsets).max(initial=0)) * (2 * n_kernels + 2) + 4
        space = features.groups, (features.space.n, n_labels, n_kernels)
        super().__init__(features, offsets, n_labels, fixed, most_pairs, space)

    def kernels(self) -> Any:
        """Those of functions of kernels."""
        from structpred.fused import _position_chain_kernels

        return _position_chain_kernels

    def table(self, w: Vector) -> Vector:
        """The weights themselves: they hold the values of all functions."""
        check_length(w, self.features.dim)
        return w

    def factors(self, scale: Scale) -> Floats:
        """One factor a group."""
        if isinstance(scale, GroupScales):
            return np.ascontiguousarray(scale.factors, dtype=np.float64)
        return np.full(len(self.features.groups) - 1, float(scale))
