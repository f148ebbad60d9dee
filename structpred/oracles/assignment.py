"""Perfect matchings of n rows and n columns (linear assignment)."""

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import check_listed, checked_batch, checked_scores, checked_sizes, checked_table
from structpred.core.types import Integers
from structpred.projections.lockstep import nearest_mixture
from structpred.runtime.ranges import ends_of


class AssignmentOracle(Oracle):
    """shape = (n,); part i * n + j is on when row i is matched to column j; labels[i] = j."""

    def n_parts(self, shape: tuple[int, ...]) -> int:
        """n * n."""
        return checked_sizes(shape, "rows")[0] ** 2

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The matching with the largest sum of scores, by SciPy's linear_sum_assignment, O(n^3)."""
        from scipy.optimize import linear_sum_assignment

        given = checked_scores(scores, self.n_parts(shape), shape)
        _, columns = linear_sum_assignment(given.reshape(shape[0], shape[0]), maximize=True)
        return columns.astype(np.int64)

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The matching of each instance, without a check an instance."""
        from scipy.optimize import linear_sum_assignment

        sizes = checked_table(shapes, "rows")[:, 0]
        scores, offsets = checked_batch(scores, offsets, sizes**2)
        cuts = zip(offsets[:-1].tolist(), offsets[1:].tolist(), sizes.tolist(), strict=True)
        found = [linear_sum_assignment(scores[a:b].reshape(n, n), maximize=True)[1] for a, b, n in cuts]
        return np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64), ends_of(sizes)

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """One part per row of each instance."""
        sizes = np.diff(ends)
        rows = np.arange(len(labels)) - np.repeat(ends[:-1], sizes)
        return rows * np.repeat(sizes, sizes) + labels, ends

    def parts(self, labels: Labels, shape: tuple[int, ...]) -> Integers:
        """One part per row."""
        n = shape[0]
        if labels.shape != (n,) or not np.array_equal(np.sort(labels), np.arange(n)):
            raise ValueError(f"a matching of size {n} is a permutation of 0..{n - 1}, got {labels.tolist()}")
        return np.arange(n) * n + labels

    project = nearest_mixture

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """All n! permutations."""
        n = checked_sizes(shape, "rows")[0]
        check_listed(n)
        return (np.array(p, dtype=np.int64) for p in permutations(range(n)))

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """n rows, each labelled with its column."""
        return shape[0], shape[0]

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 120 matchings."""
        return [(1,), (2,), (3,), (5,)]
