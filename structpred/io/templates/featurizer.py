"""Templates applied to column files, on integer codes: strings are looked at once for each distinct string of a column.

Each template has its own block of feature ids, in the order of the templates. Inside a block a feature is known by a
key: the codes of its atoms read as the digits of one number (mixed radix). The keys seen at fit, sorted, are the block.
Where that number could pass 2**62, the key so far is first replaced by its rank among those seen.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.types import Integers
from structpred.data.sequences import PackedSequences
from structpred.data.tokens import coalesced
from structpred.errors import DataError, ParameterError
from structpred.io.columns import ColumnCorpus
from structpred.io.templates.templates import TEMPLATES, Template
from structpred.io.templates.transforms import transform
from structpred.storage.schema import Array, Optional, Record, Whole, array_of, as_file_error, maybe

_KEY_LIMIT = 2**62

_KEYS = Array(("int64",), (None,), below=_KEY_LIMIT, ascending=True)


@dataclass
class _Block:
    """One template, or several that share their features: the sorted keys, and the ranks that keep keys small.

    folds[j]: the sorted partial keys that were ranked before atom j joined.
    """

    templates: list[int]
    sizes: list[int]
    folds: dict[int, Integers] = field(default_factory=dict)
    keys: Integers = field(default_factory=lambda: np.empty(0, np.int64))


class CorpusReading:
    """A corpus seen through fitted vocabularies: the code of any atom at every token, -1 where it has none."""

    def __init__(self, corpus: ColumnCorpus, indexes: dict[tuple[int, str], dict[str, int]], padding: int) -> None:
        self._corpus, self._indexes, self._padding = corpus, indexes, padding
        starts, lengths = corpus.offsets[:-1], corpus.lengths
        self.position = np.arange(corpus.n_tokens) - np.repeat(starts, lengths)
        self.length = np.repeat(lengths, lengths)
        self._codes: dict[tuple[int, str], Integers] = {}
        self._shifted: dict[tuple[int, int, str, bool], Integers] = {}

    def codes(self, column: int, name: str) -> Integers:
        """The code of each token's own value in a (derived) column."""
        if (column, name) not in self._codes:
            words, index, derive = self._corpus.vocabularies[column], self._indexes[column, name], transform(name)
            table = np.full(len(words), -1, np.int64)
            for k in _used(self._corpus, column):
                derived = derive(words[k])
                if derived is not None:
                    table[k] = index.get(derived, -1)
            self._codes[column, name] = table[self._corpus.codes[:, column]]
        return self._codes[column, name]

    def at(self, column: int, offset: int, name: str, pad: bool) -> Integers:
        """The code of the token ``offset`` places away; outside the sentence -1, or with pad a code of its own."""
        key = (column, offset, name, pad)
        if key not in self._shifted:
            codes = self.codes(column, name)
            place = self.position + offset
            rolled = np.roll(codes, -offset)
            before, after = place < 0, place >= self.length
            size = len(self._indexes[column, name])
            low = size - 1 - place if pad else -1
            high = size + self._padding + place - self.length if pad else -1
            self._shifted[key] = np.where(before, low, np.where(after, high, rolled))
        return self._shifted[key]

    def where(self, at: str) -> npt.NDArray[np.bool_] | None:
        """The tokens at which a template applies; None for all."""
        if at == "any":
            return None
        applies: npt.NDArray[np.bool_] = self.position == (0 if at == "first" else self.length - 1)
        return applies


class TemplateFeaturizer:
    """Feature templates fitted to a corpus: from rows of columns to packed feature ids.

    templates: a list of Template (see `load_templates`). min_count: features seen less often at fit are left out.

    >>> from structpred.io.templates.templates import TEMPLATES, Template
    >>> corpus = ColumnCorpus.from_rows([[("the", "DT"), ("cat", "NN")]])
    >>> featurizer = TemplateFeaturizer([Template("w[0]", ((0, 0),)), Template("w[-1]", ((0, -1),))])
    >>> packed = featurizer.fit_transform(corpus)
    >>> featurizer.feature_names(), packed.indptr.tolist(), packed.indices.tolist()
    (['w[0]=the', 'w[0]=cat', 'w[-1]=the'], [0, 1, 3], [0, 1, 2])
    """

    #: padding: written where templates that need more of it were dropped, since keys depend on it
    HEADER = Record({"templates": TEMPLATES, "min_count": Whole(1), "padding": Optional(maybe(Whole(0, 9999)))})

    def __init__(self, templates: Sequence[Template], min_count: int = 1) -> None:
        self.templates = list(templates)
        self.min_count = min_count
        if not self.templates:
            raise ParameterError("expected at least one template, got none")
        if min_count < 1:
            raise ParameterError(f"min_count must be at least 1, got {min_count}")
        self._padding = largest_padding(self.templates)
        # per (column, transform): derived string -> code; a dict keeps the order, so it is the list of strings too
        self._indexes: dict[tuple[int, str], dict[str, int]] = {}
        self._blocks: list[_Block] = []
        self._names: list[str] | None = None

    @property
    def n_features(self) -> int:
        """The number of features."""
        return sum(len(block.keys) for block in self._blocks)

    def fit(self, corpus: ColumnCorpus | Iterable[Any]) -> "TemplateFeaturizer":
        """Learn the features of a corpus (a ColumnCorpus, or a list of sentences, each a list of rows of strings).

        Raises DataError where the corpus lacks a column that a template asks for.
        """
        self._fit(checked_corpus(corpus, self.templates))
        return self

    def transform(self, corpus: ColumnCorpus | Iterable[Any]) -> PackedSequences:
        """The corpus as packed features, each with the value 1; what was not seen at fit is left out."""
        if not self._blocks:
            raise ParameterError("this featurizer has not been fitted yet; call fit first")
        checked = checked_corpus(corpus, self.templates)
        return self._packed(checked, CorpusReading(checked, self._indexes, self._padding))

    def fit_transform(self, corpus: ColumnCorpus | Iterable[Any]) -> PackedSequences:
        """`fit`, then `transform`, in less time than the two."""
        checked = checked_corpus(corpus, self.templates)
        return self._packed(checked, self._fit(checked))

    def __getstate__(self) -> dict[str, Any]:
        """Without the names of features, which are made again."""
        return {**self.__dict__, "_names": None}

    @property
    def groups(self) -> Integers:
        """Where the features of each block begin, and their number: block k has groups[k]..groups[k+1] - 1."""
        return np.cumsum([0, *(len(block.keys) for block in self._blocks)]).astype(np.int64)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The name of each block: that of its template, or of all that share it."""
        return tuple(" ".join(dict.fromkeys(self.templates[k].name for k in block.templates)) for block in self._blocks)

    def without(self, names: Collection[str]) -> tuple["TemplateFeaturizer", Integers]:
        """A fitted featurizer without the blocks of these names, and which of the features are left.

        Raises ParameterError where none would be.
        """
        groups, kept = self.groups, [k for k, name in enumerate(self.group_names) if name not in names]
        left = sorted(place for k in kept for place in self._blocks[k].templates)
        new = TemplateFeaturizer([self.templates[place] for place in left], self.min_count)
        new._padding = self._padding
        new._indexes = {key: self._indexes[key] for key in _columns(new.templates)}
        renumbered = {place: number for number, place in enumerate(left)}
        for k in kept:
            new._blocks.append(replace(self._blocks[k], templates=[renumbered[place] for place in self._blocks[k].templates]))
        return new, np.concatenate([np.arange(groups[k], groups[k + 1]) for k in kept])

    def feature_names(self) -> list[str]:
        """The string of each feature, as CRFsuite and CRF++ would write it: ``w[-1]|w[0]=of|the``."""
        if self._names is None:
            self._names = [name for block in self._blocks for name in self._block_names(block)]
        return list(self._names)

    def to_bundle(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]], dict[str, list[str]]]:
        """The fitted state for a model file: plain data for JSON, arrays by name, lists of strings by name."""
        header: dict[str, Any] = {"templates": [template.to_dict() for template in self.templates], "min_count": self.min_count}
        if self._padding != largest_padding(self.templates):
            header["padding"] = self._padding
        arrays: dict[str, npt.NDArray[Any]] = {}
        for k, block in enumerate(self._blocks):
            arrays[f"keys.{k}"] = block.keys
            for j, ranked in block.folds.items():
                arrays[f"fold.{k}.{j}"] = ranked
        texts = {f"column.{column}.{name}": list(index) for (column, name), index in self._indexes.items()}
        return header, arrays, texts

    @classmethod
    def from_bundle(
        cls, header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], texts: dict[str, list[str]]
    ) -> "TemplateFeaturizer":
        """A fitted featurizer from what `to_bundle` gave. Raises FileFormatError where the parts do not fit."""
        with as_file_error("the feature templates of this file cannot be used"):
            head = cls.HEADER.read(header, "input.header")
            self = cls([Template.from_dict(entry) for entry in head["templates"]], head["min_count"])
            self._padding = self._padding if head["padding"] is None else head["padding"]
            self._indexes = {key: _known(texts, f"column.{key[0]}.{key[1]}") for key in _columns(self.templates)}
            self._blocks = self._empty_blocks()
            for k, block in enumerate(self._blocks):
                block.keys = array_of(arrays, f"keys.{k}", _KEYS)
                for j in range(len(block.sizes)):
                    if f"fold.{k}.{j}" in arrays:
                        block.folds[j] = array_of(arrays, f"fold.{k}.{j}", _KEYS)
                self._check_radix(block)
        return self

    def _fit(self, corpus: ColumnCorpus) -> CorpusReading:
        self._names = None
        self._indexes = derived_indexes(corpus, self.templates)
        reading = CorpusReading(corpus, self._indexes, self._padding)
        self._blocks = self._empty_blocks()
        for block in self._blocks:
            keys = np.concatenate(self._block_keys(block, reading, learn=True))
            size = self._radix(block)
            seen = keys[keys >= 0]
            if size <= 4 * len(seen) + 1024:
                counts = np.bincount(seen, minlength=size)
                block.keys = np.flatnonzero(counts >= self.min_count)
            else:
                distinct, counts = np.unique(seen, return_counts=True)
                block.keys = distinct[counts >= self.min_count]
        return reading

    def _empty_blocks(self) -> list[_Block]:
        """Templates that would write the same strings share a block; all others have their own."""
        groups: dict[Any, _Block] = {}
        for k, template in enumerate(self.templates):
            columns = tuple((atom.column, atom.transform) for atom in template.atoms)
            sizes = [len(self._indexes[key]) + 2 * self._padding * template.pad for key in columns]
            groups.setdefault((template.pieces, columns, template.pad), _Block([], sizes)).templates.append(k)
        return list(groups.values())

    def _radix(self, block: _Block) -> int:
        """Keys lie below this number."""
        size = 1
        for j, atom_size in enumerate(block.sizes):
            size = (len(block.folds[j]) if j in block.folds else size) * atom_size
        return size

    def _check_radix(self, block: _Block) -> None:
        """Every key of a block from a file must stand for codes that exist."""
        size = 1
        for j, atom_size in enumerate(block.sizes):
            if j in block.folds:
                if block.folds[j].max(initial=-1) >= size:
                    raise ValueError("feature keys and vocabularies do not belong together")
                size = len(block.folds[j])
            size *= atom_size
            if size > _KEY_LIMIT:  # the keys so far would not fit into 64 bits
                raise ValueError("feature keys and vocabularies do not belong together")
        if block.keys.max(initial=-1) >= size:
            raise ValueError("feature keys and vocabularies do not belong together")

    def _block_keys(self, block: _Block, reading: CorpusReading, *, learn: bool) -> list[Integers]:
        """For each template of the block the key at every token, -1 where the feature does not exist."""
        templates = [self.templates[k] for k in block.templates]
        keys = [np.zeros(len(reading.position), np.int64) for _ in templates]
        missing = [np.zeros(len(reading.position), np.bool_) for _ in templates]
        size = 1
        for j, atom_size in enumerate(block.sizes):
            if learn and size * atom_size > _KEY_LIMIT:
                block.folds[j] = np.unique(np.concatenate([key[~gone] for key, gone in zip(keys, missing, strict=True)]))
            if j in block.folds:
                keys = [_rank(np.where(gone, -1, key), block.folds[j], size) for key, gone in zip(keys, missing, strict=True)]
                missing = [gone | (key < 0) for key, gone in zip(keys, missing, strict=True)]
                size = len(block.folds[j])
            for i, template in enumerate(templates):
                atom = template.atoms[j]
                code = reading.at(atom.column, atom.offset, atom.transform, template.pad)
                missing[i] |= code < 0
                keys[i] = keys[i] * atom_size + code
            size *= atom_size
        for i, template in enumerate(templates):
            applies = reading.where(template.at)
            keys[i][missing[i] if applies is None else missing[i] | ~applies] = -1
        return keys

    def _packed(self, corpus: ColumnCorpus, reading: CorpusReading) -> PackedSequences:
        ids = np.empty((corpus.n_tokens, len(self.templates)), np.int32)
        first = 0
        for block in self._blocks:
            size = self._radix(block)
            for k, keys in zip(block.templates, self._block_keys(block, reading, learn=False), strict=True):
                ranks = _rank(keys, block.keys, size)
                ids[:, k] = np.where(ranks >= 0, ranks + first, -1)
            first += len(block.keys)
        known = ids >= 0
        lengths = known.sum(axis=1)
        if any(len(block.templates) > 1 for block in self._blocks):  # only then can a feature occur twice at a token
            indptr, indices, values = coalesced(lengths, ids[known], None)
        else:
            indices = ids[known]
            indptr, values = np.concatenate(([0], np.cumsum(lengths))), np.ones(len(indices), np.float32)
        return PackedSequences(indptr, indices, values, corpus.offsets, first, self.groups, self.group_names)

    def _block_names(self, block: _Block) -> list[str]:
        """Keys taken apart into their digits again, last atom first."""
        template = self.templates[block.templates[0]]
        keys, values = block.keys, []
        for j in range(len(block.sizes) - 1, -1, -1):
            atom = template.atoms[j]
            entries = list(self._indexes[atom.column, atom.transform])
            if template.pad:
                entries = entries + [f"_B{sign}{k}" for sign in "-+" for k in range(1, self._padding + 1)]
            keys, codes = np.divmod(keys, block.sizes[j])
            values.append([entries[code] for code in codes.tolist()])
            if j in block.folds:
                keys = block.folds[j][keys]
        if not values:
            return [template.render(())] * len(block.keys)
        return [template.render(parts) for parts in zip(*reversed(values), strict=True)]


def checked_corpus(corpus: ColumnCorpus | Iterable[Any], templates: Sequence[Template]) -> ColumnCorpus:
    """Rows as a corpus; raises DataError where it lacks a column that a template asks for."""
    made = corpus if isinstance(corpus, ColumnCorpus) else ColumnCorpus.from_rows(corpus)
    for template in templates:
        column = max((atom.column for atom in template.atoms), default=0)
        if column >= made.n_columns:
            raise DataError(
                f"{made.name}: template {template.name!r} asks for column {column}, counted from 0, "
                f"but there are only {made.n_columns} columns"
            )
    return made


def derived_indexes(corpus: ColumnCorpus, templates: Sequence[Template]) -> dict[tuple[int, str], dict[str, int]]:
    """For each (column, transform) of the templates the derived strings that occur, numbered in order of appearance."""
    indexes = {}
    for column, name in _columns(templates):
        words, derive = corpus.vocabularies[column], transform(name)
        derived = dict.fromkeys(derive(words[k]) for k in _used(corpus, column))
        indexes[column, name] = _index(entry for entry in derived if entry is not None)
    return indexes


def largest_padding(templates: Sequence[Template]) -> int:
    """The largest offset of a template that pads."""
    return max((abs(atom.offset) for template in templates if template.pad for atom in template.atoms), default=0)


def _columns(templates: Sequence[Template]) -> list[tuple[int, str]]:
    """The (derived) columns that the templates need, each once."""
    return list(dict.fromkeys((atom.column, atom.transform) for template in templates for atom in template.atoms))


def _index(entries: Iterable[str]) -> dict[str, int]:
    return {entry: code for code, entry in enumerate(entries)}


def _known(texts: dict[str, list[str]], name: str) -> dict[str, int]:
    """The strings of a column from a file, each with its code."""
    index = _index(texts[name])
    if len(index) < len(texts[name]):
        raise ValueError(f"texts {name!r}: a string comes twice")
    return index


def _used(corpus: ColumnCorpus, column: int) -> list[int]:
    """The entries of a vocabulary that occur (a part of a corpus keeps the whole vocabulary)."""
    return np.flatnonzero(np.bincount(corpus.codes[:, column])).tolist()


def _rank(keys: Integers, table: Integers, size: int) -> Integers:
    """The place of each key in a sorted table, -1 where it is not there; all keys are below size."""
    if not len(table):
        return np.full(len(keys), -1, np.int64)
    if size <= 4 * len(keys):
        places = np.full(size + 1, -1, np.int64)  # the last entry answers for the key -1
        places[table] = np.arange(len(table))
        return places[keys]
    ranks = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    return np.where(table[ranks] == keys, ranks, -1)
