"""The component `structpred` of a spaCy pipeline: `nlp.add_pipe("structpred", config={"model": "tagger.spz"})`."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from structpred.bridges import spacy as bridge
from structpred.bridges.predictions import plain_lists
from structpred.data.tag_schemes import scheme_of
from structpred.errors import DataError, ParameterError
from structpred.io.columns import ColumnCorpus
from structpred.text.suggestions import did_you_mean

if TYPE_CHECKING:  # spaCy imports this file whenever it is imported itself, so models are loaded when one is read
    from structpred.models import ChainLabeler, DependencyParser

#: what a labeller's labels may be set as
SETS = ("tag", "pos", "ents", "spans")
#: word attributes of a parser -> how spaCy calls them
_ATTRIBUTES = {"lemma": "LEMMA", "upos": "POS", "xpos": "TAG", "feats": "MORPH", "case": "MORPH"}


class Annotator:
    """The component `structpred` of a spaCy pipeline: what a model file predicts is set on each document.

    A ChainLabeler sets token.tag_, token.pos_, doc.ents, or the spans doc.spans[name]. Trained with the log loss it sets those
    that are more probable than 0.5, with their probabilities in doc.spans[name].attrs["scores"]. A DependencyParser sets heads
    and relations, and thereby the sentence boundaries; a ParsingPipeline sets tags, too. Sentences are found as by `from_spacy`:
    put a sentencizer before the component. nlp.to_disk and nlp.to_bytes hold the model itself. The settings are those of
    `nlp.add_pipe`'s config.

    Parameters
    ----------
    name : str
        Of the component.
    model : path, optional
        A model file. It is read when it is there; where it is not, at the first document, unless nlp.from_disk brings the model.
    sets : str, optional
        For a ChainLabeler one of "tag", "pos", "ents" and "spans". None: "ents" where the labels are tags of phrases, "pos" where
        they are universal parts of speech, else "tag".
    columns : list of str, optional
        What the templates see, as in `from_spacy`. None: "text", or "text" and "tag_", as many as they read.
    features : callable, optional
        From a list of tokens to their features, where the model was trained on feature dicts: in config
        ``{"@misc": "my_features.v1"}``, a function of spaCy's registry.

    Raises
    ------
    ParameterError
        Where settings and model do not go together.
    """

    def __init__(
        self, name: str, model: str | os.PathLike[str] | None = None, sets: str | None = None,
        columns: Sequence[str] | None = None, features: Callable[[list[bridge.Token]], Any] | None = None,
    ) -> None:  # fmt: skip
        self.name, self.path, self.sets, self.columns, self.features = name, model, sets, columns, features
        self._model: ChainLabeler | DependencyParser | None = None
        if model is not None and Path(model).exists():
            self._read(model)

    @property
    def estimator(self) -> "ChainLabeler | DependencyParser":
        """The fitted model; read now if it was not there before. (spaCy looks at an attribute `model` of its own components.)"""
        if self._model is not None:
            return self._model
        if self.path is None:
            raise ParameterError(f"the component {self.name!r} has no model: config={{'model': 'FILE'}}")
        return self._read(self.path)

    def __call__(self, doc: bridge.Doc) -> bridge.Doc:
        """Annotate one document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[bridge.Doc], *, batch_size: int = 128) -> Iterator[bridge.Doc]:
        """Annotate documents, `batch_size` at once: each block is one call of `predict`."""
        from structpred.models import DependencyParser

        docs, model = iter(stream), self.estimator
        while block := list(itertools.islice(docs, batch_size)):
            sentences = list(bridge.each_sentence(block))
            if isinstance(model, DependencyParser):
                self._parse(model, [tokens for _, tokens in sentences])
            else:
                self._label(model, block, sentences)
            yield from block

    def to_disk(self, path: str | os.PathLike[str], *, exclude: Iterable[str] = ()) -> None:
        """Write the model into a folder."""
        Path(path).mkdir(parents=True, exist_ok=True)
        self.estimator.save(Path(path) / "model.spz")

    def from_disk(self, path: str | os.PathLike[str], *, exclude: Iterable[str] = ()) -> "Annotator":
        """Read what to_disk wrote."""
        self._read(Path(path) / "model.spz")
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model file as bytes."""
        with TemporaryDirectory() as folder:
            self.to_disk(folder)
            return (Path(folder) / "model.spz").read_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "Annotator":
        """Read what to_bytes gave."""
        with TemporaryDirectory() as folder:
            (Path(folder) / "model.spz").write_bytes(data)
            return self.from_disk(folder)

    def _read(self, path: str | os.PathLike[str]) -> "ChainLabeler | DependencyParser":
        from structpred.models import DependencyParser
        from structpred.models.files import load_estimator

        model: ChainLabeler | DependencyParser = load_estimator(path, "ChainLabeler", "DependencyParser", "ParsingPipeline")
        if not isinstance(model, DependencyParser):
            _target(model, self.sets)
            if self.features is None:
                _columns(model, self.columns)
        elif self.sets is not None:
            raise ParameterError(f"sets: the model is a parser, which sets heads and relations, got {self.sets!r}")
        self._model = model
        return model

    def _label(self, model: "ChainLabeler", docs: Sequence[bridge.Doc], sentences: list[tuple[str, list[bridge.Token]]]) -> None:
        if self.features is None:
            names = _columns(model, self.columns)
            rows = [bridge.rows_of(tokens, names, place) for place, tokens in sentences]
            X: Any = rows and ColumnCorpus.from_rows(rows, groups=[id(tokens[0].doc) for _, tokens in sentences])
        else:
            X = [self.features(tokens) for _, tokens in sentences]
        words, target = [tokens for _, tokens in sentences], _target(model, self.sets)
        spans: dict[int, list[Any]] = {id(doc): [] for doc in docs}
        if target == "spans" and model.probabilistic_:
            for tokens, own in zip(words, model.predict_phrases(X), strict=True):
                chances = (phrase.probability for phrase in own)
                spans[id(tokens[0].doc)] += zip(bridge.spans_of(tokens, own), chances, strict=True)
            for doc in docs:
                doc.spans[self.name] = [span for span, _ in spans[id(doc)]]
                doc.spans[self.name].attrs["scores"] = np.array([chance for _, chance in spans[id(doc)]])
            return
        found = plain_lists(model.predict(X), [len(tokens) for tokens in words])
        if target in ("tag", "pos"):
            for token, label in zip(itertools.chain(*words), itertools.chain(*found), strict=True):
                setattr(token, f"{target}_", str(label))
            return
        for tokens, phrases in zip(words, bridge.phrases_of(words, found), strict=True):
            spans[id(tokens[0].doc)] += phrases
        for doc in docs:
            if target == "ents":
                doc.set_ents(spans[id(doc)])
            else:
                doc.spans[self.name] = spans[id(doc)]

    def _parse(self, parser: "DependencyParser", words: list[list[bridge.Token]]) -> None:
        from structpred.models.parser.sentences import attributes_read

        needed = attributes_read(parser)
        for tokens in words:
            if missing := [name for name in needed if not tokens[0].doc.has_annotation(_ATTRIBUTES[name])]:
                raise DataError(
                    f"the parser was trained with {', '.join(needed)}, and the document {bridge.shortened(tokens)} has no "
                    f"{missing[0]} (Token.{_ATTRIBUTES[missing[0]].lower()}): put a component that sets it before {self.name!r}"
                )
        sentences = [bridge.words_of(tokens) for tokens in words]
        if words and "upos" in parser._brings:
            known = bridge.universal_tags()
            for token, tag in zip(itertools.chain(*words), parser._words(sentences).upos, strict=True):
                setattr(token, "pos_" if tag in known else "tag_", tag)
        bridge.set_trees(words, parser.predict(sentences) if words else [])


def make_annotator(
    nlp: Any, name: str, model: str | None = None, sets: str | None = None, columns: list[str] | None = None,
    features: Callable[[list[Any]], Any] | None = None,
) -> Annotator:  # fmt: skip
    """The factory that spaCy calls; its settings are those of `Annotator`."""
    return Annotator(name, model, sets, columns, features)


_DEFAULTS = {"model": None, "sets": None, "columns": None, "features": None}
_ASSIGNS = ("token.tag", "token.pos", "token.head", "token.dep", "token.is_sent_start", "doc.ents")


def __getattr__(name: str) -> Any:
    """`factory`, which the entry point names: make_annotator, when spaCy knows it and its settings."""
    if name != "factory":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    bridge.register("structpred", make_annotator, _DEFAULTS, _ASSIGNS)
    return make_annotator


def columns_read(model: "ChainLabeler") -> set[int]:
    """The columns that the templates of a labeler read, by number; none for a model of feature dicts.

    >>> from structpred.models import ChainLabeler
    >>> sorted(columns_read(ChainLabeler(template="chunking").fit([[("the", "DT"), ("cat", "NN")]], [["B-NP", "I-NP"]])))
    [0, 1]
    """
    return {atom.column for template in getattr(model.input_, "templates", ()) for atom in template.atoms}


def _target(model: "ChainLabeler", wanted: str | None) -> str:
    """What the labels are set as; ParameterError for labels that cannot be."""
    labels, universal = list(map(str, model.classes_.tolist())), bridge.universal_tags()
    if wanted is None:
        phrases = scheme_of([(label, 1) for label in labels], [labels]) is not None
        return "ents" if phrases else "pos" if set(labels) <= universal else "tag"
    if wanted not in SETS:
        raise ParameterError(f"sets: expected one of {', '.join(SETS)}, got {wanted!r}{did_you_mean(wanted, SETS)}")
    if wanted == "pos" and (others := set(labels) - universal):
        raise ParameterError(f"sets: token.pos_ takes universal parts of speech only, and the model has {min(others)!r}")
    return wanted


def _columns(model: "ChainLabeler", wanted: Sequence[str] | None) -> tuple[str, ...]:
    """The attributes of tokens that the templates read."""
    read = columns_read(model)
    if not read:
        raise ParameterError("features: the model was not trained with templates; name a function that makes its features")
    names = ("text", "tag_")[: max(read) + 1] if wanted is None else tuple(wanted)
    if len(names) <= max(read):
        raise ParameterError(f"columns: the templates of the model read {max(read) + 1} columns, got the attributes {names}")
    return names
