"""Locks that keep a second run out: files with the operating system's lock, which ends with its holder, however that ends."""

import contextlib
import errno
import importlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from structpred.errors import CheckpointWarning, StorageError
from structpred.runtime.standard_error import callers_level

# Some network and FUSE file systems have no locks: there everybody gets one, with a warning.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock `path`, a file that is made for it and removed in the end.

    Raises BlockingIOError where another process, or another holder in this one, has the lock; OSError where the file cannot be
    made; StorageError where Python has no locks (neither `fcntl` nor `msvcrt`). A holder that is killed leaves an empty file,
    which locks nobody out. Where a file system has no locks, everybody gets one, with a CheckpointWarning.
    """
    system = _system_locks(path)
    handle = _locked(path, system)
    try:
        yield
    finally:
        # the name goes first, while nobody else can have the lock; Windows removes no file that is open, ours or the next one's
        if system.__name__ == "msvcrt":
            os.close(handle)
        with contextlib.suppress(OSError):
            path.unlink()
        if system.__name__ == "fcntl":
            os.close(handle)


def _system_locks(path: Path) -> Any:
    """The module with the locks of this system: `fcntl`, on Windows `msvcrt`."""
    for name in ("fcntl", "msvcrt"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise StorageError(f"{path}: cannot be locked: this Python has neither fcntl nor msvcrt to keep a second run out")


def _locked(path: Path, system: Any) -> int:
    """The open file, locked, that lies at `path`: its last holder may have removed it between our opening and our locking."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            _lock(handle, path, system)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int, path: Path, system: Any) -> None:
    try:
        if system.__name__ == "fcntl":
            system.flock(handle, system.LOCK_EX | system.LOCK_NB)
        else:
            system.locking(handle, system.LK_NBLCK, 1)
    except OSError as error:
        if error.errno == errno.EACCES:  # what Windows says of a lock that another one holds
            raise BlockingIOError(errno.EAGAIN, "another holder has the lock", str(path)) from error
        if error.errno not in _NO_LOCKS:
            raise
        message = f"{path}: this file system has no locks: a second run that writes the same files would not be kept out"
        warnings.warn(message, CheckpointWarning, stacklevel=callers_level())
