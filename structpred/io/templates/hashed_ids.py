"""Hashed ids of the features of rows of columns.

The id of a feature is the one that `FeatureHasher` gives to its string, but the string is never made. A CRC is linear: that of
two strings joined is the first one's CRC, moved on by as many zero bytes as the second has, xor the second one's CRC. So only
the distinct strings of a column are looked at one by one; the rest is arithmetic on arrays.

Exported programs carry this file (`export/programs.py`): it needs NumPy alone.
"""

import zlib
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from structpred.io.column_text import ColumnCorpus
from structpred.io.templates.coded import CorpusReading, Integers, derived_indexes, largest_padding
from structpred.io.templates.template import Template

Checksums = npt.NDArray[np.uint32]
_BLOCK = 4096  # sentences at a time: the scratch arrays stay small
_NEAR = 64  # shifts by fewer bytes have a table of their own


def hashed_features(
    corpus: ColumnCorpus, templates: Sequence[Template], n_bits: int
) -> tuple[Integers, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """(row pointers, ids, values) of each token, ids ascending; an id that n features of a token share has the value n."""
    firsts = range(0, max(len(corpus), 1), _BLOCK)
    parts = [_of_some(corpus.take(k, min(k + _BLOCK, len(corpus))), templates, n_bits) for k in firsts]
    lengths, indices, values = (np.concatenate([part[j] for part in parts]) for j in range(3))
    return np.concatenate(([0], np.cumsum(lengths))), indices, values


def _of_some(
    corpus: ColumnCorpus, templates: Sequence[Template], n_bits: int
) -> tuple[Integers, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """(features of each token, their ids, their values)."""
    padding, indexes = largest_padding(templates), derived_indexes(corpus, templates)
    reading = CorpusReading(corpus, indexes, padding)
    strings = {key: _Strings.of(list(index), padding) for key, index in indexes.items()}
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
        values = strings[atom.column, atom.transform].followed_by(piece)
        codes = reading.at(atom.column, atom.offset, atom.transform, template.pad)
        missing = missing | (codes < 0)
        if j == 0:  # all tokens begin alike: the distinct strings are enough
            begun = np.full(len(values.crc), zlib.crc32(start), np.uint32)
            crc = (shifted(begun, values.length) ^ values.crc)[codes]
        else:
            crc = shifted(crc, values.length[codes]) ^ values.crc[codes]
    ids = (crc * np.uint32(0x9E3779B1)) >> np.uint32(32 - n_bits)
    return np.where(missing, np.int32(-1), ids.astype(np.int32))


class _Strings:
    """CRC and number of bytes of some strings; the last one replaces a missing one."""

    def __init__(self, crc: Checksums, length: Integers) -> None:
        self.crc, self.length = crc, length

    @classmethod
    def of(cls, entries: list[str], padding: int) -> "_Strings":
        """Of the strings of a column and of what lies outside the sentence."""
        outside = [f"_B{sign}{k}" for sign in "-+" for k in range(1, padding + 1)]
        texts = [entry.encode("utf-8", "surrogatepass") for entry in (*entries, *outside, "")]
        return cls(np.array(list(map(zlib.crc32, texts)), np.uint32), np.array(list(map(len, texts)), np.int64))

    def followed_by(self, piece: bytes) -> "_Strings":
        """Of each string and one more behind it."""
        if not piece:
            return self
        moved = shifted(self.crc, np.full(len(self.crc), len(piece)))
        return _Strings(moved ^ np.uint32(zlib.crc32(piece)), self.length + len(piece))


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
