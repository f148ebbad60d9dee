"""Derived columns of a corpus: what transforms make of a column, with the code of each token's own string.

`in:FILE`: B and I, with the type if there is one, where the tokens are a phrase of a list: left to right, the longest first.
`cluster:FILE`, `clusterK:FILE`: the class of the word, or its first K characters. A word or phrase counts as it is or, where the
file does not have it so, in lower case: entries in lower case match any case, others their own.

`doc_case`: how the word, in any case, is written elsewhere in its document, inside of sentences: all capitalised, never or some,
behind "first-" where the token begins its sentence. `doc_before`, `doc_after`: the neighbour, in lower case, at the first other
place of the document where a capitalised word is capitalised. Where there is no other place there is no feature, and none at all
where documents are not known: such data give the same model without these templates, and a model of documents labels a sentence
alone as one whose words come once.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

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
