# mypy: allow-subclassing-any
# numba has no types, and what it calls back must be a child of its own class
"""Where compiled kernels are kept between runs, and a line for whoever waits while they compile.

`prepare` looks for a folder that can be written, by nobody else (`structpred.runtime.kernel_files`). Kernel files get `njit` from
`structpred.runtime.jit`, which calls it. No setting of numba's chooses the folder but NUMBA_CACHE_DIR of the environment: a
`.numba_config.yaml` in the working folder may be anybody's.
"""

import contextlib
import gc
import logging
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from structpred.runtime.kernel_files import PACKAGE, danger
from structpred.runtime.standard_error import at_terminal, can_rewrite, in_notebook, rewrite, say

logger = logging.getLogger("structpred.runtime.compiled")

VARIABLE = "NUMBA_CACHE_DIR"
BESIDE_SOURCES = PACKAGE / "__pycache__" / "kernels"
#: seconds from one rewriting of the line to the next
EVERY = 1.0

_lock = threading.Lock()
_prepared: "CacheLocation | None" = None
_n_compiled = 0
_private: tempfile.TemporaryDirectory[str] | None = None  # kept alive until the process ends


class CacheLocation(NamedTuple):
    """Where compiled kernels are kept: the folder, why that one, whether it outlives the process, and what is read besides."""

    folder: Path
    reason: str
    lasting: bool
    read_only: tuple[Path, ...] = ()


def prepare() -> CacheLocation:
    """Choose where compiled kernels are kept and log it when one has to be compiled; only the first call does anything.

    Where no lasting folder can be written, this sets NUMBA_CACHE_DIR for the process: worker processes inherit it. Imports numba.

    >>> prepare() == prepare()
    True
    """
    global _prepared
    with _lock:
        if _prepared is None:
            location = find_cache()
            if not location.lasting:
                os.environ[VARIABLE] = str(location.folder)
            _watch_compilation(location)
            _prepared = location
        return _prepared


def find_cache() -> CacheLocation:
    """The first place that can be written, and by no other user: NUMBA_CACHE_DIR, next to the sources, the user's cache folder, a
    temporary folder. Those before it that can only be read are read: they may have been filled for all users."""
    read_only: list[Path] = []
    for folder, reason, name in _places():
        can_write = writable(folder)
        if not os.path.isdir(folder):
            if name:
                logger.warning("%s=%s cannot be written; looking for another place for compiled kernels", name, folder)
        elif problem := danger(folder):
            source = f"{name}={folder}" if name else folder
            logger.warning("%s is no place for compiled kernels, which run when they are read: %s", source, problem)
        elif can_write:
            return CacheLocation(folder, reason, True, tuple(read_only))
        else:
            read_only.append(folder)
    folder, lasting = _temporary_cache()
    reason = "neither the package's folder nor the user's cache folder can be written, and by this user alone"
    return CacheLocation(folder, reason, lasting, tuple(read_only))


def _places() -> Iterator[tuple[Path, str, str]]:
    """Folder, reason, and the variable that names the folder, if one does."""
    if given := os.environ.get(VARIABLE):
        yield Path(given).absolute(), f"{VARIABLE} says so", VARIABLE
    yield BESIDE_SOURCES, "next to the sources", ""
    if personal := user_cache():
        yield personal, "the package's folder cannot be written", ""


def writable(folder: Path) -> bool:
    """Whether a file can be made in `folder`, which is made if missing; tried, since permission bits do not show everything."""
    try:
        for place in (*reversed(folder.parents), folder):
            if not place.is_dir():
                place.mkdir(mode=0o755, exist_ok=True)  # not for others to write, also where new folders are
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def user_cache() -> Path | None:
    """The user's own folder for caches; None where there is no home."""
    try:
        home = Path.home()
    except RuntimeError:  # no HOME and no entry in the password file, as in some containers
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "structpred" / "numba"


def _temporary_cache() -> tuple[Path, bool]:
    """A temporary folder that only this user can write, and whether it outlives the process.

    The files are pickles: reading one that somebody else wrote would run their code. So a folder under the shared, guessable name
    is used only if it is ours alone; else a new one is made and removed at the end.
    """
    global _private
    if hasattr(os, "getuid"):
        shared = Path(tempfile.gettempdir()) / f"structpred-numba-{os.getuid()}"
        with contextlib.suppress(OSError):
            shared.mkdir(mode=0o700, exist_ok=True)
            if not shared.is_symlink() and danger(shared) is None and writable(shared):
                return shared, True
    if _private is None:
        _private = tempfile.TemporaryDirectory(prefix="structpred-numba-", ignore_cleanup_errors=True)
    return Path(_private.name), False


def compiled_kernels() -> int:
    """How many of our kernels this process has compiled; those taken from the cache are not counted."""
    return _n_compiled


def _watch_compilation(location: CacheLocation) -> None:
    """Count kernels that have to be compiled, announce the first, and log each at debug level; one from the cache is silent."""
    from numba.core import event

    class Watcher(event.Listener):
        depth = 0  # kernels that are being compiled: one, and those that it calls
        collects = True
        line: CompilingLine | None = None  # for whoever reads that kernels are compiled

        def on_start(self, event: object) -> None:
            global _n_compiled
            if self.depth == 0:  # the collector of cyclic garbage would walk through the compiler's data again and again
                self.collects = gc.isenabled()
                gc.disable()
            self.depth += 1
            function = event.data["dispatcher"].py_func  # type: ignore[attr-defined]
            if not function.__module__.startswith("structpred."):
                return
            _n_compiled += 1
            if _n_compiled == 1:
                self.line = CompilingLine() if announce(location) else None
            logger.debug("compiling %s.%s", function.__module__, function.__qualname__)
            if self.depth == 1 and self.line is not None:
                self.line.begin(served_by(function.__module__))

        def on_end(self, event: object) -> None:
            self.depth -= 1
            if self.depth == 0 and self.line is not None:
                self.line.end()
            if self.depth == 0 and self.collects:
                gc.enable()

    event.register("numba:compile", Watcher())


def served_by(module: str) -> str:
    """What a file of kernels is for, in the words of the package: its room and its subject.

    >>> served_by("structpred.oracles.chains._chain_sum_kernels")
    'oracles: chain sum'
    """
    room, file = module.split(".")[1], module.rpartition(".")[2]
    return f"{room}: {file.strip('_').removesuffix('_kernels').replace('_', ' ')}"


def announce(location: CacheLocation) -> bool:
    """One line before the first kernel is compiled: to the log, or where nobody has set that up, to standard error.

    That may be a file: whoever waits will look there. Worker processes tell the log alone. Returns whether standard error is read
    now, and it was said there.
    """
    often = "once per installation" if location.lasting else "in each process: no folder can be written"
    text = f"compiling kernels, {often} (some 3 to 15 s), in {location.folder}"
    package_log = logging.getLogger("structpred")
    is_quiet = package_log.level == logging.NOTSET and not package_log.isEnabledFor(logging.INFO)
    somebody = in_notebook() or at_terminal()
    if is_quiet and (somebody or multiprocessing.parent_process() is None):
        say(f"structpred: {text}")
    else:
        logger.info("%s", text)
    return somebody and (is_quiet or (bool(package_log.handlers) and package_log.isEnabledFor(logging.INFO)))


class CompilingLine:
    """Says what the kernel that is being compiled is for, by a thread that lives as long as that takes."""

    def __init__(self) -> None:
        self._reported = time.monotonic()
        self._done, self._teller = threading.Event(), threading.Thread()

    def begin(self, name: str) -> None:
        """A kernel for this is compiled from now on."""
        self._done = threading.Event()
        self._teller = threading.Thread(target=self._tell, args=(name, self._done), daemon=True)
        self._teller.start()

    def end(self) -> None:
        """It is compiled. Nothing is left of the line."""
        self._done.set()
        if self._teller.is_alive():
            self._teller.join()

    def _tell(self, name: str, done: threading.Event) -> None:
        begun, shown = time.monotonic(), False
        while not done.wait(max(0.0, self._reported + EVERY - time.monotonic())):
            self._reported = now = time.monotonic()
            if can_rewrite():
                rewrite(f"structpred: compiling kernels: {name}, {now - begun:.0f} s")
                shown = True
        if shown:
            rewrite("")
