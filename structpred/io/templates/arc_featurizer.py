"""From a treebank to what arc templates look at: codes of attributes, coarse tags, and the classes of words that are counted."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.arc_templates import ArcTemplate
from structpred.data.sequences import AttributedSentences, attribute_code
from structpred.errors import DataError
from structpred.io.treebanks.treebank import Sentence, Treebank
from structpred.storage.schema import Flag, ListOf, OneOf, Record, Text, as_file_error

#: the attributes that templates may name
ATTRIBUTES = ("form", "lemma", "upos", "xpos", "feats", "case", "suffix")
_MAX_REMEMBERED = 1 << 19
#: the columns of words that they are read off, as token dicts call them
COLUMNS = ("form", "lemma", "upos", "xpos", "feats")
#: coarse tags beyond these, the most frequent ones, count as unknown: weights of tags between grow with the cube of their number
MOST_TAGS = 60
_VERBS, _PUNCTUATION, _CONJUNCTIONS = 1, 2, 4


class ArcFeaturizer:
    """Attributes and tags of words; what it learns is the list of coarse tags, and which attributes the treebank has at all.

    The coarse tag is UPOS (CPOSTAG), or XPOS where the treebank has no other. A tag that was not seen is one of its own.
    Where neither is among the attributes, tags are not looked at.
    """

    HEADER = Record({"tags": ListOf(Text(), most=MOST_TAGS), "present": ListOf(OneOf(ATTRIBUTES)), "fine": Flag()})

    def __init__(self, tags: Sequence[str] = (), present: Iterable[str] = ATTRIBUTES, *, fine: bool = False) -> None:
        self.tags, self.present, self.fine = list(tags), tuple(a for a in ATTRIBUTES if a in set(present)), fine
        self._codes: dict[str, dict[str, int]] = {name: {} for name in ATTRIBUTES}

    def __getstate__(self) -> dict[str, Any]:
        """Without the codes of words that were looked at, which are made again."""
        return {**self.__dict__, "_codes": {name: {} for name in ATTRIBUTES}}

    def fit(self, treebank: Treebank) -> "ArcFeaturizer":
        """Learn the tags."""
        return self.fit_counts(Counter(treebank.upos), Counter(treebank.xpos), attributes_of(treebank))

    def fit_counts(self, upos: Counter[str], xpos: Counter[str], present: Iterable[str]) -> "ArcFeaturizer":
        """The same of words that were counted: how often they have each tag, in order of appearance, and their attributes."""
        self.present = tuple(name for name in ATTRIBUTES if name in set(present))
        self.fine = "upos" not in self.present
        counts = upos if not self.fine else xpos if "xpos" in self.present else Counter("_")
        self.tags = sorted(tag for tag, _ in counts.most_common(MOST_TAGS))
        return self

    def usable(self, templates: Sequence[ArcTemplate]) -> list[ArcTemplate]:
        """The templates whose attributes the treebank has."""
        return [template for template in templates if template.attributes <= set(self.present)]

    @property
    def n_tags(self) -> int:
        """The root's, the unknown one, and those that were seen."""
        return len(self.tags) + 2

    def transform(self, treebank: Treebank, coded: AttributedSentences | None = None) -> AttributedSentences:
        """The sentences as codes. Raises DataError for an empty sentence.

        coded: the same sentences as a featurizer that may know other tags has them; where attributes agree, codes are taken over.
        """
        if (empty := np.flatnonzero(treebank.lengths == 0)).size:
            raise DataError(f"sample {int(empty[0])}: the sentence has no words; there is nothing to parse")
        number = {tag: k + 2 for k, tag in enumerate(self.tags)}
        column = "xpos" if self.fine else "upos"
        coarse = _numbered(getattr(treebank, column) if column in self.present else ["_"] * treebank.n_words)
        if coded is not None and coded.names == self.present:
            values, places = coarse
            tags = np.array([number.get(value, 1) for value in values], np.int32)[places]
            return replace(coded, tags=tags, n_tags=self.n_tags)
        columns = {"forms", *(_SOURCES[name][0] for name in self.present)}
        numbered = {column: _numbered(getattr(treebank, column)) for column in columns}
        codes = np.empty((len(self.present), treebank.n_words), np.uint32)
        for row, name in zip(codes, self.present, strict=True):
            values, places = numbered[_SOURCES[name][0]]
            row[:] = self._coded(name, values)[places]
        values, places = coarse
        tags = np.array([number.get(value, 1) for value in values], np.int32)[places]
        classes = np.array([word_class("x", value) for value in values], np.uint8)[places]
        values, places = numbered["forms"]
        classes[np.array([is_punctuation(value) for value in values], np.bool_)[places]] = _PUNCTUATION
        offsets = np.ascontiguousarray(treebank.offsets, dtype=np.int64)
        return AttributedSentences(self.present, codes, tags, classes, offsets, self.n_tags)

    def _coded(self, name: str, values: Sequence[str]) -> npt.NDArray[np.uint32]:
        """The codes that these values of its column have as an attribute; they are remembered."""
        derive, known = _SOURCES[name][1], self._codes[name]
        if len(known) > _MAX_REMEMBERED:
            known.clear()
        for value in values:
            if value not in known:
                known[value] = attribute_code(name, value if derive is None else derive(value))
        return np.array([known[value] for value in values], np.uint32)

    def values(self, name: str, sentence: Sentence) -> list[str]:
        """What the words of a sentence have as an attribute, in the form that is hashed."""
        column, derive = _SOURCES[name]
        words: list[str] = getattr(sentence, column)
        return words if derive is None else list(map(derive, words))

    def to_bundle(self) -> dict[str, Any]:
        """The state for a model file: plain data."""
        return {"tags": self.tags, "present": list(self.present), "fine": self.fine}

    @classmethod
    def from_bundle(cls, header: dict[str, Any]) -> "ArcFeaturizer":
        """A featurizer from what `to_bundle` gave; FileFormatError where it does not fit."""
        with as_file_error("the word attributes of this file cannot be used"):
            head = cls.HEADER.read(header, "featurizer")
            if len(set(head["tags"])) < len(head["tags"]):
                raise ValueError("a tag comes twice")
            return cls(head["tags"], head["present"], fine=head["fine"])


def case_of(feats: str) -> str:
    """The value of Case in a FEATS column; `_` where there is none."""
    for pair in feats.split("|"):
        name, _, value = pair.partition("=")
        if name.lower() == "case":
            return value
    return "_"


def _numbered(values: Sequence[str]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The different values of a column in the order of their first places, and the number of each place's."""
    number = {value: k for k, value in enumerate(dict.fromkeys(values))}
    return list(number), np.fromiter(map(number.__getitem__, values), np.int64, len(values))


def is_punctuation(form: str) -> bool:
    """Tell whether a form is not empty and all its characters are of a Unicode category P*.

    >>> is_punctuation("..."), is_punctuation("$"), is_punctuation("U.S.")
    (True, False, False)
    """
    return bool(form) and not form[0].isalnum() and all(unicodedata.category(c)[0] == "P" for c in form)


def word_class(form: str, tag: str) -> int:
    """1 for verbs and auxiliaries, 2 for punctuation, 4 for coordinating conjunctions, 0 for other words, by tag and form."""
    upper = tag.upper()
    if upper == "PUNCT" or is_punctuation(form):
        return _PUNCTUATION
    if upper.startswith("V") or upper in ("AUX", "MD"):
        return _VERBS
    return _CONJUNCTIONS if upper in ("CCONJ", "CONJ", "CC") else 0


#: attribute -> the column that it is read off, and how (None: as it is)
_SOURCES: dict[str, tuple[str, Callable[[str], str] | None]] = {
    "form": ("forms", None),
    "lemma": ("lemmas", str.lower),
    "upos": ("upos", None),
    "xpos": ("xpos", None),
    "feats": ("feats", None),
    "case": ("feats", case_of),
    "suffix": ("forms", lambda form: form.lower()[-3:]),
}


def read_off(columns: Collection[str] | None) -> tuple[str, ...]:
    """The attributes that are read off these columns, such as the suffix off the form; None: off all."""
    sources = {_SOURCES[name][0] for name in COLUMNS if columns is None or name in columns}
    return tuple(name for name in ATTRIBUTES if _SOURCES[name][0] in sources)


def attributes_of(treebank: Treebank) -> tuple[str, ...]:
    """The attributes that some word has."""
    columns = {column: set(getattr(treebank, column)) for column, _ in _SOURCES.values()}
    derived = ((name, derive, columns[column]) for name, (column, derive) in _SOURCES.items())
    return tuple(n for n, derive, values in derived if any((v if derive is None else derive(v)) != "_" for v in values))
