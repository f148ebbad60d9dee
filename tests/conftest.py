"""What all tests share: where the real data sets lie, and one thread for each test process."""

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No test looks at the clock: on a busy machine an example may take long, and so may finding one.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# The matrices of tests are small: more threads of a numeric library would only wait for each other, and count as work.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

if "PYTEST_XDIST_WORKER" in os.environ and sys.platform != "win32":
    import kernel_turns  # once it is known that each kernel is compiled by one worker alone

    kernel_turns.take_turns()
    pytest_runtest_logfinish = kernel_turns.end_turn

ROOT = Path(__file__).resolve().parent.parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that is mostly slow the first case is fast, so that what it is about has a fast test; the others are slow."""
    begun = set()
    for item in items:
        if item.get_closest_marker("mostly_slow") and not item.get_closest_marker("slow"):
            name = item.nodeid.partition("[")[0]
            if name in begun:
                item.add_marker(pytest.mark.slow)
            begun.add(name)


def pytest_collection() -> None:
    """Ten thousand tests are collected, and no cycles of garbage: looking for some takes a third of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What has been imported and collected stays to the end: it is no garbage either, and is not walked through in each test."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets: STRUCTPRED_DATA, else ../shared/data next to the project; skips where neither is there."""
    folder = Path(os.environ.get("STRUCTPRED_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"real data sets are not here (set STRUCTPRED_DATA; looked in {folder})")
    return folder


@pytest.fixture
def hears_interrupts() -> Iterator[None]:
    """The signals that end a run raise KeyboardInterrupt in this process, as at a terminal: jobs in the background ignore the
    one, and the others would end a test process without a word.
    """
    from structpred.runtime.interrupts import SIGNALS

    before = {number: signal.signal(number, signal.default_int_handler) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def in_child() -> Callable[[Callable[[], None]], None]:
    """Calls a function in a fork of this process, which may do to itself what it likes; the test fails where it raises."""

    def run(call: Callable[[], None]) -> None:
        process = multiprocessing.get_context("fork").Process(target=call)
        process.start()
        process.join(600)
        assert process.exitcode == 0

    return run
