"""Compiled code found once for arguments of some types."""

import numpy as np

from structpred.core._sparse_kernels import dot
from structpred.runtime.entries import entry_of

IDX, VAL = np.array([1, 3]), np.array([0.5, 2.0])


def test_an_entry_gives_what_the_kernel_gives() -> None:
    """For weights of each type, and for others of the same type."""
    for dtype in (np.float32, np.float64):
        w = np.arange(5, dtype=dtype) / 3
        entry = entry_of(dot, w, IDX, VAL)
        assert entry(w, IDX, VAL) == dot(w, IDX, VAL) != 0.0
        assert entry(2 * w, IDX[:1], VAL[:1]) == dot(2 * w, IDX[:1], VAL[:1]) != 0.0
