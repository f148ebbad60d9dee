"""The labels of a file as numbers, as long as there are not too many of them."""

from array import array
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

#: of a file with more different labels none are counted: it would take many times the memory of the file, and what has so
#: many is hardly ever a column of labels
MOST_LABELS = 10_000
_CHUNK = 1 << 16


class LabelCodes:
    """Labels numbered in order of first appearance. excess: the place of the first one beyond MOST_LABELS, else None.

    Once there is one, all are forgotten.

    >>> labels = LabelCodes()
    >>> labels.extend(["b", "a", "b"])
    >>> labels.names, labels.codes.tolist(), labels.excess
    (['b', 'a'], [0, 1, 0], None)
    """

    def __init__(self) -> None:
        self.excess: int | None = None
        self._forget()

    def _forget(self) -> None:
        self._codes, self._numbers = array("i"), defaultdict[str, int]()
        self._numbers.default_factory = self._numbers.__len__

    @property
    def names(self) -> list[str]:
        """The distinct labels."""
        return list(self._numbers)

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """The number of each label."""
        return np.asarray(self._codes)

    def extend(self, labels: Sequence[str]) -> None:
        """Further labels."""
        for start in range(0, len(labels), _CHUNK):
            if self.excess is not None:
                return
            self._codes.extend(map(self._numbers.__getitem__, labels[start : start + _CHUNK]))
            if len(self._numbers) > MOST_LABELS:
                self.excess = self._codes.index(MOST_LABELS)
                self._forget()
