"""Locks: one holder at a time, with the locks of either system, and never none without a word."""

import errno
import fcntl
import os
import sys
import types
from contextlib import ExitStack
from pathlib import Path

import pytest

from structpred.errors import CheckpointWarning, StorageError
from structpred.storage.locks import exclusive


class FakeWindows(types.ModuleType):
    """The module `msvcrt` as Windows has it, over the locks of this system: a lock that is held is EACCES, an open file stays."""

    LK_NBLCK = 2

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__("msvcrt")
        self.asked: list[tuple[int, int]] = []
        self.handles: set[int] = set()
        self.fcntl = fcntl
        unlink = Path.unlink

        def removed(path: Path, missing_ok: bool = False) -> None:
            for handle in self.handles:
                try:
                    same = os.path.samestat(os.fstat(handle), os.stat(path))
                except OSError:
                    continue
                if same:
                    raise PermissionError(errno.EACCES, "the file is open")
            unlink(path, missing_ok)

        monkeypatch.setattr(Path, "unlink", removed)
        monkeypatch.setitem(sys.modules, "fcntl", None)
        monkeypatch.setitem(sys.modules, "msvcrt", self)

    def locking(self, handle: int, mode: int, n_bytes: int) -> None:
        """Lock without waiting."""
        self.asked.append((mode, n_bytes))
        self.handles.add(handle)
        try:
            self.fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None


@pytest.fixture(params=["fcntl", "msvcrt"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeWindows | None:
    """The locks of this system, and those of Windows."""
    return FakeWindows(monkeypatch) if request.param == "msvcrt" else None


def test_one_holder_at_a_time(system: FakeWindows | None, tmp_path: Path) -> None:
    """A second holder is a BlockingIOError that changes nothing; after the first has ended the lock is free and its file gone."""
    path = tmp_path / "run.lock"
    for _ in range(2):
        with exclusive(path):
            for _ in range(2):
                with pytest.raises(BlockingIOError) as caught, exclusive(path):
                    pass
                assert caught.value.errno == errno.EAGAIN
            assert path.exists()
        assert not path.exists()
    if system is not None:
        assert system.asked == [(system.LK_NBLCK, 1)] * 6


def test_a_file_that_a_killed_holder_left_locks_nobody_out(system: FakeWindows | None, tmp_path: Path) -> None:
    """An empty file of that name is no lock; the lock ends with an error inside, too."""
    path = tmp_path / "run.lock"
    path.touch()
    with pytest.raises(ZeroDivisionError), exclusive(path):
        1 / 0  # noqa: B018
    assert not path.exists()


@pytest.mark.usefixtures("system")
def test_a_folder_that_is_missing_is_said(tmp_path: Path) -> None:
    """Where the file cannot be made the error is that of the system, not that somebody else has the lock."""
    with pytest.raises(FileNotFoundError), exclusive(tmp_path / "none" / "run.lock"):
        pass


def test_without_either_module_there_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python with neither module refuses, in words, before it makes a file."""
    for name in ("fcntl", "msvcrt"):
        monkeypatch.setitem(sys.modules, name, None)
    with (
        pytest.raises(StorageError, match=r"run\.lock: cannot be locked: .* neither fcntl nor msvcrt"),
        exclusive(tmp_path / "run.lock"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL])
def test_a_file_system_without_locks_is_told(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system has no locks everybody gets one, and is warned; any other error is raised."""

    def flock(handle: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with ExitStack() as stack:
        for _ in range(2):
            with pytest.warns(CheckpointWarning, match=r"run\.lock: this file system has no locks"):
                stack.enter_context(exclusive(tmp_path / "run.lock"))
    number = errno.EIO
    with pytest.raises(OSError, match="Input/output"), exclusive(tmp_path / "run.lock"):
        pass
