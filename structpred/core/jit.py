"""The compiler's decorator for kernel files (`from structpred.core.jit import njit`), with a cache folder chosen first.

Importing this loads numba: only `_x_kernels.py` files do, and those are imported inside functions.
"""

from structpred.core.compiled import prepare

prepare()

from numba import njit, prange  # noqa: E402 - numba must find the cache folder chosen

__all__ = ["njit", "prange"]
