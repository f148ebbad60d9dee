"""The feature map of second-order trees: arcs, consecutive siblings and grandparents over candidate arcs, hashed.

Templates of triples as McDonald & Pereira (2006) and Carreras (2007) have them: tags, lemmas and pairs of both.
"""

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from structpred.core.feature_map import FeatureMap
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.head_lists import head_lists
from structpred.core.oracle import Shape
from structpred.core.sparse import SparseVector, coalesced
from structpred.core.types import AnyArray, Floats, Integers
from structpred.core.weights import Vector, check_length
from structpred.features.arcs import ArcFeatures
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

_kernels = later("structpred.features._second_order_kernels")

#: what a letter of a template looks at: the first of these attributes that words have
_LOOKS = {"P": ("upos", "xpos", "form"), "X": ("xpos", "feats", "upos", "form"), "W": ("lemma", "form")}
#: a letter for each word of the triple, a dot for none; all look at the directions, those with a bar at the distance, too
_SIBLINGS = ("PPP", ".PP", "XXX", ".XX", ".WP", ".PW", "WPP", "PWP", "PPW", ".WW", "PPP|", "WXX")
_GRANDPARENTS = ("PPP", "P.P", "XXX", "X.X", "W.P", "P.W", "WPP", "PWP", "PPW", "W.W", "PPP|", "WXX")
_TEMPLATES = _SIBLINGS + _GRANDPARENTS
#: each has a block of 2**BITS weights
BITS = 18
_KINDS = np.array([text.endswith("|") for text in _TEMPLATES], dtype=np.int64)
_SEEDS = np.random.default_rng(0x5EC1).integers(1, 1 << 32, size=(len(_TEMPLATES), 3), dtype=np.uint32)
_SHIFT = np.uint32(32 - BITS)
#: the weights of all of them
SIZE = len(_TEMPLATES) << BITS


def second_order_names(names: Sequence[str]) -> list[str]:
    """What the templates are called where words have these attributes.

    >>> second_order_names(["upos", "lemma"])[4]
    's.lemma m.upos | side'
    """
    found = []
    for t, text in enumerate(_TEMPLATES):
        roles, own = ("hsm", "side") if t < len(_SIBLINGS) else ("ghm", "directions")
        atoms = [f"{role}.{_look(letter, names)}" for role, letter in zip(roles, text, strict=False) if letter != "."]
        found.append(f"{' '.join(atoms)} | {own}{' distance' if text.endswith('|') else ''}")
    return found


def _look(letter: str, names: Sequence[str]) -> str:
    return next((name for name in _LOOKS[letter] if name in names), names[0])


class _Triples(NamedTuple):
    """One sentence: the part of each row, its words, its codes; siblings come first; hashes of words for all templates."""

    part: Integers
    triples: AnyArray
    codes: AnyArray
    n_siblings: int
    table: AnyArray


class SecondOrderFeatures(FeatureMap):
    """Parts as `core.head_lists` numbers them. The features of arcs are those of `arcs`; a sibling or a grandparent has one
    weight a template. What has one word as grandparent and modifier is forbidden.

    shapes: of `candidate_shape`, with the candidates that `arcs` has.
    """

    def __init__(self, arcs: ArcFeatures, shapes: Sequence[Shape]) -> None:
        self.arcs, self.shapes = arcs, list(shapes)
        self.dtype, self.dim = arcs.dtype, arcs.dim + SIZE
        ends = arcs.dim + (np.arange(1, len(_TEMPLATES) + 1) << BITS)
        self.groups = np.concatenate((arcs.groups, ends)).astype(np.int64)
        names = arcs.data.names
        self.group_names = [*arcs.group_names, *second_order_names(names)]
        places = {letter: names.index(_look(letter, names)) for letter in _LOOKS}
        self._attributes = np.array([[places.get(letter, -1) for letter in text[:3]] for text in _TEMPLATES], dtype=np.int64)

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self.shapes)

    def n_parts(self, i: int) -> int:
        """Arcs, siblings and grandparents."""
        return int(head_lists(self.shapes[i]).blocks[-1])

    def _triples(self, i: int) -> _Triples:
        data, lists = self.arcs.data, head_lists(self.shapes[i])
        first, n = int(data.offsets[i]), len(lists.sizes) - 1
        size = int(lists.blocks[-1]) - n * (n + 1)
        check_fits(48 * size, f"sample {i}: the siblings and grandparents of a sentence of {n:,} words")
        part, triples, codes = np.empty(size, np.int64), np.empty((3, size), np.int64), np.empty((2, size), np.uint32)
        table = np.empty((3, n + 3, len(_TEMPLATES)), np.uint32)
        _kernels().hash_words(data.codes, first, n, self._attributes, _SEEDS, table)
        return _Triples(part, triples, codes, _kernels().list_triples(*lists, part, triples, codes), table)

    def _add(self, w: Vector, scale: float, i: int, out: Floats) -> _Triples:
        own = self._triples(i)
        _kernels().add_scores(w[self.arcs.dim :], scale, _SHIFT, *own[:4], _KINDS, own.table, out)
        return own

    def scores(self, w: Vector, i: int) -> Floats:
        """theta of sentence i; arcs that are not candidates have the score 0 here and are forbidden by `fixed_scores`."""
        check_length(w, self.dim)
        arcs, out = self.arcs.scores(w[: self.arcs.dim], i), np.zeros(self.n_parts(i))
        out[: len(arcs)] = arcs
        self._add(w, 1.0, i, out)
        return out

    def score_block(self, w: Vector, scale: float, start: int, stop: int, places: Integers, out: Floats) -> None:
        """out[places[i - start]:]: scale times the scores of sentence i, plus its fixed scores; for many threads at once."""
        check_length(w, self.dim)
        for i in range(start, stop):
            own = out[places[i - start] : places[i - start + 1]]
            n_arcs = self.arcs.n_parts(i)
            own[n_arcs:] = 0.0
            self.arcs.score_block(w[: self.arcs.dim], scale, i, i + 1, np.array([0, n_arcs]), own[:n_arcs])
            own[_circles(self._add(w, scale, i, own))] = FORBIDDEN

    def fixed_scores(self, i: int) -> Floats | None:
        """Those of arcs, and what forbids a word to be its own grandparent."""
        arcs, out = self.arcs.fixed_scores(i), np.zeros(self.n_parts(i))
        if arcs is not None:
            out[: len(arcs)] = arcs
        out[_circles(self._triples(i))] = FORBIDDEN
        return out

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """The joint features of sparse part counts."""
        n_arcs, own = self.arcs.n_parts(i), self._triples(i)
        of_arc = parts < n_arcs
        arcs = self.arcs.adjoint(i, parts[of_arc], counts[of_arc])
        row = np.empty(len(own.part), np.int64)
        row[own.part - n_arcs] = np.arange(len(own.part))
        size = int((~of_arc).sum()) * len(_SIBLINGS)
        check_fits(32 * size, f"the features of {size:,} siblings and grandparents")
        idx, val = np.empty(size, np.int64), np.empty(size)
        rows = row[parts[~of_arc] - n_arcs]
        _kernels().emit(rows, counts[~of_arc], _SHIFT, *own[1:4], _KINDS, own.table, idx, val)
        more = coalesced(idx, val)
        return SparseVector(np.append(arcs.indices, more.indices + self.arcs.dim), np.append(arcs.values, more.values))

    def triples_of(self, i: int, parts: Integers) -> list[tuple[str, int, int, int]]:
        """What these parts behind the arcs are, and their words; n + 1 stands for the start of a side, n + 2 for its end."""
        own = self._triples(i)
        row = {part: r for r, part in enumerate(own.part.tolist())}
        rows = [row[part] for part in parts.tolist()]
        return [("sibling" if r < own.n_siblings else "grandparent", *own.triples[:, r].tolist()) for r in rows]

    def take(self, rows: Integers) -> "SecondOrderFeatures":
        """The sentences with these numbers, in this order."""
        new = copy(self)
        new.arcs, new.shapes = self.arcs.take(rows), [self.shapes[i] for i in rows.tolist()]
        return new

    def arrays(self) -> Sequence[AnyArray]:
        """Those of arcs: they hold the candidates."""
        return self.arcs.arrays()


def _circles(own: _Triples) -> Integers:
    """The parts in which the grandparent is the modifier."""
    n = own.n_siblings
    return own.part[n:][own.triples[0, n:] == own.triples[2, n:]]
