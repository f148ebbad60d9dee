"""What all tests share: where the real data sets lie, and one thread for each test process."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

# The matrices of tests are small: more threads of a numeric library would only wait for each other, and count as work.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets: STRUCTPRED_DATA, else ../shared/data next to the project; skips where neither is there."""
    folder = Path(os.environ.get("STRUCTPRED_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"real data sets are not here (set STRUCTPRED_DATA; looked in {folder})")
    return folder


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt in this process, as at a terminal: jobs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
