"""Feature templates without a dictionary: rows of columns to hashed feature ids, in memory that does not grow with the data.

The id of a feature is the one that `FeatureHasher` gives to its string, but the string is never made. A CRC is linear: that of
two strings joined is the first one's CRC, moved on by as many zero bytes as the second has, xor the second one's CRC. So only
the distinct strings of a column are looked at one by one; the rest is arithmetic on arrays.
"""

import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.data.sequences import PackedSequences
from structpred.data.vocabulary import FeatureHasher
from structpred.io.columns import ColumnCorpus
from structpred.io.templates.coded import CorpusReading, largest_padding
from structpred.io.templates.featurizer import checked_corpus
from structpred.io.templates.templates import TEMPLATES, Template, from_file, resource_texts, with_resources
from structpred.runtime.ranges import Integers
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Record, as_file_error

Checksums = npt.NDArray[np.uint32]
BLOCK = 4096  # sentences at a time: the scratch arrays stay small
_NEAR = 64  # shifts by fewer bytes have a table of their own


def hashed_features(
    corpus: ColumnCorpus, templates: Sequence[Template], n_bits: int
) -> tuple[Integers, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """(row pointers, ids, values) of each token, ids ascending; an id that n features of a token share has the value n."""
    of, n = corpus.document_of, len(corpus)
    cuts = {int(np.searchsorted(of, of[k])) for k in range(BLOCK, n, BLOCK)} | {n}  # documents stay whole
    parts = [_of_some(corpus.take(a, b), templates, n_bits) for a, b in pairwise([0, *sorted(cuts)])]
    lengths, indices, values = (np.concatenate([part[j] for part in parts]) for j in range(3))
    return np.concatenate(([0], np.cumsum(lengths))), indices, values


def _of_some(
    corpus: ColumnCorpus, templates: Sequence[Template], n_bits: int
) -> tuple[Integers, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """(features of each token, their ids, their values)."""
    padding = largest_padding(templates)
    reading = CorpusReading(corpus, templates, padding, None)
    strings = {key: _Strings.of(list(index), padding) for key, index in reading.indexes.items()}
    ids = np.empty((corpus.n_tokens, len(templates)), np.int32)
    for k, template in enumerate(templates):
        ids[:, k] = _ids(template, reading, strings, n_bits)
    ids.sort(axis=1)
    valid = ids >= 0
    first = valid.copy()
    first[:, 1:] &= ids[:, 1:] != ids[:, :-1]
    starts = np.flatnonzero(first[valid])  # runs of one id; none goes beyond its row
    values = np.diff(starts, append=np.count_nonzero(valid)).astype(np.float32)
    return first.sum(axis=1), ids[valid][starts], values


def _ids(
    template: Template, reading: CorpusReading, strings: dict[tuple[int, str], "_Strings"], n_bits: int
) -> npt.NDArray[np.int32]:
    """The id at every token, -1 where the feature does not exist."""
    start, *rest = (piece.encode("utf-8", "surrogatepass") for piece in template.pieces)
    crc: Checksums = np.full(len(reading.position), zlib.crc32(start), np.uint32)
    applies = reading.where(template.at)
    missing = np.zeros(len(crc), np.bool_) if applies is None else ~applies
    for j, (atom, piece) in enumerate(zip(template.atoms, rest, strict=True)):
        values = strings[atom.column, atom.transform]
        if piece:  # behind each string
            moved = shifted(values.crc, np.full(len(values.crc), len(piece)))
            values = _Strings(moved ^ np.uint32(zlib.crc32(piece)), values.length + len(piece))
        codes = reading.at(atom.column, atom.offset, atom.transform, template.pad)
        missing = missing | (codes < 0)
        if j == 0:  # all tokens begin alike: the distinct strings are enough
            begun = np.full(len(values.crc), zlib.crc32(start), np.uint32)
            crc = (shifted(begun, values.length) ^ values.crc)[codes]
        else:
            crc = shifted(crc, values.length[codes]) ^ values.crc[codes]
    ids = (crc * np.uint32(0x9E3779B1)) >> np.uint32(32 - n_bits)
    return np.where(missing, np.int32(-1), ids.astype(np.int32))


class _Strings(NamedTuple):
    """CRC and number of bytes of some strings; the last one replaces a missing one."""

    crc: Checksums
    length: Integers

    @classmethod
    def of(cls, entries: list[str], padding: int) -> "_Strings":
        """Of the strings of a column and of what lies outside the sentence."""
        outside = [f"_B{sign}{k}" for sign in "-+" for k in range(1, padding + 1)]
        texts = [entry.encode("utf-8", "surrogatepass") for entry in (*entries, *outside, "")]
        return cls(np.array(list(map(zlib.crc32, texts)), np.uint32), np.array(list(map(len, texts)), np.int64))


def shifted(crc: Checksums, length: Integers) -> Checksums:
    """What each CRC contributes once `length` more bytes have been read."""
    near = _near_tables().reshape(-1)
    base = (length & (_NEAR - 1)) << 10
    out = near[base + (crc & np.uint32(255))]
    for k in (1, 2, 3):
        out ^= near[base + (256 * k) + ((crc >> np.uint32(8 * k)) & np.uint32(255))]
    far, table = length // _NEAR, _near_tables()[_NEAR]
    while far.any():  # long strings only: by powers of two
        odd = (far & 1).astype(np.bool_)
        out[odd] = _apply(table, out[odd])
        table, far = _apply(table, table), far >> 1
    return out


@cache
def _near_tables() -> Checksums:
    """[n, k, b]: byte number k with the value b, moved on by n zero bytes; n up to 64."""
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & np.uint32(1), (crc >> np.uint32(1)) ^ np.uint32(0xEDB88320), crc >> np.uint32(1))
    tables = np.empty((_NEAR + 1, 4, 256), np.uint32)
    tables[0] = np.arange(256, dtype=np.uint32) << (np.uint32(8) * np.arange(4, dtype=np.uint32)[:, None])
    for n in range(1, _NEAR + 1):
        tables[n] = crc[tables[n - 1] & np.uint32(255)] ^ (tables[n - 1] >> np.uint32(8))
    return tables


def _apply(table: Checksums, crc: Checksums) -> Checksums:
    """One shift: four look-ups per value."""
    moved: Checksums = table[0][crc & np.uint32(255)]
    for k in (1, 2, 3):
        moved = moved ^ table[k][(crc >> np.uint32(8 * k)) & np.uint32(255)]
    return moved


class HashedTemplateFeaturizer:
    """Feature templates hashed into 2**n_bits ids: nothing is learned, and features that collide share a weight.

    >>> from structpred.io.templates.templates import TEMPLATES, Template
    >>> featurizer = HashedTemplateFeaturizer([Template("w[0]", ((0, 0),))], n_bits=10)
    >>> packed = featurizer.transform([[("the", "DT"), ("cat", "NN")]])
    >>> packed.n_features, packed.indices.tolist() == [FeatureHasher(10).id(name) for name in ("w[0]=the", "w[0]=cat")]
    (1024, True)
    """

    HEADER = Record({"templates": TEMPLATES, **FeatureHasher.HEADER.fields})

    n_transitions = 0  # their features would need names

    def __init__(self, templates: Sequence[Template], n_bits: int = 18) -> None:
        self.templates = with_resources(templates)
        self.hasher = FeatureHasher(n_bits)

    @property
    def n_features(self) -> int:
        """The number of ids, 2**n_bits."""
        return self.hasher.n_features

    def transform(self, corpus: ColumnCorpus | Iterable[Any]) -> PackedSequences:
        """The corpus as packed features, ascending at each token; an id that n features of a token share has the value n.

        Raises DataError where the corpus lacks a column that a template asks for.
        """
        checked = checked_corpus(corpus, self.templates)
        indptr, indices, values = hashed_features(checked, self.templates, self.hasher.n_bits)
        return PackedSequences(indptr, indices, values, checked.offsets, self.n_features)

    fit_transform = transform  # there is nothing to fit

    def feature_names(self) -> list[str]:
        """The ids: the strings are not kept."""
        return [f"#{j}" for j in range(self.n_features)]

    def to_bundle(self) -> Bundle:
        """The state for a model file: a header, and the resources of templates."""
        header = {"templates": [template.to_dict() for template in self.templates], "n_bits": self.hasher.n_bits}
        return Bundle(header, texts=resource_texts(self.templates))

    @classmethod
    def from_bundle(cls, part: Bundle) -> "HashedTemplateFeaturizer":
        """A featurizer from what `to_bundle` gave. Raises FileFormatError where it does not fit."""
        with as_file_error("the feature templates of this file cannot be used"):
            head = cls.HEADER.read(part.header, "input.header")
            return cls(from_file(head["templates"], part.texts.__getitem__), head["n_bits"])
