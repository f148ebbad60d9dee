"""Atomic writing: whatever goes wrong, the file is wholly old or wholly new, and nothing else is left in the folder."""

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from structpred.errors import DataError, StructpredError
from structpred.storage import atomic
from structpred.storage.atomic import STEPS, remove_leftovers, write_atomic

BEFORE_RENAME = STEPS[: STEPS.index("renamed")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with old contents, alone in its folder."""
    path = tmp_path / "model.spz"
    path.write_bytes(b"old")
    return path


def names(path: Path) -> list[str]:
    """All names in the folder of `path`."""
    return sorted(p.name for p in path.parent.iterdir())


def fail_at(monkeypatch: pytest.MonkeyPatch, where: str, error: BaseException) -> None:
    """Make the writer fail when it reaches the step `where`."""

    def step(name: str) -> None:
        if name == where:
            raise error

    monkeypatch.setattr(atomic, "step", step)


def test_replaces_and_creates(file: Path) -> None:
    """A new file is made, an old one replaced, from bytes or from a function."""
    write_atomic(file, b"new")
    assert file.read_bytes() == b"new"
    other = file.with_name("other")
    write_atomic(other, lambda out: out.writelines([b"te", b"xt"]))
    assert other.read_bytes() == b"text"
    assert names(file) == ["model.spz", "other"]


def test_steps_come_in_order(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is passed once and in the documented order, so that fault injection reaches all of them."""
    seen: list[str] = []
    monkeypatch.setattr(atomic, "step", seen.append)
    write_atomic(file, b"new")
    assert tuple(seen) == STEPS


@pytest.mark.parametrize("where", STEPS)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError("x")])
def test_failure_at_every_step(file: Path, monkeypatch: pytest.MonkeyPatch, where: str, error: BaseException) -> None:
    """An error at any step leaves the old file before the rename and the new one after it, and no temporary file."""
    fail_at(monkeypatch, where, error)
    with pytest.raises(StructpredError if isinstance(error, OSError) else type(error)):
        write_atomic(file, b"new")
    assert file.read_bytes() == (b"old" if where in BEFORE_RENAME else b"new")
    assert names(file) == ["model.spz"]


@pytest.mark.parametrize("where", STEPS)
def test_kill_at_every_step(file: Path, where: str) -> None:
    """A kill at any step leaves the whole old or the whole new file, and its leftovers can be removed."""
    script = (
        "import os, signal, sys\nfrom structpred.storage import atomic\n"
        "def step(name):\n    if name == sys.argv[2]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "atomic.step = step\natomic.write_atomic(sys.argv[1], b'new' * 1000)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(file), where], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.read_bytes() == (b"old" if where in BEFORE_RENAME else b"new" * 1000)
    file.with_name(".model.spz.notours.tmp").touch()
    assert remove_leftovers(file) == (1 if where in BEFORE_RENAME else 0)
    assert names(file) == [".model.spz.notours.tmp", "model.spz"]


def test_leftovers_of_several_files(file: Path) -> None:
    """Leftovers of the files that are named go, in one look at each folder; those of others stay."""
    for name in ("a.txt", "b.txt", "other.txt"):
        file.with_name(f".{name}.0123abcd.tmp").touch()
    assert remove_leftovers(file.with_name("a.txt"), file.with_name("b.txt"), file.parent / "no folder" / "c.txt") == 2
    assert names(file) == [".other.txt.0123abcd.tmp", "model.spz"]


def test_failing_data_function(file: Path) -> None:
    """What the data function raises passes through unchanged, and the old file stays."""

    def data(out: BinaryIO) -> None:
        out.write(b"half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_atomic(file, data)
    assert (file.read_bytes(), names(file)) == (b"old", ["model.spz"])


def test_disk_full_text(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a full disk names the file and the cause, says that the old file is kept, and carries the OSError."""
    fail_at(monkeypatch, "written", OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(
        StructpredError, match=r"model\.spz: could not be written: the disk is full; the old file is kept"
    ) as caught:
        write_atomic(file, b"new")
    assert isinstance(caught.value.__cause__, OSError)


def test_write_beyond_a_real_limit(file: Path, in_child: Callable[[Callable[[], None]], None]) -> None:
    """A write that the system itself cuts short (file size limit) keeps the old file and leaves nothing behind."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        with pytest.raises(StructpredError, match="larger than the system allows; the old file is kept"):
            write_atomic(file, b"x" * 100_000)

    in_child(limited)
    assert (file.read_bytes(), names(file)) == (b"old", ["model.spz"])


def test_full_tmpfs(tmp_path: Path) -> None:
    """On a small disk that is really full, the old file stays readable and the free space comes back."""
    script = (
        "import pathlib, sys; from structpred.storage.atomic import write_atomic; p = pathlib.Path(sys.argv[1]) / 'm'\n"
        "write_atomic(p, b'0' * 150_000)\n"
        "try: write_atomic(p, b'1' * 200_000)\n"
        "except Exception as e: print(type(e).__name__, e)\n"
        "print(p.read_bytes() == b'0' * 150_000, [q.name for q in p.parent.iterdir()])\n"
    )
    command = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=256k none "$1" && exec "$0" -c "$2" "$1"']
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a small disk in a private name space")
    done = subprocess.run([*command, sys.executable, str(tmp_path), script], capture_output=True, text=True, check=False)
    error, rest = done.stdout.splitlines()
    assert error.startswith("StructpredError") or error.startswith("StorageError")
    assert "the disk is full; the old file is kept" in error
    assert rest == "True ['m']"


def test_missing_folder_and_long_name(tmp_path: Path) -> None:
    """A missing folder and an impossible name are our errors, with the cause in words."""
    with pytest.raises(StructpredError, match="the folder does not exist; nothing was left behind"):
        write_atomic(tmp_path / "no" / "file", b"")
    with pytest.raises(StructpredError, match="the name is too long"):
        write_atomic(tmp_path / ("n" * 255), b"")


def test_refuses_what_is_not_a_file(tmp_path: Path) -> None:
    """A folder or a device is never replaced."""
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    for path in (tmp_path, Path(os.devnull), fifo):
        with pytest.raises(DataError, match="cannot be replaced"):
            write_atomic(path, b"")


def test_follows_links_and_keeps_the_mode(file: Path) -> None:
    """A symbolic link stays a link to the new contents, and the permissions of the old file stay."""
    file.chmod(0o640)
    link = file.with_name("link")
    link.symlink_to(file.name)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o640)


def test_new_file_obeys_the_umask(tmp_path: Path) -> None:
    """A new file gets the permissions that any program would give it."""
    old = os.umask(0o027)
    try:
        write_atomic(tmp_path / "new", b"")
    finally:
        os.umask(old)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_folder_without_sync(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that cannot sync folders is no failure; a folder sync that fails for real is reported as such."""
    real = os.fsync
    failure = errno.EINVAL

    def fsync(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(failure, os.strerror(failure))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(file, b"new")
    failure = errno.EIO
    with pytest.raises(StructpredError, match="written, but the folder could not be synced"):
        write_atomic(file, b"newer")
    assert file.read_bytes() == b"newer"
