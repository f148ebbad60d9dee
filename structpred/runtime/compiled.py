# mypy: allow-subclassing-any
# numba has no types, and what it calls back must be a child of its own class
"""Where compiled kernels are kept between runs, and a line for whoever waits while they compile.

numba keeps what it compiled next to the source file, else in the user's cache folder, and refuses to compile at all when it
may write to neither (a read-only installation without a home folder). `prepare` looks for a place before that happens. Kernel
files get `njit` from `structpred.runtime.jit`, which calls it, so that no kernel can be compiled without it.
"""

import gc
import logging
import os
import stat
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

from structpred.runtime.bounds import FOLDER, checks_bounds
from structpred.runtime.compiling import CompilingLine
from structpred.runtime.standard_error import at_terminal, in_notebook, say

logger = logging.getLogger("structpred.runtime.compiled")

VARIABLE = "NUMBA_CACHE_DIR"
PACKAGE = Path(__file__).resolve().parent.parent

_lock = threading.Lock()
_prepared: "CacheLocation | None" = None
_n_compiled = 0
_private: tempfile.TemporaryDirectory[str] | None = None  # kept alive until the process ends


class CacheLocation(NamedTuple):
    """Where numba keeps compiled kernels: the folder, why that one, and whether it outlives the process."""

    folder: Path
    reason: str
    lasting: bool


def prepare() -> CacheLocation:
    """Choose where compiled kernels are kept and log it when one has to be compiled; only the first call does anything.

    Where neither the package's own folders nor NUMBA_CACHE_DIR can be written, this sets NUMBA_CACHE_DIR for the process: numba
    reads it at every decoration, and worker processes inherit it. Imports numba.

    >>> prepare() == prepare()
    True
    """
    global _prepared
    with _lock:
        if _prepared is None:
            location = _apart(find_cache()) if checks_bounds() else find_cache()
            if location.folder != PACKAGE:
                os.environ[VARIABLE] = str(location.folder)
            _watch_compilation(location)
            _prepared = location
        return _prepared


def find_cache() -> CacheLocation:
    """The first place that can be written: NUMBA_CACHE_DIR, next to the sources, the user's cache folder, a temporary folder."""
    given = os.environ.get(VARIABLE)
    if given:
        if writable(Path(given)):
            return CacheLocation(Path(given), f"{VARIABLE} says so", True)
        logger.warning("%s=%s cannot be written; looking for another place for compiled kernels", VARIABLE, given)
    if all(writable(folder / "__pycache__") for folder in _kernel_folders()):
        return CacheLocation(PACKAGE, "next to the sources", True)
    personal = _user_cache()
    if personal is not None and writable(personal):
        return CacheLocation(personal, "the package's folders cannot be written", True)
    folder, lasting = _temporary_cache()
    return CacheLocation(folder, "neither the package's folders nor the user's cache folder can be written", lasting)


def _apart(location: CacheLocation) -> CacheLocation:
    """A folder of its own for kernels with bounds checks: numba's cache does not distinguish them from the others."""
    if location.folder.name == FOLDER:  # set by the process that started this one
        return location
    parent = PACKAGE / "__pycache__" if location.folder == PACKAGE else location.folder
    return location._replace(folder=parent / FOLDER)


def writable(folder: Path) -> bool:
    """Whether a file can be made in `folder`, which is made if missing; tried, since permission bits do not show everything."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _kernel_folders() -> set[Path]:
    return {path.parent for path in PACKAGE.rglob("_*_kernels.py")} or {PACKAGE}


def _user_cache() -> Path | None:
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

    numba's cache files are pickles: reading one that somebody else wrote would run their code. So a folder under the shared,
    guessable name is used only if it is ours alone; else a new one is made and removed at the end.
    """
    global _private
    owner = os.getuid() if hasattr(os, "getuid") else os.getpid()
    shared = Path(tempfile.gettempdir()) / f"structpred-numba-{owner}"
    if hasattr(os, "getuid") and _ours_alone(shared) and writable(shared):
        return shared, True
    if _private is None:
        _private = tempfile.TemporaryDirectory(prefix="structpred-numba-", ignore_cleanup_errors=True)
    return Path(_private.name), False


def _ours_alone(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def compiled_kernels() -> int:
    """How many of our kernels this process has compiled; those taken from the cache are not counted."""
    return _n_compiled


def _watch_compilation(location: CacheLocation) -> None:
    """Count kernels that have to be compiled, announce the first, and log each at debug level; one from the cache is silent."""
    from numba.core import config, event

    config.reload_config()  # somebody may have imported numba before the cache folder was chosen

    class Watcher(event.Listener):
        depth = 0  # kernels that are being compiled: one, and those that it calls
        collects = True
        line: CompilingLine | None = None  # for whoever was told that kernels are compiled

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
                self.line = CompilingLine() if _announce(location) else None
            logger.debug("compiling %s.%s", function.__module__, function.__qualname__)
            if self.depth == 1 and self.line is not None:
                self.line.begin(function.__name__)

        def on_end(self, event: object) -> None:
            self.depth -= 1
            if self.depth == 0 and self.line is not None:
                self.line.end()
            if self.depth == 0 and self.collects:
                gc.enable()

    event.register("numba:compile", Watcher())


def _announce(location: CacheLocation) -> bool:
    """One line before the first kernel is compiled: to the log, or where nobody has set that up, to a person who waits.

    Returns whether somebody reads standard error and was told there.
    """
    often = "once per installation" if location.lasting else "in each process: no folder can be written"
    text = f"compiling kernels, {often} (some 3 to 15 s), in {location.folder}"
    package_log = logging.getLogger("structpred")
    is_quiet = package_log.level == logging.NOTSET and not package_log.isEnabledFor(logging.INFO)
    somebody = in_notebook() or at_terminal()
    if is_quiet and somebody:
        say(f"structpred: {text}")
    else:
        logger.info("%s", text)
    return somebody and (is_quiet or (bool(package_log.handlers) and package_log.isEnabledFor(logging.INFO)))
