"""Agreement: two labels, and what it brings that they are the same."""

from collections.abc import Iterator, Sequence

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import checked_batch, checked_scores, checked_sizes, checked_table, runs_of
from structpred.core.types import Floats, Integers


class Agreement(Oracle):
    """shape = (n_labels,): a pair of labels. Part l: the first is l; n_labels + l: the second is l; 2 n_labels + l: both are.

    A link of a skip chain, say. Ties go to the first pair. A whole table of pairs is a graph of two nodes, as `TreeMRF` has it;
    ``Logic("and")`` has the score of two parts that are on together.

    >>> Agreement().argmax(np.array([1.0, 0.0, 0.0, 0.5, 0.0, 2.0]), (2,)).tolist()
    [1, 1]
    """

    output = "pair of labels"

    def n_parts(self, shape: Shape) -> int:
        """3 n_labels."""
        return 3 * checked_sizes(shape, "labels")[0]

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best pair, by looking at all of them."""
        return _best(checked_scores(scores, self.n_parts(shape), shape), 1)

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best pair of each instance; neighbours of one shape are done together."""
        scores, offsets = checked_batch(scores, offsets, 3 * checked_table(shapes, "labels")[:, 0])
        found = [_best(scores[offsets[first] : offsets[last]], last - first) for _, first, last in runs_of(shapes)]
        return np.concatenate([np.empty(0, np.int64), *found]), 2 * np.arange(len(shapes) + 1)

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """One part for each label, and one where they are the same."""
        n = checked_sizes(shape, "labels")[0]
        if labels.shape != (2,) or not 0 <= labels.min() <= labels.max() < n:
            raise ValueError(f"expected two labels in [0, {n}), got {labels.tolist()}")
        return labels + np.array([0, n]) if labels[0] != labels[1] else labels[0] + np.array([0, n, 2 * n])

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """All pairs."""
        n = checked_sizes(shape, "labels")[0]
        return (np.array(divmod(k, n), dtype=np.int64) for k in range(n * n))

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """Two positions."""
        return 2, checked_sizes(shape, "labels")[0]

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 25 pairs."""
        return [(1,), (2,), (5,)]


def _best(scores: Floats, n_pairs: int) -> Labels:
    """The labels of the best pairs, flat."""
    first, second, same = scores.reshape(n_pairs, 3, -1).transpose(1, 0, 2)
    pairs, n = first[:, :, None] + second[:, None, :], first.shape[1]
    pairs[:, np.arange(n), np.arange(n)] += same
    return np.column_stack(np.divmod(pairs.reshape(n_pairs, -1).argmax(axis=1), n)).ravel()
