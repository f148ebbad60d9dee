"""First-order label chains: Viterbi decoding (Viterbi 1967; Rabiner 1989, section III.B)."""

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, product

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import check_listed, checked_batch, checked_scores, checked_sizes, checked_sums, checked_table
from structpred.core.types import Floats, Integers
from structpred.core.weights import padded
from structpred.errors import InfeasibleError
from structpred.projections.lockstep import nearest_mixture
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of

_kernels = later("structpred.oracles.chains._chain_kernels")
_tree_losses = later("structpred.oracles.fields._tree_losses")
_tree_kernels = later("structpred.oracles.fields._tree_mrf_kernels")
_sum_kernels = later("structpred.oracles.chains._chain_sum_kernels")
_projection = later("structpred.projections.tree_marginals")

_NAMES = ("positions", "labels")

#: positions of a block, whose scores are kept
BLOCK = 1024


class ChainOracle(Oracle):
    """shape = (T, L): T positions, L labels. O(T L^2).

    Parts: t * L + l is on when position t has label l; T * L + k * L + l counts how often label l follows label k.
    Start and stop scores belong to the first and the last position's parts. Ties go to the first label. Scores of -1e30 forbid a
    part. Raises DataError for shapes without a position or a label, and for scores that are not finite or of another number.

    >>> import numpy as np
    >>> scores = np.array([0.0, 1.0, 1.0, 0.0, 5.0, 0.0, 0.0, 0.0])  # two positions, two labels, then 2 x 2 transitions
    >>> ChainOracle().argmax(scores, (2, 2)).tolist()
    [0, 0]
    """

    output = "label sequence"

    def n_parts(self, shape: tuple[int, ...]) -> int:
        """T * L + L^2."""
        length, n_labels = checked_sizes(shape, *_NAMES)
        return length * n_labels + n_labels**2

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best label sequence."""
        given, (length, n_labels) = self._given(scores, shape)
        return _decoded(given, np.array([0, len(given)]), np.array([length]), n_labels)

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best label sequence of each instance, in one compiled call where all have the same number of labels."""
        sizes = checked_table(shapes, *_NAMES)
        lengths, label_counts = sizes.T
        scores, offsets = checked_batch(scores, offsets, lengths * label_counts + label_counts**2)
        ends = np.concatenate(([0], np.cumsum(lengths)))
        if len(sizes) and (label_counts != label_counts[0]).any():  # one call for each number of labels would not keep the order
            parts = [self.argmax(scores[offsets[i] : offsets[i + 1]], s) for i, s in enumerate(shapes)]
            return np.concatenate(parts), ends
        return _decoded(scores, offsets, lengths, int(label_counts[0]) if len(sizes) else 1), ends

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """T position-label parts, then T - 1 label-label parts."""
        length, n_labels = shape
        if labels.shape != (length,):
            raise ValueError(f"expected {length} labels, got {labels.size}")
        if length and not (labels.min() >= 0 and labels.max() < n_labels):
            raise ValueError(f"labels must lie in [0, {n_labels}), got {labels.min()}..{labels.max()}")
        return np.concatenate((np.arange(length) * n_labels + labels, (length + labels[:-1]) * n_labels + labels[1:]))

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each output, flat, in one compiled call."""
        n_labels = checked_table(shapes, *_NAMES)[:, 1]
        places = ends_of(2 * np.diff(ends) - 1)
        out = np.empty(int(places[-1]), np.int64)
        _kernels().chain_parts(labels, ends, n_labels, places, out)
        return out, places

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """log Z, and the expected part counts, by forward-backward (Rabiner 1989, eqs. 19-25); stable for any scores.

        Scores of -1e30 forbid a part. Raises InfeasibleError if that leaves no sequence.
        """
        scores, (length, n_labels) = self._given(scores, shape)
        rows = np.array([0, len(scores)]), np.array([length]), n_labels, sum_scratch(n_labels, length).rows
        log_z, mu = np.empty(1), np.zeros(len(scores))
        if _sum_kernels().marginals_of_batch(scores, *rows, log_z, mu) >= 0:
            raise InfeasibleError("every label sequence uses a forbidden part (a score of -1e30): no marginals exist")
        return checked_sums(float(log_z[0]), mu, scores, shape)

    def marginals_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Floats, Floats]:
        """log Z of each instance and all expected part counts, in one compiled call for each number of labels in a row."""
        sizes = checked_table(shapes, *_NAMES)
        lengths, label_counts = sizes.T
        scores, offsets = checked_batch(scores, offsets, lengths * label_counts + label_counts**2)
        log_zs, mu = np.empty(len(sizes)), np.zeros(len(scores))
        cuts = [0, *(np.flatnonzero(np.diff(label_counts)) + 1).tolist(), len(sizes)]
        for a, b in pairwise(cuts):
            if a == b:
                continue
            n_labels = int(label_counts[a])
            s = sum_scratch(n_labels, int(lengths[a:b].max()))
            rows = offsets[a : b + 1], lengths[a:b].copy(), n_labels, s.rows
            wrong = _sum_kernels().marginals_of_batch(scores, *rows, log_zs[a:b], mu)
            if wrong >= 0:
                raise InfeasibleError(f"sample {a + wrong}: every label sequence uses a forbidden part (a score of -1e30)")
        return log_zs, mu

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best label sequences, best first; O(T L^2 k)."""
        scores, (length, n_labels) = self._given(scores, shape)
        check_fits(24 * length * n_labels * k, f"the {k} best of {length:,} positions with {n_labels} labels")
        return list(_tree_kernels().best_outputs(scores, _as_tree(length, n_labels), n_labels, max(k, 1))[: max(k, 0)])

    def argmax_per_loss(self, scores: Scores, costs: Floats, shape: Shape) -> tuple[Floats, Floats, list[Labels]]:
        """The best label sequence for each value of a whole-number loss, by counting it in the state of the dynamic program.

        O(T L (L + T) K) for K values (Hamming: T + 1). Raises DataError for costs that are not whole numbers.
        """
        scores, (length, n_labels) = self._given(scores, shape)
        costs = checked_scores(costs, len(scores), shape)
        return _tree_losses().best_per_loss(scores, costs, _as_tree(length, n_labels), n_labels)

    project = nearest_mixture

    def clique_parts(self, shape: Shape) -> tuple[Integers, Integers]:
        """Variable (t, i, j), flat in that order: label j follows label i at position t + 1. One position: its labels."""
        return _projection().chain_parts(*checked_sizes(shape, *_NAMES))

    def project_cliques(
        self, points: Scores, offsets: Integers, shapes: Sequence[Shape], start: Floats | None = None, n_jobs: int = 1
    ) -> tuple[Floats, Floats]:
        """The nearest marginals of neighbouring labels, with the multipliers that start the next call; `project_forests`."""
        sizes = checked_table(shapes, *_NAMES)
        lengths, n_labels = sizes.T
        given, ends = checked_batch(points, offsets, np.maximum((lengths - 1) * n_labels**2, n_labels * (lengths == 1)))
        forests = [_projection().chain_forest(*row) for row in sizes.tolist()]
        return _projection().project_forests(given, ends, forests, start, n_jobs=n_jobs)

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """All L^T label sequences."""
        length, n_labels = checked_sizes(shape, *_NAMES)
        check_listed(length)
        return (np.array(y, dtype=np.int64) for y in product(range(n_labels), repeat=length))

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """T positions, L labels."""
        return shape[0], shape[1]

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 729 label sequences; one label and one position among them."""
        return [(1, 1), (1, 3), (2, 2), (4, 1), (5, 2), (4, 4), (6, 3)]

    def _given(self, scores: Scores, shape: Shape) -> tuple[Scores, tuple[int, ...]]:
        length, n_labels = sizes = checked_sizes(shape, *_NAMES)
        return checked_scores(scores, length * n_labels + n_labels**2, shape), sizes


def _decoded(scores: Scores, offsets: Integers, lengths: Integers, n_labels: int) -> Integers:
    out = np.empty(int(lengths.sum()), np.int64)
    _kernels().decode_flat(scores, offsets, lengths, n_labels, best_scratch(n_labels, int(lengths.max(initial=1))), out)
    return out


@lru_cache(maxsize=1024)
def _as_tree(length: int, n_labels: int) -> Integers:
    """The chain as the kernels of trees take it: the last position is the root, all edges share the table of transitions."""
    t = np.arange(length)
    plan = np.stack((t, t + 1, *(np.full(length, x) for x in (length * n_labels, n_labels, 1))), axis=1)
    plan.flags.writeable = False
    return plan


def best_scratch(n_labels: int, longest: int, block: int = BLOCK) -> tuple[Floats, ...]:
    """The working memory of one decoder, as its kernels take it: O(L^2), and 8 bytes a label for every block of positions."""
    width, rows = padded(n_labels), max(min(longest, block), 1)
    blocks = -(-max(longest, 1) // rows)
    check_fits(8 * width * (n_labels + 2 * rows + blocks), f"decoding {longest:,} positions with {n_labels} labels")
    return np.zeros((n_labels, width)), np.zeros((rows, width)), np.zeros((rows, width)), np.zeros((blocks, width))


class SumScratch:
    """The working memory of one forward-backward pass: four arrays of (longest, width) float64."""

    def __init__(self, n_labels: int, longest: int) -> None:
        width = padded(n_labels)
        check_fits(4 * 8 * longest * width, f"marginals of {longest:,} positions with {n_labels} labels")
        self.trans, self.exp_trans, (self.counts, _) = np.zeros((3, 2, n_labels, width))
        self.emissions, self.alpha, self.local, self.marg = np.zeros((4, longest, width))
        self.emissions[:] = -np.inf
        self.norm = np.zeros(longest)
        self.work = np.zeros((4, width))
        passes = self.trans, self.exp_trans, self.emissions, self.alpha, self.local, self.norm
        self.rows = (*passes, self.marg, self.counts, self.work)  # as the kernels of flat scores take it


_kept = threading.local()


def sum_scratch(n_labels: int, longest: int) -> SumScratch:
    """Working memory for a chain of `longest` positions: this thread's own, kept from call to call while it is small."""
    kept: SumScratch | None = getattr(_kept, "scratch", None)
    if kept is not None and kept.counts.shape[0] == n_labels and len(kept.norm) >= longest:
        return kept
    scratch = SumScratch(n_labels, longest)
    if scratch.alpha.nbytes < 1 << 20:
        _kept.scratch = scratch
    return scratch
