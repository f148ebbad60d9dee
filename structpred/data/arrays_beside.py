"""Arrays that tokens have beside strings, apart from them and in front of their ids. Exported programs carry this file."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.ragged import Ragged
from structpred.data.tokens import listed
from structpred.errors import DataError
from structpred.runtime.ranges import ends_of

#: the arrays of the tokens that have one, float32, a row each; and which of all tokens have one
Part = tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]


def split_dicts(sequences: Any, names: Sequence[str], widths: Sequence[int]) -> tuple[Any, list[Part]]:
    """The sequences without the arrays of these names, and the arrays. widths: of each; empty: as the first token has it.

    Raises DataError, naming sample, position and key, for a token without as many numbers as the first, or as at fit.

    >>> strings, [(values, _)] = split_dicts([[{"w": "a", "v": np.ones(2)}]], ["v"], [2])
    >>> strings, values.tolist()
    ([[{'w': 'a'}]], [[1.0, 1.0]])
    """
    if not names:
        return sequences, []
    given = enumerate(listed(sequences, "expected a list of sequences"))
    nested = [list(listed(tokens, f"sample {i}: expected a sequence of tokens")) for i, tokens in given]
    flat, all_tokens, parts = list(chain.from_iterable(nested)), Ragged(), list[Part]()
    all_tokens.offsets = ends_of(np.array(list(map(len, nested)), np.int64))
    for k, name in enumerate(names):
        arrays: list[Any] = [token.get(name) if isinstance(token, Mapping) else None for token in flat]
        width, values = widths[k] if widths else np.size(arrays[0]), np.empty((0, 0), np.float32)
        fits = np.array([isinstance(x, np.ndarray) and x.shape == (width,) and x.dtype.kind in "fiub" for x in arrays], bool)
        if whole := bool(fits.all()):
            with np.errstate(over="ignore"):  # what does not fit into 32 bits becomes infinite
                joined = np.concatenate((values.ravel(), *arrays), dtype=np.float32, casting="unsafe")
            values = joined.reshape(len(flat), width)
            fits = np.asarray(np.isfinite(values).all(axis=1))
        if not fits.all():
            place = int(fits.argmin())
            got = "NaN or infinity" if whole else f"{type(arrays[place]).__name__} {getattr(arrays[place], 'shape', '')}"
            expected = f"expected an array of {width} finite numbers, as at all tokens"
            raise DataError(f"{all_tokens.place(place)}: feature {name!r}: {expected}, got {got.strip()}")
        parts.append((values, np.ones(len(flat), np.bool_)))
    return all_tokens.nested([{key: token[key] for key in token if key not in names} for token in flat]), parts


def in_front(
    rows: tuple[Any, Any, Any], parts: Sequence[Part], shift: npt.NDArray[np.float64], factor: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Row pointers, ids and values of tokens, behind the columns of their arrays, (x - shift) * factor.

    rows: the same without arrays; values None: all are 1. A token that has no array has no entries there.
    """
    ends, ids, given = rows
    starts, lengths = ends_of(np.array([values.shape[1] for values, _ in parts])).tolist(), np.diff(ends)
    counts = [known * values.shape[1] for values, known in parts]
    indptr = ends_of(np.sum([*counts, lengths], axis=0))
    indices, data, at = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32), indptr[:-1].copy()
    for (values, known), count, a, b in zip(parts, counts, starts, starts[1:], strict=False):
        places = at[known][:, None] + np.arange(b - a)
        indices[places], scaled = np.arange(a, b), values - shift[a:b]
        data[places] = np.multiply(scaled, factor[a:b], out=scaled)
        at += count
    places = np.repeat(at - ends[:-1], lengths) + np.arange(len(ids))
    indices[places], data[places] = ids + starts[-1], 1.0 if given is None else given
    return indptr, indices, data
