"""Arrays that tokens have beside strings: numbered columns, standardised, in front of the features that have names."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from structpred.data.ragged import Ragged
from structpred.data.sequences import PackedSequences
from structpred.data.tokens import listed
from structpred.errors import DataError
from structpred.models.fields.feature_scale import FeatureScale, inverse
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import ends_of
from structpred.storage.bundles import Bundle
from structpred.storage.schema import ListOf, Record, Text, Whole, as_file_error

if TYPE_CHECKING:
    from structpred.io.templates.vectors import Part, VectorTemplates

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

    def split(self, sequences: Any) -> "tuple[Any, list[Part]]":
        """The sequences without arrays, and the arrays at all tokens."""
        if self.vectors is not None:
            return self.vectors.split(sequences)
        return _split_dicts(sequences, self.names, self.widths) if self.names else (sequences, [])

    def learn(self, parts: "Sequence[Part]") -> None:
        """Keep mean and deviation of each column. Raises DataError for an array that no token has."""
        for name, (values, _) in zip(self.names, parts, strict=True):
            if not values.size:
                raise DataError(f"{name}: no training token has a vector; is that the column of words, and their language?")
        if parts:
            self.widths = [values.shape[1] for values, _ in parts]
            mean, deviation = (np.concatenate([f(v, axis=0, dtype=np.float64) for v, _ in parts]) for f in (np.mean, np.std))
            self.scale = FeatureScale(mean, inverse(deviation))

    def beside(self, strings: PackedSequences, parts: "Sequence[Part]") -> PackedSequences:
        """Packed features behind the columns of the arrays of the same tokens; a token that has none has no entries there."""
        if self.scale.shift is None:
            return strings
        starts, lengths = ends_of(np.array(self.widths)).tolist(), np.diff(strings.indptr)
        counts = [known * width for (_, known), width in zip(parts, self.widths, strict=True)]
        indptr = ends_of(np.sum([*counts, lengths], axis=0))
        indices, data, at = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32), indptr[:-1].copy()
        for (values, known), count, a, b in zip(parts, counts, starts, starts[1:], strict=False):
            places = at[known][:, None] + np.arange(b - a)
            indices[places], scaled = np.arange(a, b), values - self.scale.shift[a:b]
            data[places] = np.multiply(scaled, self.scale.factor[a:b], out=scaled)
            at += count
        places = np.repeat(at - strings.indptr[:-1], lengths) + np.arange(len(strings.indices))
        indices[places], data[places] = strings.indices + starts[-1], strings.values
        groups, names = strings.blocks
        named = np.append(starts[:-1], groups + starts[-1]), (*self.names, *names), strings.n_transitions
        return PackedSequences(indptr, indices, data, strings.offsets, starts[-1] + strings.n_features, *named)

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


def _split_dicts(sequences: Any, names: Sequence[str], widths: Sequence[int]) -> "tuple[list[list[Any]], list[Part]]":
    """Raises DataError, naming sample, position and key, for a token without as many numbers as the first, or as at fit."""
    given = enumerate(listed(sequences, "expected a list of sequences"))
    nested = [list(listed(tokens, f"sample {i}: expected a sequence of tokens")) for i, tokens in given]
    flat, all_tokens, parts = list(chain.from_iterable(nested)), Ragged(), []
    all_tokens.offsets = ends_of(np.array(list(map(len, nested)), np.int64))
    for k, name in enumerate(names):
        arrays: list[Any] = [token.get(name) if isinstance(token, Mapping) else None for token in flat]
        width, values = widths[k] if widths else np.size(arrays[0]), np.empty((0, 0), np.float32)
        fits = np.array(
            [isinstance(own, np.ndarray) and own.shape == (width,) and own.dtype.kind in "fiub" for own in arrays], bool
        )
        if whole := bool(fits.all()):
            with np.errstate(over="ignore"):  # what does not fit into 32 bits becomes infinite
                joined = np.concatenate((values.ravel(), *arrays), dtype=np.float32, casting="unsafe")
            values = joined.reshape(len(flat), width)
            fits = np.asarray(np.isfinite(values).all(axis=1))
        if not fits.all():
            place = int(fits.argmin())
            got = "NaN or infinity" if whole else f"{type(arrays[place]).__name__} {getattr(arrays[place], 'shape', '')}"
            expected = f"expected an array of {width} finite numbers, as at all tokens"
            raise DataError(f"{all_tokens.place(place)}: feature {name!r}: {expected}, got {got.strip()}")
        parts.append((values, np.ones(len(flat), np.bool_)))
    return all_tokens.nested([{key: token[key] for key in token if key not in names} for token in flat]), parts
