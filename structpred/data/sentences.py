"""Sentences as the features of arcs see them: every word a few attributes, each attribute value a 32-bit code."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from structpred.data.ragged import Ragged
from structpred.data.tokens import hashed
from structpred.errors import DataError
from structpred.runtime.ranges import picked


def attribute_code(name: str, value: str) -> int:
    """The 32-bit code of an attribute's value: CRC-32 spread by a multiplication, the same on every machine.

    >>> attribute_code("lemma", "be") == attribute_code("form", "be")
    False
    """
    return hashed(f"{name}={value}", 32)


@dataclass(frozen=True)
class AttributedSentences(Ragged):
    """A packed corpus of sentences: sentence i has the words offsets[i]:offsets[i+1].

    codes: uint32 (n_attributes, n_words), row a is the attribute names[a]. tags: int32 (n_words,), a coarse part of speech in
    [1, n_tags); 0 is the root's. classes: uint8 (n_words,), one bit for each kind of word that is counted between two others
    (1: verb, 2: punctuation, 4: conjunction). Raises DataError where the sizes do not fit.
    """

    names: tuple[str, ...]
    codes: npt.NDArray[np.uint32]
    tags: npt.NDArray[np.int32]
    classes: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    n_tags: int

    def __post_init__(self) -> None:
        n = int(self.offsets[-1])
        if self.codes.shape != (len(self.names), n) or self.tags.shape != (n,) or self.classes.shape != (n,):
            raise DataError(
                f"expected {len(self.names)} attributes, tags and classes of {n} words, got arrays of shapes "
                f"{self.codes.shape}, {self.tags.shape} and {self.classes.shape}"
            )
        if n and not (self.tags.min() >= 1 and self.tags.max() < self.n_tags):
            raise DataError(f"tags must lie in [1, {self.n_tags}), got {self.tags.min()}..{self.tags.max()}")

    @property
    def words(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """(codes, tags, classes), as kernels take a corpus."""
        return self.codes, self.tags, self.classes

    @property
    def n_words(self) -> int:
        """The number of words in all sentences."""
        return int(self.offsets[-1])

    def take(self, indices: Sequence[int] | npt.NDArray[np.int64]) -> "AttributedSentences":
        """The sentences with these numbers, in this order."""
        where, offsets = picked(self.offsets, np.asarray(indices, dtype=np.int64))
        codes = np.ascontiguousarray(self.codes[:, where])
        return AttributedSentences(self.names, codes, self.tags[where], self.classes[where], offsets, self.n_tags)
