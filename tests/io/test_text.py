"""Text in and out."""

import gzip
import io
import sys
from pathlib import Path

import pytest

from structpred.errors import DataError, ParameterError
from structpred.io.text import read_text, source_name, split_lines


def test_plain_and_packed_files_read_the_same(tmp_path: Path) -> None:
    """A text comes back the same from a plain file, a .gz file, and a gzip file under any name."""
    text = "Grüße \u2028 x\r\n\ny"
    plain, packed, unnamed = tmp_path / "a.txt", tmp_path / "a.txt.gz", tmp_path / "a.data"
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    unnamed.write_bytes(gzip.compress(text[:5].encode()) + gzip.compress(text[5:].encode()))
    assert read_text(plain) == read_text(str(packed)) == read_text(unnamed) == text


def test_byte_order_mark_is_removed(tmp_path: Path) -> None:
    """A UTF-8 byte order mark does not become part of the first token."""
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa")
    assert read_text(tmp_path / "a") == "a"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """``-`` reads standard input, packed or not, and is called <stdin> in messages."""
    for data in (b"a b\n", gzip.compress(b"a b\n", mtime=0)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert read_text("-") == "a b\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\n\xff")))
    with pytest.raises(DataError, match=r"^<stdin>:2: expected UTF-8"):
        read_text("-")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"one\ntw\xe9o\n", r"a\.txt:2: expected UTF-8 text, got the byte 0xe9"),
        ("a.txt", b"\xff\xfea\0\n\0", r"a\.txt:1: .*looks like UTF-16"),
        ("a.txt", b"one\n\ntw\0o\n", r"a\.txt:3: .*NUL byte"),
        ("a.gz", b"plain", r"a\.gz: expected gzip data because of the name"),
        ("a.txt", gzip.compress(b"abc" * 99, mtime=0)[:-9], r"a\.txt: damaged or truncated gzip"),
        ("a.txt", b"\x1f\x8bnonsense", r"a\.txt: damaged or truncated gzip"),
    ],
)
def test_unreadable_bytes(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    """Bytes that are not text raise DataError with the file and, where there is one, the line."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_text(tmp_path / name)


def test_damaged_checksum(tmp_path: Path) -> None:
    """A flipped bit in packed data is found by the checksum of gzip."""
    data = bytearray(gzip.compress(b"some words to read\n" * 50, mtime=0))
    data[-6] ^= 1
    (tmp_path / "a.gz").write_bytes(data)
    with pytest.raises(DataError, match=r"a\.gz: damaged"):
        read_text(tmp_path / "a.gz")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    """A missing file, a folder and an impossible name are said to be so."""
    with pytest.raises(DataError, match=r"absent\.txt: there is no such file"):
        read_text(tmp_path / "absent.txt")
    with pytest.raises(DataError, match="expected a file, got a folder"):
        read_text(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        read_text("a\0b")


@pytest.mark.parametrize("path", [3, None, b"name", [b"x"]])
def test_paths_are_str_or_path(path: object) -> None:
    """Something that is not a path (a file descriptor number, say) is refused, never opened."""
    with pytest.raises(ParameterError, match="expected a path"):
        read_text(path)  # type: ignore[arg-type]
    assert source_name(Path("x/y")) == "x/y"


def test_lines_end_at_newline_only() -> None:
    """Form feeds and Unicode line breaks stay inside a line; one carriage return goes with the line end."""
    assert list(split_lines("a\x0cb\x85c\u2029d\r\ne\r\r\n\nf")) == ["a\x0cb\x85c\u2029d", "e\r", "", "f"]
    assert list(split_lines("")) == []
    assert list(split_lines("a\n")) == ["a"]
