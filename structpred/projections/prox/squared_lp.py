"""Proximal operator of the squared l_p norm, and of groups: that of non-sparse multiple kernel learning."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.projections.checked import checked_point, checked_step
from structpred.projections.prox.groups import prox_of_group_norms
from structpred.projections.prox.lq import checked_exponent


def prox_squared_lp(point: npt.ArrayLike, step: float, p: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_i |x_i|^p)^(2/p).

    The sizes solve x + c x^(p-1) = |point_i| with c = step |x|_p^(2-p): Newton's method for log c, and for each size within it.
    point: (n,). p: above 1, also above 2. O(n) a round, about six rounds. Raises DataError for a point that is empty, not 1-d or
    not finite, ParameterError for a step that is not finite and at least 0 and for a p that is not above 1.

    >>> prox_squared_lp([3.0, -1.0], 1.0, 2.0).round(6).tolist()
    [1.5, -0.5]
    >>> prox_squared_lp([3.0, -1.0], 1.0, 1.2).round(6).tolist()
    [1.479583, -0.104734]
    """
    from structpred.projections.prox._power_kernels import sizes_of_squared_norm

    x, step, p = checked_point(point), checked_step(step), checked_exponent(p, "p")
    used = x != 0.0
    if step == 0.0 or not used.any():
        return x.copy()
    found = np.zeros_like(x)
    found[used] = np.copysign(sizes_of_squared_norm(np.log(np.abs(x[used])), np.log(step), p), x[used])
    return found


def prox_squared_l2p(point: npt.ArrayLike, step: float, ends: npt.ArrayLike, p: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * 1/2 (sum_g |x[ends[g]:ends[g + 1]]|_2^p)^(2/p).

    point: (n,). ends: whole numbers from 0 to n, ascending; a group may be empty. The rest as for `prox_squared_lp`, of which it
    is the form over groups; ends that do not fit raise DataError.

    >>> prox_squared_l2p([3.0, 4.0, 1.0], 1.0, [0, 2, 3], 2.0).round(6).tolist()
    [1.5, 2.0, 0.5]
    """
    return prox_of_group_norms(lambda norms, s: prox_squared_lp(norms, s, p), point, ends, step)
