"""Workers of one run take turns: a kernel that one of them compiles is awaited by the others, who then take it from the cache.

Without compiled kernels two workers compile most of them twice, since they come to the same ones at the same time. Each lock is
a byte of one file, which the system frees when a process ends; where two processes would wait for each other it says so, and one
of them compiles for itself.
"""

import atexit
import contextlib
import fcntl
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from structpred.runtime import kernel_cache

_PATH = Path(tempfile.gettempdir(), f"structpred-kernels-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getuid())}.lock")
_FILE = os.open(_PATH, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


class Turns(kernel_cache.KernelCache):
    """The cache of a kernel that other processes compile, too."""

    def __init__(self, kernel: Any, source: Path, sources: bytes) -> None:
        super().__init__(kernel, source, sources)
        self.name = f"{source} {kernel.__qualname__}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is there; else what another process has just compiled; else None, and it is this one's turn."""
        found = super().load_overload(sig, target_context)
        if found is None:
            with contextlib.suppress(OSError):  # each waits for the other
                fcntl.lockf(_FILE, fcntl.LOCK_EX, 1, self.byte(sig))
            if (found := super().load_overload(sig, target_context)) is not None:
                fcntl.lockf(_FILE, fcntl.LOCK_UN, 1, self.byte(sig))
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it, and let the others go on."""
        super().save_overload(sig, data)
        fcntl.lockf(_FILE, fcntl.LOCK_UN, 1, self.byte(sig))

    def byte(self, sig: Any) -> int:
        """The place of the lock."""
        return int.from_bytes(hashlib.sha256(f"{self.name} {sig}".encode()).digest()[:7])


def take_turns() -> None:
    """From now on, for kernels of files that are not yet imported."""
    kernel_cache.KernelCache = Turns  # type: ignore[misc]


def end_turn() -> None:
    """Of kernels that were not compiled in the end, since they have a fault."""
    fcntl.lockf(_FILE, fcntl.LOCK_UN)


@atexit.register
def leave() -> None:
    """Take the file along; who still has it open keeps it."""
    _PATH.unlink(missing_ok=True)
