"""Proximal operator of the sparse group lasso."""

import numpy.typing as npt

from structpred.core.types import Floats
from structpred.projections.prox.chain import prox_chain
from structpred.projections.prox.elastic_net import checked_share
from structpred.projections.prox.l1 import prox_l1
from structpred.projections.prox.l21 import prox_l21


def prox_sparse_group(point: npt.ArrayLike, step: float, ends: npt.ArrayLike, share: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * (share sum_g |x[ends[g]:ends[g + 1]]|_2 + (1 - share) sum_i |x_i|).

    Soft thresholds of the entries, then of the groups. point: (n,). ends: whole numbers from 0 to n, ascending; a group may be
    empty. share: from 0 to 1. O(n). Raises DataError for a point that is empty, not 1-d or not finite and for ends that do not
    fit, ParameterError for a step that is not finite and at least 0 and for a share outside [0, 1].

    >>> prox_sparse_group([3.5, 4.5, 0.5], 1.0, [0, 2, 3], 0.5).round(6).tolist()
    [2.7, 3.6, 0.0]
    """
    share = checked_share(share)
    return prox_chain((lambda x, s: prox_l1(x, (1.0 - share) * s), lambda x, s: prox_l21(x, share * s, ends)), point, step)
