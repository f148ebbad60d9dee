"""Second-order trees: arcs, consecutive siblings and grandparents, by a tree oracle and an automaton for each word.

Koo, Rush, Collins, Jaakkola & Sontag, Dual decomposition for parsing with non-projective head automata, EMNLP 2010.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.head_lists import HeadLists, candidate_shape, candidates_of, head_lists
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import checked_batch
from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.composed import Composed
from structpred.oracles.composition.layout import Member
from structpred.oracles.composition.search import Solved
from structpred.oracles.head_automaton import HeadAutomaton
from structpred.oracles.projective import ProjectiveOracle
from structpred.oracles.trees._trees import projective_scratch, tree_room
from structpred.runtime.lazy_names import later
from structpred.runtime.settings import checked_whole

_kernels = later("structpred.oracles.trees._second_order_tree_kernels")

#: rounds where arcs are pinned
PINNED = 10


class SecondOrderTree(Composed):
    """shape: of `core.head_lists.candidate_shape`, which says what heads each word may have. Labels: the head of each word.

    A tree has the scores of its arcs, of pairs of consecutive modifiers (h, s, m) on one side of each word, start and end
    included, and of grandparents (g, h, m); `core.head_lists` numbers these parts. A score of -1e30 forbids one.

    projective, single_root: the kind of trees. rounds: of the subgradient method in compiled code, before the search. Then
    branch and bound proves the best tree, with at most max_nodes subproblems; None: no search, and ``exact`` is False.

    >>> import numpy as np
    >>> from structpred.core.head_lists import candidate_shape
    >>> oracle, shape = SecondOrderTree(), candidate_shape(np.ones((2, 3)))
    >>> scores = np.zeros(oracle.n_parts(shape))
    >>> scores[0] = 1.0  # the arc from the root to the first word
    >>> oracle.argmax(scores, shape).tolist()
    [0, 1]
    """

    output = "tree"
    argmax_batch, argmax_bound_batch = Composed.argmax_batch, Composed.argmax_bound_batch  # they ask n_parts of this class

    def __init__(
        self, projective: bool = False, single_root: bool = True, *, rounds: int = 40, max_nodes: int | None = 1000
    ) -> None:
        super().__init__([], max_nodes=max_nodes)
        self.projective, self.single_root, self.rounds = bool(projective), bool(single_root), checked_whole(rounds, "rounds")
        self._tree = ProjectiveOracle(self.single_root) if projective else ArborescenceOracle(self.single_root)
        self._word = HeadAutomaton()

    def members(self, shape: Shape) -> list[Member]:
        """The tree, then a head automaton for the root and each word."""
        (sizes, _, _, parts, copies, _), n = head_lists(shape), shape[0]
        shapes = [(*size, int(self.single_root and h == 0)) for h, size in enumerate(sizes.tolist())]
        words = [Member(self._word, own, parts[copies[h] : copies[h + 1]]) for h, own in enumerate(shapes)]
        return [Member(self._tree, (n,), np.arange(n * (n + 1))), *words]

    def n_parts(self, shape: Shape) -> int:
        """Arcs, siblings and grandparents."""
        return int(head_lists(shape).parts[-1]) + 1

    def closed(self, shape: Shape) -> Integers:
        """Arcs that are no candidates."""
        return np.flatnonzero(~candidates_of(shape).ravel())

    def _solved(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> Solved:
        """One after the other in compiled rounds. Arcs that are no candidates are forbidden."""
        sizes = []
        for i, shape in enumerate(shapes):
            try:
                sizes.append(self.n_parts(shape))
            except DataError as error:
                raise DataError(f"sample {i}: {error}") from None
        given, offsets = checked_batch(scores, offsets, sizes)
        longest, flat = max((shape[0] for shape in shapes), default=0), given.copy()
        rooms = projective_scratch(longest if self.projective else 0), tree_room(0 if self.projective else longest)
        found = Solved([np.empty(shape[0], np.int64) for shape in shapes], np.empty(len(shapes)), [False] * len(shapes))
        for i, shape in enumerate(shapes):
            own = flat[offsets[i] : offsets[i + 1]], self.closed(shape), head_lists(shape), rooms
            found.bounds[i], found.proven[i] = self._prove(*own, found.labels[i])
        return found

    def _prove(self, theta: Floats, closed: Integers, lists: HeadLists, rooms: Any, best: Labels) -> tuple[float, bool]:
        """Write the heads of the best tree; returns what none scores above, and whether that is proven.

        Best-first branch and bound. Where an arc is on, the other heads of its word are off.
        """
        theta[closed] = FORBIDDEN
        size = 1.0 + float(np.abs(theta[theta > 0.5 * FORBIDDEN]).sum())
        near = np.maximum(theta, -4.0 * size)
        copies, tree = near[lists.parts], near[: len(best) * (len(best) + 1)] / 3.0
        copies[lists.pairs] /= 3.0
        tree[closed] = FORBIDDEN
        rounds = partial(_kernels().rounds_of_tree, near, tuple(lists), self.projective, self.single_root)
        value, bound, proven, row = rounds(self.rounds, 1e-13 * size, copies, tree, rooms, -np.inf, best)
        queue, age = [(-bound, 0, row, copies[lists.pairs], tree)], 0  # rounds change the copies of arcs alone
        while not proven and age < (self.max_nodes or 0):
            _, _, row, *before = heappop(queue)
            for off in (False, True):
                copies[lists.pairs], tree = before[0], before[1].copy()
                _kernels().pin(row, tuple(lists), off, copies, tree)
                value, own, done, branch = rounds(PINNED, 1e-13 * size, copies, tree, rooms, value, best)
                age += 1
                if not done:
                    heappush(queue, (-min(own, bound), age, branch, copies[lists.pairs], tree))
            bound = max(value, -queue[0][0]) if queue else value
            proven = bound - value <= 1e-13 * size
        return bound, proven

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """ValueError for what is no such tree over the candidates."""
        arcs = self._tree.parts(labels, (shape[0],))
        if not (found := candidates_of(shape).ravel()[arcs]).all():
            raise ValueError(f"word {int(found.argmin()) + 1}: the head {labels[found.argmin()]} is no candidate")
        out = np.empty(6 * len(labels) + 6, np.int64)
        return np.sort(out[: _kernels().tree_parts(np.asarray(labels, np.int64), tuple(head_lists(shape)), out)])

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """n words, each labelled with its head, 0..n."""
        return shape[0], shape[0] + 1

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """The trees over the candidates."""
        allowed = candidates_of(shape)
        return (y for y in self._tree.enumerate((len(allowed),)) if allowed[np.arange(len(y)), y].all())

    @staticmethod
    def example_shapes() -> list[Shape]:
        """All arcs, and some."""
        some = np.eye(4, 5, dtype=np.bool_) | (np.arange(20).reshape(4, 5) % 3 > 0)
        return [candidate_shape(table) for table in (np.ones((2, 3)), np.ones((3, 4)), some)]
