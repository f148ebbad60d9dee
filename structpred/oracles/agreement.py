"""Agreement: two labels, and what it brings that they are the same."""

from collections.abc import Iterator, Sequence

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import checked_batch, checked_sizes, checked_table, runs_of
from structpred.core.types import Integers
from structpred.runtime.ranges import ends_of


class Agreement(Oracle):
    """shape = (n_labels,): a pair of labels. Part l: the first is l; n_labels + l: the second is l; 2 n_labels + l: both are.

    A link of a skip chain, say. Ties go to the first pair. A whole table of pairs is a graph of two nodes, as `TreeMRF` has it;
    ``Logic("and")`` has the score of two parts that are on together.

    >>> Agreement().argmax(np.array([1.0, 0.0, 0.0, 0.5, 0.0, 2.0]), (2,)).tolist()
    [1, 1]
    """

    def n_parts(self, shape: Shape) -> int:
        """3 n_labels."""
        return 3 * checked_sizes(shape, "labels")[0]

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best pair, by looking at all of them."""
        return self.argmax_batch(scores, np.array([0, np.size(scores)]), [shape])[0]

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best pair of each instance; neighbours of one shape are done together."""
        scores, offsets = checked_batch(scores, offsets, 3 * checked_table(shapes, "labels")[:, 0])
        found = [np.empty(0, np.int64)]
        for (n,), a, b in runs_of(shapes):
            first, second, same = scores[offsets[a] : offsets[b]].reshape(b - a, 3, n).transpose(1, 0, 2)
            pairs = first[:, :, None] + second[:, None, :]
            pairs[:, np.arange(n), np.arange(n)] += same
            found.append(np.column_stack(np.divmod(pairs.reshape(b - a, -1).argmax(axis=1), n)).ravel())
        return np.concatenate(found), 2 * np.arange(len(shapes) + 1)

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """One part for each label, and one where they are the same."""
        if labels.shape != (2,) or not 0 <= labels.min() <= labels.max() < shape[0]:
            raise ValueError(f"expected two labels in [0, {shape[0]}), got {labels.tolist()}")
        return self.parts_batch(labels, np.array([0, 2]), [shape])[0]

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each pair, flat."""
        n, (first, second) = checked_table(shapes, "labels")[:, 0], labels.reshape(-1, 2).T
        kept = np.column_stack((np.ones((len(n), 2), np.bool_), first == second))
        return np.column_stack((first, second + n, first + 2 * n))[kept], ends_of(kept.sum(axis=1))

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """All pairs."""
        return (np.array(divmod(k, shape[0]), dtype=np.int64) for k in range(shape[0] ** 2))

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 25 pairs."""
        return [(1,), (2,), (5,)]
