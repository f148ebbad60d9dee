"""The feature map of second-order trees: arcs, consecutive siblings and grandparents over candidate arcs, hashed.

Siblings as McDonald & Pereira (2006) have them, grandparents as Carreras (2007): tags, lemmas and both.
"""

from collections.abc import Sequence
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
#: what they are called; P is a tag, X a finer one or morphology, W a lemma
SECOND_ORDER = [f"sibling {text}" for text in _SIBLINGS] + [f"grandparent {text}" for text in _GRANDPARENTS]
#: each has a block of 2**BITS weights
BITS = 18
_KINDS = np.array([text.endswith("|") for text in _TEMPLATES], dtype=np.int64)
_SEEDS = np.random.default_rng(0x5EC1).integers(1, 1 << 32, size=(len(_TEMPLATES), 3), dtype=np.uint32)
_SHIFT = np.uint32(32 - BITS)
#: the weights of all of them
SIZE = len(_TEMPLATES) << BITS


class Triples(NamedTuple):
    """A row for each part of a sentence behind the arcs: its words, its codes, the first of its templates; hashes of words."""

    words: AnyArray
    codes: AnyArray
    begins: Integers
    table: AnyArray

    @property
    def circles(self) -> Integers:
        """The grandparents that are the modifier."""
        return np.flatnonzero((self.begins > 0) & (self.words[0] == self.words[2]))


class SecondOrderFeatures(FeatureMap):
    """Parts as `core.head_lists` numbers them. The features of arcs are those of `arcs`; a sibling or a grandparent has one
    weight a template. What has one word as grandparent and modifier is forbidden.

    shapes: of `candidate_shape`, with the candidates that `arcs` has.
    """

    def __init__(self, arcs: ArcFeatures, shapes: Sequence[Shape]) -> None:
        self.arcs, self.shapes = arcs, list(shapes)
        self.dtype, self.dim = arcs.dtype, arcs.dim + SIZE
        ends = arcs.dim + (np.arange(1, len(_TEMPLATES) + 1) << BITS)
        self.groups, self.group_names = np.append(arcs.groups, ends), [*arcs.group_names, *SECOND_ORDER]
        names = arcs.data.names
        own = {letter: next((name for name in looks if name in names), names[0]) for letter, looks in _LOOKS.items()}
        places = {".": -1, **{letter: names.index(name) for letter, name in own.items()}}
        self._attributes = np.array([[places[letter] for letter in text[:3]] for text in _TEMPLATES])

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self.shapes)

    def n_parts(self, i: int) -> int:
        """Arcs, siblings and grandparents."""
        return int(head_lists(self.shapes[i]).parts[-1]) + 1

    def triples(self, i: int) -> Triples:
        """The parts of sentence i behind the arcs; n + 1 stands for the start of a side, n + 2 for its end."""
        data, lists, n = self.arcs.data, head_lists(self.shapes[i]), self.shapes[i][0]
        size = self.n_parts(i) - self.arcs.n_parts(i)
        check_fits(48 * size, f"sample {i}: the siblings and grandparents of a sentence of {n:,} words")
        codes = np.full((len(data.names), n + 3), 7, np.uint32)  # the root's, and those of a start and an end
        codes[:, 1 : n + 1], codes[:, n + 1], codes[:, n + 2] = data.codes[:, data.offsets[i] : data.offsets[i + 1]], 11, 15
        x = (codes[self._attributes] ^ _SEEDS[:, :, None]) * np.uint32(0x9E3779B1)
        x = (x ^ (x >> np.uint32(15))) * np.uint32(0x85EBCA77)
        x = np.where(self._attributes[:, :, None] < 0, np.uint32(0), x ^ (x >> np.uint32(13)))
        found = np.empty((3, size), np.int64), np.empty((2, size), np.uint32), np.empty(size, np.int64)
        _kernels().list_triples(*lists[:3], len(_SIBLINGS), *found)
        return Triples(*found, np.ascontiguousarray(x.transpose(1, 2, 0)))

    def scores(self, w: Vector, i: int) -> Floats:
        """theta of sentence i; arcs that are not candidates have the score 0 here and are forbidden by `fixed_scores`."""
        check_length(w, self.dim)
        second = np.zeros(self.n_parts(i) - self.arcs.n_parts(i))
        _kernels().add_scores(w[self.arcs.dim :], 1.0, _SHIFT, tuple(self.triples(i)), _KINDS, second)
        return np.append(self.arcs.scores(w[: self.arcs.dim], i), second)

    def score_block(self, w: Vector, scale: float, start: int, stop: int, places: Integers, out: Floats) -> None:
        """out[places[i - start]:]: scale times the scores of sentence i, plus its fixed scores; for many threads at once."""
        check_length(w, self.dim)
        for i in range(start, stop):
            arcs, second = np.split(out[places[i - start] : places[i - start + 1]], [self.arcs.n_parts(i)])
            self.arcs.score_block(w[: self.arcs.dim], scale, i, i + 1, np.array([0, len(arcs)]), arcs)
            triples, second[:] = self.triples(i), 0.0
            _kernels().add_scores(w[self.arcs.dim :], scale, _SHIFT, tuple(triples), _KINDS, second)
            second[triples.circles] = FORBIDDEN

    def fixed_scores(self, i: int) -> Floats:
        """Those of arcs, and what forbids a word to be its own grandparent."""
        arcs, out, n_arcs = self.arcs.fixed_scores(i), np.zeros(self.n_parts(i)), self.arcs.n_parts(i)
        out[:n_arcs] = 0.0 if arcs is None else arcs
        out[n_arcs + self.triples(i).circles] = FORBIDDEN
        return out

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """The joint features of sparse part counts."""
        n_arcs = self.arcs.n_parts(i)
        second = parts >= n_arcs
        rows, (words, codes, begins, table) = parts[second] - n_arcs, self.triples(i)
        t = begins[rows, None] + np.arange(len(_SIBLINGS))
        x = codes[_KINDS[t], rows[:, None]] + sum(table[role, words[role, rows, None], t] for role in range(3))
        idx = (t << BITS) + (x.astype(np.uint32) >> _SHIFT)
        more = coalesced(idx.ravel(), np.repeat(counts[second], len(_SIBLINGS)))
        arcs = self.arcs.adjoint(i, parts[~second], counts[~second])
        return SparseVector(np.append(arcs.indices, more.indices + self.arcs.dim), np.append(arcs.values, more.values))

    def arrays(self) -> Sequence[AnyArray]:
        """Those of arcs: they hold the candidates."""
        return self.arcs.arrays()
