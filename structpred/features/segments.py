"""Features of labelled segments: those of whole segments, and those of their tokens, summed up inside."""

from collections.abc import Sequence

import numpy as np

from structpred.core.costs import PartCosts
from structpred.core.feature_map import FeatureMap
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.sparse import SparseVector
from structpred.core.types import AnyArray, Floats, Integers
from structpred.core.weights import Vector, check_length
from structpred.data.sequences import PackedSequences
from structpred.features.fixed_scores import FixedScores
from structpred.features.sequences import SequenceFeatures
from structpred.runtime.lazy_names import later

_kernels = later("structpred.features._segment_kernels")


class SegmentFeatures(FeatureMap):
    """Parts are those of `SemiMarkovOracle`; label 0 is outside of all phrases, its segments are one token long.

    Weights: those of features of tokens, for label 0 and, for each other label, for a token that is a segment alone, starts one,
    is inside, and ends one. Then those of a chain whose positions are all segments: those that begin at the first token, shorter
    ones first, and so on. So its transitions are those of neighbours, and it has start weights for first segments of one token.

    segments: the features of these, `longest` for each token of each sequence. Those that end behind the sequence never are.
    """

    def __init__(self, tokens: PackedSequences, segments: PackedSequences, n_labels: int, longest: int) -> None:
        rows = np.outer((0.0, FORBIDDEN), np.arange(n_labels) == 0)
        fixed = FixedScores(rows, (np.arange(segments.n_tokens) % longest > 0).astype(np.int32), np.zeros((n_labels, n_labels)))
        self.longest, self.segments = longest, SequenceFeatures(segments, n_labels, fixed=fixed)
        self.tokens = SequenceFeatures(tokens, 4 * n_labels - 3, transitions=False)
        self.dim, self.dtype = self.tokens.dim + self.segments.dim, self.tokens.dtype
        self.groups = np.concatenate((self.tokens.groups, self.tokens.dim + self.segments.groups[1:]))
        self.group_names = [*self.tokens.group_names, *self.segments.group_names]
        tables = ((f.data.indices, f.data.values, f.data.indptr, f.width) for f in (self.tokens, self.segments))
        self.space = (self.tokens.dim, n_labels, longest, self.segments.start_row, tokens.offsets, *tables)
        self.shapes = [(length, n_labels, longest) for length in tokens.lengths.tolist()]

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.shapes)

    def n_parts(self, i: int) -> int:
        """T * longest * n_labels segments and n_labels^2 pairs of neighbours."""
        return self.segments.n_parts(i)

    def scores(self, w: Vector, i: int) -> Floats:
        """Those of segments, then of neighbours."""
        check_length(w, self.dim)
        out = np.empty(self.n_parts(i))
        _kernels().score_segments(w, 1.0, 0.0, i, self.space, np.array([0, len(out)]), out)
        return out

    def score_block(self, w: Vector, scale: float, start: int, stop: int, places: Integers, out: Floats) -> None:
        """Those of sequences start..stop-1 at scale * w, with the fixed ones, that of `start + k` from out[places[k]] on."""
        check_length(w, self.dim)
        _kernels().score_segments(w, scale, FORBIDDEN, start, self.space, places, out)

    def fixed_scores(self, i: int) -> Floats | None:
        """Longer segments of label 0 are forbidden."""
        return self.segments.fixed_scores(i)

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """The joint features of sparse part counts."""
        return SparseVector(*_kernels().combine_segments(i, parts, counts, self.space))

    def add_spread(self, i: int, mu: Floats, coef: float, out: Floats) -> None:
        """out += coef * Psi_i^T mu for dense mu."""
        self.tokens.add_dense(i, self._inside(i, mu), coef, out[: self.tokens.dim])
        self.segments.add_dense(i, mu, coef, out[self.tokens.dim :])

    def scratch(self) -> Floats:
        """Room for the features of a sequence, whatever `dim` is."""
        return np.concatenate((self.tokens.scratch(), self.segments.scratch()))

    def spread(self, i: int, mu: Floats, scratch: Floats) -> float:
        """scratch = Psi_i^T mu for dense mu, where scratch was zero; returns its squared norm."""
        k = len(scratch) - self.segments.scratch_size
        return self.tokens.spread(i, self._inside(i, mu), scratch[:k]) + self.segments.spread(i, mu, scratch[k:])

    def flush(self, i: int, scratch: Floats, coef: float, w: Vector) -> None:
        """w += coef * scratch, which `spread` filled for instance i; scratch becomes zero again."""
        k, n = len(scratch) - self.segments.scratch_size, self.tokens.dim
        self.tokens.flush(i, scratch[:k], coef, w[:n])
        self.segments.flush(i, scratch[k:], coef, w[n:])

    def _inside(self, i: int, mu: Floats) -> Floats:
        return _kernels().inside_of(mu, self.shapes[i][0], self.longest, self.segments.n_labels).ravel()

    def arrays(self) -> Sequence[AnyArray]:
        """The packed features."""
        return *self.tokens.arrays(), *self.segments.arrays()


class WrongTokens:
    """The number of tokens with another label, or at another place in their segment: alone, first, inside or last."""

    def costs(self, labels: Labels, shape: Shape, oracle: Oracle) -> PartCosts:
        """For each segment the number of its tokens that are wrong."""
        (length, n_labels, longest), out = shape, np.zeros(oracle.n_parts(shape))
        mu = np.bincount(oracle.parts(labels, shape), minlength=len(out)).astype(np.float64)
        right = _kernels().inside_of(mu, length, longest, n_labels)
        _kernels().add_inside(1.0 - right, longest, n_labels, out)
        return PartCosts(0.0, out)
