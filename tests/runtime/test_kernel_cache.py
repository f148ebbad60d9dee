"""Promises of structpred.runtime.kernel_cache: no machine code of other sources runs, and no file on disk stops a kernel."""

import importlib
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_kernel_files import bent

from structpred.runtime import compiled, kernel_cache

CALLEE = "from structpred.runtime.jit import njit\n\n\n@njit(cache=True)\ndef larger(x, y):\n    return x > y\n"
CALLER = """
from some_settings import STEP
from _callee_kernels import larger
from structpred.runtime.jit import njit


@njit(cache=True)
def first(x, y):
    return STEP if larger(x, y) else 0
"""
SHARED = """
size = None


def first(x):
    return 10 * size(x)


def second(x):
    return first(x) + 1


BODIES = (first, second)
"""
OWN = """
from _shared_kernels import BODIES
from structpred.runtime.jit import family, njit


@njit(cache=True)
def size(x):
    return x + 1


*_, first = family(__name__, BODIES, size)
"""
NAMES = ("_caller_kernels", "_callee_kernels", "some_settings", "_shared_kernels", "_other_kernels")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two kernel files and the settings of one, on the path; the cache is `tmp_path / "cache"`, empty."""
    for name, text in zip(NAMES[:3], (CALLER, CALLEE, "STEP = 1\n"), strict=True):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "cache").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(compiled, "_prepared", compiled.CacheLocation(tmp_path / "cache", "for the test", True))
    monkeypatch.setattr(kernel_cache, "_warned", set())
    yield tmp_path
    for name in NAMES:
        sys.modules.pop(name, None)


def fresh_kernel(caller: str = NAMES[0]) -> Any:
    """The caller's kernel as a new process would load it."""
    for name in NAMES:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    kernel_cache._sources_at_first.cache_clear()
    return importlib.import_module(caller).first


def outcome(x: int = 2, y: int = 1) -> tuple[int, int]:
    """What a new process gets, and how many kernels it takes from the cache."""
    kernel = fresh_kernel()
    return kernel(x, y), sum(kernel.stats.cache_hits.values())


def family_outcome(caller: str = NAMES[0]) -> tuple[int, int]:
    """What a kernel of a family gives a new process, and how many kernels come from the cache."""
    kernel = fresh_kernel(caller)
    return kernel(1), sum(kernel.stats.cache_hits.values())


def kept(folder: Path) -> Path:
    """The one file of the cache."""
    (path,) = (folder / "cache").iterdir()
    return path


def test_a_second_process_compiles_nothing(folder: Path) -> None:
    """What one process compiled another takes from the cache, as long as no source has changed."""
    assert outcome() == (1, 0)
    assert outcome() == (1, 1)


def test_a_change_in_a_callee_compiles_its_caller_again(folder: Path) -> None:
    """Another comparison in another file is another result, and back again: machine code of a changed callee does not run."""
    assert outcome() == (1, 0)
    (folder / "_callee_kernels.py").write_text(CALLEE.replace(">", "<"))
    assert outcome() == (0, 0)
    (folder / "_callee_kernels.py").write_text(CALLEE)
    assert outcome() == (1, 0)


def test_a_change_in_an_imported_constant_compiles_again(folder: Path) -> None:
    """Numbers that kernels import from other modules are in their machine code, and in the stamp."""
    assert outcome() == (1, 0)
    (folder / "some_settings.py").write_text("STEP = 5\n")
    assert outcome() == (5, 0)
    assert outcome() == (5, 1)


@pytest.mark.parametrize(("text", "expected"), [("np.float64(5)", 5.0), ("np.array([1.0, 5.0])[1]", 5.0), ("True", True)])
def test_every_kind_of_constant_counts(folder: Path, text: str, expected: Any) -> None:
    """So are NumPy's numbers, and truth values."""
    assert outcome() == (1, 0)
    (folder / "some_settings.py").write_text(f"import numpy as np\nSTEP = {text}\n")
    assert outcome() == (expected, 0)


def test_a_constant_of_a_callee_counts(folder: Path) -> None:
    """So do those that only a called kernel names."""
    (folder / "_callee_kernels.py").write_text(f"from some_settings import STEP\n{CALLEE.replace('x > y', 'x > y + STEP')}")
    assert outcome(4, 1) == (1, 0)
    (folder / "some_settings.py").write_text("STEP = 5\n")
    assert outcome(4, 1) == (0, 0)


def test_sources_that_change_under_a_running_process_are_not_mixed_up(folder: Path) -> None:
    """A kernel is not kept where a source was changed after it was loaded: the stamp would be that of other code."""
    kernel = fresh_kernel()
    (folder / "_callee_kernels.py").write_text(CALLEE.replace(">", "<"))
    assert kernel(2, 1) == 1
    assert not list((folder / "cache").iterdir())


def test_families_of_the_same_bodies_are_kept_apart(folder: Path) -> None:
    """Each has machine code of its own on disk, from which a second process takes it."""
    (folder / "_shared_kernels.py").write_text(SHARED)
    (folder / "_caller_kernels.py").write_text(OWN)
    (folder / "_other_kernels.py").write_text(OWN.replace("x + 1", "x + 2"))
    for hits in (0, 1):
        assert family_outcome() == (21, hits)
        assert family_outcome("_other_kernels") == (31, hits)
    assert len(list((folder / "cache").iterdir())) == 2


def test_a_change_in_a_shared_body_compiles_its_families_again(folder: Path) -> None:
    """Also where only a body that another one calls has changed."""
    for body, expected in ((SHARED, 21), (SHARED.replace("10 *", "100 *"), 201), (SHARED.replace("+ 1", "+ 3"), 23)):
        (folder / "_shared_kernels.py").write_text(body)
        (folder / "_caller_kernels.py").write_text(OWN)
        assert family_outcome() == (expected, 0)
        assert family_outcome() == (expected, 1)


def test_bodies_from_another_folder_notice_a_change_of_what_they_call(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bodies' file is the kernel's source, so the code of all that is called is in the stamp, wherever it lies."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "_shared_kernels.py").write_text(SHARED)
    monkeypatch.syspath_prepend(elsewhere)
    for own, expected in ((OWN, 21), (OWN.replace("x + 1", "x + 2"), 31), (OWN.replace("x + 1", "x - 1"), 1)):
        (folder / "_caller_kernels.py").write_text(own)
        assert family_outcome() == (expected, 0)
        assert family_outcome() == (expected, 1)


@pytest.mark.parametrize("version", [kernel_cache.numba, kernel_cache.llvmlite])
def test_another_compiler_compiles_again(folder: Path, version: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions of numba and llvmlite are in the stamp."""
    assert outcome() == (1, 0)
    monkeypatch.setattr(version, "__version__", "1000.0")
    assert outcome() == (1, 0)


@pytest.mark.parametrize(("setting", "value"), [("OPT", 0), ("BOUNDSCHECK", 1), ("DISABLE_INTEL_SVML", 1)])
def test_other_settings_have_files_of_their_own(folder: Path, setting: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code made under other settings of numba is not taken, and stays for who has them."""
    assert outcome() == (1, 0)
    monkeypatch.setattr(kernel_cache.config, setting, value)
    kernel = fresh_kernel()
    signature, codegen = (kernel.typeof_pyval(2),) * 2, kernel.targetctx.codegen()
    assert not kernel._cache._path(folder / "cache", signature, codegen).exists()
    assert kept(folder).exists()


def cut(path: Path) -> None:
    """The end is missing."""
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    """Nothing is left."""
    path.write_bytes(b"")


def zeroed(path: Path) -> None:
    """As after a power cut."""
    path.write_bytes(bytes(path.stat().st_size))


def flipped(path: Path) -> None:
    """One bit is another."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def foreign(path: Path) -> None:
    """A file that is whole, of ours, and holds no kernel."""
    kernel_cache.write(path, fresh_kernel()._cache._stamp(), b"no pickle")


@pytest.mark.mostly_slow
@pytest.mark.parametrize("damage", [cut, empty, zeroed, flipped, foreign])
def test_a_damaged_file_is_compiled_again_and_replaced(
    folder: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """One warning names the file, the result is right, and the next process finds a whole file."""
    assert outcome() == (1, 0)
    damage(kept(folder))
    assert outcome() == (1, 0)
    assert caplog.text.count("cannot be read and is compiled again") == 1
    assert str(kept(folder)) in caplog.text
    assert outcome() == (1, 1)


def test_a_folder_in_a_files_place_is_one_warning_each_way(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What can neither be read nor replaced costs a compilation and two lines, however many kernels there are."""
    outcome()
    path = kept(folder)
    path.unlink()
    path.mkdir()
    for _ in range(3):
        assert outcome() == (1, 0)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


def test_a_cache_that_cannot_be_written_is_told_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Kernels run without a cache, and one line says that the next process compiles again."""
    (folder / "cache").rmdir()
    for _ in range(2):
        assert outcome() == (1, 0)
    assert caplog.text.count("cannot be kept") == 1


def test_a_warm_folder_that_cannot_be_written_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that were compiled for all users are taken from there; new ones go where they can be written."""
    outcome()
    shutil.move(folder / "cache", folder / "warm")
    (folder / "cache").mkdir()
    here = compiled.CacheLocation(folder / "cache", "for the test", True, (folder / "warm",))
    monkeypatch.setattr(compiled, "_prepared", here)
    assert outcome() == (1, 1)
    assert not list((folder / "cache").iterdir())
    assert outcome(2.5, 1) == (1, 0)  # type: ignore[arg-type]
    assert kept(folder).exists()


def test_what_closes_over_numbers_is_not_kept(folder: Path) -> None:
    """Two kernels of one name that hold different numbers get their own machine code."""

    def of(step: int) -> Any:
        @kernel_cache.numba.njit
        def kernel(x: int) -> int:
            return x + step

        kernel_cache.keep(kernel, kernel.py_func)
        return kernel

    assert (of(1)(1), of(2)(1)) == (2, 3)
    assert not list((folder / "cache").iterdir())


def test_another_numba_keeps_kernels_its_own_way(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numba has not the parts that our cache needs its own one is used, in our folder, apart for each state of sources."""
    monkeypatch.setattr(kernel_cache, "AS_EXPECTED", False)
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", "")
    assert outcome() == (1, 0)
    assert outcome() == (1, 1)
    (folder / "_callee_kernels.py").write_text(CALLEE.replace(">", "<"))
    assert outcome() == (0, 0)
    assert len(list((folder / "cache").iterdir())) == 2


@pytest.mark.slow
def test_ten_callees_one_after_another(folder: Path) -> None:
    """One comparison is changed in each of ten callees: each time the caller is compiled anew and gives the new result."""
    for k in range(10):
        (folder / f"_callee{k}_kernels.py").write_text(CALLEE)
    imports = "".join(f"from _callee{k}_kernels import larger as larger{k}\n" for k in range(10))
    terms = " + ".join(f"2**{k} * larger{k}(x, y)" for k in range(10))
    (folder / "_caller_kernels.py").write_text(
        f"{imports}from structpred.runtime.jit import njit\n\n\n@njit(cache=True)\ndef first(x, y):\n    return {terms}\n"
    )
    assert outcome() == (1023, 0)
    expected = 1023
    for k in range(10):
        sys.modules.pop(f"_callee{k}_kernels")
        (folder / f"_callee{k}_kernels.py").write_text(CALLEE.replace(">", "<"))
        expected -= 2**k
        assert outcome() == (expected, 0)
        assert outcome() == (expected, 1)


@pytest.mark.slow
def test_bent_kernels_give_the_right_result(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A tenth of STRUCTPRED_FUZZ bent files, at most a thousand: each is compiled again, with the same result."""
    outcome()
    rng, content = np.random.default_rng(1), kept(folder).read_bytes()
    for _ in range(min(1000, int(os.environ.get("STRUCTPRED_FUZZ", "300")) // 10)):
        if (wrong := bent(content, rng)) == content:
            continue
        kept(folder).write_bytes(wrong)
        assert outcome() == (1, 0)
        kept(folder).write_bytes(content)
