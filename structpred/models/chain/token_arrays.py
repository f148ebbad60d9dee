"""Arrays that tokens have beside strings: numbered columns, standardised, in front of the features that have names."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structpred.data.sequences import PackedSequences
from structpred.data.tokens import Part, in_front, split_dicts
from structpred.errors import DataError
from structpred.models.fields.feature_scale import FeatureScale, Spread
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import ends_of
from structpred.storage.bundles import Bundle
from structpred.storage.schema import ListOf, Record, Text, Whole, as_file_error

if TYPE_CHECKING:
    from structpred.io.templates.vectors import VectorTemplates

_vectors = later("structpred.io.templates.vectors")


class TokenArrays:
    """Arrays as features: each is a group of columns NAME[0], NAME[1], ..., standardised over the training tokens with one.

    names: the keys of feature dicts. vectors: in place of keys. widths: how many columns each has, once it is known.
    """

    HEADER = Record({"names": ListOf(Text(), 1), "widths": ListOf(Whole(1), 1)})

    def __init__(self, names: Sequence[str] = (), vectors: "VectorTemplates | None" = None) -> None:
        self.names, self.vectors = list(names if vectors is None else vectors.names), vectors
        self.widths, self.scale = list[int](), FeatureScale(None, np.zeros(0))

    def feature_names(self) -> list[str]:
        """NAME[column], array after array."""
        return [f"{name}[{k}]" for name, width in zip(self.names, self.widths, strict=False) for k in range(width)]

    def split(self, sequences: Any) -> tuple[Any, list[Part]]:
        """The sequences without arrays, and the arrays at all tokens."""
        return split_dicts(sequences, self.names, self.widths) if self.vectors is None else self.vectors.split(sequences)

    def spreads(self, parts: Sequence[Part]) -> dict[str, Spread]:
        """Mean and variance of the columns of each array that some token has."""
        named = zip(self.names, (values for values, _ in parts), strict=True)
        of: Any = {"axis": 0, "dtype": np.float64}
        return {name: Spread(len(v), v.mean(**of), v.var(**of), np.zeros(0)) for name, v in named if len(v)}

    def learn(self, shards: Sequence[Mapping[str, Spread]]) -> None:
        """Keep mean and deviation of each column, over all shards. Raises DataError for an array that no token has.

        A shard whose arrays are not as wide as those of the first is left out here: it is an error where it is packed.
        """
        scales = list[Any]()
        for name in self.names:
            found = [shard[name] for shard in shards if name in shard]
            if not sum(len(spread.mean) for spread in found):
                raise DataError(f"{name}: no training token has a vector; is that the column of words, and their language?")
            alike = [spread for spread in found if len(spread.mean) == len(found[0].mean)]
            scales.append(FeatureScale.merged("standard", alike))
        if scales:
            self.widths = [len(scale.factor) for scale in scales]
            self.scale = FeatureScale(*map(np.concatenate, zip(*scales, strict=True)))

    def beside(self, strings: PackedSequences, parts: Sequence[Part]) -> PackedSequences:
        """Packed features behind the columns of the arrays of the same tokens; a token that has none has no entries there."""
        if self.scale.shift is None:
            return strings
        rows = in_front((strings.indptr, strings.indices, strings.values), parts, self.scale.shift, self.scale.factor)
        (groups, names), starts = strings.blocks, ends_of(np.array(self.widths))
        named = np.append(starts[:-1], groups + starts[-1]), (*self.names, *names), strings.n_transitions
        return PackedSequences(*rows, strings.offsets, int(starts[-1]) + strings.n_features, *named)

    def to_bundle(self) -> Bundle:
        """The fitted state for a model file."""
        part = Bundle({}) if self.vectors is None else self.vectors.to_bundle()
        part.header |= {"names": self.names, "widths": self.widths}
        part.arrays |= self.scale.arrays()
        return part

    @classmethod
    def from_bundle(cls, part: Bundle) -> "TokenArrays":
        """The inverse of to_bundle. Raises FileFormatError where the parts do not fit."""
        with as_file_error("the arrays beside strings of this file cannot be used"):
            names, widths = cls.HEADER.read(part.header, "input.header.arrays").values()
            new = cls(names, _vectors().VectorTemplates.from_bundle(part) if "templates" in part.header else None)
            new.widths, scale = widths, FeatureScale.from_arrays("standard", part.arrays, sum(widths))
            if new.names != names or len(names) != len(widths) or scale is None:
                raise ValueError("names and widths do not belong together")
            new.scale = scale
        return new


def array_keys(sequences: Sequence[Any]) -> list[str]:
    """The keys of the first token whose values are arrays."""
    tokens = sequences[0] if sequences and isinstance(sequences[0], list | tuple) else ()
    token = tokens[0] if tokens and isinstance(tokens[0], Mapping) else {}
    return [key for key, value in token.items() if isinstance(key, str) and isinstance(value, np.ndarray)]
