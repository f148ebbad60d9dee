"""Sequences one after the other in flat arrays; features that occur twice, summed. Exported programs carry this file."""

import itertools
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Item = TypeVar("Item")


class Ragged:
    """Sequence i has the items ``offsets[i]:offsets[i + 1]`` of flat arrays: tokens, words or letters."""

    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        """The number of items of all sequences together."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of items of each sequence."""
        return np.diff(self.offsets)

    def nested(self, flat: list[Item]) -> list[list[Item]]:
        """What there is of each item, as a list for each sequence."""
        return [flat[start:stop] for start, stop in itertools.pairwise(self.offsets.tolist())]

    def place(self, item: int) -> str:
        """Where an item is, for messages: 'sample 1, position 0'."""
        sample = int(np.searchsorted(self.offsets, item, side="right")) - 1
        return f"sample {sample}, position {item - int(self.offsets[sample])}"


def runs(lines: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Where sequences begin among ascending numbers of lines: behind blank lines, which are left out; and the end.

    >>> runs(np.array([1, 2, 4])).tolist()
    [0, 2, 3]
    """
    breaks = np.flatnonzero(np.diff(lines) > 1) + 1
    return np.concatenate(([0], breaks, [len(lines)] if len(lines) else [])).astype(np.int64, copy=False)


def coalesced(
    lengths: npt.NDArray[np.int64], ids: npt.NDArray[np.int32], values: npt.NDArray[np.float32] | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Row pointers, ids and values of rows in which no id is negative and none occurs twice (values are summed).

    lengths: entries of each row; ids, values: the entries, row by row; values None means all 1. Entries with the id -1
    are dropped. Rows without repetition keep their order; if any row has one, all rows come out in ascending order.
    """
    known = ids >= 0
    if not known.all():
        kept = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(known, out=kept[1:])
        lengths = np.diff(kept[np.concatenate(([0], np.cumsum(lengths)))])
        ids = ids[known]
        values = None if values is None else values[known]
    weights = np.ones(len(ids), np.float32) if values is None else values
    if _has_repeats(lengths, ids):
        rows = np.repeat(np.arange(len(lengths)), lengths)
        width = int(ids.max()) + 1
        unique, inverse = np.unique(rows * width + ids, return_inverse=True)
        weights = np.bincount(inverse, weights, len(unique)).astype(np.float32)
        rows, ids = unique // width, (unique % width).astype(np.int32)
        lengths = np.bincount(rows, minlength=len(lengths))
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))), ids, weights


def _has_repeats(lengths: npt.NDArray[np.int64], ids: npt.NDArray[np.int32]) -> bool:
    """Whether an id occurs twice in a row; rows of like length are sorted as a padded table, which is ten times quicker."""
    longest = int(lengths.max(initial=0))
    if longest < 2:
        return False
    if longest * len(lengths) > 3 * len(ids) + 1024:
        rows = np.repeat(np.arange(len(lengths)), lengths)
        keys = np.sort(rows * (int(ids.max()) + 1) + ids, kind="stable")
        return bool((keys[1:] == keys[:-1]).any())
    table = np.full((len(lengths), longest), -1, np.int32)
    table[np.arange(longest) < lengths[:, None]] = ids
    table.sort(axis=1)
    return bool(((table[:, 1:] == table[:, :-1]) & (table[:, 1:] >= 0)).any())
