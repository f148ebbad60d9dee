"""The feature map of arc-factored trees: hashed templates, each in a block of its own, computed when they are needed."""

import threading
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.feature_map import FeatureMap
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.group_scales import GroupScales
from structpred.core.sparse import SparseVector, coalesced
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector, check_length
from structpred.data.arc_templates import TAGS_BETWEEN, ArcTemplate, compile_templates
from structpred.data.sequences import AttributedSentences
from structpred.errors import DataError, ParameterError
from structpred.features.fixed_scores import FixedParts
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import SMALL, check_fits
from structpred.runtime.ranges import picked

_kernels = later("structpred.features._arc_block_kernels")

#: how many arcs, of one sentence or of several short ones, are scored together, one template after the other
ARCS = 1 << 15
#: working memory and compiled code of a feature map
_MADE_AGAIN = ("_scratch", "_prepared", "_kept")
#: the most words and roots that several sentences have together
COLUMNS = 1 << 11
#: loops over heads run in whole vectors of this length: what they write to has room for one more
VECTOR = 8


class ArcScratch:
    """What the kernels of one thread need for sentences of up to `longest` words."""

    def __init__(self, longest: int, n_templates: int, n_tags: int) -> None:
        columns = max(COLUMNS, longest + 1)
        self.hashes = np.empty((2, n_templates, columns + VECTOR), np.uint32)
        self.counts = np.empty((3, columns), np.int64)
        self.tags = np.empty(columns, np.int64)
        self.seen = np.empty(n_tags, np.uint8)
        self.idx, self.val = np.empty(n_templates + n_tags, np.int64), np.empty(n_templates + n_tags)


def score_room(longest: int, n_tags: int) -> tuple[Any, ...]:
    """Working memory of scores: codes, starts, places, unary, acc, classes (see `_arc_score_kernels`)."""
    from structpred.features._arc_score_kernels import TOGETHER, fill_positional

    arcs, reach = max(ARCS, longest + 1) + VECTOR, 2 * longest + 1 + VECTOR
    starts = np.cumsum([0, longest + 1 + VECTOR, reach, reach, arcs, arcs, longest])
    codes, classes = np.empty(starts[5] + arcs, np.uint32), np.zeros(reach, np.int64)
    codes[: starts[3]] = 0
    starts[1:3] += longest
    starts[6] = longest
    fill_positional(longest, codes, starts, classes)
    unary = np.empty((2, max(COLUMNS, longest + 1), 16))
    return codes, starts, np.empty((TOGETHER, arcs), np.uint32), unary, np.empty(n_tags), classes


class ArcCall(NamedTuple):
    """What one thread gives to every kernel call, gathered once: calls are many and short.

    corpus: words, the program of templates, candidates. arcs: templates, and the sentence prepared last. room: the groups of
    templates, and working memory of scores. idx, val: for the features of one arc.
    """

    corpus: tuple[Any, Any, Any]
    arcs: tuple[Any, ...]
    room: tuple[Any, ...]
    idx: Integers
    val: Floats


class ArcCandidates:
    """The heads that each word may have: word t has heads[starts[t]:starts[t+1]], ascending; all others are forbidden."""

    def __init__(self, starts: Integers, heads: npt.NDArray[np.int32]) -> None:
        self.starts, self.heads = starts, heads

    @staticmethod
    def everything() -> "ArcCandidates":
        """No arc is left out."""
        return ArcCandidates(np.zeros(1, np.int64), np.empty(0, np.int32))

    def take(self, offsets: Integers, rows: Integers) -> "ArcCandidates":
        """Those of some sentences; offsets: where the words of each sentence begin."""
        if self.complete:
            return self
        at, starts = picked(self.starts, picked(offsets, rows)[0])
        return ArcCandidates(starts, self.heads[at])

    @property
    def complete(self) -> bool:
        """Whether nothing is left out."""
        return len(self.starts) == 1


class ArcFeatures(FeatureMap):
    """Parts: the arc from head h to word m of a sentence of n words is part (m - 1) * (n + 1) + h; its features are one weight
    a template, and one for each tag between the ends.

    bits[t]: the block of templates[t] has 2**bits[t] weights. Blocks follow each other as the templates do, then comes that of
    tags between, with 2 n_tags^3 weights: `groups`. Parts whose head is the word itself have no features.
    fixed: scores that are added whatever the weights are. Raises ParameterError for bits outside [1, 28].
    """

    #: the sentence whose hashes `_scratch` holds
    _prepared: int | None = None

    def __init__(
        self, data: AttributedSentences, templates: Sequence[ArcTemplate], bits: Sequence[int], *,
        dtype: npt.DTypeLike = np.float32, candidates: ArcCandidates | None = None, fixed: FixedParts | None = None,
    ) -> None:  # fmt: skip
        if len(bits) != len(templates) or not all(1 <= b <= 28 for b in bits):
            raise ParameterError(f"expected {len(templates)} numbers of bits in [1, 28], one per template, got {list(bits)}")
        self.data, self.templates, self.bits = data, list(templates), list(bits)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.candidates, self.fixed = candidates or ArcCandidates.everything(), fixed or FixedParts()
        self.compiled = compile_templates(self.templates, data.names)
        self._program = self.compiled.program
        sizes = [1 << b for b in bits]
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.between = int(starts[-1])
        self.dim = self.between + 2 * data.n_tags**3
        self.groups = np.concatenate((starts, [self.dim])).astype(np.int64)
        self.group_names = [*map(str, self.templates), TAGS_BETWEEN]
        order = self.compiled.order
        self.bases = starts[order].astype(np.uint64)
        self.shifts = np.array([32 - bits[t] for t in order.tolist()], dtype=np.uint32)

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self.data)

    def n_parts(self, i: int) -> int:
        """n (n + 1)."""
        n = int(self.data.offsets[i + 1] - self.data.offsets[i])
        return n * (n + 1)

    def new_scratch(self, longest: int) -> ArcCall:
        """Working memory for sentences of up to `longest` words; DataError, naming the sample, where their scores cannot fit."""
        size = 8 * longest * (longest + 1)
        if size >= SMALL:
            which = int(np.argmax(self.data.lengths == longest))
            check_fits(size, f"sample {which}: the arc scores of a sentence of {longest:,} words")
        d, c, listed = self.data, self.compiled, (self.candidates.starts, self.candidates.heads)
        s = ArcScratch(longest, len(self.templates), d.n_tags)
        arcs = (s.hashes, c.kinds, self.shifts, self.bases, self.between, d.n_tags, s.counts, s.tags, s.seen)
        room = (c.n_pair, c.n_head, *score_room(longest, d.n_tags))
        return ArcCall((d.words, self._program, listed), arcs, room, s.idx, s.val)

    @cached_property
    def _scratch(self) -> ArcCall:
        return self.new_scratch(int(self.data.lengths.max(initial=1)))

    def __getstate__(self) -> dict[str, Any]:
        """Without working memory and compiled code."""
        return {name: value for name, value in self.__dict__.items() if name not in _MADE_AGAIN}

    def _prepare(self, i: int) -> tuple[int, ArcCall]:
        offsets, s = self.data.offsets, self._scratch
        first, n = int(offsets[i]), int(offsets[i + 1] - offsets[i])
        if self._prepared != i:
            words, program, _ = s.corpus
            _kernels().prepare_sentence(words, first, n, 0, program, s.arcs[0], s.arcs[6], s.arcs[7])
            self._prepared = i
        return n, s

    def scores(self, w: Vector, i: int) -> Floats:
        """theta of sentence i; arcs that are not candidates have the score 0 here and are forbidden by `fixed_scores`."""
        return self._scores(w, None, i)

    def group_scores(self, w: Vector, scales: GroupScales, i: int) -> Floats:
        """What `scores` gives for the weights scales * w, to the last bit: templates whose factor is zero cost nothing."""
        order = np.append(self.compiled.order, len(self.templates))  # tags between come last
        return self._scores(w, scales.factors[order], i)

    def _scores(self, w: Vector, factors: Floats | None, i: int) -> Floats:
        check_length(w, self.dim)
        n, s = self._prepare(i)
        out = np.empty(n * (n + 1))
        _kernels().score_sentence(w, factors, n, int(self.data.offsets[i]), s.corpus[2], s.arcs, s.room, out)
        return out

    def score_block(self, w: Vector, scale: float, start: int, stop: int, places: Integers, out: Floats) -> None:
        """out[places[i - start]:]: scale times the scores of sentence i, plus its fixed scores; for many threads at once."""
        check_length(w, self.dim)
        longest, kept = int(self.data.lengths[start:stop].max(initial=1)), self._kept.__dict__
        if kept.get("longest", 0) < longest:
            kept.update(longest=longest, scratch=self.new_scratch(longest))
        s: ArcCall = kept["scratch"]
        given = (*s.corpus, s.arcs, s.room, FORBIDDEN, places, out)
        _kernels().score_block(w, scale, self.data.offsets, start, stop, *given)
        self.fixed.add(start, stop, places, out)

    @cached_property
    def _kept(self) -> threading.local:
        """The working memory of each thread that scores blocks: new memory for each block takes a part of the time."""
        return threading.local()

    def fixed_scores(self, i: int) -> Floats | None:
        """Forbidden arcs, and what was given as `fixed`."""
        given = self.fixed.of(i)
        if self.candidates.complete:
            return given
        first, starts, heads = int(self.data.offsets[i]), self.candidates.starts, self.candidates.heads
        n = int(self.data.offsets[i + 1]) - first
        out = np.full((n, n + 1), FORBIDDEN)
        for m in range(n):
            out[m, heads[starts[first + m] : starts[first + m + 1]]] = 0.0
        return out.ravel() if given is None else np.maximum(out.ravel() + given, FORBIDDEN)

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """The joint features of sparse part counts."""
        n, s = self._prepare(i)
        size = len(parts) * (len(self.templates) + self.data.n_tags)
        check_fits(32 * size, f"the features of {len(parts):,} arcs of a sentence of {n:,} words")
        idx, val = np.empty(size, np.int64), np.empty(size)
        k = _kernels().emit_arcs(parts, counts, n, s.arcs, idx, val)
        return coalesced(idx[:k], val[:k])

    def spread(self, i: int, mu: Floats, scratch: Floats) -> float:
        """scratch = Psi_i^T mu for dense mu, where scratch was zero; returns its squared norm."""
        self.add_spread(i, mu, 1.0, scratch)
        n, s = self._prepare(i)
        return float(_kernels().project_arcs(mu, n, s.arcs, s.idx, s.val, scratch))

    def flush(self, i: int, scratch: Floats, coef: float, w: Vector) -> None:
        """w += coef * scratch; scratch, which `spread` filled for sentence i, becomes zero again."""
        n, s = self._prepare(i)
        _kernels().flush_arcs(n, coef, s.arcs, s.idx, s.val, scratch, w)

    def add_spread(self, i: int, mu: Floats, coef: float, out: Floats) -> None:
        """out += coef * Psi_i^T mu."""
        n, s = self._prepare(i)
        _kernels().spread_arcs(mu, n, coef, s.arcs, s.idx, s.val, out)

    def take(self, rows: Integers) -> "ArcFeatures":
        """The sentences with these numbers, in this order."""
        new = copy(self)
        new.data, new.candidates = self.data.take(rows), self.candidates.take(self.data.offsets, rows)
        new.fixed = self.fixed.take(rows)
        return new

    def arrays(self) -> Sequence[npt.NDArray[Any]]:
        """The corpus, the templates and the sizes of their blocks."""
        d, c = self.data, self.compiled
        own = (d.codes, d.tags, d.classes, d.offsets, c.atoms, c.ends, c.kinds, self.groups)
        return (*own, self.candidates.starts, self.candidates.heads, *self.fixed.arrays())


def observed_places(
    data: AttributedSentences, templates: Sequence[ArcTemplate], heads: Integers, *, n_sentences: int = 20_000
) -> npt.NDArray[np.uint8]:
    """A bitmap of the features that the arcs (heads[t], t) have, on up to n_sentences: a row of bytes a template.

    That of several treebanks is the union (|) of theirs. Raises DataError for another number of heads than words.
    """
    from structpred.features._arc_kernels import hash_arcs

    if len(heads) != data.n_tokens:
        raise DataError(f"{data.n_tokens} words, but heads for {len(heads)}")
    compiled, n_bits = compile_templates(templates, data.names), 20
    chosen = np.linspace(0, len(data) - 1, min(len(data), n_sentences)).astype(np.int64)
    s = ArcScratch(int(data.lengths.max(initial=1)), len(templates), data.n_tags)
    marks = np.zeros((len(templates), 1 << n_bits), np.uint8)
    for part in np.array_split(chosen, max(-(-len(chosen) // 256), 1)):  # a block's hashes take a few megabytes
        some, own = data.take(part), heads[picked(data.offsets, part)[0]]
        hashes = np.empty((some.n_tokens, len(templates)), np.uint32)
        hash_arcs(some.words, some.offsets, own, compiled.program, compiled.kinds, s.hashes, s.counts, s.tags, hashes)
        for row, column in zip(marks, hashes.T, strict=True):
            row[column >> np.uint32(32 - n_bits)] = 1
    places = np.empty((len(templates), 1 << (n_bits - 3)), np.uint8)
    places[compiled.order] = np.packbits(marks, axis=1)
    return places


def bits_of(places: npt.NDArray[np.uint8], *, max_bits: int, room: float = 4.0) -> list[int]:
    """The size of each template's block, as a power of two: `room` times its different features, at most 2**max_bits.

    places: of `observed_places`. Distinct features are counted in their bitmaps (linear counting, Whang et al. 1990).
    """
    size = 8 * places.shape[1]
    empty = np.maximum(size - np.bitwise_count(places).sum(axis=1, dtype=np.int64), 1)
    distinct = -size * np.log(empty / size)
    wanted = np.clip(np.ceil(np.log2(np.maximum(room * distinct, 1.0))), 6, max_bits)
    return wanted.astype(int).tolist()
