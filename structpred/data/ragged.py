"""Sequences one after the other in flat arrays."""

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
