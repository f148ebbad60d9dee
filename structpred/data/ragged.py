"""Sequences one after the other in flat arrays. Exported programs carry this file (`export/programs.py`)."""

import numpy as np
import numpy.typing as npt


class Ragged:
    """Sequence i has the items ``offsets[i]:offsets[i + 1]`` of flat arrays: tokens, words or letters."""

    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of items of each sequence."""
        return np.diff(self.offsets)
