"""Second-order trees: arcs, consecutive siblings and grandparents, by a tree oracle and one head automaton a word.

Koo, Rush, Collins, Jaakkola & Sontag (2010), Dual decomposition for parsing with non-projective head automata.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.head_lists import HeadLists, candidate_shape, candidates_of, head_lists
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import checked_scores
from structpred.core.types import Integers
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.head_automaton import HeadAutomaton
from structpred.oracles.projective import ProjectiveOracle
from structpred.oracles.trees._trees import TreeOracle, projective_scratch, tree_room
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import packed

_kernels = later("structpred.oracles.trees._second_order_tree_kernels")


class SecondOrderTree(Oracle):
    """shape: of `core.head_lists.candidate_shape`: the trees of n words over candidate arcs.

    Labels: the head of each word.
    """

    output = "tree"

    def __init__(self, projective: bool = False, single_root: bool = True, *, rounds: int = 40, max_nodes: int | None = 1000) -> None:
        self.projective, self.single_root, self.rounds = bool(projective), bool(single_root), int(rounds)
        self.exact = max_nodes is not None
        self.tree = (ProjectiveOracle if projective else ArborescenceOracle)(single_root)

    def n_parts(self, shape: Shape) -> int:
        return int(head_lists(shape).blocks[-1])

    def argmax(self, scores, shape):
        return self.argmax_bound(scores, shape)[0]

    def argmax_bound(self, scores: Scores, shape: Shape) -> tuple[Labels, float]:
        scores, n = checked_scores(scores, self.n_parts(shape), shape), shape[0]
        rooms = projective_scratch(n if self.projective else 0), tree_room(0 if self.projective else n)
        best = np.empty(n, np.int64)
        lists = tuple(head_lists(shape))
        value, bound = _kernels().rounds_of_tree(scores, lists, self.projective, self.single_root, self.rounds, rooms, best)
        return best, max(value, bound)

    def parts(self, labels, shape):
        self.tree.parts(labels, (shape[0],))
        out = np.empty(6 * shape[0] + 6, np.int64)
        size = _kernels().tree_parts(labels, tuple(head_lists(shape)), out)
        if size < 0:
            raise ValueError(f"the head of word {-size} is no candidate")
        return out[:size]

    def enumerate(self, shape):
        table = candidates_of(shape)
        for heads in self.tree.enumerate((len(table),)):
            if table[np.arange(len(table)), heads].all():
                yield heads

    def label_grid(self, shape):
        return shape[0], shape[0] + 1

    @staticmethod
    def example_shapes():
        rng = np.random.default_rng(0)
        return [candidate_shape((rng.random((n, n + 1)) < share) | np.eye(n, n + 1, dtype=bool)) for n, share in [(1, 1), (2, 1), (3, 1), (4, .6), (5, .6)]]
