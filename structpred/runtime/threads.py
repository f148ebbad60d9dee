"""Threads over instances: compiled code releases Python's global lock, and every thread writes its own slice."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from structpred.errors import ParameterError
from structpred.runtime.interrupts import Abandoned, abandon_if_asked

#: more threads than any machine has use for
MOST_JOBS = 1024


def split_evenly(sizes: npt.NDArray[np.int64], pieces: int) -> list[tuple[int, int]]:
    """Up to `pieces` ranges of consecutive instances with about the same total size each; none empty.

    >>> split_evenly(np.array([1, 1, 2, 4]), 2)
    [(0, 3), (3, 4)]
    """
    ends = np.cumsum(sizes)
    if not len(ends):
        return []
    marks = ends[-1] * np.arange(1, pieces) / pieces
    cuts = [0, *(np.searchsorted(ends, marks, side="left") + 1).tolist(), len(ends)]
    cuts = np.minimum.accumulate(np.minimum(cuts, len(ends))[::-1])[::-1].tolist()
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def run_ranges(call: Callable[[int, int], None], ranges: Sequence[tuple[int, int]], n_jobs: int) -> None:
    """call(start, stop) for each range, on up to n_jobs threads; the first error is raised once all have ended.

    What `call` computes must not depend on who else runs: then the result is the same for every number of threads.
    """
    if n_jobs == 1 or len(ranges) <= 1:
        for start, stop in ranges:
            abandon_if_asked()
            call(start, stop)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(n_jobs) as pool:
        for future in [pool.submit(call, start, stop) for start, stop in ranges]:
            future.result()
            try:
                abandon_if_asked()
            except Abandoned:
                pool.shutdown(cancel_futures=True)
                raise


def checked_jobs(n_jobs: int | None) -> int:
    """The number of threads: None means 1, -1 all processors that this process may use. Raises ParameterError otherwise."""
    import os

    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0 or n_jobs < -1:
        raise ParameterError(f"n_jobs must be a number >= 1, or -1 for all processors, got {n_jobs!r}")
    if n_jobs > MOST_JOBS:
        raise ParameterError(f"n_jobs must be at most {MOST_JOBS}, got {n_jobs}")
    if n_jobs > 0:
        return int(n_jobs)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
