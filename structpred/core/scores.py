"""Scores and shapes as a caller gives them, checked once on entry to an oracle: compiled code trusts what comes after."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps
from itertools import chain
from math import isfinite
from typing import TypeVar

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Scores, Shape
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError
from structpred.runtime.memory import check_fits

T = TypeVar("T")
#: what a number of a shape may be at most: sums and products of two such numbers are whole numbers of 64 bits
LARGEST = 2**31 - 1
#: outputs of more positions are not listed
_LISTED = 1_000_000
_FLOAT = np.dtype(np.float64)
_PLAIN = 0x101  # NumPy's flags of arrays that are C-contiguous and aligned


def checked_sizes(shape: Shape, *names: str) -> tuple[int, ...]:
    """The numbers of a shape, one for each of `names`: whole numbers from 1 to 2^31 - 1. Raises DataError for others.

    >>> checked_sizes((4, 3), "positions", "labels")
    (4, 3)
    """
    try:
        return _sizes(tuple(shape), names)
    except TypeError:
        raise DataError(f"a shape is a tuple of whole numbers ({', '.join(names)}), got {shape!r}") from None


@lru_cache(maxsize=4096)
def _sizes(shape: Shape, names: tuple[str, ...]) -> tuple[int, ...]:
    if len(shape) != len(names):
        raise DataError(f"expected a shape of {len(names)} numbers ({', '.join(names)}), got {short(shape)}")
    for size, name in zip(shape, names, strict=True):
        if not (1 <= size <= LARGEST and size == int(size)):
            raise DataError(f"the number of {name} must be a whole number from 1 to {LARGEST}, got the shape {shape}")
    return tuple(map(int, shape))


def checked_table(shapes: Sequence[Shape], *names: str) -> Integers:
    """The sizes of a batch of shapes, a row each, (n, len(names)). Raises DataError as `checked_sizes`, naming the sample.

    >>> checked_table([(4, 3), (1, 3)], "positions", "labels").tolist()
    [[4, 3], [1, 3]]
    """
    try:
        for shape in set(shapes):  # most batches have few
            _sizes(shape, names)
    except (TypeError, DataError):
        for i, shape in enumerate(shapes):
            try:
                checked_sizes(shape, *names)
            except DataError as error:
                raise DataError(f"sample {i}: {error}") from None
    return np.fromiter(chain.from_iterable(shapes), np.int64).reshape(-1, len(names))


def checked_scores(scores: ArrayLike, n_parts: int, shape: Shape) -> Scores:
    """The scores as a C-contiguous float64 array, the same one where it is such; anything but n_parts finite numbers: DataError.

    Numbers of other real types are converted; 2-d arrays, complex numbers, objects and truth values are refused.

    >>> checked_scores(np.zeros(2, np.float32), 2, (2,))
    array([0., 0.])
    """
    flat = shaped_scores(scores, n_parts, shape)
    if not all_finite(flat):
        part = int(np.isfinite(flat).argmin())
        raise DataError(f"scores must be finite numbers (-1e30 forbids a part), got {flat[part]} for part {part}")
    return flat


def shaped_scores(scores: ArrayLike, n_parts: int, shape: Shape) -> Scores:
    """The same without a look at the numbers, for compiled calls that say whether all are finite."""
    flat = _flat(scores)
    if flat.shape != (n_parts,):
        raise DataError(
            f"expected {n_parts} scores in one flat array for the shape {short(shape)}, got an array of shape {flat.shape}"
        )
    return flat


def checked_batch(scores: ArrayLike, offsets: ArrayLike, n_parts: Sequence[int] | Integers) -> tuple[Scores, Integers]:
    """The same for a batch: instance i has the n_parts[i] scores from offsets[i] on. DataError names the sample."""
    flat, ends = shaped_batch(scores, offsets, n_parts)
    if not all_finite(flat):
        at = int(np.isfinite(flat).argmin())
        i = int(np.searchsorted(ends, at, side="right")) - 1
        raise DataError(f"sample {i}: scores must be finite numbers, got {flat[at]}")
    return flat, ends


def shaped_batch(scores: ArrayLike, offsets: ArrayLike, n_parts: Sequence[int] | Integers) -> tuple[Scores, Integers]:
    """The same without a look at the numbers, for compiled calls that say whether all are finite."""
    flat, ends = _flat(scores), np.ascontiguousarray(offsets)
    if ends.shape != (len(n_parts) + 1,) or ends.dtype.kind not in "iu" or flat.ndim != 1:
        raise DataError(
            f"a batch of {len(n_parts)} shapes needs scores in one flat array and {len(n_parts) + 1} whole numbers as offsets, "
            f"got arrays of shape {flat.shape} and {ends.shape} ({ends.dtype})"
        )
    ends = ends.astype(np.int64, copy=False)
    wrong = ends[1:] - ends[:-1] != np.asarray(n_parts)  # whole numbers of any size
    if np.count_nonzero(wrong):
        i = int(wrong.argmax())
        raise DataError(f"sample {i}: expected {n_parts[i]} scores, got {int(ends[i + 1]) - int(ends[i])}")
    if ends[0] != 0 or ends[-1] != len(flat):
        raise DataError(f"the offsets of the scores go from {ends[0]} to {ends[-1]}, and there are {len(flat)} scores")
    return flat, ends


def kept_for_shapes(make: Callable[[Shape], T]) -> Callable[[Shape], T]:
    """`make` with its answers kept for the 1,024 shapes used last, by the object first: hashing a long shape takes microseconds.

    >>> kept_for_shapes(len)((3, 2))
    2
    """
    of_equals, known = lru_cache(maxsize=1024)(make), dict[int, tuple[Shape, T]]()

    @wraps(make)
    def kept(shape: Shape) -> T:
        entry = known.get(id(shape))
        if entry is not None and entry[0] is shape:  # which keeps the shape alive, and so its number its own
            return entry[1]
        found = of_equals(shape)
        if len(known) >= 1024:
            known.clear()
        known[id(shape)] = shape, found
        return found

    return kept


def runs_of(shapes: Sequence[Shape]) -> Iterator[tuple[Shape, int, int]]:
    """The neighbours of one shape in a batch: (shape, the first of them, the one after the last).

    >>> list(runs_of([(2,), (2,), (3,)]))
    [((2,), 0, 2), ((3,), 2, 3)]
    """
    first = 0
    for i, shape in enumerate(shapes):
        if i + 1 == len(shapes) or not (shapes[i + 1] is shape or shapes[i + 1] == shape):
            yield shape, first, i + 1
            first = i + 1


def check_listed(n_positions: int) -> None:
    """Raise DataError where outputs have too many positions to be listed one by one."""
    if n_positions > _LISTED:
        raise DataError(f"outputs of {n_positions:,} positions are too many to list; small shapes can be enumerated")


def short(shape: Shape) -> str:
    """A shape in words, cut after twelve numbers.

    >>> short(tuple(range(20)))
    '(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...)'
    """
    return str(shape) if len(shape) <= 12 else f"({', '.join(map(str, shape[:12]))}, ...)"


def all_finite(flat: Scores) -> bool:
    """Whether all numbers are finite.

    >>> all_finite(np.array([1.0, np.inf]))
    False
    """
    return bool(np.count_nonzero(np.isfinite(flat)) == len(flat))  # faster than all() for a few numbers


def _flat(scores: ArrayLike) -> Scores:
    if type(scores) is np.ndarray and scores.dtype == _FLOAT and scores.flags.num & _PLAIN == _PLAIN:
        return scores
    try:
        array = np.asarray(scores)
    except ValueError:
        raise DataError("scores must be a flat array of numbers, got a nested list") from None
    if array.dtype.kind not in "fiu":
        raise DataError(f"scores must be real numbers (float64), got an array of {array.dtype}")
    check_fits(8 * array.size, f"a copy of {array.size:,} scores")  # a view of few numbers may have any size
    return np.require(array, _FLOAT, ["C", "A"])


def checked_sums(log_z: float, mu: Floats, scores: Scores, shape: Shape) -> tuple[float, Floats]:
    """(log Z, mu) as a kernel gave them; DataError where the scores are too far apart for its arithmetic."""
    if not (isfinite(log_z) and isfinite(np.add.reduce(mu))):
        largest = float(np.abs(scores[scores > FORBIDDEN]).max(initial=0.0))
        raise DataError(
            f"shape {short(shape)}: the scores are too far apart for sums over outputs (the largest is {largest:.3g} in absolute "
            "value); did training diverge, or are features not scaled?"
        )
    return float(log_z), mu
