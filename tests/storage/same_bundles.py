"""Whether two bundles hold the same."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from structpred.storage.bundles import Bundle


def same(one: Bundle, other: Bundle) -> bool:
    """Headers and texts are equal, arrays in type, shape and every bit (so NaN equals itself)."""
    plain = (one.header, one.texts, one.format_version) == (other.header, other.texts, other.format_version)
    return plain and _bits(one.arrays) == _bits(other.arrays)


def _bits(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}
