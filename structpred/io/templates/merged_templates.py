"""Templates fitted to parts of a corpus, merged: the features of all parts, in an order that knows nothing of the parts."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Integers
from structpred.io.columns import ColumnCorpus
from structpred.io.templates import coded
from structpred.io.templates.featurizer import TemplateFeaturizer
from structpred.io.templates.templates import Template


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
        keys, places = np.unique(_keys(block, digits), return_inverse=True)
        counts = np.bincount(places, np.concatenate(own), minlength=len(keys))
        block.keys = keys[counts >= min_count]
    return new


def _digits(part: TemplateFeaturizer, number: int, new: TemplateFeaturizer) -> Integers:
    """The codes of the atoms of each feature of a block, as the new featurizer codes their strings: (features, atoms)."""
    block = part._blocks[number]
    keys, columns = block.keys, []
    for j in range(len(block.sizes) - 1, -1, -1):
        atom = part.templates[block.templates[0]].atoms[j]
        old, index = (one._indexes[atom.column, atom.transform] for one in (part, new))
        known = np.array([index[string] for string in old], dtype=np.int64)
        outside = len(index) + np.arange(block.sizes[j] - len(old))  # what stands for places before and after a sentence
        keys, codes = np.divmod(keys, block.sizes[j])
        columns.append(np.concatenate((known, outside))[codes])
        if j in block.folds:
            keys = block.folds[j][keys]
    return np.stack(columns[::-1], axis=1) if columns else np.zeros((len(keys), 0), np.int64)


def _keys(block: Any, digits: Integers) -> Integers:
    """The codes read as the digits of one number; ranks of partial keys are kept where it would be too large."""
    keys, size = np.zeros(len(digits), np.int64), 1
    for j, atom_size in enumerate(block.sizes):
        if size * atom_size > coded._KEY_LIMIT:
            block.folds[j] = np.unique(keys)
            keys, size = np.searchsorted(block.folds[j], keys), len(block.folds[j])
        keys, size = keys * atom_size + digits[:, j], size * atom_size
    return keys
