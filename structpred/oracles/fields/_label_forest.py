"""Sets of labels in a forest: the numbering of parts, and the parent of the oracles over them."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import check_listed, checked_batch, checked_scores, kept_for_shapes, runs_of, short
from structpred.core.types import Flags, Floats, Integers
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.decisions._by_shape import planned

Truths = Flags


@dataclass(frozen=True, eq=False)
class LabelForest:
    """parents: of each label, -1 at roots. order: the labels, parents first. leaves: those without children."""

    parents: Integers
    order: list[int]
    leaves: Integers

    @property
    def n_parts(self) -> int:
        """Two for each label."""
        return 2 * len(self.parents)

    def closed(self, rows: Labels) -> Truths:
        """For each row whether every label that is on has its parent on."""
        below = np.flatnonzero(self.parents >= 0)
        return np.asarray((rows[:, below] <= rows[:, self.parents[below]]).all(axis=1))

    @cached_property
    def paths(self) -> Labels:
        """The path of each leaf, (leaves, n) of 0 and 1."""
        rows = np.zeros((len(self.leaves), len(self.parents)), np.int64)
        at = self.leaves.copy()
        while (there := np.flatnonzero(at >= 0)).size:
            rows[there, at[there]] = 1
            at[there] = self.parents[at[there]]
        return rows

    @cached_property
    def ladders(self) -> Integers:
        """Column k: the labels from leaf k up to its root, then the number of labels, one above all."""
        rows, at, n = [], self.leaves, len(self.parents)
        above = np.append(np.where(self.parents < 0, n, self.parents), n)
        while (at < n).any():
            rows.append(at)
            at = above[at]
        return np.array(rows)


@kept_for_shapes
def forest_of(shape: Shape) -> LabelForest:
    """The forest that a shape, the parents of its labels, describes. Raises DataError for anything else, and for a cycle."""
    n = len(shape)
    if not n or any(p != int(p) or not -1 <= p < n for p in shape):
        raise DataError(f"a forest's shape is the parent of each of n labels, -1 for a root and else below n; got {short(shape)}")
    parents = np.array(shape, dtype=np.int64)
    children: list[list[int]] = [[] for _ in range(n)]
    for v, p in enumerate(parents.tolist()):
        if p >= 0:
            children[p].append(v)
    order = np.flatnonzero(parents < 0).tolist()
    for v in order:  # it grows while it is walked
        order += children[v]
    if len(order) < n:
        raise DataError(f"the parents {short(shape)} run in a circle: a forest has none")
    return LabelForest(parents, order, np.array([v for v in range(n) if not children[v]], dtype=np.int64))


class Gains:
    """What labels gain by being on, for many instances: scores[:, v, a] of label v in state a.

    gains: (B, n), on less off; the score on where off is forbidden. base: the sum of all that are off, but for the forbidden.
    must: off is forbidden. never: on is. So no forbidden part is ever added or taken away.
    """

    def __init__(self, scores: Floats) -> None:
        off, on = scores[:, :, 0], scores[:, :, 1]
        self.must, self.never = off <= 0.5 * FORBIDDEN, on <= 0.5 * FORBIDDEN
        kept = np.where(self.must, 0.0, off)
        self.base, self.gains = kept.sum(axis=1), np.where(self.never, 0.0, on) - kept


class ForestOracle(Oracle):
    """The parent of oracles over sets of labels in a forest, closed under parents; each child says which sets.

    shape: the parent of each label, -1 for a root. Labels: 0 or 1 for each label. Part 2 v + a is on when label v is a. Scores
    are finite; -1e30 forbids a part. InfeasibleError where that leaves no output.
    """

    @abstractmethod
    def _best(self, gains: Gains, forest: LabelForest) -> tuple[Labels, Truths]:
        """The best output of each instance, (B, n), and whether there is one."""

    @abstractmethod
    def _allowed(self, rows: Labels, forest: LabelForest) -> Truths:
        """For each closed row whether it is an output."""

    def n_parts(self, shape: Shape) -> int:
        """Two for each label."""
        return forest_of(shape).n_parts

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output."""
        found: Labels = self._rows(checked_scores(scores, self.n_parts(shape), shape), shape, 1, 0)[0]
        return found

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best output of each instance; neighbours of one shape are done together."""
        scores, offsets = checked_batch(scores, offsets, [planned(forest_of, shape, i).n_parts for i, shape in enumerate(shapes)])
        found = [np.empty(0, np.int64)]
        for shape, first, last in runs_of(shapes):
            found.append(self._rows(scores[offsets[first] : offsets[last]], shape, last - first, first).ravel())
        return np.concatenate(found), offsets // 2

    def _rows(self, flat: Scores, shape: Shape, n: int, first: int) -> Labels:
        labels, feasible = self._best(Gains(flat.reshape(n, -1, 2)), forest_of(shape))
        if not feasible.all():
            i = first + int(np.argmin(feasible))
            raise InfeasibleError(f"instance {i}: every output uses a forbidden part (a score of -1e30)")
        return labels

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """One part for each label."""
        forest = forest_of(shape)
        n = len(forest.parents)
        if labels.shape != (n,) or ((labels != 0) & (labels != 1)).any():
            raise ValueError(f"expected 0 or 1 for each of {n} labels, got {short(labels.tolist())}")
        if not (forest.closed(labels[None])[0] and self._allowed(labels[None], forest)[0]):
            raise ValueError(f"the labels {short(np.flatnonzero(labels).tolist())} are not an output: {type(self).__doc__}")
        return 2 * np.arange(n) + labels

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each output of `argmax_batch`, flat."""
        at = np.concatenate([*(np.arange(len(shape)) for shape in shapes), np.empty(0, np.int64)])
        return 2 * at + labels, ends

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """All outputs."""
        forest = forest_of(shape)
        check_listed(len(forest.parents))
        return self._listed(forest)

    def _listed(self, forest: LabelForest) -> Iterator[Labels]:
        """A block of all sets of labels at a time."""
        sets = product((0, 1), repeat=len(forest.parents))
        while block := list(islice(sets, 4096)):
            rows = np.array(block, dtype=np.int64)
            rows = rows[forest.closed(rows)]
            yield from rows[self._allowed(rows, forest)]

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """A position for each label, with two states."""
        return len(shape), 2

    @staticmethod
    def example_shapes() -> list[Shape]:
        """One label, no edges, a chain, a star, a tree whose parents come later, two trees."""
        return [(-1,), (-1, -1, -1), (-1, 0, 1, 2), (-1, 0, 0, 0), (2, 0, -1, 2), (3, -1, 1, -1, 1, 3)]
