"""Promises of structpred.runtime.kernel_files: what is read is what was written, from these sources, by a trusted hand."""

import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

from structpred.runtime import kernel_files
from structpred.runtime.kernel_files import PACKAGE, danger, danger_of, digest_of_sources, read, write

#: how many bent files are tried; more by the environment
FUZZ = int(os.environ.get("STRUCTPRED_FUZZ", "1000"))
STAMP, OTHER = b"s" * 32, b"t" * 32
POSIX = pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have owners on POSIX systems only")
ROOT = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give folders away")
SOMEBODY = 65533


def test_a_file_is_read_under_its_stamp_alone(tmp_path: Path) -> None:
    """The payload comes back under the stamp that it was written with; another stamp, or no file, is None."""
    write(tmp_path / "a", STAMP, b"machine code")
    assert read(tmp_path / "a", STAMP) == b"machine code"
    assert read(tmp_path / "a", OTHER) is None
    assert read(tmp_path / "b", STAMP) is None
    write(tmp_path / "a", OTHER, b"")
    assert read(tmp_path / "a", OTHER) == b""
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def bent(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one thing wrong: bits, a part that is cut out, zeroed, doubled or foreign."""
    changed, at = bytearray(content), int(rng.integers(len(content)))
    end = at + 1 + int(rng.integers(40))
    kind = rng.integers(6)
    if kind == 0:
        changed[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del changed[at:]
    elif kind == 2:
        del changed[at:end]
    elif kind == 3:
        changed[at:end] = bytes(len(changed[at:end]))
    elif kind == 4:
        changed[at:at] = changed[at:end]
    else:
        changed[at:end] = rng.bytes(len(changed[at:end]))
    return bytes(changed)


def test_a_bent_file_gives_nothing(tmp_path: Path) -> None:
    """Of STRUCTPRED_FUZZ bent files, a thousand unless it says otherwise, none is read, and each is named as damaged."""
    rng, path = np.random.default_rng(0), tmp_path / "a"
    write(path, STAMP, rng.bytes(500))
    content, n_bent = path.read_bytes(), 0
    for _ in range(FUZZ):
        if (wrong := bent(content, rng)) == content:
            continue
        path.unlink()  # rewriting a file makes some systems wait for the disk
        path.write_bytes(wrong)
        n_bent += 1
        with pytest.raises(OSError, match="it is damaged"):
            read(path, STAMP)
    assert n_bent > 0.9 * FUZZ


@pytest.mark.parametrize("content", [b"", bytes(700), b"structpred kernel 1\n"])
def test_empty_and_zeroed_files_are_damaged(tmp_path: Path, content: bytes) -> None:
    """What a full disk or a power cut leaves is no file of ours."""
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(OSError, match="it is damaged"):
        read(tmp_path / "a", STAMP)


@POSIX
def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    """A folder in a file's place is refused, and a pipe, which would wait for a writer."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(OSError, match="it is not a file"):
            read(tmp_path / name, STAMP)


@POSIX
def test_a_file_that_everybody_can_write_is_not_read(tmp_path: Path) -> None:
    """A right checksum is no signature: the mode of the file counts, too. Ours can be read, and not written, by others."""
    write(path := tmp_path / "a", STAMP, b"payload")
    assert stat.S_IMODE(path.stat().st_mode) & 0o022 == 0
    path.chmod(0o666)
    with pytest.raises(OSError, match="can be written by everybody"):
        read(path, STAMP)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the new file cannot take its place, the old one stays whole, and nothing else is left in the folder."""
    write(tmp_path / "a", STAMP, b"old")

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path / "a", STAMP, b"new")
    assert read(tmp_path / "a", STAMP) == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@POSIX
@pytest.mark.parametrize(("mode", "is_safe"), [(0o700, True), (0o755, True), (0o757, False), (0o777, False), (0o1777, False)])
def test_a_folder_is_refused_by_its_mode(tmp_path: Path, mode: int, is_safe: bool) -> None:
    """A folder that everybody can write is refused, also a sticky one, in which everybody can put new files."""
    (folder := tmp_path / "cache").mkdir()
    folder.chmod(mode)
    assert (danger(folder) is None) == is_safe


@POSIX
@pytest.mark.parametrize(("mode", "is_safe"), [(0o755, True), (0o777, False), (0o1777, True)])
def test_a_folder_is_refused_by_those_above(tmp_path: Path, mode: int, is_safe: bool) -> None:
    """Who can write a folder above can put another in the place of ours, unless it is sticky."""
    (tmp_path / "above" / "cache").mkdir(parents=True)
    (tmp_path / "above").chmod(mode)
    assert (danger(tmp_path / "above" / "cache") is None) == is_safe


@POSIX
def test_a_link_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    """A link to a folder that everybody can write is refused like that."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    assert danger(tmp_path / "link") == f"{tmp_path / 'open'} can be written by everybody"


@ROOT
@pytest.mark.parametrize("whose", ["cache", "above"])
def test_a_folder_of_another_user_is_refused(tmp_path: Path, whose: str) -> None:
    """Neither the folder nor one above may belong to somebody else, whatever their modes."""
    (tmp_path / "above" / "cache").mkdir(parents=True)
    os.chown(tmp_path / "above" if whose == "above" else tmp_path / "above" / "cache", SOMEBODY, SOMEBODY)
    assert "belongs to another user (number 65533)" in str(danger(tmp_path / "above" / "cache"))


@ROOT
def test_a_group_is_refused_unless_it_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that can write are others, but for the user's private group and the one that can change the package."""
    tmp_path.chmod(0o770)
    os.chown(tmp_path, 0, SOMEBODY)
    assert "can be written by a group" in str(danger_of(tmp_path.stat()))
    monkeypatch.setattr(kernel_files, "_groups", lambda: {SOMEBODY})
    assert danger_of(tmp_path.stat()) is None


def test_each_kernel_file_counts_and_what_shapes_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change in any kernel file of the package, or in a file of runtime/ that shapes machine code, is another digest."""
    files = [*sorted(PACKAGE.rglob("_*_kernels.py")), *(PACKAGE / "runtime" / f"{name}.py" for name in kernel_files.SHAPING)]
    for path in files:
        (copy := tmp_path / path.relative_to(PACKAGE)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    monkeypatch.setattr(kernel_files, "PACKAGE", tmp_path)
    seen = {before := digest_of_sources(tmp_path / "any")}
    for path in files:
        copy = tmp_path / path.relative_to(PACKAGE)
        text = copy.read_text()
        copy.write_text(text.replace("=", "= ", 1))
        seen.add(digest_of_sources(tmp_path / "any"))
        copy.write_text(text)
    assert len(seen) == 1 + len(files)
    (tmp_path / "core" / "errors.py").write_text("no kernel\n")
    assert digest_of_sources(tmp_path / "any") == before
