"""Templates applied to columns, on integer codes: strings are looked at once for each distinct string of a column.

Each template has its own block of feature ids, in the order of the templates. Inside a block a feature is known by a
key: the codes of its atoms read as the digits of one number (mixed radix). The keys seen at fit, sorted, are the block.
Where that number could pass 2**62, the key so far is first replaced by its rank among those seen.

Transforms make derived columns of a column, with the code of each token's own string:

`in:FILE`: B and I, with the type if there is one, where the tokens are a phrase of a list: left to right, the longest first.
`cluster:FILE`, `clusterK:FILE`: the class of the word, or its first K characters. A word or phrase counts as it is or, where the
file does not have it so, in lower case: entries in lower case match any case, others their own.

`doc_case`: how the word, in any case, is written elsewhere in its document, inside of sentences: all capitalised, never or some,
behind "first-" where the token begins its sentence. `doc_before`, `doc_after`: the neighbour, in lower case, at the first other
place of the document where a capitalised word is capitalised. Where there is no other place there is no feature, and none at all
where documents are not known: such data give the same model without these templates, and a model of documents labels a sentence
alone as one whose words come once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.ragged import coalesced
from structpred.io.columns import ColumnCorpus
from structpred.io.templates.resources import FROM_FILE, LONGEST_ENTRY, Resource, looked_up
from structpred.io.templates.templates import DOCUMENT_TRANSFORMS, Template, Transform, transform
from structpred.runtime.ranges import Integers

_EVIDENCE = [f"{first}{case}" for first in ("", "first-") for case in ("all", "never", "some")]


#: distinct strings, and at each token the number of its own, -1 where there is none
Derived = tuple[list[str], npt.NDArray[np.int32]]


def derived_columns(templates: Sequence[Template]) -> list[tuple[int, str]]:
    """The (derived) columns that the templates need, each once."""
    return list(dict.fromkeys((atom.column, atom.transform) for template in templates for atom in template.atoms))


def columns_of(corpus: ColumnCorpus, templates: Sequence[Template]) -> dict[tuple[int, str], Derived]:
    """For each (column, transform) of templates, which hold the resources, the derived column of a corpus."""
    held = {name: resource for template in templates for name, resource in template.resources.items()}
    wanted, made = derived_columns(templates), dict[tuple[int, str], Derived]()
    for column in {column for column, name in wanted if name in DOCUMENT_TRANSFORMS}:
        made |= {(column, name): own for name, own in zip(DOCUMENT_TRANSFORMS, _of_documents(corpus, column), strict=True)}
    for column, name in wanted:
        if name.startswith("in:"):
            made[column, name] = _of_phrases(corpus, column, held[name[3:]])
        elif match := FROM_FILE.fullmatch(name):
            made[column, name] = _of_words(corpus, column, _class_of(held[match[2]], match[1].removeprefix("cluster")))
        elif name not in DOCUMENT_TRANSFORMS:
            made[column, name] = _of_words(corpus, column, transform(name))
    return {key: made[key] for key in wanted}


def _class_of(held: Resource, size: str) -> Transform:
    return lambda word: (looked_up(held.classes, word) or "")[: int(size or LONGEST_ENTRY)] or None


def _of_words(corpus: ColumnCorpus, column: int, derive: Transform) -> Derived:
    words, codes, index = corpus.vocabularies[column], corpus.codes[:, column], dict[str, int]()
    table = np.full(len(words), -1, np.int32)
    for k in np.flatnonzero(np.bincount(codes)).tolist():  # a part of a corpus keeps the whole vocabulary
        derived = derive(words[k])
        if derived is not None:
            table[k] = index.setdefault(derived, len(index))
    return list(index), table[codes]


def _of_phrases(corpus: ColumnCorpus, column: int, held: Resource) -> Derived:
    words, begins = corpus.column(column), _of_words(corpus, column, lambda word: word if held.longest_from(word) else None)[1]
    found, index = np.full(corpus.n_tokens, -1, np.int32), dict[str, int]()
    ends, done = np.repeat(corpus.offsets[1:], corpus.lengths), 0
    for t in np.flatnonzero(begins >= 0).tolist():
        for stop in range(min(t + held.longest_from(words[t]), ends[t]), t, -1) if t >= done else ():
            kind = looked_up(held.phrases, " ".join(words[t:stop]))
            if kind is not None:
                found[t] = index.setdefault(f"B{kind}", len(index))
                if stop > t + 1:
                    found[t + 1 : stop] = index.setdefault(f"I{kind}", len(index))
                done = stop
                break
    return list(index), found


def _of_documents(corpus: ColumnCorpus, column: int) -> list[Derived]:
    """Those of DOCUMENT_TRANSFORMS."""
    if corpus.documents is None:
        return [([], np.full(corpus.n_tokens, -1, np.int32))] * len(DOCUMENT_TRANSFORMS)
    n, (lowered, lower) = corpus.n_tokens, _of_words(corpus, column, str.lower)
    capital = _of_words(corpus, column, lambda word: word if word[:1].isupper() else None)[1] >= 0
    first = np.zeros(n, np.bool_)
    first[corpus.offsets[:-1]] = True
    of = np.repeat(corpus.document_of, corpus.lengths) * len(lowered) + lower
    same = np.unique(of, return_inverse=True)[1]  # a number for each word of each document
    inside, upper = (np.bincount(same, which)[same] - which for which in (~first, ~first & capital))
    case = np.where(inside == 0, -1, np.select([upper == inside, upper == 0], [0, 1], 2) + 3 * first)
    places = np.flatnonzero(capital)
    one, two = np.full((2, n), -1)  # by `same`: the first and the second place with a capital
    one[same[places[::-1]]] = places[::-1]
    again = places[one[same[places]] != places]
    two[same[again[::-1]]] = again[::-1]
    other = np.where(one[same] == np.arange(n), two[same], one[same])
    strings = [*lowered, "_B-1", "_B+1"]  # the ends, as templates that pad have them
    before, after = np.where(first, len(lowered), np.roll(lower, 1)), np.roll(np.where(first, len(lowered) + 1, lower), -1)
    beside = [np.where(capital & (other >= 0), near[other], -1) for near in (before, after)]
    return [_occurring(_EVIDENCE, case), *(_occurring(strings, codes) for codes in beside)]


def _occurring(strings: Sequence[str], codes: Integers) -> Derived:
    """The strings that occur alone, numbered anew."""
    used, places = np.unique(codes, return_inverse=True)
    outside = int(len(used) > 0 and used[0] < 0)
    return [strings[k] for k in used[outside:].tolist()], (places - outside).astype(np.int32)


KEY_LIMIT = 2**62
#: for each (column, transform) the derived strings and their codes; a dict keeps the order, so it is the list of strings too
Indexes = dict[tuple[int, str], dict[str, int]]


@dataclass
class Block:
    """One template, or several that share their features: the sorted keys, and the ranks that keep keys small.

    folds[j]: the sorted partial keys that were ranked before atom j joined.
    """

    templates: list[int]
    sizes: list[int]
    folds: dict[int, Integers] = field(default_factory=dict)
    keys: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    def digits(self) -> list[Integers]:
        """The code of each atom in all features: the keys taken apart again, last atom first."""
        keys, found = self.keys, list[Integers]()
        for j in range(len(self.sizes) - 1, -1, -1):
            keys, codes = np.divmod(keys, self.sizes[j])
            found.append(codes)
            if j in self.folds:
                keys = self.folds[j][keys]
        return found[::-1]

    def keys_of(self, atoms: Iterable[Integers], n: int, *, learn: bool) -> Integers:
        """The keys of n features, -1 for those that do not exist. atoms: the codes of each atom. learn: make the folds."""
        keys, missing, size = np.zeros(n, np.int64), np.zeros(n, np.bool_), 1
        for j, (atom_size, codes) in enumerate(zip(self.sizes, atoms, strict=True)):
            if learn and size * atom_size > KEY_LIMIT:
                self.folds[j] = np.unique(keys[~missing])
            if j in self.folds:
                keys = _rank(np.where(missing, -1, keys), self.folds[j], size)
                missing |= keys < 0
                size = len(self.folds[j])
            missing |= codes < 0
            keys = keys * atom_size + codes
            size *= atom_size
        keys[missing] = -1
        return keys


class CorpusReading:
    """A corpus seen through fitted vocabularies: the code of any atom at every token, -1 where it has none."""

    def __init__(self, corpus: ColumnCorpus, templates: Sequence[Template], padding: int, indexes: Indexes | None) -> None:
        """indexes: the codes of derived strings; None: they are learnt, in order of appearance where the transform is plain."""
        columns = columns_of(corpus, templates)
        self.indexes = {key: index_of(made) for key, (made, _) in columns.items()} if indexes is None else indexes
        self._padding = padding
        starts, lengths = corpus.offsets[:-1], corpus.lengths
        self.position = np.arange(corpus.n_tokens) - np.repeat(starts, lengths)
        self.length = np.repeat(lengths, lengths)
        self._codes: dict[tuple[int, str], Integers] = {}
        for key, (strings, codes) in columns.items():
            known = np.array([*(self.indexes[key].get(string, -1) for string in strings), -1], np.int64)
            self._codes[key] = known[codes]  # the last entry answers for the code -1
        self._shifted: dict[tuple[int, int, str, bool], Integers] = {}

    def at(self, column: int, offset: int, name: str, pad: bool) -> Integers:
        """The code of the token ``offset`` places away; outside the sentence -1, or with pad a code of its own."""
        key = (column, offset, name, pad)
        if key not in self._shifted:
            codes = self._codes[column, name]
            place = self.position + offset
            rolled = np.roll(codes, -offset)
            before, after = place < 0, place >= self.length
            size = len(self.indexes[column, name])
            low = size - 1 - place if pad else -1
            high = size + self._padding + place - self.length if pad else -1
            self._shifted[key] = np.where(before, low, np.where(after, high, rolled))
        return self._shifted[key]

    def where(self, at: str) -> npt.NDArray[np.bool_] | None:
        """The tokens at which a template applies; None for all."""
        if at == "any":
            return None
        return self.position == (0 if at == "first" else self.length - 1)


class CodedTemplates:
    """Templates, the strings of their columns, and the features that were seen at fit."""

    def __init__(self, templates: Sequence[Template], padding: int | None = None) -> None:
        self.templates = sorted(templates, key=lambda template: template.transition)  # their features are the last ones
        self._padding = largest_padding(self.templates) if padding is None else padding
        self._indexes: Indexes = {}
        self._blocks: list[Block] = []

    def restore(self, texts: Callable[[str], Sequence[str]], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """What was seen at fit. texts: gives the list of a name, column.j.transform of each derived column.

        arrays: of each block keys.k, and fold.k.j where keys are ranked before atom j joins. ValueError for equal strings.
        """
        self._indexes, self._blocks = {}, []
        for column, name in derived_columns(self.templates):
            listed = texts(f"column.{column}.{name}")
            self._indexes[column, name] = index_of(listed)
            if len(self._indexes[column, name]) < len(listed):
                raise ValueError(f"texts of column {column} {name!r}: a string comes twice")
        for k, block in enumerate(self._empty_blocks()):
            folds = {j: arrays[f"fold.{k}.{j}"] for j in range(len(block.sizes)) if f"fold.{k}.{j}" in arrays}
            self._blocks.append(replace(block, keys=arrays[f"keys.{k}"], folds=folds))

    def reading(self, corpus: ColumnCorpus) -> CorpusReading:
        """A corpus through the strings that are known."""
        return CorpusReading(corpus, self.templates, self._padding, self._indexes)

    def features(self, reading: CorpusReading) -> tuple[Integers, npt.NDArray[np.int32], npt.NDArray[np.float32] | None]:
        """(row pointers, ids, values) of the features of each token; values None: all are 1."""
        ids = np.empty((len(reading.position), len(self.templates)), np.int32)
        first = 0
        for block in self._blocks:
            size = self._radix(block)
            for k, keys in zip(block.templates, self._block_keys(block, reading, learn=False), strict=True):
                ranks = _rank(keys, block.keys, size)
                ids[:, k] = np.where(ranks >= 0, ranks + first, -1)
            first += len(block.keys)
        known = ids >= 0
        lengths = known.sum(axis=1)
        if any(len(block.templates) > 1 for block in self._blocks):  # only then can a feature occur twice at a token
            return coalesced(lengths, ids[known], None)
        return np.concatenate(([0], np.cumsum(lengths))), ids[known], None

    def _empty_blocks(self) -> list[Block]:
        """Templates that would write the same strings share a block; all others have their own."""
        groups: dict[Any, Block] = {}
        for k, template in enumerate(self.templates):
            columns = tuple((atom.column, atom.transform) for atom in template.atoms)
            sizes = [len(self._indexes[key]) + 2 * self._padding * template.pad for key in columns]
            groups.setdefault((template.pieces, columns, template.pad, template.transition), Block([], sizes)).templates.append(k)
        return list(groups.values())

    def _radix(self, block: Block) -> int:
        """Keys lie below this number."""
        size = 1
        for j, atom_size in enumerate(block.sizes):
            size = (len(block.folds[j]) if j in block.folds else size) * atom_size
        return size

    def _block_keys(self, block: Block, reading: CorpusReading, *, learn: bool) -> list[Integers]:
        """For each template of the block the key at every token, -1 where the feature does not exist."""
        templates = [self.templates[k] for k in block.templates]
        n, padded = len(reading.position), templates[0].pad  # all of a block have atoms of the same columns
        atoms = (
            np.concatenate([reading.at(atom.column, atom.offset, atom.transform, padded) for atom in same])
            for same in zip(*(template.atoms for template in templates), strict=True)
        )
        keys = np.split(block.keys_of(atoms, n * len(templates), learn=learn), len(templates))
        for own, template in zip(keys, templates, strict=True):
            if (applies := reading.where(template.at)) is not None:
                own[~applies] = -1
        return keys


def largest_padding(templates: Sequence[Template]) -> int:
    """The largest offset of a template that pads."""
    return max((abs(atom.offset) for template in templates if template.pad for atom in template.atoms), default=0)


def index_of(entries: Iterable[str]) -> dict[str, int]:
    """The place of each string."""
    return {entry: code for code, entry in enumerate(entries)}


def _rank(keys: Integers, table: Integers, size: int) -> Integers:
    """The place of each key in a sorted table, -1 where it is not there; all keys are below size."""
    if not len(table):
        return np.full(len(keys), -1, np.int64)
    if size <= 4 * len(keys):
        places = np.full(size + 1, -1, np.int64)  # the last entry answers for the key -1
        places[table] = np.arange(len(table))
        return places[keys]
    ranks = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    return np.where(table[ranks] == keys, ranks, -1)
