"""Trees over candidate arcs: any oracle of trees, with all other arcs forbidden."""

from collections.abc import Iterator, Sequence

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.head_lists import candidate_shape, candidates_of
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import kept_for_shapes, shaped_batch
from structpred.core.types import Floats, Integers
from structpred.oracles.trees._trees import TreeOracle


class CandidateTrees(Oracle):
    """shape: of `core.head_lists.candidate_shape`, which says what heads each word may have. Labels and parts: those of `tree`.

    The parts of arcs that are no candidates are never on.

    >>> import numpy as np
    >>> from structpred.oracles.projective import ProjectiveOracle
    >>> shape = candidate_shape([[1, 0, 0], [1, 1, 0]])  # the first word depends on the root
    >>> CandidateTrees(ProjectiveOracle()).argmax(np.array([0.0, 0.0, 9.0, 0.0, 0.0, 0.0]), shape).tolist()
    [0, 1]
    """

    output = "tree"

    def __init__(self, tree: TreeOracle) -> None:
        self.tree = tree

    def n_parts(self, shape: Shape) -> int:
        """n * (n + 1), as without candidates."""
        return len(_barred(shape))

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best tree."""
        return self.argmax_batch(scores, np.array([0, np.size(scores)]), [shape])[0]

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best tree of each instance."""
        barred = [_barred(shape) for shape in shapes]
        scores, offsets = shaped_batch(scores, offsets, [len(own) for own in barred])
        kept = scores + np.concatenate([np.empty(0), *barred])
        return self.tree.argmax_batch(kept, offsets, [(shape[0],) for shape in shapes])

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """One arc a word; ValueError for what is no tree, and for heads that are no candidates."""
        found = self.tree.parts(labels, (shape[0],))
        if (wrong := np.flatnonzero(_barred(shape)[found])).size:
            raise ValueError(f"word {wrong[0] + 1}: the head {labels[wrong[0]]} is no candidate")
        return found

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each output."""
        return self.tree.parts_batch(labels, ends, [(shape[0],) for shape in shapes])

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """n words, each labelled with its head, 0..n."""
        return shape[0], shape[0] + 1

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """The trees among all."""
        table = candidates_of(shape)
        return (heads for heads in self.tree.enumerate((len(table),)) if table[np.arange(len(table)), heads].all())

    @staticmethod
    def example_shapes() -> list[Shape]:
        """All arcs, and some."""
        some = [np.eye(n, n + 1, dtype=np.bool_) | (np.arange(n * (n + 1)).reshape(n, n + 1) % 3 > 0) for n in (4, 5)]
        return [candidate_shape(table) for table in (np.ones((1, 2)), np.ones((3, 4)), *some)]


@kept_for_shapes
def _barred(shape: Shape) -> Floats:
    """What is added to the scores of arcs."""
    return np.where(candidates_of(shape), 0.0, FORBIDDEN).ravel()
