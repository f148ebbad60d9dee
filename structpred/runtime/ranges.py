"""Ranges of places in flat arrays: what gathering some rows of packed data takes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


def spans(starts: Integers, stops: Integers) -> Integers:
    """starts[0]..stops[0]-1, then starts[1]..stops[1]-1, and so on, in one array.

    >>> spans(np.array([5, 0]), np.array([7, 2])).tolist()
    [5, 6, 0, 1]
    """
    lengths = stops - starts
    return np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))


def picked(ends: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """The places of the items of some rows, row i having ends[i]..ends[i + 1]-1, and where each of these rows then begins.

    >>> [places.tolist() for places in picked(np.array([0, 2, 2, 5]), np.array([2, 0]))]
    [[2, 3, 4, 0, 1], [0, 3, 5]]
    """
    starts, stops = ends[rows], ends[rows + 1]
    return spans(starts, stops), ends_of(stops - starts)


def ends_of(lengths: Integers) -> Integers:
    """0, then the running sums of the lengths.

    >>> ends_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def packed(rows: Sequence[Integers]) -> tuple[Integers, Integers]:
    """(the rows in one flat array, where each begins and the last ends).

    >>> [array.tolist() for array in packed([np.array([3, 1]), np.array([2])])]
    [[3, 1, 2], [0, 2, 3]]
    """
    return np.concatenate([np.empty(0, np.int64), *rows]), ends_of(np.array([len(row) for row in rows], dtype=np.int64))
