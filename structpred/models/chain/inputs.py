"""Sequences as users give them, turned into packed features: arrays, CSR matrices, feature dicts, strings, rows, corpora."""

import numbers
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from structpred.data.ragged import Ragged
from structpred.data.sequences import PackedSequences
from structpred.data.vocabulary import FeatureDictionary, FeatureHasher
from structpred.errors import DataError, ParameterError, StructpredWarning
from structpred.features.rows import csr_of
from structpred.models.chain.token_arrays import TokenArrays, array_keys
from structpred.runtime.lazy_names import later
from structpred.runtime.standard_error import callers_level
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, Flag, OneOf, Raw, Record, Whole, as_file_error, maybe

if TYPE_CHECKING:
    from structpred.io.templates.featurizer import TemplateFeaturizer
    from structpred.io.templates.hashed_templates import HashedTemplateFeaturizer
    from structpred.io.templates.templates import Template

_templates = later("structpred.io.templates.templates")
_named_templates = later("structpred.io.templates.featurizer")
_hashed_templates = later("structpred.io.templates.hashed_templates")
_vectors = later("structpred.io.templates.vectors")
#: what the constant feature and its group of weights are called
INTERCEPT = "intercept"
#: whether feature strings are hashed, and what is said of arrays beside them
_NAMED = Record({"hashed": Field(Flag(), default=False), "arrays": Field(maybe(Raw()), default=None)})


class Input(Protocol):
    """How sequences are read: one of the classes below, or what stands around one of them."""

    @property
    def kind(self) -> str:
        """What files and messages call it."""

    @property
    def n_features(self) -> int | None:
        """The number of features; None before they are known."""

    def fit_transform(self, sequences: Any) -> PackedSequences:
        """Learn the features and pack."""

    def transform(self, sequences: Any) -> PackedSequences:
        """Pack, with the features known."""

    def feature_names(self) -> list[str]:
        """What the features are called."""

    def to_bundle(self) -> Bundle:
        """Header, arrays and texts for a file."""


def holds(sequences: Any, field: str) -> bool:
    """Whether it is a corpus with this field: "pixels" of OCR words, "attributes" of CRFsuite, "vocabularies" of columns.

    By their fields corpora are known without their readers, which whoever has one has loaded.
    """
    return isinstance(sequences, Ragged) and hasattr(sequences, field)


class NumericInput:
    """2-d arrays or sparse matrices, one row per token; also packed sequences and OCR words, whose features are numbered.

    intercept: one more feature follows the columns, with the value 1 at every token, as a group of its own.
    """

    kind = "numeric"
    HEADER = Record({"n_features": Whole(), "intercept": Flag()})

    def __init__(self, n_columns: int | None = None, intercept: bool = False) -> None:
        self.n_columns, self.intercept = n_columns, intercept

    @property
    def n_features(self) -> int | None:
        """The number of columns, and the intercept."""
        return None if self.n_columns is None else self.n_columns + self.intercept

    def fit_transform(self, sequences: Any) -> PackedSequences:
        """Pack, and keep the number of columns."""
        packed = self.transform(sequences)
        self.n_columns = packed.n_features - self.intercept
        return packed

    def transform(self, sequences: Any) -> PackedSequences:
        """Pack; raises DataError, naming the sample, for other numbers of columns than at fit."""
        if holds(sequences, "pixels"):
            sequences = sequences.packed()
        if not isinstance(sequences, PackedSequences):
            sequences = _pack_matrices(sequences, self.n_columns)
        elif self.n_columns is not None and sequences.n_features != self.n_columns:
            raise DataError(f"packed sequences: expected {self.n_columns} features, got {sequences.n_features}")
        packed: PackedSequences = sequences
        if not self.intercept:
            return packed
        # one more feature, the last and a group of its own, that is 1 at every token
        n, ends = packed.n_features, packed.indptr[1:]
        starts, names = packed.blocks
        return PackedSequences(
            packed.indptr + np.arange(len(packed.indptr)), np.insert(packed.indices, ends, n),
            np.insert(packed.values, ends, 1.0), packed.offsets, n + 1, np.append(starts, n + 1), (*names, INTERCEPT),
        )  # fmt: skip

    def feature_names(self) -> list[str]:
        """The column numbers, and "intercept"."""
        return [*map(str, range(self.n_columns or 0)), *[INTERCEPT] * self.intercept]

    def to_bundle(self) -> Bundle:
        """The number of columns, and whether there is an intercept."""
        return Bundle({"n_features": self.n_columns, "intercept": self.intercept})

    @classmethod
    def from_bundle(cls, part: Bundle) -> "NumericInput":
        """The inverse of to_bundle."""
        with as_file_error("the input of this file cannot be used"):
            return cls(*cls.HEADER.read(part.header, "input.header").values())


def n_columns(input_: Input) -> int:
    """The number of features as users count them: without the intercept."""
    return (input_.n_features or 0) - (isinstance(input_, NumericInput) and input_.intercept)


def n_transitions(input_: Input) -> int:
    """The number of features of transitions, beside the n_features of tokens."""
    return input_.features.n_transitions if isinstance(input_, RowInput) else 0


class _Named:
    """Sequences of strings: `features` makes the ids, hashed ones or those of names that it has learnt.

    arrays: what tokens have beside strings; its columns come first.
    """

    kind: ClassVar[str]
    #: gives the class of `features` that hashes, and the one that learns names
    makers: ClassVar[Any]

    def __init__(self, features: Any, arrays: TokenArrays | None = None) -> None:
        self.features, self.arrays = features, TokenArrays() if arrays is None else arrays

    @property
    def n_features(self) -> int:
        """The number of features of tokens."""
        return sum(self.arrays.widths) + int(self.features.n_features) - n_transitions(self)

    @property
    def hashed(self) -> bool:
        """Whether features have no names."""
        return isinstance(self.features, self.makers()[0])

    def fit_transform(self, sequences: Any) -> PackedSequences:
        """Learn the features and pack."""
        strings, parts = self.arrays.split(sequences)
        self.arrays.learn([self.arrays.spreads(parts)])
        return self.arrays.beside(self.features.fit_transform(strings), parts)

    def transform(self, sequences: Any) -> PackedSequences:
        """Pack; features not seen at fit are left out. What this input has packed stays, such as one sentence of a document."""
        if isinstance(sequences, PackedSequences) and sequences.n_features == self.n_features + n_transitions(self):
            return sequences
        strings, parts = self.arrays.split(sequences)
        return self.arrays.beside(self.features.transform(strings), parts)

    def feature_names(self) -> list[str]:
        """The columns of arrays, and the feature strings by id."""
        return [*self.arrays.feature_names(), *self.features.feature_names()][: self.n_features]

    def to_bundle(self) -> Bundle:
        """What `features` writes, whether it hashes, and the arrays."""
        part: Bundle = self.features.to_bundle()
        if self.hashed:
            part.header["hashed"] = True
        if self.arrays.names:
            part.header["arrays"] = (own := self.arrays.to_bundle()).header
            part.add("arrays", own)
        return part

    @classmethod
    def from_bundle(cls, part: Bundle) -> Self:
        """The inverse of to_bundle."""
        hashes, learns = cls.makers()
        hashed, header = _NAMED.read(part.header, "input.header").values()
        arrays = None if header is None else TokenArrays.from_bundle(part.part("arrays", header))
        return cls((hashes if hashed else learns).from_bundle(part), arrays)


class TokenInput(_Named):
    """Feature dicts or feature strings, and CRFsuite files."""

    kind = "tokens"
    features: FeatureDictionary | FeatureHasher
    makers = staticmethod(lambda: (FeatureHasher, FeatureDictionary))

    def fit_transform(self, sequences: Any) -> PackedSequences:
        """Learn the features and pack; of a corpus that is coded already only the counts are asked for."""
        if not holds(sequences, "attributes"):
            return super().fit_transform(sequences)
        if not isinstance(self.features, FeatureDictionary):
            return super().fit_transform(sequences.dicts())  # hashing needs the names
        counts, least = np.bincount(sequences.codes, minlength=len(sequences.attributes)), self.features.min_count
        kept = [name for name, c in zip(sequences.attributes, counts.tolist(), strict=True) if c >= least]
        self.features = FeatureDictionary.from_names(kept, least)
        return sequences.packed(kept)

    def transform(self, sequences: Any) -> PackedSequences:
        """Pack; features not seen at fit are left out."""
        if not holds(sequences, "attributes"):
            return super().transform(sequences)
        if self.arrays.names or not isinstance(self.features, FeatureDictionary):
            return super().transform(sequences.dicts())
        return sequences.packed(self.features.names)

    def to_bundle(self) -> Bundle:
        """As of all; files of tokens say in any case whether they are hashed."""
        part = super().to_bundle()
        return Bundle({"hashed": self.hashed, **part.header}, part.arrays, part.texts)


class RowInput(_Named):
    """Rows of columns (lists of tuples of strings, or a column file) under feature templates."""

    kind = "rows"
    features: "TemplateFeaturizer | HashedTemplateFeaturizer"
    makers = staticmethod(lambda: (_hashed_templates().HashedTemplateFeaturizer, _named_templates().TemplateFeaturizer))

    @property
    def templates(self) -> "list[Template]":
        """All templates, those of vectors first."""
        vectors = self.arrays.vectors
        return [*(() if vectors is None else vectors.templates), *self.features.templates]


INPUTS: dict[str, type[NumericInput] | type[TokenInput] | type[RowInput]] = {
    cls.kind: cls for cls in (NumericInput, TokenInput, RowInput)
}
#: libraries of frames and tensors -> how to get sequences from those
_MAKES_SEQUENCES = {
    "pandas": "structpred.bridges.from_pandas makes X and y of it",
    "torch": "give X = [x.detach().cpu().numpy() for x in tensors]", "tensorflow": "give X = [x.numpy() for x in tensors]",
}  # fmt: skip
#: what a file says of an input: its kind, and what that kind reads; staged: rows with the labels of a first stage
INPUT = Record({"kind": OneOf((*INPUTS, "staged")), "header": Raw()})


def refuse_transitions(templates: "Sequence[Template]", what: str) -> None:
    """Raise ParameterError where a template is of transitions, which do not go with `what`."""
    for template in templates:
        if template.transition:
            raise ParameterError(f"template {template.name!r}: transitions that look at words do not go with {what}")


def choose_input(
    sequences: Any, template: "str | Sequence[Template] | None", min_count: int, n_bits: int | None
) -> tuple[Input, Any]:
    """The input that fits what the user gave, and the sequences (a generator is looked into without losing its first item).

    Raises ParameterError for settings that this kind of input cannot follow, DataError where X is not a list of sequences.
    """
    for name, value in (("min_count", min_count), *([] if n_bits is None else [("n_bits", n_bits)])):
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise ParameterError(f"{name} must be a whole number, got {value!r}")
    first = sequences[0] if isinstance(sequences, list) and sequences else sequences
    if (library := type(first).__module__.partition(".")[0]) in _MAKES_SEQUENCES:
        raise DataError(f"X: expected a list of sequences, got {library}'s {type(first).__name__}; {_MAKES_SEQUENCES[library]}")
    if template is not None:
        if not isinstance(template, str | Path | Sequence):
            raise ParameterError(f"template: expected a name, a file or a list of Template objects, got {template!r}")
        given = _templates().load_templates(template)
        with_vectors = [one for one in given if any(atom.transform.startswith(_templates().VECTORS) for atom in one.atoms)]
        templates = [one for one in given if one not in with_vectors]
        arrays = TokenArrays((), _vectors().VectorTemplates(with_vectors)) if with_vectors else None
        if n_bits is None:
            return RowInput(_named_templates().TemplateFeaturizer(templates, min_count), arrays), sequences
        refuse_transitions(templates, "hashed features: leave n_bits out")
        if min_count != 1:
            raise ParameterError("min_count has no effect with n_bits: hashing keeps no counts; leave one of the two out")
        return RowInput(_hashed_templates().HashedTemplateFeaturizer(templates, n_bits), arrays), sequences
    if holds(sequences, "vocabularies"):
        raise ParameterError("a column file needs feature templates: give template='chunking', 'ner', 'pos' or a file")
    if isinstance(sequences, PackedSequences) or holds(sequences, "pixels"):
        return _numeric(min_count, n_bits), sequences
    tokens = TokenInput(FeatureDictionary(min_count) if n_bits is None else FeatureHasher(n_bits))
    if holds(sequences, "attributes"):
        return tokens, sequences
    listed = list(as_sequences(sequences))
    if listed and _is_matrix(listed[0]):
        return _numeric(min_count, n_bits), listed
    _warn_of_columns(listed)
    return TokenInput(tokens.features, TokenArrays(array_keys(listed))), listed


def _warn_of_columns(listed: list[Any]) -> None:
    """Say so where tokens are tuples of columns, as for templates, but there is no template."""
    first = listed[0] if listed and isinstance(listed[0], list | tuple) else []
    if first and all(isinstance(t, tuple) and len(t) > 1 and len(t) == len(first[0]) and isinstance(t[0], str) for t in first):
        warnings.warn(
            "X: the tokens are tuples, as rows of columns are, but template is None: every string is then a feature by itself, "
            "without its column and without the neighbours. Give template='pos', 'chunking', 'ner' or a file; feature strings "
            "that are meant as they are go into lists",
            StructpredWarning,
            stacklevel=callers_level(),
        )


def _numeric(min_count: int, n_bits: int | None) -> NumericInput:
    if min_count != 1 or n_bits is not None:
        raise ParameterError("min_count and n_bits are about named features; these are numbered columns: leave both out")
    return NumericInput()


def as_sequences(sequences: Any) -> Iterable[Any]:
    """What can be iterated as a list of samples; raises DataError for one matrix, a string, a dict and the like."""
    is_list = isinstance(sequences, np.ndarray) and (sequences.dtype.kind == "O" or sequences.ndim > 2)
    if _is_matrix(sequences) and not is_list:
        raise DataError(
            "X: expected a list of sequences, got one matrix; did you pass one sequence instead of a list of sequences?"
        )
    if isinstance(sequences, str | bytes | Mapping) or not isinstance(sequences, Iterable):
        raise DataError(f"X: expected a list of sequences, got {type(sequences).__name__}")
    return sequences


def _is_matrix(sequence: Any) -> bool:
    return isinstance(sequence, np.ndarray) or hasattr(sequence, "tocsr")


def _pack_matrices(sequences: Any, n_columns: int | None) -> PackedSequences:
    from scipy import sparse

    blocks = []
    for i, matrix in enumerate(as_sequences(sequences)):
        hint = "; did you pass one sequence instead of a list of sequences?"
        block = csr_of(matrix, i, "features", "a 2-d array of numbers (n_tokens, n_features)", hint)
        if block.shape[0] == 0:
            raise DataError(f"sample {i}: the sequence is empty; leave it out of X and y")
        n_columns = block.shape[1] if n_columns is None else n_columns
        if block.shape[1] != n_columns:
            raise DataError(f"sample {i}: expected {n_columns} feature columns, got {block.shape[1]}")
        if not (largest := float(np.abs(block.data).max(initial=0.0))) <= float(np.finfo(np.float32).max):
            raise DataError(f"sample {i}: features must be finite and fit into 32 bits, found {largest}")
        blocks.append(block)
    if n_columns is None:
        raise DataError("X: no sequences at all; expected at least one")
    if not blocks:
        none = np.zeros(1, np.int64)
        return PackedSequences(none, np.empty(0, np.int32), np.empty(0, np.float32), none, n_columns)
    stacked = sparse.vstack(blocks, format="csr")
    offsets = np.cumsum([0, *(block.shape[0] for block in blocks)])
    return PackedSequences(stacked.indptr, stacked.indices, stacked.data, offsets, n_columns)


def around_empty(predict: Callable[..., list[Any]], X: Any, *rules: Any, nothing: Any = None) -> list[Any]:
    """predict(X, *rules), where a sequence of no tokens gets an empty result.

    rules: None, or a list with an entry for each sequence. nothing: the result where there are no other sequences; predict is
    then not asked.

    >>> around_empty(lambda X: [[len(x)] for x in X], [["a"], [], ["b", "c"]])
    [[1], [], [2]]
    >>> around_empty(lambda X: [[1 / 0] for x in X], [[]], nothing=[])
    [[]]
    """
    if not isinstance(X, list | tuple) or (X and not any(map(_is_empty, X))):
        return predict(X, *rules)
    full = [i for i, x in enumerate(X) if not _is_empty(x)]
    if not full:
        return [np.empty(0, dtype=object) if nothing is None else nothing for _ in X]
    # another sequence replaces an empty one, so that errors name samples by the user's numbers
    at = [full[max(int(np.searchsorted(full, i, side="right")) - 1, 0)] for i in range(len(X))]
    stood_in = (entries if entries is None or len(entries) != len(X) else [entries[k] for k in at] for entries in rules)
    found = predict([X[k] for k in at], *stood_in)
    return [result[:0] if _is_empty(x) else result for x, result in zip(X, found, strict=True)]


def empty_places(X: Any, rules: Any) -> list[int]:
    """The numbers of the sequences without tokens, where there are rules for sequences."""
    return [i for i, x in enumerate(X) if _is_empty(x)] if rules and isinstance(X, list | tuple) else []


def _is_empty(x: Any) -> bool:
    return len(x) == 0 if isinstance(x, list | tuple) else getattr(x, "shape", (1,))[:1] == (0,)
