"""Ranges for threads: even, whole and in order; errors come through; the number of threads is checked."""

import os
import threading

import numpy as np
import pytest

from structpred.errors import ParameterError
from structpred.runtime.threads import checked_jobs, run_ranges, split_evenly


def test_ranges_cover_everything_once() -> None:
    """For random sizes and numbers of pieces: consecutive, none empty, no more than asked for, and even up to one instance."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        sizes = rng.integers(0 if rng.random() < 0.3 else 1, 50, int(rng.integers(1, 40)))
        pieces = int(rng.integers(1, 12))
        ranges = split_evenly(sizes, pieces)
        assert [k for a, b in ranges for k in range(a, b)] == list(range(len(sizes)))
        assert all(a < b for a, b in ranges)
        assert len(ranges) <= pieces
        assert max(sizes[a:b].sum() for a, b in ranges) <= sizes.sum() / pieces + sizes.max() + 1e-9


def test_nothing_gives_no_ranges() -> None:
    """No instances, no ranges."""
    assert split_evenly(np.empty(0, np.int64), 4) == []
    run_ranges(lambda a, b: pytest.fail("called"), [], 4)


@pytest.mark.parametrize("n_jobs", [1, 2, 8])
def test_every_range_runs_once(n_jobs: int) -> None:
    """Each range is called once, whatever the number of threads, and all have ended on return."""
    seen, lock = [], threading.Lock()

    def call(start: int, stop: int) -> None:
        with lock:
            seen.append((start, stop))

    ranges = [(k, k + 1) for k in range(30)]
    run_ranges(call, ranges, n_jobs)
    assert sorted(seen) == ranges


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_the_first_error_comes_through(n_jobs: int) -> None:
    """An exception in a range reaches the caller; with several the one of the earliest range."""

    def call(start: int, stop: int) -> None:
        if start in (3, 7):
            raise ValueError(f"range {start}")

    with pytest.raises(ValueError, match="range 3"):
        run_ranges(call, [(k, k + 1) for k in range(10)], n_jobs)


def test_the_number_of_threads() -> None:
    """None is one, -1 all processors that may be used; anything else but whole numbers >= 1 is refused."""
    assert checked_jobs(None) == 1
    assert checked_jobs(3) == 3
    assert checked_jobs(np.int64(2)) == 2
    assert 1 <= checked_jobs(-1) <= (os.cpu_count() or 1)
    for bad in (0, -2, 1.0, "4", True):
        with pytest.raises(ParameterError, match="n_jobs must be a number >= 1"):
            checked_jobs(bad)
