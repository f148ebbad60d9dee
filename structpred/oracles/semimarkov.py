"""Semi-Markov chains: segmentations whose segments have labels, lengths and scores of their own (Sarawagi & Cohen 2004)."""

from collections.abc import Iterator, Sequence

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import check_listed, checked_batch, checked_scores, checked_sizes, checked_table
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import InfeasibleError
from structpred.projections.lockstep import nearest_mixture
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

_kernels = later("structpred.oracles.chains._semimarkov_kernels")

_NAMES = ("positions", "labels", "positions of the longest segment")


class SemiMarkovOracle(Oracle):
    """shape = (T, L, M): T positions cut into segments of at most M positions, each with one of L labels. O(T L (L + M)).

    Parts: (t * M + m - 1) * L + l is on when a segment of m positions with label l starts at t (those with t + m > T never
    are); T * M * L + k * L + l counts how often a segment of label l follows one of label k. Neighbours may have the same label.

    Labels are T numbers: 2 * l + 1 where a segment with label l starts, 2 * l where it continues; `as_segments` and
    `from_segments` translate. Ties go to the shorter last segment, then to the first label. Scores of -1e30 forbid a part.
    Raises DataError for shapes with a number below 1, and before allocating what cannot fit.

    >>> import numpy as np
    >>> scores = np.zeros(3 * 2 * 2 + 4)  # three positions, two labels, segments of one or two positions
    >>> scores[(0 * 2 + 1) * 2 + 1] = 5.0  # positions 0 and 1 as one segment with label 1
    >>> labels = SemiMarkovOracle().argmax(scores, (3, 2, 2))
    >>> labels.tolist(), as_segments(labels).tolist()
    ([3, 2, 1], [[0, 2, 1], [2, 1, 0]])
    """

    def n_parts(self, shape: tuple[int, ...]) -> int:
        """T * M * L + L^2."""
        length, n_labels, longest = checked_sizes(shape, *_NAMES)
        return length * longest * n_labels + n_labels**2

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best segmentation."""
        given, _ = self._given(scores, shape)
        return self.argmax_batch(given, np.array([0, len(given)]), [shape])[0]

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best segmentation of each instance, in one compiled call."""
        sizes = checked_table(shapes, *_NAMES)
        scores, offsets = checked_batch(scores, offsets, [self.n_parts(shape) for shape in shapes])
        rows, columns = int(sizes[:, 0].max(initial=0)) + 1, int(sizes[:, 1].max(initial=1))
        check_fits(32 * rows * columns, f"segments of {rows - 1:,} positions with {columns} labels")
        ends = np.concatenate(([0], np.cumsum(sizes[:, 0])))
        out = np.empty(int(ends[-1]), np.int64)
        if len(sizes):
            _kernels().decode_segments(scores, offsets, sizes, out)
        return out, ends

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """The parts of the segments, then those of the transitions between neighbours."""
        length, n_labels, longest = shape
        if labels.shape != (length,):
            raise ValueError(f"expected {length} labels, got {labels.size}")
        places, out, given = np.zeros(2, np.int64), np.empty(2 * length, np.int64), np.array(labels, np.int64)
        n = _kernels().segment_parts(given, np.array([0, length]), np.array([shape]), places, out)
        if n >= 0:
            return out[:n]
        starts, sizes, names = as_segments(given).T
        if not (names.min() >= 0 and names.max() < n_labels):
            raise ValueError(f"segment labels must lie in [0, {n_labels}), got {names.min()}..{names.max()}")
        raise ValueError(f"segments have at most {longest} positions, got one of {sizes.max()} at {starts[sizes.argmax()]}")

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each output, flat, in one compiled call."""
        places, out = np.zeros(len(ends), np.int64), np.empty(2 * len(labels), np.int64)
        n = _kernels().segment_parts(labels, ends, checked_table(shapes, *_NAMES), places, out)
        return out[:n], places

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """log Z, and the expected part counts, in logarithms throughout; stable for scores of any size.

        Raises InfeasibleError if forbidden parts leave no segmentation.
        """
        given, _ = self._given(scores, shape)
        log_zs, mu = self.marginals_batch(given, np.array([0, len(given)]), [shape])
        return float(log_zs[0]), mu

    def marginals_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Floats, Floats]:
        """log Z of each instance and all expected part counts, in one compiled call."""
        sizes = checked_table(shapes, *_NAMES)
        scores, offsets = checked_batch(scores, offsets, [self.n_parts(shape) for shape in shapes])
        rows, columns = int(sizes[:, 0].max(initial=0)) + 1, int(sizes[:, 1].max(initial=1))
        check_fits(8 * rows * columns * (2 + columns) + 8 * len(scores), f"marginals of segments of {rows - 1:,} positions")
        log_zs, mu = np.empty(len(sizes)), np.zeros(len(scores))
        if (wrong := _kernels().sum_each(scores, offsets, sizes, log_zs, mu)) >= 0:
            raise InfeasibleError(
                f"sample {wrong}: every segmentation uses a forbidden part (a score of -1e30): no marginals exist"
            )
        return log_zs, mu

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best segmentations, best first; O(T L (L + M) k)."""
        scores, (length, n_labels, longest) = self._given(scores, shape)
        check_fits(48 * (length + 1) * n_labels * k, f"the {k} best segmentations of {length:,} positions with {n_labels} labels")
        out, totals = np.empty((k, length), np.int64), np.empty(k)
        _kernels().best_segmentations(scores, length, n_labels, longest, k, out, totals)
        return [row for row, total in zip(out, totals.tolist(), strict=True) if total > 0.5 * FORBIDDEN]

    project = nearest_mixture

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every labelled segmentation."""
        length, n_labels, longest = checked_sizes(shape, *_NAMES)
        check_listed(length)
        return (from_segments(segments) for segments in _segmentations(0, length, n_labels, longest))

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 486 outputs; one position, one label, a longest segment of one position, and one longer than the whole."""
        return [(1, 1, 1), (1, 3, 2), (4, 1, 3), (4, 3, 1), (4, 2, 2), (5, 2, 3), (4, 3, 5), (6, 2, 6)]

    def _given(self, scores: Scores, shape: Shape) -> tuple[Scores, tuple[int, ...]]:
        return checked_scores(scores, self.n_parts(shape), shape), checked_sizes(shape, *_NAMES)


def as_segments(labels: Labels) -> Integers:
    """(start, length, label) rows of a segmentation. Raises ValueError for invalid labels.

    >>> as_segments(np.array([3, 2, 1, 1])).tolist()
    [[0, 2, 1], [2, 1, 0], [3, 1, 0]]
    """
    if not len(labels) or labels[0] % 2 == 0:
        raise ValueError("position 0: a segmentation starts with a segment's start: an odd number, 2 * label + 1")
    starts = np.flatnonzero(labels % 2)
    sizes = np.append(starts[1:], len(labels)) - starts
    names = labels[starts] // 2
    if (wrong := np.repeat(names, sizes) != labels // 2).any():
        raise ValueError(f"position {wrong.argmax()}: a segment continues with its own label: 2 * label + 1, then 2 * label")
    return np.array((starts, sizes, names)).T


def from_segments(segments: ArrayLike) -> Labels:
    """The labels of (start, length, label) rows, which follow each other without gaps. Raises ValueError otherwise.

    >>> from_segments([(0, 2, 1), (2, 1, 0)]).tolist()
    [3, 2, 1]
    """
    rows = np.asarray(segments, dtype=np.int64).reshape(-1, 3)
    starts, sizes, names = rows.T
    if not len(rows) or starts[0] != 0 or (sizes < 1).any() or (starts[1:] != np.cumsum(sizes)[:-1]).any():
        raise ValueError("segments must be (start, length, label) rows that begin at 0 and follow each other without gaps")
    labels = np.repeat(2 * names, sizes)
    labels[starts] += 1
    return labels


def _segmentations(start: int, length: int, n_labels: int, longest: int) -> Iterator[list[tuple[int, int, int]]]:
    if start == length:
        yield []
        return
    for size in range(1, min(longest, length - start) + 1):
        for rest in _segmentations(start + size, length, n_labels, longest):
            for label in range(n_labels):
                yield [(start, size, label), *rest]
