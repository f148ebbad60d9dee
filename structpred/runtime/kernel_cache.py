# mypy: allow-untyped-defs, allow-subclassing-any
"""numba's cache of compiled kernels, without a load of the compiler where nothing has to be compiled."""

from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys


class KernelCache(FunctionCache):
    """The compiled forms of one kernel on disk.

    numba's own looks up a kernel after loading all that its compiler knows of Python and NumPy, a quarter of a second in each
    process. Machine code needs the runtime for memory alone; the compiler loads the rest itself when it is needed.
    """

    def load_overload(self, sig, target_context):
        """The kernel compiled for this signature, or None."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
