"""Feature templates without a dictionary: rows of columns to hashed feature ids, in memory that does not grow with the data."""

from collections.abc import Iterable, Sequence
from typing import Any

from structpred.data.hashing import FeatureHasher
from structpred.data.sequences import PackedSequences
from structpred.errors import ParameterError
from structpred.io.columns import ColumnCorpus
from structpred.io.templates.featurizer import checked_corpus
from structpred.io.templates.hashed_ids import hashed_features
from structpred.io.templates.templates import TEMPLATES, Template
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Record, as_file_error


class HashedTemplateFeaturizer:
    """Feature templates hashed into 2**n_bits ids: nothing is learned, and features that collide share a weight.

    >>> from structpred.io.templates.templates import TEMPLATES, Template
    >>> featurizer = HashedTemplateFeaturizer([Template("w[0]", ((0, 0),))], n_bits=10)
    >>> packed = featurizer.transform([[("the", "DT"), ("cat", "NN")]])
    >>> packed.n_features, packed.indices.tolist() == [FeatureHasher(10).id(name) for name in ("w[0]=the", "w[0]=cat")]
    (1024, True)
    """

    HEADER = Record({"templates": TEMPLATES, **FeatureHasher.HEADER.fields})

    def __init__(self, templates: Sequence[Template], n_bits: int = 18) -> None:
        self.templates = list(templates)
        self.hasher = FeatureHasher(n_bits)
        if not self.templates:
            raise ParameterError("expected at least one template, got none")

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
        """The state for a model file: a header alone."""
        return Bundle({"templates": [template.to_dict() for template in self.templates], "n_bits": self.hasher.n_bits})

    @classmethod
    def from_bundle(cls, part: Bundle) -> "HashedTemplateFeaturizer":
        """A featurizer from what `to_bundle` gave. Raises FileFormatError where it does not fit."""
        with as_file_error("the feature templates of this file cannot be used"):
            head = cls.HEADER.read(part.header, "input.header")
            return cls([Template.from_dict(entry) for entry in head["templates"]], head["n_bits"])
