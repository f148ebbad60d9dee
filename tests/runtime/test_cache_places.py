"""Promises of the kernel cache to whole processes: other users, read-only folders, full disks, planted settings and files."""

import contextlib
import functools
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import pytest

from structpred.runtime import kernel_files
from structpred.runtime.compiled import VARIABLE

PACKAGE = kernel_files.PACKAGE
SITE = str(Path(numba.__file__).parent.parent)
SOMEBODY = 65533  # a user without a name
ROOT = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can be other users and mount disks")
LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the user's cache folder is not found through the environment"
)
pytestmark = [pytest.mark.slow, LINUX]

CALLEE = "from structpred.runtime.jit import njit\n\n\n@njit(cache=True, nogil=True)\ndef larger(x, y):\n    return x > y\n"
CALLER = """from structpred.core._callee_kernels import larger
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def first(x, y):
    return 1 if larger(x, y) else 0
"""
PROGRAM = """import logging, sys
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(levelname)s %(message)s")
from structpred.core._caller_kernels import first
from structpred.runtime.compiled import compiled_kernels, prepare
print(first(2, 1), compiled_kernels(), prepare().folder)
"""


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder that all users can look into, below the one for temporary files."""
    folder = Path(tempfile.mkdtemp(prefix="structpred-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def package(room: Path) -> Path:
    """A copy of the package with two kernel files more."""
    shutil.copytree(PACKAGE, copy := room / "site" / "structpred", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "core" / "_callee_kernels.py").write_text(CALLEE)
    (copy / "core" / "_caller_kernels.py").write_text(CALLER)
    return copy


def lines_of(package: Path, code: str = PROGRAM, user: int | None = None, cwd: Path | None = None, **env: str) -> list[str]:
    """What a process prints that imports this package; it must end well."""
    kept = {name: value for name, value in os.environ.items() if name not in {VARIABLE, "XDG_CACHE_HOME"}}
    kept |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **env}
    python, who = sys.executable, dict[str, Any]()
    if user is not None:
        python, who = str(python_of(user)), {"user": user, "group": user, "extra_groups": []}
        kept["PYTHONPATH"] += f"{os.pathsep}{SITE}"
    command, here = [python, "-P", "-c", code], cwd or package.parent
    done = subprocess.run(command, env=kept, cwd=here, capture_output=True, text=True, timeout=900, check=False, **who)
    others = [line for line in done.stderr.splitlines() if not line.startswith("structpred: compiling kernels, ")]
    assert (done.returncode, others) == (0, []), done.stderr
    return done.stdout.splitlines()


def run(
    package: Path, code: str = PROGRAM, user: int | None = None, cwd: Path | None = None, **env: str
) -> tuple[str, int, Path, int]:
    """The result of the kernel, how many were compiled, the folder that is written, and the number of warnings."""
    *warnings, last = lines_of(package, code, user, cwd, **env)
    result, n_compiled, folder = last.split(maxsplit=2)
    return result, int(n_compiled), Path(folder), len(warnings)


@functools.cache
def python_of(user: int) -> str | None:
    """A Python that another user can start, in which our libraries load: this one, or that of the system."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info[1]}"):
        env = {"PYTHONPATH": SITE, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            subprocess.run([python, "-c", "import numba"], user=user, group=user, extra_groups=[], env=env, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    return None


@pytest.fixture
def somebody() -> int:
    """Another user, for whom Python and numba work here."""
    if python_of(SOMEBODY) is None:
        pytest.skip("another user cannot read this installation of Python or of numba")
    return SOMEBODY


REAL = """
import numpy as np
from structpred.oracles.chains import _chain_kernels as kernels
stamps = []
import importlib
from pathlib import Path
import structpred
root = Path(structpred.__file__).parent
for path in sorted(root.rglob("_*_kernels.py")):
    module = importlib.import_module(".".join(("structpred", *path.relative_to(root).with_suffix("").parts)))
    for name, kernel in sorted(vars(module).items()):
        if hasattr(kernel, "_cache") and kernel.py_func.__module__ == module.__name__ and hasattr(kernel._cache, "_stamp"):
            stamps.append(kernel._cache._stamp().hex())
print(*stamps)
"""


def test_ten_callees_of_the_package(package: Path) -> None:
    """One comparison is changed in each of ten kernel files: each time all kernels get other stamps, so none is taken."""
    before = lines_of(package, REAL)[-1].split()
    assert len(set(before)) > 100
    called = [path for path in sorted(package.rglob("_*_kernels.py")) if " < " in path.read_text() or " > " in path.read_text()]
    for path in called[:: len(called) // 10][:10]:
        text = path.read_text()
        line = next(one for one in text.splitlines() if one.startswith("    ") and (" < " in one or " > " in one))
        path.write_text(
            text.replace(line, line.replace(" < ", " <= ", 1) if " < " in line else line.replace(" > ", " >= ", 1), 1)
        )
        assert not set(before) & set(lines_of(package, REAL)[-1].split()), path
        path.write_text(text)
    assert lines_of(package, REAL)[-1].split() == before


def test_an_upgrade_reaches_the_callers(package: Path) -> None:
    """In a copy of the package a changed comparison of a callee compiles its caller again, with the new result, and back."""
    assert run(package)[:2] == ("1", 2)
    assert run(package)[:2] == ("1", 0)
    (package / "core" / "_callee_kernels.py").write_text(CALLEE.replace(">", "<"))
    assert run(package)[:2] == ("0", 2)
    (package / "core" / "_callee_kernels.py").write_text(CALLEE)
    assert run(package)[:2] == ("1", 2)


@pytest.mark.parametrize("setting", ["cache_dir", "cache_locator_classes"])
def test_settings_in_the_working_folder_choose_nothing(package: Path, room: Path, setting: str) -> None:
    """`.numba_config.yaml` where one stands neither names the folder of the cache nor code that is imported."""
    (here := room / "here").mkdir()
    value = here / "planted" if setting == "cache_dir" else "planted.Locator"
    (here / "planted.py").write_text("open('ran', 'w')\nraise SystemExit(3)\n")
    (here / ".numba_config.yaml").write_text(f"{setting}: {value}\n")
    path = f"{package.parent}{os.pathsep}{here}"
    for n_compiled in (2, 0):
        assert run(package, cwd=here, PYTHONPATH=path) == ("1", n_compiled, package / "__pycache__" / "kernels", 0)
    assert sorted(os.listdir(here)) == [".numba_config.yaml", "planted.py"]


class Planted:
    """What makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (str(self.mark), "w")


FIND = """
from structpred.core._caller_kernels import first
from structpred.runtime.compiled import prepare
cache, kind = first._cache, first.typeof_pyval(2)
path = cache._path(prepare().folder, (kind, kind), first.targetctx.codegen())
print(path, cache._stamp().hex())
"""


def plant(package: Path, mark: Path, **env: str) -> None:
    """Put a file of the right name, stamp and checksum, that does what its writer wants, into the folder of the cache."""
    path, stamp = lines_of(package, FIND, **env)[-1].rsplit(maxsplit=1)
    kernel_files.write(Path(path), bytes.fromhex(stamp), pickle.dumps(Planted(mark)))


@ROOT
@pytest.mark.parametrize("variable", [VARIABLE, "XDG_CACHE_HOME", "HOME"])
@pytest.mark.parametrize("how", ["owned by another", "open to all"])
def test_what_others_planted_does_not_run(package: Path, room: Path, variable: str, how: str) -> None:
    """A folder that others could fill is refused in one warning wherever it comes from, and a file planted there is not read."""
    given = room / "given"
    folder = {VARIABLE: given, "XDG_CACHE_HOME": given / "structpred/numba", "HOME": given / ".cache/structpred/numba"}[variable]
    env, mark = {variable: str(given), "TMPDIR": str(room)}, room / "ran"
    if variable != VARIABLE:
        (package / "__pycache__").touch()  # in the place of the folder: the cache is not next to the sources
    plant(package, mark, **env)
    assert run(package, **env)[2] == folder
    assert mark.exists()  # the plant works where the folder is ours alone
    mark.unlink()
    plant(package, mark, **env)
    if how == "open to all":
        given.chmod(0o777)
    else:
        os.chown(given, SOMEBODY, SOMEBODY)
    result, n_compiled, written, n_warnings = run(package, **env)
    assert (result, n_compiled, n_warnings) == ("1", 2, 1)
    assert written != folder
    assert not mark.exists()


@ROOT
def test_a_home_in_the_folder_for_temporary_files(package: Path, room: Path) -> None:
    """With HOME=/tmp, where anybody may have made `.cache`, another user's is refused, and one of ours is used."""
    (package / "__pycache__").touch()
    (home := room / "tmp").mkdir()
    home.chmod(0o1777)
    env = {"HOME": str(home), "TMPDIR": str(home)}
    own = home / ".cache" / "structpred" / "numba"
    assert run(package, **env) == ("1", 2, own, 0)
    for place in (home / ".cache", home / ".cache/structpred", own):
        os.chown(place, SOMEBODY, SOMEBODY)
    assert run(package, **env) == ("1", 2, home / "structpred-numba-0", 1)


@ROOT
def test_the_packages_own_folder_open_to_all(package: Path) -> None:
    """Next to the sources, too, kernels are not kept where everybody can write."""
    (package / "__pycache__").mkdir()
    (package / "__pycache__").chmod(0o777)
    result, _, written, n_warnings = run(package, HOME=str(package.parent))
    assert (result, n_warnings) == ("1", 1)
    assert not written.is_relative_to(package)


@ROOT
def test_two_users_and_an_image_that_is_read_only(package: Path, room: Path, somebody: int) -> None:
    """What root compiled next to the sources another user takes; new sources he compiles, to a folder of his own."""
    (home := room / "home").mkdir()
    os.chown(home, somebody, somebody)
    assert run(package)[:2] == ("1", 2)
    personal = home / ".cache" / "structpred" / "numba"
    assert run(package, user=somebody, HOME=str(home)) == ("1", 0, personal, 0)
    (package / "core" / "_callee_kernels.py").write_text(CALLEE.replace(">", "<"))
    assert run(package, user=somebody, HOME=str(home)) == ("0", 2, personal, 0)
    assert run(package, user=somebody, HOME=str(home)) == ("0", 0, personal, 0)
    assert not any(path.stat().st_uid == somebody for path in package.rglob("*"))


@ROOT
def test_a_variable_that_names_a_warm_folder_of_root(package: Path, room: Path, somebody: int) -> None:
    """NUMBA_CACHE_DIR that was filled by root is read by another user without a warning; what he cannot read is told once."""
    (home := room / "home").mkdir()
    os.chown(home, somebody, somebody)
    env = {VARIABLE: str(room / "warm"), "HOME": str(home)}
    assert run(package, **env)[1] == 2
    assert run(package, user=somebody, **env)[1::2] == (0, 0)
    for path in (room / "warm").iterdir():
        path.chmod(0o600)
    assert run(package, user=somebody, **env)[1::2] == (2, 1)


@ROOT
def test_one_user_does_not_run_what_another_kept(package: Path, room: Path, somebody: int) -> None:
    """A folder that one user filled is refused by another, though its checksums are right."""
    (theirs := room / "theirs").mkdir()
    os.chown(theirs, somebody, somebody)
    env = {VARIABLE: str(theirs), "HOME": str(room), "TMPDIR": str(room)}
    assert run(package, user=somebody, **env) == ("1", 2, theirs, 0)
    result, n_compiled, written, n_warnings = run(package, **env)
    assert (result, n_compiled, n_warnings) == ("1", 2, 1)
    assert written != theirs


@contextlib.contextmanager
def small_disk(place: Path, option: str) -> Iterator[Path]:
    """A disk in memory of this size, mounted here."""
    place.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(place)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no disk in memory can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@ROOT
@pytest.mark.parametrize("kind", ["full", "no inodes", "read-only"])
def test_a_disk_that_takes_nothing_more(package: Path, room: Path, kind: str) -> None:
    """A full disk costs a compilation and one warning, one without inodes or read-only another place; what it holds is read."""
    disk: contextlib.AbstractContextManager[Path] = small_disk(
        room / "disk", "nr_inodes=20" if kind == "no inodes" else "size=512k"
    )
    env = {VARIABLE: str(room / "disk" / "kernels"), "HOME": str(room)}
    with disk as folder:
        assert run(package, **env) == ("1", 2, folder / "kernels", 0)
        (warm,) = (folder / "kernels").iterdir()
        if kind == "no inodes":
            fill_inodes(folder)
        elif kind == "full":
            fill(folder)
        else:
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        assert run(package, **env)[:2] == ("1", 0)
        (package / "core" / "_callee_kernels.py").write_text(CALLEE.replace(">", "<"))
        assert run(package, **env)[::3] == ("0", 1 if kind == "full" else 0)
        if kind != "read-only":
            assert [path.name for path in (folder / "kernels").iterdir()] == [warm.name]


def fill(folder: Path) -> None:
    """Leave no byte."""
    with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def fill_inodes(folder: Path) -> None:
    """Leave no room for another name."""
    with contextlib.suppress(OSError):
        for k in range(100):
            (folder / f"filler{k}").touch()
