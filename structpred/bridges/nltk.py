"""NLTK: a chain model as one of its taggers. This file alone needs NLTK as soon as it is imported."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from structpred.errors import DataError
from structpred.models import ChainLabeler
from structpred.runtime.dependencies import require_installed


def _interface() -> Any:
    """NLTK's TaggerI."""
    require_installed("nltk", extra="nltk", needed_by="ChainTagger")
    from nltk.tag.api import TaggerI

    return TaggerI


class ChainTagger(_interface()):  # type: ignore[misc]
    """A tagger of NLTK around a ChainLabeler: `tag`, `tag_sents`, and NLTK's own `accuracy`, `confusion`, `precision` and others.

    Parameters
    ----------
    labeler : ChainLabeler, optional
        Fitted, from `structpred.models.load` for instance; or not, for `train`. None: one with the templates "pos".
    features : callable, optional
        From the tokens of a sentence to what the labeler takes as a sequence. None: tokens that are strings are columns of one,
        those that are tuples, as a chunker's words with their parts of speech, are the columns themselves.

    Examples
    --------
    >>> tagger = ChainTagger()
    >>> tagger.train([[("the", "DET"), ("cat", "NOUN")], [("a", "DET"), ("dog", "NOUN")]])
    >>> tagger.tag(["the", "dog"])
    [('the', 'DET'), ('dog', 'NOUN')]
    """

    def __init__(self, labeler: ChainLabeler | None = None, *, features: Callable[[Sequence[Any]], Any] | None = None) -> None:
        self.labeler = ChainLabeler(template="pos") if labeler is None else labeler
        self.features = features

    def train(self, tagged_sents: Iterable[Sequence[tuple[Any, Any]]]) -> None:
        """Fit the labeler on sentences of (token, tag) pairs, as NLTK's corpora give them; those without tokens are left out."""
        sentences = [[_pair(i, t, pair) for t, pair in enumerate(sent)] for i, sent in enumerate(tagged_sents)]
        sentences = [sent for sent in sentences if sent]
        X = self._read([token for token, _ in sent] for sent in sentences)
        self.labeler.fit(X, [[tag for _, tag in sent] for sent in sentences])

    def tag(self, tokens: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Each token with its tag."""
        return self.tag_sents([tokens])[0]

    def tag_sents(self, sentences: Iterable[Sequence[Any]]) -> list[list[tuple[Any, Any]]]:
        """The same for many sentences, in one call of `predict`."""
        lists = [list(tokens) for tokens in sentences]
        found = self.labeler.predict(self._read(lists))
        return [list(zip(tokens, tags.tolist(), strict=True)) for tokens, tags in zip(lists, found, strict=True)]

    def _read(self, sentences: Iterable[Sequence[Any]]) -> list[Any]:
        make = self.features or _columns
        return [make(tokens) if tokens else [] for tokens in sentences]


def _columns(tokens: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [token if isinstance(token, tuple) else (token,) for token in tokens]


def _pair(i: int, t: int, pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise DataError(f"sentence {i}, token {t}: expected a pair (token, tag), got {pair!r}")
    return pair
