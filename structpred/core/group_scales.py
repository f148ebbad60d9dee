"""Weights that are a product of a vector and one factor a group, so that a whole group shrinks in one multiplication.

Wherever a task takes weights w and a `scale`, the scale may be one number or `GroupScales`.
"""

from typing import NamedTuple

import numpy as np

from structpred.core.sparse import SparseVector, sparse_dot
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector


class GroupScales(NamedTuple):
    """The weights are factors[k] * v_j for all j in group k, which is groups[k]:groups[k+1]."""

    groups: Integers
    factors: Floats

    def of(self, indices: Integers) -> Floats:
        """The factor of each of these coordinates, which ascend."""
        return np.repeat(self.factors, np.diff(np.searchsorted(indices, self.groups)))


Scale = float | GroupScales


def scaled(w: Vector, scale: Scale) -> Floats:
    """The weights themselves, in float64.

    >>> scaled(np.ones(3), GroupScales(np.array([0, 2, 3]), np.array([0.5, 4.0])))
    array([0.5, 0.5, 4. ])
    """
    if isinstance(scale, GroupScales):
        return np.repeat(scale.factors, np.diff(scale.groups)) * w
    return np.multiply(w, scale, dtype=np.float64)


def scaled_dot(w: Vector, vector: SparseVector, scale: Scale) -> float:
    """<scale * w, vector>, added in order in float64."""
    if isinstance(scale, GroupScales):
        from structpred.core._sparse_kernels import grouped_dot

        return float(grouped_dot(w, scale.groups, scale.factors, vector.indices, vector.values))
    return scale * sparse_dot(w, vector)
