# mypy: allow-untyped-defs
"""The compiler's decorator for kernel files (`from structpred.runtime.jit import njit`), with a cache folder chosen first.

Importing this loads numba: only `_x_kernels.py` files do, and those are imported inside functions. With
STRUCTPRED_CHECK_BOUNDS=1 kernels check their indices (`structpred.runtime.bounds`).
"""

from structpred.runtime.bounds import checks_bounds, not_negative, with_checks
from structpred.runtime.compiled import prepare

prepare()

from numba import njit, prange, types  # noqa: E402 - numba must find the cache folder chosen
from numba.extending import overload  # noqa: E402

__all__ = ["njit", "prange"]

if checks_bounds():
    _njit = njit

    @overload(not_negative)
    def _compiled_not_negative(index):
        def checked(index):
            if index < 0:
                raise IndexError("a kernel used a negative index")
            return index

        return checked if isinstance(index, types.Integer) and index.signed else lambda index: index

    def njit(**options):
        """numba's decorator for the kernel with its checks."""
        return lambda kernel: _njit(boundscheck=True, **options)(with_checks(kernel))
