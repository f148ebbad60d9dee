"""Corpora in packed form: token sequences as one CSR matrix and offsets; sentences as arcs see them, a few codes a word."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from structpred.data.ragged import Ragged, coalesced
from structpred.data.tokens import Block, hashed
from structpred.errors import DataError
from structpred.runtime.ranges import picked


@dataclass(frozen=True)
class PackedSequences(Ragged):
    """Token t has the features ``indices[indptr[t]:indptr[t+1]]`` with ``values``; sequence i has the tokens from offsets[i] on.

    indptr: int64 (n_tokens + 1). indices: int32 (nnz), each in [0, n_features). values: float32 (nnz).
    offsets: int64 (n_sequences + 1). All arrays are C-contiguous; the constructor checks shapes, order, ranges and
    that the values are finite, and raises DataError.

    Features may come in named groups: group k has the features groups[k]..groups[k+1] - 1. Empty: all are one group (`blocks`).
    The last n_transitions features are of the step from the label before to that of the token.

    >>> import numpy as np
    >>> x = PackedSequences(np.array([0, 1, 2]), np.array([0, 1]), np.array([1.0, 2.0]), np.array([0, 2]), 2)
    >>> len(x), x.n_tokens, x.lengths.tolist()
    (1, 2, [2])
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64]
    n_features: int
    groups: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    group_names: tuple[str, ...] = ()
    n_transitions: int = 0

    def __post_init__(self) -> None:
        for name, dtype in (("indptr", np.int64), ("indices", np.int32), ("values", np.float32), ("offsets", np.int64)):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=dtype))
        groups, names = self.blocks
        self._check_order("groups", groups, self.n_features)
        if len(names) != len(groups) - 1:
            raise DataError(f"packed sequences: {len(groups) - 1} groups but {len(names)} names for them")
        self._check_order("indptr", self.indptr, len(self.indices))
        self._check_order("offsets", self.offsets, len(self.indptr) - 1)
        if len(self.values) != len(self.indices):
            raise DataError(f"packed sequences: {len(self.indices)} feature ids but {len(self.values)} values")
        if len(self.indices) and not (self.indices.min() >= 0 and self.indices.max() < self.n_features):
            raise DataError(
                f"packed sequences: feature ids must lie in [0, {self.n_features}), "
                f"got {self.indices.min()}..{self.indices.max()}"
            )
        if not np.isfinite(self.values).all():
            bad = int(np.flatnonzero(~np.isfinite(self.values))[0])
            token = int(np.searchsorted(self.indptr, bad, side="right") - 1)
            got = f"feature {self.indices[bad]} is {self.values[bad]}"
            raise DataError(f"{self.place(token)}: {got}; features must be finite (missing values must be filled in first)")

    @staticmethod
    def _check_order(name: str, array: npt.NDArray[np.int64], end: int) -> None:
        if array.ndim != 1 or len(array) == 0 or array[0] != 0 or array[-1] != end or (np.diff(array) < 0).any():
            raise DataError(f"packed sequences: {name} must rise from 0 to {end}")

    @property
    def blocks(self) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
        """(groups, group_names), also where all features are one group."""
        return (self.groups, self.group_names) if len(self.groups) else (np.array([0, self.n_features], np.int64), ("features",))

    def take(self, start: int, stop: int) -> "PackedSequences":
        """The sequences start..stop-1 as a packed corpus of their own (arrays are views where possible)."""
        t0, t1 = int(self.offsets[start]), int(self.offsets[stop])
        k0, k1 = int(self.indptr[t0]), int(self.indptr[t1])
        return PackedSequences(
            self.indptr[t0 : t1 + 1] - k0, self.indices[k0:k1], self.values[k0:k1], self.offsets[start : stop + 1] - t0,
            self.n_features, self.groups, self.group_names, self.n_transitions,
        )  # fmt: skip

    def gather(self, rows: npt.NDArray[np.int64]) -> "PackedSequences":
        """The sequences with these numbers, in this order, as a packed corpus of their own.

        >>> x = PackedSequences(np.array([0, 1, 2]), np.array([0, 1]), np.array([1.0, 2.0]), np.array([0, 1, 2]), 2)
        >>> x.gather(np.array([1, 0])).indices.tolist()
        [1, 0]
        """
        tokens, offsets = picked(self.offsets, rows)
        at, indptr = picked(self.indptr, tokens)
        own = indptr, self.indices[at], self.values[at], offsets
        return PackedSequences(*own, self.n_features, self.groups, self.group_names, self.n_transitions)

    def compact(self) -> tuple[npt.NDArray[np.int64], "PackedSequences"]:
        """The features that occur, ascending, and the sequences with these alone, numbered in this order; groups stay.

        >>> x = PackedSequences(np.array([0, 1, 2]), np.array([7, 2]), np.array([1.0, 2.0]), np.array([0, 2]), 2**20)
        >>> rows, small = x.compact()
        >>> rows.tolist(), small.indices.tolist(), small.n_features
        ([2, 7], [1, 0], 2)
        """
        if self.n_features <= 4 * len(self.indices) + (1 << 20):  # a table of all features is no larger than the sequences
            rank = np.zeros(self.n_features, np.int32)
            rank[self.indices] = 1
            rows = np.flatnonzero(rank)
            rank[rows] = np.arange(len(rows), dtype=np.int32)
            indices = rank[self.indices]
        else:
            rows = np.unique(self.indices).astype(np.int64)
            indices = np.searchsorted(rows, self.indices).astype(np.int32)
        groups = np.searchsorted(rows, self.groups).astype(np.int64)
        return rows, PackedSequences(self.indptr, indices, self.values, self.offsets, len(rows), groups, self.group_names)


def pack(blocks: Iterable[Block], n_features: int, table: npt.NDArray[np.int32] | None = None) -> PackedSequences:
    """Blocks joined to one packed corpus; ids go through the table if there is one, then those of -1 are left out.

    The table's last entry answers for the id -1.
    """
    indptrs, ids, values, lengths = [np.zeros(1, np.int64)], [], [], []
    end = 0
    for block in blocks:
        codes = block.ids if table is None else table[block.ids]
        pointers, codes, weights = coalesced(block.lengths, codes, block.values)
        indptrs.append(pointers[1:] + end)
        end += len(codes)
        ids.append(codes)
        values.append(weights)
        lengths.extend(block.sequence_lengths)
    indices = np.concatenate(ids) if ids else np.empty(0, np.int32)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    weights = np.concatenate(values) if values else np.empty(0, np.float32)
    return PackedSequences(np.concatenate(indptrs), indices, weights, offsets, n_features)


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

    def take(self, indices: Sequence[int] | npt.NDArray[np.int64]) -> "AttributedSentences":
        """The sentences with these numbers, in this order."""
        where, offsets = picked(self.offsets, np.asarray(indices, dtype=np.int64))
        codes = np.ascontiguousarray(self.codes[:, where])
        return AttributedSentences(self.names, codes, self.tags[where], self.classes[where], offsets, self.n_tags)
