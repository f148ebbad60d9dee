"""A dictionary of features: feature dicts or lists of feature strings to packed ids, the ids learned from the data.

Many strings are looked up at once: three times the speed of a dictionary where strings are new objects each time. Or features
are hashed: ids without a dictionary, in memory that does not grow with the data.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.sequences import PackedSequences, pack
from structpred.data.tokens import Block, FeatureIndex, hashed, read_blocks
from structpred.errors import DataError, ParameterError
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


#: from this number of names on they are looked up in a table
MANY = 1 << 12
_END = "\n" * 8  # kernels read eight bytes at a time


class NameTable:
    """The numbers of known names, for look-ups by the hundred thousand.

    A name is known by 96 bits of hash: a string that is not one of the names is taken for one of them with a chance of
    2**-96 for each name. Names with a newline cannot be held, nor two names of the same hash: `make` then gives None.

    >>> table = NameTable.make(["w=the", "w=cat"])
    >>> table.find(["w=cat", "w=dog"], 2).tolist()
    [1, -1]
    """

    def __init__(self, table: npt.NDArray[np.uint64]) -> None:
        self._table = table

    @staticmethod
    def make(names: Collection[str]) -> "NameTable | None":
        """A table of the names; None where they cannot be held."""
        from structpred.data._token_kernels import enter_names

        n = len(names)
        buffer = _joined(names)
        if np.count_nonzero(buffer == 10) != n - 1 + len(_END) or n >= 2**31:
            return None
        table = np.zeros((1 << max(int(2 * n).bit_length(), 4), 2), np.uint64)
        return NameTable(table) if enter_names(buffer, n, table) else None

    def find(self, names: Iterable[str], n: int) -> npt.NDArray[np.int32] | None:
        """The number of each of n strings, -1 for those that are not known; None if one holds a newline.

        Raises TypeError where one is not a string.
        """
        from structpred.data._token_kernels import find_names

        out = np.empty(n, np.int32)
        buffer = _joined(names)
        # with a newline inside a name the strings end before the buffer does
        return out if int(find_names(buffer, n, self._table, out)) == len(buffer) - len(_END) + 1 else None


class ClosedIndex(FeatureIndex):
    """Known feature strings, all others -1; many at once are looked up in a table, which is made once."""

    def __init__(self, known: Iterable[str]) -> None:
        super().__init__(None, known)
        self._table: NameTable | None = None
        self._tried = False

    def ids(self, names: Iterable[Iterable[str]], n: int) -> npt.NDArray[np.int32]:
        """The ids of n strings, nested by token."""
        if n >= MANY and not self._tried:
            self._table, self._tried = NameTable.make(self), True
        known = self._table if n >= MANY else None
        found = None if known is None else known.find(itertools.chain.from_iterable(names), n)
        return super().ids(names, n) if found is None else found


def _joined(names: Iterable[str]) -> npt.NDArray[np.uint8]:
    text = "\n".join(itertools.chain(names, (_END[1:],)))
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)


class FeatureDictionary:
    """Feature string -> id, in order of appearance; a feature that was not seen at fit is left out at transform.

    min_count: features that occur at fewer tokens are left out. A sequence is a list of tokens, a token a list of
    strings (value 1 each) or a dict as python-crfsuite takes it: ``{"w": "x"}`` is the feature ``w:x``, a number is the
    value of its key, True and False are 1 and 0, a list of strings or a nested dict gives ``key:...``. Values of 0 and
    those that occur twice at a token are treated as sums: a 0 makes no entry, doubles are added.

    >>> dictionary = FeatureDictionary()
    >>> packed = dictionary.fit_transform([[{"w": "the", "length": 3}, {"w": "cat"}], [["w:cat", "end"]]])
    >>> dictionary.names, packed.indptr.tolist(), packed.values.tolist()
    (['w:the', 'length', 'w:cat', 'end'], [0, 2, 3, 5], [1.0, 3.0, 1.0, 1.0, 1.0])
    """

    HEADER = Record({"min_count": Whole(1)})

    def __init__(self, min_count: int = 1) -> None:
        if min_count < 1:
            raise ParameterError(f"min_count must be at least 1, got {min_count}")
        self.min_count = min_count
        self._index: FeatureIndex | None = None

    @property
    def names(self) -> list[str]:
        """The feature strings by id."""
        return list(self._fitted())

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self._fitted())

    def feature_names(self) -> list[str]:
        """The feature strings by id, as `names`."""
        return self.names

    def fit(self, sequences: Iterable[Iterable[Any]]) -> "FeatureDictionary":
        """Learn the features; sequences may be a generator and is held in memory some hundred sequences at a time.

        Raises DataError naming the sample, position and likely cause: one sequence in place of a list of sequences, an
        empty sequence, a token that is a string or number, a value that is not finite, no sequence at all.
        """
        self._keep(*_counted(sequences))
        return self

    @staticmethod
    def counted(sequences: Iterable[Iterable[Any]]) -> dict[str, int]:
        """How often each feature occurs, in order of appearance; raises as `fit` does.

        >>> FeatureDictionary.counted([[["a", "b"], ["a"]]])
        {'a': 2, 'b': 1}
        """
        index, counts = _counted(sequences)
        return dict(zip(index, counts.tolist(), strict=True))

    def transform(self, sequences: Iterable[Iterable[Any]]) -> PackedSequences:
        """The sequences as packed features. Raises as `fit` does, but no sequence at all is allowed."""
        index = self._fitted()
        return pack(read_blocks(sequences, index), len(index))

    def fit_transform(self, sequences: Iterable[Iterable[Any]]) -> PackedSequences:
        """`fit` and `transform` in one pass over the sequences."""
        index = FeatureIndex(lambda index, name: index.setdefault(name, len(index)))
        blocks = list(_at_least_one(read_blocks(sequences, index)))
        counts = np.zeros(len(index), np.int64)
        for block in blocks:
            counts += _counts(block, len(index))
        self._keep(index, counts)
        return pack(blocks, self.n_features, self._table(counts) if self.min_count > 1 else None)

    @classmethod
    def from_names(cls, names: Iterable[str], min_count: int = 1) -> "FeatureDictionary":
        """A fitted dictionary of given features; the ids are their places in the list, which holds no string twice."""
        self = cls(min_count)
        listed = list(names)
        self._index = ClosedIndex(listed)
        if len(self._index) != len(listed) or not all(isinstance(name, str) for name in listed):
            raise ParameterError("expected feature names that are strings, none of them twice")
        return self

    def to_bundle(self) -> Bundle:
        """The fitted state for a model file."""
        return Bundle({"min_count": self.min_count}, texts={"names": self.names})

    @classmethod
    def from_bundle(cls, part: Bundle) -> "FeatureDictionary":
        """A fitted dictionary from what `to_bundle` gave. Raises FileFormatError where the parts do not fit."""
        with as_file_error("the feature dictionary of this file cannot be used"):
            return cls.from_names(part.texts["names"], cls.HEADER.read(part.header, "input.header")["min_count"])

    def _fitted(self) -> FeatureIndex:
        if self._index is None:
            raise ParameterError("this feature dictionary has not been fitted yet; call fit first")
        return self._index

    def _keep(self, index: FeatureIndex, counts: npt.NDArray[np.int64]) -> None:
        """From now on the index is closed: strings that it does not hold are unknown."""
        kept = (counts >= self.min_count).tolist()
        self._index = ClosedIndex(name for name, keep in zip(index, kept, strict=True) if keep)

    def _table(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Old id -> new id, -1 for features that are too rare; the last entry answers for the id -1."""
        kept = counts >= self.min_count
        return np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)


def _counted(sequences: Iterable[Iterable[Any]]) -> tuple[FeatureIndex, npt.NDArray[np.int64]]:
    index, counts = FeatureIndex(lambda index, name: index.setdefault(name, len(index))), np.zeros(0, np.int64)
    for block in _at_least_one(read_blocks(sequences, index)):
        more = _counts(block, len(index))
        more[: len(counts)] += counts
        counts = more
    return index, counts


def _at_least_one(blocks: Iterable[Block]) -> Iterator[Block]:
    empty = True
    for block in blocks:
        empty = False
        yield block
    if empty:
        raise DataError("expected at least one sequence, got none; is this a generator that was used up before?")


def _counts(block: Block, size: int) -> npt.NDArray[np.int64]:
    return np.bincount(block.ids[block.ids >= 0], minlength=size)
