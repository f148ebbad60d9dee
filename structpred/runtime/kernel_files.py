"""Files of machine code: each is whole, made from the sources that are here, and from a hand that is trusted.

They are pickles, which run what their writer wants. Trusted are this user, root, whoever owns the root folder, and who can
write this package: those can change what runs anyway.
"""

import contextlib
import functools
import hashlib
import os
import stat
import uuid
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
#: beside the kernels, what decides about their machine code
SHAPING = ("bounds", "jit", "kernel_cache", "kernel_files", "lanes")
_MAGIC = b"structpred kernel 1\n"
_SIZE = hashlib.sha256().digest_size


def digest_of_sources(source: Path) -> bytes:
    """SHA-256 of all kernel files of the package, and of `source` with those beside it where it lies outside.

    Kernels hold those that they call, also from other files. Raises OSError where a file cannot be read, as in a zip.
    """
    files = [PACKAGE / "runtime" / f"{name}.py" for name in SHAPING]
    for folder, below, names in os.walk(PACKAGE):
        below[:] = [name for name in below if name != "__pycache__"]
        files += [Path(folder, name) for name in names if name.startswith("_") and name.endswith("_kernels.py")]
    if not source.is_relative_to(PACKAGE):
        files += [source, *source.parent.glob("_*_kernels.py")]
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in sorted(set(files)))).digest()


def read(path: Path, stamp: bytes) -> bytes | None:
    """What was written here under this stamp; None where there is no file, or one with another stamp.

    Raises OSError for a file that cannot be read, is damaged, or could have been changed by other users.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    problem = danger_of(status) if stat.S_ISREG(status.st_mode) else "is not a file"
    content, start = b"" if problem else path.read_bytes(), len(_MAGIC) + _SIZE
    if problem is None and content[:start] != _MAGIC + hashlib.sha256(content[start:]).digest():
        problem = "is damaged"
    if problem:
        raise OSError(f"it {problem}")
    return content[start + _SIZE :] if content[start : start + _SIZE] == stamp else None


def write(path: Path, stamp: bytes, payload: bytes) -> None:
    """Put the payload here under a stamp of 32 bytes: all of it, or OSError and nothing. Others may read the file."""
    aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with open(aside, "xb", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
            file.write(_MAGIC + hashlib.sha256(stamp + payload).digest() + stamp + payload)
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def danger(folder: Path) -> str | None:
    """How another user could put files into a folder that exists: by its mode or owner, or by those of a folder above; or None.

    What lies above could be renamed, save in a sticky folder, as /tmp is.
    """
    folder = folder.resolve()
    for place in (folder, *folder.parents):
        status = place.stat()
        is_sticky = place != folder and status.st_mode & stat.S_ISVTX
        if problem := danger_of(status, 0 if is_sticky else stat.S_IWGRP | stat.S_IWOTH):
            return f"{place} {problem}"
    return None


def danger_of(status: os.stat_result, bits: int = stat.S_IWGRP | stat.S_IWOTH) -> str | None:
    """How another user could change the file or folder of this status, by its owner or by these bits of its mode; or None."""
    if not hasattr(os, "getuid"):
        return None
    if status.st_uid not in {0, os.getuid(), Path("/").stat().st_uid, PACKAGE.stat().st_uid}:
        return f"belongs to another user (number {status.st_uid})"
    if status.st_mode & bits & stat.S_IWOTH:
        return "can be written by everybody"
    if status.st_mode & bits & stat.S_IWGRP and status.st_gid not in _groups():
        return f"can be written by a group (number {status.st_gid})"
    return None


@functools.cache
def _groups() -> set[int]:
    """The group that can change the package, and the user's private one: his name, and no other member."""
    import grp
    import pwd

    status = PACKAGE.stat()
    trusted = {status.st_gid} if status.st_mode & stat.S_IWGRP else set()
    with contextlib.suppress(KeyError):  # a user without a name, as in containers
        user = pwd.getpwuid(os.getuid())
        group = grp.getgrgid(user.pw_gid)
        if group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}:
            trusted.add(user.pw_gid)
    return trusted
