"""Data of other libraries: pandas, Hugging Face datasets, spaCy, NLTK; each is imported when it is used."""

from typing import TYPE_CHECKING

from structpred.runtime.lazy_names import lazy_names

if TYPE_CHECKING:
    from structpred.bridges.annotator import Annotator
    from structpred.bridges.datasets import from_datasets, sentences_from_datasets, to_datasets, trees_to_datasets
    from structpred.bridges.nltk import ChainTagger
    from structpred.bridges.pandas import from_pandas, to_pandas, tokens_from_pandas
    from structpred.bridges.spacy import from_spacy, sentences_from_spacy, to_spacy

__all__ = [
    "Annotator", "ChainTagger", "from_datasets", "from_pandas", "from_spacy", "sentences_from_datasets", "sentences_from_spacy",
    "to_datasets", "to_pandas", "to_spacy", "tokens_from_pandas", "trees_to_datasets",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__)
