"""Proximal operator of sums of powers."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.projections.checked import checked_point, checked_step


def prox_lq(point: npt.ArrayLike, step: float, q: float) -> Floats:
    """argmin_x |x - point|^2 / 2 + step * sum_i |x_i|^q.

    The sizes solve x - |point_i| + step q x^(q-1) = 0 (Martins et al. 2010, section 3.2), each by Newton's method. point: (n,).
    q: above 1, also above 2. O(n). Raises DataError for a point that is empty, not 1-d or not finite, ParameterError for a step
    that is not finite and at least 0 and for a q that is not above 1.

    >>> prox_lq([3.0, -0.75], 1.0, 1.5).round(6).tolist()
    [1.293812, -0.156534]
    >>> prox_lq([3.0, -1.5], 1.0, 2.0).round(6).tolist()
    [1.0, -0.5]
    """
    from structpred.projections.prox._power_kernels import roots

    x, step, q = checked_point(point), checked_step(step), checked_exponent(q, "q")
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
