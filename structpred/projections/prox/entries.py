"""Proximal operators of sums over entries: the l1 norm, the elastic net, powers.

All take a point (n,) and O(n) steps. They raise DataError for a point that is empty, not 1-d or not finite, ParameterError for a
step that is not finite and at least 0.
"""

import numpy as np

from structpred.core.types import ArrayLike, Floats
from structpred.errors import ParameterError
from structpred.projections.checked import checked_point
from structpred.runtime.settings import checked_nonnegative


def shrunk(x: Floats, threshold: Floats | float) -> Floats:
    """soft(x, threshold): each entry moves by its threshold towards 0, and stays there.

    >>> shrunk(np.array([3.0, -0.5]), 1.0).tolist()
    [2.0, 0.0]
    """
    return x - np.minimum(np.maximum(x, -threshold), threshold)  # np.clip takes longer for few entries


def prox_l1(point: ArrayLike, step: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * sum_i |x_i|.

    >>> prox_l1([3.0, -0.5], 1.0).tolist()
    [2.0, 0.0]
    """
    return shrunk(checked_point(point), checked_nonnegative(step, "step"))


def prox_elastic_net(point: ArrayLike, step: float, share: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * ((1 - share) sum_i |x_i| + share/2 sum_i x_i^2).

    share: that of the square; ParameterError for one outside [0, 1].

    >>> prox_elastic_net([3.0, -0.5], 1.0, 0.5).round(6).tolist()
    [1.666667, 0.0]
    """
    x, step, share = checked_point(point), checked_nonnegative(step, "step"), checked_share(share)
    return shrunk(x, step * (1.0 - share)) / (1.0 + step * share)


def checked_share(share: float) -> float:
    """A share: a number from 0 to 1, else ParameterError.

    >>> checked_share(1)
    1.0
    """
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0.0 <= share <= 1.0:
        raise ParameterError(f"expected share to be a number from 0 to 1, got {share!r}")
    return float(share)


def prox_lq(point: ArrayLike, step: float, q: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * sum_i |x_i|^q.

    The sizes solve x - |point_i| + step q x^(q-1) = 0 (Martins et al. 2010, section 3.2), each by Newton's method.
    q: above 1, also above 2; else ParameterError.

    >>> prox_lq([3.0, -0.75], 1.0, 1.5).round(6).tolist()
    [1.293812, -0.156534]
    >>> prox_lq([3.0, -1.5], 1.0, 2.0).round(6).tolist()
    [1.0, -0.5]
    """
    from structpred.projections.prox._prox_kernels import roots

    x, step, q = checked_point(point), checked_nonnegative(step, "step"), checked_exponent(q, "q")
    if step == 0.0:
        return x.copy()
    found = np.zeros_like(x)
    used = x != 0.0
    found[used] = np.copysign(roots(np.log(np.abs(x[used])), np.log(step) + np.log(q), q - 1.0), x[used])
    return found


def checked_exponent(exponent: float, name: str) -> float:
    """A finite number above 1, else ParameterError.

    >>> checked_exponent(2, "q")
    2.0
    """
    if isinstance(exponent, bool) or not isinstance(exponent, int | float | np.number) or not 1.0 < exponent < np.inf:
        raise ParameterError(f"expected {name} to be a finite number above 1, got {exponent!r}")
    return float(exponent)
