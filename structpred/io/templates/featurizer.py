"""Templates fitted to column files: which features there are, learned from a corpus, kept in model files, and their names."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.types import Integers
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, ParameterError
from structpred.io.columns import ColumnCorpus
from structpred.io.templates import coded
from structpred.io.templates.coded import Block, CodedTemplates, CorpusReading, derived_columns, largest_padding
from structpred.io.templates.templates import TEMPLATES, Template, from_file, resource_texts, with_resources
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Array, Field, Record, Whole, as_file_error, maybe

_KEYS = Array(("int64",), (None,), below=coded.KEY_LIMIT, ascending=True)


class TemplateFeaturizer(CodedTemplates):
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
    HEADER = Record({"templates": TEMPLATES, "min_count": Whole(1), "padding": Field(maybe(Whole(0, 9999)), default=None)})

    def __init__(self, templates: Sequence[Template], min_count: int = 1) -> None:
        super().__init__(with_resources(templates))
        self.min_count = min_count
        if min_count < 1:
            raise ParameterError(f"min_count must be at least 1, got {min_count}")
        self._names: list[str] | None = None

    @property
    def n_features(self) -> int:
        """The number of features."""
        return sum(len(block.keys) for block in self._blocks)

    @property
    def n_transitions(self) -> int:
        """How many of them, the last ones, are of transitions."""
        return sum(len(block.keys) for block in self._blocks if self.templates[block.templates[0]].transition)

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
        return self._packed(checked, self.reading(checked))

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

        Raises ParameterError where none would be, and for templates of transitions.
        """
        if self.n_transitions:
            raise ParameterError("groups: templates with transitions that look at words stay whole; train with fewer templates")
        groups, kept = self.groups, [k for k, name in enumerate(self.group_names) if name not in names]
        left = sorted(place for k in kept for place in self._blocks[k].templates)
        new = TemplateFeaturizer([self.templates[place] for place in left], self.min_count)
        new._padding = self._padding
        new._indexes = {key: self._indexes[key] for key in derived_columns(new.templates)}
        renumbered = {place: number for number, place in enumerate(left)}
        for k in kept:
            new._blocks.append(replace(self._blocks[k], templates=[renumbered[place] for place in self._blocks[k].templates]))
        return new, np.concatenate([np.arange(groups[k], groups[k + 1]) for k in kept])

    def feature_names(self) -> list[str]:
        """The string of each feature, as CRFsuite and CRF++ would write it: ``w[-1]|w[0]=of|the``."""
        if self._names is None:
            self._names = [name for block in self._blocks for name in self._block_names(block)]
        return list(self._names)

    def to_bundle(self) -> Bundle:
        """The fitted state for a model file."""
        header: dict[str, Any] = {"templates": [template.to_dict() for template in self.templates], "min_count": self.min_count}
        if self._padding != largest_padding(self.templates):
            header["padding"] = self._padding
        arrays: dict[str, npt.NDArray[Any]] = {}
        for k, block in enumerate(self._blocks):
            arrays[f"keys.{k}"] = block.keys
            for j, ranked in block.folds.items():
                arrays[f"fold.{k}.{j}"] = ranked
        texts = {f"column.{column}.{name}": list(index) for (column, name), index in self._indexes.items()}
        return Bundle(header, arrays, texts | resource_texts(self.templates))

    @classmethod
    def from_bundle(cls, part: Bundle) -> "TemplateFeaturizer":
        """A fitted featurizer from what `to_bundle` gave. Raises FileFormatError where the parts do not fit."""
        with as_file_error("the feature templates of this file cannot be used"):
            head = cls.HEADER.read(part.header, "input.header")
            self = cls(from_file(head["templates"], part.texts.__getitem__), head["min_count"])
            self._padding = self._padding if head["padding"] is None else head["padding"]
            self.restore(part.texts.__getitem__, part.arrays)
            for k, block in enumerate(self._blocks):
                for keys in (block.keys, *block.folds.values()):
                    _KEYS.read(keys, f"the keys of block {k}")
                # every key must stand for codes that exist
                size, fits = 1, True
                for j, atom_size in enumerate(block.sizes):
                    if j in block.folds:
                        fits = fits and block.folds[j].max(initial=-1) < size
                        size = len(block.folds[j])
                    size *= atom_size
                    fits = fits and size <= coded.KEY_LIMIT  # the keys so far fit into 64 bits
                if not fits or block.keys.max(initial=-1) >= size:
                    raise ValueError("feature keys and vocabularies do not belong together")
        return self

    def _fit(self, corpus: ColumnCorpus) -> CorpusReading:
        self._names = None
        reading = CorpusReading(corpus, self.templates, self._padding, None)
        self._indexes = reading.indexes
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

    def _packed(self, corpus: ColumnCorpus, reading: CorpusReading) -> PackedSequences:
        indptr, indices, values = self.features(reading)
        given = np.ones(len(indices), np.float32) if values is None else values
        named = self.n_features, self.groups, self.group_names, self.n_transitions
        return PackedSequences(indptr, indices, given, corpus.offsets, *named)

    def _block_names(self, block: Block) -> list[str]:
        template, values = self.templates[block.templates[0]], []
        outside = [f"_B{sign}{k}" for sign in "-+" for k in range(1, self._padding + 1)] if template.pad else []
        for atom, codes in zip(template.atoms, block.digits(), strict=True):
            entries = [*self._indexes[atom.column, atom.transform], *outside]
            values.append([entries[code] for code in codes.tolist()])
        if not values:
            return [template.render(())] * len(block.keys)
        return [template.render(parts) for parts in zip(*values, strict=True)]


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


class CountedTemplates(NamedTuple):
    """Templates fitted to a part of a corpus, every feature kept, and how often each feature occurs in it."""

    featurizer: TemplateFeaturizer
    counts: Integers

    @classmethod
    def of(cls, templates: Sequence[Template], corpus: ColumnCorpus | Iterable[Any]) -> tuple["CountedTemplates", Integers]:
        """Those of a part, and the lengths of its sentences; raises as `TemplateFeaturizer.fit` does."""
        featurizer = TemplateFeaturizer(templates)
        packed = featurizer.fit_transform(corpus)
        counts = np.bincount(packed.indices, packed.values, minlength=packed.n_features)
        return cls(featurizer, counts.astype(np.int64)), packed.lengths


def merged_templates(parts: Sequence[CountedTemplates], min_count: int = 1) -> TemplateFeaturizer:
    """One featurizer for all parts, without the features that all parts together have less than min_count times.

    Its strings and its features are sorted, so they do not depend on where one part ends and the next begins.

    >>> templates = [Template("w[0]", ((0, 0),))]
    >>> parts = [CountedTemplates.of(templates, [[("b",), ("a",)]])[0], CountedTemplates.of(templates, [[("b",)]])[0]]
    >>> merged_templates(parts).feature_names(), merged_templates(parts, 2).feature_names()
    (['w[0]=a', 'w[0]=b'], ['w[0]=b'])
    """
    new = TemplateFeaturizer(parts[0].featurizer.templates, min_count)
    for key in parts[0].featurizer._indexes:
        strings = sorted(set().union(*(part.featurizer._indexes[key] for part in parts)))
        new._indexes[key] = {string: code for code, string in enumerate(strings)}
    new._blocks = new._empty_blocks()
    for number, block in enumerate(new._blocks):
        digits = np.concatenate([_digits(part.featurizer, number, new) for part in parts])
        own = [part.counts[slice(*part.featurizer.groups[number : number + 2])] for part in parts]
        keys, places = np.unique(block.keys_of(digits.T, len(digits), learn=True), return_inverse=True)
        counts = np.bincount(places, np.concatenate(own), minlength=len(keys))
        block.keys = keys[counts >= min_count]
    return new


def _digits(part: TemplateFeaturizer, number: int, new: TemplateFeaturizer) -> Integers:
    """The codes of the atoms of each feature of a block, as the new featurizer codes their strings: (features, atoms)."""
    block, columns = part._blocks[number], []
    atoms = part.templates[block.templates[0]].atoms
    for atom, size, codes in zip(atoms, block.sizes, block.digits(), strict=True):
        old, index = (one._indexes[atom.column, atom.transform] for one in (part, new))
        known = np.array([index[string] for string in old], dtype=np.int64)
        outside = len(index) + np.arange(size - len(old))  # what stands for places before and after a sentence
        columns.append(np.concatenate((known, outside))[codes])
    return np.stack(columns, axis=1) if columns else np.zeros((len(block.keys), 0), np.int64)
