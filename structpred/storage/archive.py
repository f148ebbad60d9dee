"""The outer layout of structpred files: a zip archive of four stored entries whose every byte has one allowed value.

Given the contents of the entries, the archive is fixed to the last byte: fixed names in fixed order, no compression,
no time stamps, no comments, always the 64-bit fields. Any zip program opens it; the reader here rebuilds the bytes
around the entries and compares, so there is no byte in which anything could hide or go wrong unseen.
"""

import hashlib
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

Piece = bytes | memoryview
Bytes = npt.NDArray[np.uint8]
CONTENT = ("model.json", "weights.safetensors", "vocab.json")
NAMES = (*CONTENT, "SHA256SUMS")
_LOCAL, _CENTRAL, _END64, _LOCATOR, _END = 0x04034B50, 0x02014B50, 0x06064B50, 0x07064B50, 0x06054B50
_VERSION, _DATE, _MAX16, _MAX32 = 45, 0x21, 0xFFFF, 0xFFFFFFFF  # zip 4.5 has 64-bit sizes; 1 January 1980
_LOCAL_SIZES = [30 + len(name) + 20 for name in NAMES]
_CENTRAL_SIZES = [46 + len(name) + 28 for name in NAMES]
_TAIL_SIZE = sum(_CENTRAL_SIZES) + 56 + 20 + 22
OVERHEAD = sum(_LOCAL_SIZES) + _TAIL_SIZE


@dataclass(frozen=True)
class _Entry:
    """What the frame around one entry depends on."""

    name: str
    size: int
    crc: int


def write(file: BinaryIO, contents: Sequence[Sequence[Piece]]) -> None:
    """Write the archive; contents holds the pieces of model.json, weights.safetensors and vocab.json, in this order."""
    sums = _sums([_sha256(pieces) for pieces in contents])
    everything: list[Sequence[Piece]] = [*contents, [sums]]
    entries = [_describe(name, pieces) for name, pieces in zip(NAMES, everything, strict=True)]
    heads, tail = _frame(entries)
    for head, pieces in zip(heads, everything, strict=True):
        file.write(head)
        for piece in pieces:
            file.write(piece)
    file.write(tail)


def read(file: BinaryIO, size: int) -> list[Bytes]:
    """Return the bytes of model.json, weights.safetensors and vocab.json of an archive of `size` bytes.

    Nothing is allocated before the claimed sizes add up to `size`, and nothing is returned unless the frame is exact and
    every checksum matches. Each array is fresh, writable and aligned to 8. Raises ValueError that says what is wrong.
    """
    if size < OVERHEAD:
        raise ValueError("it is too short")
    file.seek(size - _TAIL_SIZE)
    tail = file.read(_TAIL_SIZE)
    sizes = _sizes(tail)
    if sum(sizes) + OVERHEAD != size:
        raise ValueError("the sizes in its directory do not add up to the size of the file")
    if sizes[-1] != len(_sums([""] * len(CONTENT))) + 64 * len(CONTENT):
        raise ValueError("its list of checksums has the wrong length")
    file.seek(0)
    heads, contents = [], []
    for length, head in zip(sizes, _LOCAL_SIZES, strict=True):
        heads.append(file.read(head))
        content = np.empty(length, dtype=np.uint8)
        if file.readinto(content.data) != length:  # type: ignore[attr-defined]
            raise ValueError("it changed while it was read")
        contents.append(content)
    _verify(heads, contents, tail)
    return contents[:-1]


def _verify(heads: list[bytes], contents: list[Bytes], tail: bytes) -> None:
    views = [content.data for content in contents]
    digests = [_sha256([view]) for view in views[:-1]]
    for name, digest, line in zip(CONTENT, digests, contents[-1].tobytes().split(b"\n"), strict=False):
        if line != _line(digest, name):
            raise ValueError(f"the checksum of {name} does not match its contents")
    if contents[-1].tobytes() != _sums(digests):
        raise ValueError("its list of checksums is damaged")
    entries = [_describe(name, [view]) for name, view in zip(NAMES, views, strict=True)]
    if (heads, tail) != _frame(entries):
        raise ValueError("the bytes around its entries are not as structpred writes them")


def _sizes(tail: bytes) -> list[int]:
    """The sizes that the central directory claims; every other field is compared later, against the rebuilt frame."""
    sizes, position = [], 0
    for name, length in zip(NAMES, _CENTRAL_SIZES, strict=True):
        record = tail[position : position + length]
        if record[:4] != struct.pack("<L", _CENTRAL) or record[46:-28] != name.encode():
            raise ValueError(f"its directory does not list {name} where structpred puts it")
        sizes.append(struct.unpack_from("<Q", record, length - 24)[0])
        position += length
    return sizes


def _frame(entries: Sequence[_Entry]) -> tuple[list[bytes], bytes]:
    """The bytes before each entry, and the directory after the last: a function of names, sizes and CRCs alone."""
    heads, directory, offset = [], b"", 0
    for entry in entries:
        name = entry.name.encode()
        common = (_VERSION, 0, 0, 0, _DATE, entry.crc, _MAX32, _MAX32, len(name))
        head = struct.pack("<L5H3L2H", _LOCAL, *common, 20) + name + struct.pack("<2H2Q", 1, 16, entry.size, entry.size)
        directory += struct.pack("<L6H3L5H2L", _CENTRAL, _VERSION, *common, 28, 0, 0, 0, 0, _MAX32) + name
        directory += struct.pack("<2H3Q", 1, 24, entry.size, entry.size, offset)
        heads.append(head)
        offset += len(head) + entry.size
    n, size = len(entries), len(directory)
    end64 = struct.pack("<LQ2H2L4Q", _END64, 44, _VERSION, _VERSION, 0, 0, n, n, size, offset)
    locator = struct.pack("<LLQL", _LOCATOR, 0, offset + size, 1)
    return heads, directory + end64 + locator + struct.pack("<L4H2LH", _END, 0, 0, _MAX16, _MAX16, _MAX32, _MAX32, 0)


def _describe(name: str, pieces: Iterable[Piece]) -> _Entry:
    crc = size = 0
    for piece in pieces:
        crc, size = zlib.crc32(piece, crc), size + len(piece)
    return _Entry(name, size, crc)


def _sha256(pieces: Iterable[Piece]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _line(digest: str, name: str) -> bytes:
    return f"{digest}  {name}".encode()


def _sums(digests: Sequence[str]) -> bytes:
    """The text of SHA256SUMS, as `sha256sum --check` takes it."""
    return b"".join(_line(digest, name) + b"\n" for digest, name in zip(digests, CONTENT, strict=True))
