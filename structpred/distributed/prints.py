"""What a shard held when it was first read, as digests: each later read must give the same."""

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from structpred.distributed.reading import Loaded, Shard
from structpred.errors import DataError

#: what is compared -> its digest, or number; of the bytes where a shard digests them itself, else of all values
Print = dict[str, str]
_PLAIN = {type(None), bool, int, float, complex, str, bytes}


def read(shard: Shard, first: Print | None) -> tuple[Loaded, Print]:
    """The shard's data, read now. Raises DataError, naming what differs, where they are no longer those of the first read."""
    data = shard.load()
    n = data.X.shape[0] if hasattr(data.X, "shape") else len(data.X) if hasattr(data.X, "__len__") else 0
    parts = {"labels": data.y, "features": data.X, "weights": (data.sample_weight, data.token_weight)}
    found = {"content": data.fingerprint} if data.fingerprint else {name: _digest(part) for name, part in parts.items()}
    now = {"rows": str(n), **found}
    if first is not None and (told := [name for name in first if first[name] != now.get(name)]):
        raise DataError(
            f"expected what the first read gave ({first['rows']} rows), got other {', '.join(told)} ({now['rows']} rows): shards "
            "are read again to be trained on, and by workers that take them over. Is a file being written, or a function random?"
        )
    return data, now


def _digest(value: Any) -> str:
    """Of values, not of objects: the same in every process, sets and dicts in any order. Of what is not known its class."""
    if hasattr(value, "tocsr"):
        matrix = value.tocsr()
        value = [matrix.shape, matrix.indptr, matrix.indices, matrix.data]
    elif hasattr(value, "__array__") and not isinstance(value, np.generic):
        array = np.asarray(value)
        if not array.dtype.hasobject:
            digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
            return digest.hexdigest()
        value = array.tolist()
    elif is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, Mapping | Set | Sequence):
        pass
    elif hasattr(value, "arrays") and callable(value.arrays):  # a feature map
        value = [*value.arrays(), value.shapes if hasattr(value, "shapes") else None]
    elif hasattr(value, "nodes") and callable(value.nodes):  # a networkx graph
        value = [list(value.nodes(data=True)), list(value.edges(data=True))]
    if isinstance(value, Mapping | Set):
        value = list(value.items()) if isinstance(value, Mapping) else list(value)
        told = sorted(_repr(one) for one in value)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        told = [_repr(one) for one in value]
    else:
        told = [repr(value) if type(value) in _PLAIN or isinstance(value, np.generic) else type(value).__qualname__]
    return hashlib.sha256("\n".join(told).encode("utf-8", "backslashreplace")).hexdigest()


def _repr(value: Any) -> str:
    """The text of a plain value, or of plain values, at once: of such most data are; else a digest."""
    if type(value) is dict and {*map(type, value)} <= {str} and {*map(type, value.values())} <= _PLAIN:
        return repr(sorted(value.items()))
    plain = type(value) in _PLAIN or (type(value) in (list, tuple) and {*map(type, value)} <= _PLAIN)
    return repr(value) if plain else _digest(value)
