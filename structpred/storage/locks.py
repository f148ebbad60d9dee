"""A lock between processes: a file next to the one to be written, locked by the system, so that a kill releases it."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

# Some network and FUSE file systems have no locks: there everybody gets one.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock `path`, a file that is made for it and removed in the end.

    Raises BlockingIOError where another process, or another holder in this one, has the lock; OSError where the file cannot be
    made. A holder that is killed leaves an empty file, which locks nobody out. Without locks in the operating system (Windows)
    everybody gets it.
    """
    handle = _locked(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _locked(path: Path) -> int:
    """The open file, locked, that lies at `path`: its last holder may have removed it between our opening and our locking."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            _lock(handle)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
