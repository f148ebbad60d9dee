"""One word with its head and its modifiers: a head automaton (Eisner 2000; Koo, Rush, Collins, Jaakkola & Sontag 2010)."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import LARGEST, check_listed, checked_batch
from structpred.core.types import Integers
from structpred.errors import DataError
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import ends_of

_kernels = later("structpred.oracles.trees._head_automaton_kernels")


class HeadAutomaton(Oracle):
    """shape = (heads, left, right, one_child): what one word may have as its head, and as modifiers on either side.

    Labels: the number of the head, then 1 or 0 for each modifier, those to the left first, both sides from the nearest outwards.
    heads = 0: the root, which has none; its first label is 0, and with one_child = 1 it has one modifier, if there is any.

    Parts, in this order: the arcs to the modifiers; those from the heads; pairs of consecutive siblings of the left side, then
    of the right one: (i, j) at j (j - 1) / 2 + i, where 0 is the start, 1, 2, ... are the modifiers and their number plus one is
    the end, so that an empty side has the pair (start, end); grandparents, modifier * heads + head. O(heads d^2), d modifiers.

    >>> import numpy as np
    >>> oracle = HeadAutomaton()
    >>> oracle.n_parts((1, 0, 1, 0))  # two arcs, (start, end) of the left, three pairs of the right, one grandparent
    7
    >>> oracle.argmax(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5]), (1, 0, 1, 0)).tolist()
    [0, 1]
    """

    output = "head with modifiers"

    def n_parts(self, shape: Shape) -> int:
        """d + heads + siblings + d * heads."""
        return int(_n_parts(sizes_of([shape]))[0])

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best head and modifiers. Ties go to what comes first."""
        return self.argmax_batch(scores, np.array([0, np.size(scores)]), [shape])[0]

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best output of each instance, in one compiled call."""
        sizes = sizes_of(shapes)
        scores, offsets = checked_batch(scores, offsets, _n_parts(sizes))
        ends = ends_of(1 + sizes[:, 1] + sizes[:, 2])
        labels = np.empty(int(ends[-1]), np.int64)
        heads, *sides = sizes[:, :3].max(axis=0, initial=1).tolist()
        tables = np.empty((2, max(sides) + 2, heads))
        _kernels().best_of_all(scores, offsets, sizes, tables, ends, labels)
        return labels, ends

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """ValueError for labels that are no head with modifiers, and for another number of modifiers than one_child allows."""
        (heads, left, right, one_child) = sizes_of([shape])[0].tolist()
        if labels.shape != (1 + left + right,):
            raise ValueError(f"expected a head and {left + right} modifiers, got shape {labels.shape}")
        if not 0 <= labels[0] < max(heads, 1) or labels[1:].min(initial=0) < 0 or labels[1:].max(initial=0) > 1:
            raise ValueError(f"expected a head below {max(heads, 1)}, then 0 or 1 for each modifier, got {labels.tolist()}")
        if one_child and left + right and labels[1:].sum() != 1:
            raise ValueError(f"expected one modifier, got {labels[1:].sum()}")
        return self.parts_batch(labels, np.array([0, len(labels)]), [shape])[0]

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each output, flat, in one compiled call."""
        sizes, part_ends = sizes_of(shapes), np.zeros(len(shapes) + 1, np.int64)
        out = np.empty(3 * len(labels), np.int64)
        _kernels().parts_of_all(labels, ends, sizes, out, part_ends)
        return out[: part_ends[-1]], part_ends

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every head with every set of modifiers."""
        (heads, left, right, one_child) = sizes_of([shape])[0].tolist()
        check_listed(left + right)
        for head, *chosen in product(range(max(heads, 1)), *[(0, 1)] * (left + right)):
            if not one_child or not chosen or sum(chosen) == 1:
                yield np.array([head, *chosen], dtype=np.int64)

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 96 outputs."""
        return [(2, 1, 1, 0), (1, 0, 0, 0), (0, 0, 3, 1), (0, 0, 3, 0), (3, 2, 3, 0), (0, 2, 1, 1)]


def sizes_of(shapes: Sequence[Shape]) -> Integers:
    """The numbers of some shapes, a row each; DataError for what is no shape."""
    try:
        sizes = np.array(shapes).reshape(len(shapes), 4)
        fit = (sizes >= 0) & (sizes <= LARGEST >> 10) & (sizes == sizes.astype(np.int64))
    except (TypeError, ValueError, OverflowError):
        sizes, fit = np.full((1, 4), -1), np.zeros((1, 4), np.bool_)
    wrong = ~fit.all(axis=1) | (sizes[:, 0] * sizes[:, 3] > 0)
    if wrong.any():
        form = "a shape is (heads, left, right, one_child), whole numbers, one_child of a root alone"
        raise DataError(f"sample {wrong.argmax()}: {form}, got {shapes[wrong.argmax()]}")
    return sizes.astype(np.int64)


def _n_parts(sizes: Integers) -> Integers:
    heads, left, right, _ = sizes.T
    return heads + (left + right) * (1 + heads) + (left + 1) * (left + 2) // 2 + (right + 1) * (right + 2) // 2
