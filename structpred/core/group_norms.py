"""How large the groups of a weight vector are: which features matter."""

import numpy as np
import numpy.typing as npt

from structpred.core.regulariser import DualMap, pieces_of
from structpred.core.types import Floats
from structpred.core.weights import Vector


def group_norms(w: Vector, groups: npt.ArrayLike) -> Floats:
    """|w_k| of every group, in float64; group k is groups[k]:groups[k+1]."""
    return np.sqrt(DualMap.of(np.asarray(groups)[1:], 1.0).squares(pieces_of(w)))


def shares(norms: Floats) -> Floats:
    """The beta of multiple kernel learning, beta_k = |w_k| / sum_k |w_k|: the share of each group; zeros if all are zero.

    >>> shares(np.array([5.0, 0.0, 5.0]))
    array([0.5, 0. , 0.5])
    """
    total = float(norms.sum())
    return norms / total if total > 0.0 else norms
