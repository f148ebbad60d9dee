"""Promises of structpred.runtime.bounds: under the switch, kernels catch indices beyond both ends; without it nothing changes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from structpred.runtime import bounds

KERNELS = """
import numpy as np

from structpred.runtime.jit import family, njit


@njit(cache=True, nogil=True)
def one_past(values):
    total = 0.0
    for i in range(len(values) + 1):
        total += values[i]
    return total


@njit(cache=True, nogil=True)
def one_before(values):
    rows = values.reshape(1, -1)
    for i in range(len(values)):
        rows[0, i - 1] += 1.0
    return rows[0, 0]


@njit(cache=True, nogil=True)
def slice_from_before(values, start):
    return values[start:].sum()


@njit(cache=True, nogil=True)
def within(values):
    return values[-1] + values[values > 5.0].sum() + values[1:][0] + (len(values), 1)[0] + one_before_is_fine(values)


@njit(cache=True, nogil=True)
def one_before_is_fine(values):
    return values[values.shape[0] - 1]


def of_a_family(values):
    return values[np.int64(one_before_is_fine(values)) - 3]


(of_a_family,) = family(__name__, (of_a_family,), one_before_is_fine)
"""

PROGRAM = """
import numpy as np
import _some_kernels as kernels

for name, given in (("one_past", ()), ("one_before", ()), ("slice_from_before", (-1,)), ("of_a_family", ()), ("within", ())):
    try:
        getattr(kernels, name)(np.arange(3.0), *given)
        print(name, "ran")
    except IndexError as error:
        print(name, error)
"""


def outcomes(folder: Path, switch: str) -> list[str]:
    """One line a kernel of what happened to it in a process of its own, with the variable set to `switch`."""
    (folder / "_some_kernels.py").write_text(KERNELS)
    environment = {**os.environ, bounds.VARIABLE: switch, "NUMBA_CACHE_DIR": str(folder / "cache")}
    environment["PYTHONPATH"] = f"{Path(bounds.__file__).parents[2]}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.slow
def test_both_ends_are_checked_under_the_switch_alone(tmp_path: Path) -> None:
    """Off by one, a negative index and a negative end of a slice raise IndexError under the switch, and a cache filled without
    it is not used; constants, masks and right indices pass."""
    assert outcomes(tmp_path, "0") == ["one_past ran", "one_before ran", "slice_from_before ran", "of_a_family ran", "within ran"]
    assert outcomes(tmp_path, "1") == [
        "one_past index is out of bounds",
        "one_before a kernel used a negative index",
        "slice_from_before a kernel used a negative index",
        "of_a_family a kernel used a negative index",
        "within ran",
    ]
    assert outcomes(tmp_path, "0")[0] == "one_past ran"


@pytest.mark.parametrize("value", ["", "0", None])
def test_the_switch_is_off_unless_it_is_set(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    """Neither an empty variable nor 0 asks for checks."""
    if value is None:
        monkeypatch.delenv(bounds.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(bounds.VARIABLE, value)
    assert not bounds.checks_bounds()
