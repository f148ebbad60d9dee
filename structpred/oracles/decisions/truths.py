"""The parent of oracles over parts that are on or off, of which some rows are outputs."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import check_listed, checked_batch, checked_scores, checked_sizes, checked_table, runs_of
from structpred.core.types import Floats, Integers
from structpred.oracles.decisions._by_shape import parts_of_rows


class TruthOracle(Oracle):
    """shape = (n,); labels[j] is 1 when part j is on, else 0. Each child says which of these rows is best for given scores."""

    @abstractmethod
    def best(self, scores: Floats) -> Labels:
        """The best row of each instance, (B, n), at scores (B, n)."""

    def holds(self, labels: Labels) -> bool:
        """Whether a row of 0 and 1 is an output: then it alone is best for scores of 1 where it is on and -1 where it is off."""
        return np.array_equal(self.best(np.where(labels[None] == 1, 1.0, -1.0))[0], labels)

    def n_parts(self, shape: Shape) -> int:
        """n."""
        return checked_sizes(shape, "parts")[0]

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best row, in closed form."""
        return self.best(checked_scores(scores, self.n_parts(shape), shape)[None]).ravel()

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best row of each instance; neighbours of one shape are done together."""
        scores, offsets = checked_batch(scores, offsets, checked_table(shapes, "parts")[:, 0])
        runs = [(scores[offsets[first] : offsets[last]], last - first) for _, first, last in runs_of(shapes)]
        return np.concatenate([np.empty(0, np.int64), *(self.best(s.reshape(n, -1)).ravel() for s, n in runs)]), offsets.copy()

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """The parts that are on. ValueError for a row that is no output."""
        if labels.shape != (self.n_parts(shape),) or not self.holds(labels):
            raise ValueError(f"{labels.tolist()} is no row of {shape[0]} times 0 or 1 that keeps {self!r}")
        return np.flatnonzero(labels)

    parts_batch = parts_of_rows

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every row that is an output."""
        check_listed(self.n_parts(shape))
        return filter(self.holds, (np.array(row, dtype=np.int64) for row in product((0, 1), repeat=shape[0])))

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 64 rows."""
        return [(3,), (4,), (6,)]


def best_count(scores: Floats, low: int, high: int | None) -> Labels:
    """(B, n): the best rows with low to high ones, None for n: the parts with positive scores, if not too few or too many."""
    wanted = np.clip((scores > 0).sum(axis=1, keepdims=True), low, high)
    place = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    return (place < wanted).astype(np.int64)
