"""Writing a file so that a crash, a kill or a full disk leaves either the whole old file or the whole new one."""

import contextlib
import errno
import gzip
import os
import re
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

from structpred.errors import DataError, StorageError

# The points that `step` is called at, in order. "written" is before the data reach the disk, "synced" after.
STEPS = ("created", "written", "synced", "renamed", "folder_synced")
_SUFFIX = ".tmp"
Produce = Callable[[BinaryIO], object]
_CAUSES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than the system allows",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "the folder does not exist",
    errno.ENAMETOOLONG: "the name is too long",
}


def step(name: str) -> None:
    """Do nothing: fault-injection tests replace this function to stop, fail or kill the writer at one of STEPS."""


def write_atomic(path: str | os.PathLike[str], data: bytes | Produce, *, previous: Path | None = None) -> None:
    """Replace the file at `path` by `data` in one step that a crash cannot split.

    data: the bytes, or a function that writes them to the open binary file it gets. The bytes go to a temporary file in
    the same folder, which is flushed, synced, and renamed over `path`; then the folder is synced. A symbolic link is
    followed, and the mode of an old file is kept. Only one process at a time should write one path; if several do, the
    last rename wins and the file is still whole.

    previous: a name in the same folder that the old file is moved to, just before the new one takes its place. A crash between
    the two leaves the old file there, and none at `path`.

    Raises StorageError, chained from the OSError, if the disk is full or the folder is not writable: the old file is
    then unchanged and the temporary one is gone. Whatever `data` raises passes through, with the same promise. Raises
    DataError if `path` is something else than a file (a folder, a device).

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> write_atomic(file, b"hello")
    >>> file.read_bytes()
    b'hello'
    """
    target = Path(os.path.realpath(path))
    mode = check_target(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}{_SUFFIX}")
    renamed = False
    try:
        _write_temporary(temporary, data, mode)
        if previous is not None and mode is not None:
            os.replace(target, previous)
        os.replace(temporary, target)
        renamed = True
        step("renamed")
        _sync_folder(target.parent)
        step("folder_synced")
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise StorageError(_message(path, error, target, previous, renamed)) from error
        raise


def remove_leftovers(*paths: str | os.PathLike[str]) -> int:
    """Remove the temporary files that killed writers of these paths left behind, and return how many there were.

    Call it only where no other process may be writing them, for example when a run takes over its checkpoint.
    """
    targets = {Path(os.path.realpath(path)) for path in paths}
    pattern = re.compile(r"\.(.+?)\.[0-9a-f]{8}" + re.escape(_SUFFIX))
    files = [file for folder in {target.parent for target in targets} if folder.is_dir() for file in folder.iterdir()]
    found = [file for file in files if (name := pattern.fullmatch(file.name)) and file.with_name(name[1]) in targets]
    for leftover in found:
        leftover.unlink(missing_ok=True)
    return len(found)


def packing(produce: Produce) -> Produce:
    """What writes the same bytes gzip-compressed: the same contents give the same bytes."""

    def packed(stream: BinaryIO) -> None:
        with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as file:
            produce(cast(BinaryIO, file))

    return packed


def check_target(path: str | os.PathLike[str]) -> int | None:
    """The permission bits of the file that is there already; None if there is none. DataError for anything but a file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise DataError(f"{os.fspath(path)}: cannot be replaced: it is {what}; give the name of a file")
    return stat.S_IMODE(status.st_mode)


def _write_temporary(temporary: Path, data: bytes | Produce, mode: int | None) -> None:
    # O_EXCL: never follow or reuse what somebody else put there. 0o666: the umask decides, as for any new file.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
        step("created")
        if callable(data):
            data(file)
        else:
            file.write(data)
        file.flush()
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        step("written")
        os.fsync(file.fileno())
        step("synced")


def storage_error(path: str | os.PathLike[str], error: OSError) -> StorageError:
    """What to raise where nothing can be written next to `path`, and nothing has been."""
    return StorageError(f"{os.fspath(path)}: cannot be written: {_cause(error)}")


def _cause(error: OSError) -> str:
    return _CAUSES.get(error.errno or 0, error.strerror or str(error))


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable: without this, a power cut may bring the old name back."""
    if os.name != "posix":
        return  # other systems cannot open a folder
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network and FUSE file systems have no such call; the rename is then as durable as they can make it.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _message(path: str | os.PathLike[str], error: OSError, target: Path, previous: Path | None, renamed: bool) -> str:
    cause = _cause(error)
    if renamed:
        return f"{os.fspath(path)}: written, but the folder could not be synced ({cause}): a power cut may undo it"
    kept = "the old file is kept as it was" if os.path.exists(target) else "nothing was left behind"
    if previous is not None and not os.path.exists(target) and os.path.exists(previous):
        kept = f"the old file is kept as {previous.name}"
    return f"{os.fspath(path)}: could not be written: {cause}; {kept}"
