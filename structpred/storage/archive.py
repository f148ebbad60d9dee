"""The outer layout of structpred files: a zip archive of four stored entries whose every byte has one allowed value.

Given the contents of the entries, the archive is fixed to the last byte: fixed names in fixed order, no compression,
no time stamps, no comments, always the 64-bit fields. Any zip program opens it; the reader here rebuilds the bytes
around the entries and compares, so there is no byte in which anything could hide or go wrong unseen. Arrays are the bytes of a
safetensors file, read strictly: no holes, no overlaps, no duplicate or unknown keys.
"""

import hashlib
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from structpred.storage import strict_json

Array = npt.NDArray[Any]
_MAX_HEADER = 16 << 20
_DTYPES = {
    "F64": np.float64, "I64": np.int64, "U64": np.uint64, "F32": np.float32, "I32": np.int32, "U32": np.uint32,
    "F16": np.float16, "I16": np.int16, "U16": np.uint16, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
_CODES = {np.dtype(kind): code for code, kind in _DTYPES.items()}


def pack(arrays: dict[str, Array]) -> list[memoryview | bytes]:
    """Return the pieces of a safetensors file; the pieces of C-contiguous arrays are views, nothing is copied.

    Wide types come first, so that every array starts at a multiple of its item size. Raises ValueError for a type that
    cannot be stored (objects, strings, complex, foreign byte order).
    """
    header: dict[str, Any] = {}
    pieces: list[memoryview | bytes] = []
    position = 0
    for name in sorted(arrays, key=lambda n: (-_check(n, arrays[n]).itemsize, n)):
        array = arrays[name]
        end = position + array.nbytes
        header[name] = {"dtype": _CODES[array.dtype], "shape": list(array.shape), "data_offsets": [position, end]}
        if array.nbytes:
            pieces.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        position = end
    text = strict_json.dump(header, "arrays")
    text += b" " * (-len(text) % 8)  # so that the data start aligned
    if len(text) > _MAX_HEADER:
        raise ValueError(f"the names and shapes of the arrays take {len(text)} bytes, at most {_MAX_HEADER} are stored")
    return [struct.pack("<Q", len(text)) + text, *pieces]


def unpack(data: npt.NDArray[np.uint8]) -> dict[str, Array]:
    """Return the arrays inside the bytes of a safetensors file, as writable views of `data` (uint8, 1-d, aligned to 8).

    Raises ValueError for everything that `pack` would not have written. Sizes are compared with the bytes that are
    there before any array is made.
    """
    if len(data) < 8:
        raise ValueError("it is shorter than its own header")
    (length,) = struct.unpack("<Q", data[:8].tobytes())
    if length > min(_MAX_HEADER, len(data) - 8) or length % 8:
        raise ValueError(f"its header claims {length} bytes; the file has {len(data) - 8}, at most {_MAX_HEADER} are read")
    header = strict_json.load(data[8 : 8 + length].tobytes())
    if type(header) is not dict:
        raise ValueError("its header is not a table of arrays")
    body = data[8 + length :]
    arrays: dict[str, Array] = {}
    position = 0
    for name, entry in header.items():
        dtype, shape, position = _entry(name, entry, position, len(body))
        arrays[name] = _view(name, body, dtype, shape, position)
    if position != len(body):
        raise ValueError(f"{len(body) - position} bytes belong to no array")
    return arrays


def _check(name: str, array: Array) -> np.dtype[Any]:
    if type(name) is not str or not isinstance(array, np.ndarray):
        raise ValueError(f"array {name!r}: expected a NumPy array under a string name, got {type(array).__name__}")
    if array.dtype not in _CODES or not array.dtype.isnative:
        raise ValueError(f"array {name!r}: the type {array.dtype} cannot be stored; use one of {', '.join(map(str, _CODES))}")
    return array.dtype


def _entry(name: str, entry: Any, start: int, size: int) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Check one line of the header; return its type, shape and end. All arithmetic is on Python integers: no overflow."""
    if type(entry) is not dict or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"array {name!r}: expected dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(code) is not str or code not in _DTYPES:
        raise ValueError(f"array {name!r}: the type {code!r} is unknown")
    if type(shape) is not list or len(shape) > 32 or not all(type(n) is int and 0 <= n < 1 << 62 for n in shape):
        raise ValueError(f"array {name!r}: not a shape")
    dtype = np.dtype(_DTYPES[code])
    n_bytes = dtype.itemsize * math.prod(shape)
    if n_bytes > size - start:
        raise ValueError(f"array {name!r}: its shape needs {n_bytes} bytes, the file has {size - start} left")
    end = start + n_bytes
    if offsets != [start, end] or not all(type(n) is int for n in offsets):
        raise ValueError(f"array {name!r}: expected it at bytes {start} to {end}, the file says {offsets}")
    if start % dtype.itemsize:
        raise ValueError(f"array {name!r}: not aligned to its item size")
    return dtype, tuple(shape), end


def _view(name: str, body: npt.NDArray[np.uint8], dtype: np.dtype[Any], shape: tuple[int, ...], end: int) -> Array:
    count = math.prod(shape)
    raw = body[end - count * dtype.itemsize : end]
    if dtype == np.bool_ and raw.max(initial=0) > 1:
        raise ValueError(f"array {name!r}: a truth value is neither 0 nor 1")
    if not count:
        return np.empty(shape, dtype)  # NumPy itself refuses absurd empty shapes with a ValueError
    return raw.view(dtype).reshape(shape)


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
_SUMS_SIZE = sum(64 + 2 + len(name) + 1 for name in CONTENT)
_CHUNK = 1 << 18  # small enough to stay in the processor's cache from the checksum to the copy to the file
LARGE = 1 << 20  # bytes that are worth a thread


@dataclass(frozen=True)
class _Entry:
    """What the frame around one entry, and its line in SHA256SUMS, depend on."""

    name: str
    size: int
    crc: int
    sha256: str


def write(file: BinaryIO, contents: Sequence[Sequence[Piece]]) -> None:
    """Write the archive; contents holds the pieces of model.json, weights.safetensors and vocab.json, in this order."""
    entries: list[_Entry] = []
    for name, room, pieces in zip(NAMES, _LOCAL_SIZES, [*contents, None], strict=True):
        file.write(bytes(room))  # what comes before the content depends on it
        entries.append(_describe(name, [_sums(entries)] if pieces is None else pieces, file.write))
    heads, tail = _frame(entries)
    file.write(tail)
    offset = 0
    for head, entry in zip(heads, entries, strict=True):
        file.seek(offset)
        file.write(head)
        offset += len(head) + entry.size


def read(file: BinaryIO, size: int) -> list[Bytes]:
    """Return the bytes of model.json, weights.safetensors and vocab.json of an archive of `size` bytes.

    Nothing is allocated before the claimed sizes add up to `size`, and nothing is returned unless the frame is exact and
    every checksum matches. Each array is fresh, writable and aligned to 8. Raises ValueError that says what is wrong.
    """
    if size < OVERHEAD:
        raise ValueError("it is too short")
    file.seek(size - _TAIL_SIZE)
    tail = file.read(_TAIL_SIZE)
    # the sizes that the directory claims; every other field is compared later, against the rebuilt frame
    sizes, position = [], 0
    for name, length in zip(NAMES, _CENTRAL_SIZES, strict=True):
        record = tail[position : position + length]
        if record[:4] != struct.pack("<L", _CENTRAL) or record[46:-28] != name.encode():
            raise ValueError(f"its directory does not list {name} where structpred puts it")
        sizes.append(struct.unpack_from("<Q", record, length - 24)[0])
        position += length
    if sum(sizes) + OVERHEAD != size:
        raise ValueError("the sizes in its directory do not add up to the size of the file")
    if sizes[-1] != _SUMS_SIZE:
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
    entries = [_describe(name, [content.data]) for name, content in zip(NAMES, contents, strict=True)]
    sums = contents[-1].tobytes()
    for entry, line in zip(entries[:-1], sums.split(b"\n"), strict=False):
        if line != _line(entry):
            raise ValueError(f"the checksum of {entry.name} does not match its contents")
    if sums != _sums(entries[:-1]):
        raise ValueError("its list of checksums is damaged")
    if (heads, tail) != _frame(entries):
        raise ValueError("the bytes around its entries are not as structpred writes them")


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


def _describe(name: str, pieces: Iterable[Piece], write: Callable[[memoryview], object] | None = None) -> _Entry:
    """Both checksums of what is in the pieces, which are written on the way if `write` is given."""
    views = [memoryview(piece) for piece in pieces]  # slices of them copy nothing
    size = sum(map(len, views))
    if size < LARGE:
        return _Entry(name, size, _crc(views, write), _sha256(views))
    with ThreadPoolExecutor(1) as pool:  # SHA-256 takes longer than all else
        sha256 = pool.submit(_sha256, views)
        return _Entry(name, size, _crc(views, write), sha256.result())


def _crc(views: Sequence[memoryview], write: Callable[[memoryview], object] | None) -> int:
    crc = 0
    for view in views:
        for start in range(0, len(view), _CHUNK):
            chunk = view[start : start + _CHUNK]
            crc = zlib.crc32(chunk, crc)
            if write is not None:
                write(chunk)
    return crc


def _sha256(views: Sequence[memoryview]) -> str:
    digest = hashlib.sha256()
    for view in views:
        digest.update(view)  # without Python's global lock
    return digest.hexdigest()


def _line(entry: _Entry) -> bytes:
    return f"{entry.sha256}  {entry.name}".encode()


def _sums(entries: Iterable[_Entry]) -> bytes:
    """The text of SHA256SUMS, as `sha256sum --check` takes it."""
    return b"".join(_line(entry) + b"\n" for entry in entries)
