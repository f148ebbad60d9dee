"""Promises of structpred.runtime.jit and kernel_cache: what is left out of compilation changes nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from borrowing import name_of, watching
from numba.core.errors import NumbaError

from structpred.runtime.jit import njit
from structpred.runtime.kernel_files import PACKAGE


@njit(nogil=True, borrows=True)
def doubled(values, out):
    """Twice the values; how many there are."""
    for k in range(values.shape[0]):
        out[k] = 2.0 * values[k]
    return values.shape[0]


@njit(nogil=True, borrows=True)
def quadrupled(values, out):
    """Four times the values."""
    doubled(values, out)
    return doubled(out, out)


@njit(nogil=True)
def part_of(values, start):
    """The values from a place on."""
    return values[start:]


@njit(nogil=True)
def copy_of(values):
    """The values in a new array."""
    out = np.empty(values.shape[0])
    for k in range(values.shape[0]):
        out[k] = values[k]
    return out


@njit(nogil=True)
def sum_of_copies(values, n_copies):
    """The sum of all values of n copies, each of which is released."""
    total = 0.0
    for k in range(n_copies):
        copy = copy_of(part_of(values, k % 2))
        total += copy[0] + (copy * 2.0)[0]
    return total


@njit(nogil=True)
def first_of(values, picked):
    """The first of the values that are picked by their indices."""
    return values[picked][0]


@njit(nogil=True)
def shifted(values, out):
    """The values one place further on."""
    out[1:] = values[:-1]
    out[0] = values[-1]


@pytest.mark.slow
def test_a_slice_may_be_copied() -> None:
    """Assigning one slice to another compiles, alone and inside another kernel, and holds no reference afterwards."""

    @njit(nogil=True)
    def twice(values, room, out):
        shifted(values, room)
        shifted(room, out)

    values, room, out = np.arange(4.0), np.empty(4), np.empty(4)
    held = sys.getrefcount(values)
    shifted(values, out)
    assert out.tolist() == [3.0, 0.0, 1.0, 2.0]
    twice(values, room, out)
    assert out.tolist() == [2.0, 3.0, 0.0, 1.0]
    assert sys.getrefcount(values) == held


def test_a_kernel_works_alike_for_python_and_for_other_kernels() -> None:
    """What another kernel calls has an entry for Python only when Python calls it too, with the same result."""

    @njit(nogil=True)
    def inner(values, out):
        for k in range(values.shape[0]):
            out[k] = 2.0 * values[k]

    @njit(nogil=True)
    def outer(values, out):
        inner(values, out)
        inner(out, out)

    values, out = np.arange(5.0), np.empty(5)
    outer(values, out)
    assert (out == 4.0 * values).all()
    assert not inner.overloads
    inner(values, out)
    assert (out == 2.0 * values).all()


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kernel", [doubled, quadrupled])
def test_borrowed_arrays_are_not_counted(kernel: Any) -> None:
    """A kernel that makes no array holds no reference when it is done, and counts none on the way."""
    values, out = np.arange(5.0), np.empty(5)
    before = sys.getrefcount(values), sys.getrefcount(out)
    kernel(values, out)
    assert (sys.getrefcount(values), sys.getrefcount(out)) == before
    assert not any("NRT_incref" in result.library.get_llvm_str() for result in kernel.overloads.values())


def test_a_view_that_is_returned_keeps_its_array() -> None:
    """A kernel that returns a part of its argument counts references: the part lives on without the argument."""
    values = np.arange(100_000.0)
    part = part_of(values, 99_990)
    del values
    assert part.tolist() == np.arange(99_990.0, 100_000.0).tolist()


@pytest.mark.slow
def test_arrays_made_inside_are_released() -> None:
    """Arrays that a kernel makes, by calls, operations or lists of indices, are released, and those of the caller are not."""
    from numba.core.runtime import _nrt_python, rtsys

    _nrt_python.memsys_enable_stats()
    values = np.arange(1000.0)
    assert sum_of_copies(values, 1) == 0.0
    held = sys.getrefcount(values)
    before = rtsys.get_allocation_stats()
    assert sum_of_copies(values, 100) == 150.0
    assert first_of(values, np.array([7, 8])) == 7.0
    after = rtsys.get_allocation_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free
    assert sys.getrefcount(values) == held


@njit(nogil=True)
def one_of(first, second, which):
    """One of two arrays, as it is."""
    return first if which else second


@njit(nogil=True)
def larger_of(first, second, out):
    """The first number of that array whose first number is larger, which a call picks."""
    out[0] = one_of(first, second, first[0] > second[0])[0]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kernel", [doubled, quadrupled, part_of, copy_of, sum_of_copies, first_of, one_of, larger_of])
def test_what_borrows_is_told_apart(kernel: Any) -> None:
    """The analysis that marked kernels have to pass lets those pass that only write into arrays, and no other."""
    values, out = np.arange(3.0), np.empty(3)
    given = {part_of: (values, 1), copy_of: (values,), sum_of_copies: (values, 2), first_of: (values, np.array([1]))}
    given |= {one_of: (values, out, True), larger_of: (values, out, out)}
    with watching(marked_only=False) as found:
        njit()(kernel.py_func)(*given.get(kernel, (values, out)))
    assert found[name_of(kernel.py_func)] == (kernel in (doubled, quadrupled))


def test_numba_refuses_a_borrower_that_makes_an_array() -> None:
    """A mark where an array is made is an error of compilation, and so is one where a view is returned."""
    for kernel, given in ((copy_of, (np.arange(3.0),)), (part_of, (np.arange(3.0), 1))):
        with pytest.raises(NumbaError):
            njit(borrows=True)(kernel.py_func)(*given)


@pytest.mark.slow
def test_marked_kernels_borrow(tmp_path: Path) -> None:
    """Each kernel of the package that is marked is compiled by some training here, makes no array and returns none."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_OPT": "0", "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, str(Path(__file__).with_name("borrowing.py"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = json.loads(done.stdout)
    assert [name for name, right in found["compiled"].items() if not right] == []
    assert sorted(found["compiled"]) == found["marked"] != []


SECOND = """
import sys, numpy as np
from structpred.oracles.chains._chain_kernels import parts_of
assert parts_of(np.array([1, 0]), 2, 2).tolist() == [1, 2, 6]
from structpred.runtime.compiled import compiled_kernels
print(compiled_kernels(), "numba.np.linalg" in sys.modules)
"""


@pytest.mark.slow
def test_a_kernel_from_the_cache_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process compiles a kernel; the second takes it from the cache without loading what compilation needs."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    runs = [subprocess.run([sys.executable, "-c", SECOND], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert runs == ["2 True\n", "0 False\n"]
