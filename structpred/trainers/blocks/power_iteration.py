"""The largest eigenvalue of a positive semidefinite operator, from products alone: it says how much a quadratic bends."""

from collections.abc import Callable

import numpy as np

from structpred.core.types import Floats


def largest_eigenvalue(operator: Callable[[Floats], Floats], size: int, *, tol: float, max_iter: int = 100) -> float:
    """max_v <v, B v> / |v|^2 for B = operator on vectors of this size, from below, by power iteration from a random start.

    It ends where an iteration adds less than tol in proportion. The estimate is never above the eigenvalue but for rounding, and
    no number of iterations proves that it is near: who needs an upper bound must test what follows from it.

    >>> round(largest_eigenvalue(lambda v: np.array([3.0, 1.0]) * v, 2, tol=1e-9), 6)
    3.0
    """
    v = np.random.Generator(np.random.PCG64(0)).normal(size=size)
    found = 0.0
    for _ in range(max_iter):
        v /= np.linalg.norm(v)
        product = operator(v)
        before, found = found, float(v @ product)
        if not found > before * (1.0 + tol):
            break
        v = product
    return max(found, 0.0)
