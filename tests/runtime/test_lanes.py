"""Promises of structpred.runtime.lanes: what NumPy finds number by number, and checked ends under the switch."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from structpred.runtime import lanes
from structpred.runtime.jit import njit


@njit(nogil=True)
def exps(values, out):
    """out = exp(values)."""
    for c in range(0, values.shape[1], lanes.WIDTH):
        lanes.store(out, 0, c, lanes.exp(lanes.load(values, 0, c)))


@njit(nogil=True)
def others(table, y, out):
    """The other operations, of the two first rows and y."""
    a, b = lanes.load(table, 0, 0), lanes.load(table, 1, 0)
    lanes.store(out, 0, 0, lanes.plus(a, b))
    lanes.store(out, 1, 0, lanes.minus(a, b))
    lanes.store(out, 2, 0, lanes.times(a, lanes.spread(y)))
    lanes.store(out, 3, 0, lanes.larger(a, b))
    lanes.store(out, 4, 0, lanes.cut(a, b))
    return lanes.total(a), lanes.largest(a)


def test_exp_is_that_of_numpy_to_three_roundings() -> None:
    """Of scores from -460 to 700; below it is zero, of minus infinity, too, and what is no number stays none."""
    values = np.concatenate((np.linspace(-459.9, 700.0, 80_000), [0.0, -1e-300, 1e-9, np.nan, -460.0, -461.0, -1e30, -np.inf]))
    out = np.empty((1, len(values)))
    exps(values[None], out)
    np.testing.assert_allclose(out[0, :-5], np.exp(values[:-5]), rtol=7e-16)
    np.testing.assert_array_equal(out[0, -5:], [np.nan, 0.0, 0.0, 0.0, 0.0])
    assert out[0, -8] == 1.0


def test_operations_are_those_of_numpy() -> None:
    """Number by number, to the last bit; sums are added half to half."""
    a, b = table = np.random.default_rng(0).normal(size=(2, 8))
    out = np.empty((5, 8))
    total, largest = others(table, 0.3, out)
    np.testing.assert_array_equal(out, [a + b, a - b, a * 0.3, np.maximum(a, b), np.where(a > b, a, 0.0)])
    halves = a[:4] + a[4:]
    assert total == (halves[0] + halves[2]) + (halves[1] + halves[3])
    assert largest == a.max()


PROGRAM = """
import numpy as np
from structpred.runtime import lanes
from structpred.runtime.jit import njit

@njit(nogil=True)
def first(table, row, column):
    return lanes.total(lanes.load(table, row, column))

table = np.ones((2, 16))
assert first(table, 1, 8) == 8.0
for place in ((0, 9), (2, 0), (-1, 0), (0, -8)):
    try:
        first(table, *place)
    except IndexError:
        print(*place)
"""


@pytest.mark.slow
def test_the_switch_checks_all_eight(tmp_path: Path) -> None:
    """With STRUCTPRED_CHECK_BOUNDS=1 eight numbers that leave the table on any side are an IndexError."""
    (file := tmp_path / "program.py").write_text(PROGRAM)
    root = Path(lanes.__file__).parents[2]
    given = {**os.environ, "STRUCTPRED_CHECK_BOUNDS": "1", "PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, str(file)], env=given, capture_output=True, text=True, timeout=1800, check=False)
    assert done.stdout.split("\n") == ["0 9", "2 0", "-1 0", "0 -8", ""], done.stderr
