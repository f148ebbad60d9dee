"""Named arrays as the bytes of a safetensors file, read strictly: no holes, no overlaps, no duplicate or unknown keys."""

import math
import struct
from typing import Any

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
