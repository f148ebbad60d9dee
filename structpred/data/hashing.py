"""Feature hashing: feature strings to ids without a dictionary, in memory that does not grow with the data."""

from collections.abc import Iterable, Iterator
from typing import Any

from structpred.data.sequences import PackedSequences, pack
from structpred.data.tokens import Block, FeatureIndex, hashed, read_blocks
from structpred.errors import ParameterError
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Record, Whole, as_file_error

# Strings met in one call are remembered, up to this many: most features come again, and a look-up costs less.
MAX_REMEMBERED = 1 << 19


class FeatureHasher:
    """Feature string -> one of 2**n_bits ids, by a hash of its UTF-8 bytes; features that collide share a weight.

    The hash is CRC-32 spread by a multiplication: the same on every machine, in every process and version. Tokens are
    those of `FeatureDictionary`. Nothing is learned: `fit` changes nothing and reads nothing.

    >>> hasher = FeatureHasher(n_bits=10)
    >>> packed = hasher.transform([[["w=the", "first"], {"w": "cat"}]])
    >>> packed.n_features, packed.indptr.tolist(), packed.indices.tolist() == [hasher.id(n) for n in ("w=the", "first", "w:cat")]
    (1024, [0, 2, 3], True)
    """

    HEADER = Record({"n_bits": Whole(1, 30)})

    def __init__(self, n_bits: int = 18) -> None:
        if not 1 <= n_bits <= 30:
            raise ParameterError(f"n_bits must lie between 1 and 30, got {n_bits}")
        self.n_bits = n_bits

    @property
    def n_features(self) -> int:
        """The number of ids, 2**n_bits."""
        return 1 << self.n_bits

    def feature_names(self) -> list[str]:
        """The ids, as there are no names."""
        return [f"#{j}" for j in range(self.n_features)]

    def id(self, name: str) -> int:
        """The id of one feature string."""
        return hashed(name, self.n_bits)

    def fit(self, sequences: Iterable[Iterable[Any]]) -> "FeatureHasher":
        """Nothing to learn: the sequences are not looked at."""
        return self

    def transform(self, sequences: Iterable[Iterable[Any]]) -> PackedSequences:
        """The sequences as packed features; raises DataError as `FeatureDictionary.fit` does."""
        return pack(self._blocks(sequences), self.n_features)

    def fit_transform(self, sequences: Iterable[Iterable[Any]]) -> PackedSequences:
        """`transform`, since there is nothing to fit."""
        return self.transform(sequences)

    def to_bundle(self) -> Bundle:
        """The state for a model file: a header alone."""
        return Bundle({"n_bits": self.n_bits})

    @classmethod
    def from_bundle(cls, part: Bundle) -> "FeatureHasher":
        """A hasher from what `to_bundle` gave. Raises FileFormatError where it does not fit."""
        with as_file_error("the feature hashing of this file cannot be used"):
            return cls(cls.HEADER.read(part.header, "input.header")["n_bits"])

    def _blocks(self, sequences: Iterable[Iterable[Any]]) -> Iterator[Block]:
        index = FeatureIndex(lambda index, name: index.setdefault(name, self.id(name)))
        for block in read_blocks(sequences, index):
            yield block
            if len(index) > MAX_REMEMBERED:
                index.clear()
