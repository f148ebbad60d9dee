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
    "Annotator",
    "ChainTagger",
    "from_datasets",
    "from_pandas",
    "from_spacy",
    "sentences_from_datasets",
    "sentences_from_spacy",
    "to_datasets",
    "to_pandas",
    "to_spacy",
    "tokens_from_pandas",
    "trees_to_datasets",
]

_PLACES = {
    "Annotator": "structpred.bridges.annotator",
    "ChainTagger": "structpred.bridges.nltk",
    "from_datasets": "structpred.bridges.datasets",
    "from_pandas": "structpred.bridges.pandas",
    "from_spacy": "structpred.bridges.spacy",
    "sentences_from_datasets": "structpred.bridges.datasets",
    "sentences_from_spacy": "structpred.bridges.spacy",
    "to_datasets": "structpred.bridges.datasets",
    "to_pandas": "structpred.bridges.pandas",
    "to_spacy": "structpred.bridges.spacy",
    "tokens_from_pandas": "structpred.bridges.pandas",
    "trees_to_datasets": "structpred.bridges.datasets",
}
__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
