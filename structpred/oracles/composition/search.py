"""The best outputs of a batch of compositions: the subgradient method, then best-first branch and bound."""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Shape
from structpred.core.types import Floats, Integers
from structpred.errors import InfeasibleError
from structpred.oracles.composition.bundle import Bundle
from structpred.oracles.composition.layout import Batch, Layout
from structpred.oracles.composition.rounds import Rounds, Whole
from structpred.runtime.lazy_names import later

_kernels = later("structpred.oracles.composition._rounds_kernels")

#: rounds of each of the first two stages, and of the second where parts are pinned
ROUNDS, PINNED = 60, 20
#: subproblems that are looked at where only some output is wanted
ENOUGH = 1000


class Solved(NamedTuple):
    """Of each instance: the best output found, a bound on all, and whether that proves it best."""

    labels: list[Labels]
    bounds: Floats
    proven: list[bool]


class Node(NamedTuple):
    """A subproblem: minus its bound, its age, which part to pin next, the pins, and multipliers to start from."""

    key: float
    age: int
    part: int
    pins: Integers
    multipliers: Floats


def solve(whole: Whole, shapes: Sequence[Shape], layouts: Sequence[Layout], scores: Floats, max_nodes: int | None) -> Solved:
    """The best outputs, from rounds and a search over at most max_nodes subproblems; None: none once an output is found.

    Raises InfeasibleError where the members exclude every output.
    """
    batch = Batch(layouts)
    theta, sizes, n = np.empty(len(scores)), np.empty(len(layouts)), len(layouts)
    _kernels().within_reach(scores, batch.part_ends, theta, sizes)
    pins, zeros = np.zeros(len(theta), np.int64), np.zeros(len(batch.part_of))
    root = Rounds(whole, shapes, batch, theta, sizes, pins, zeros, np.full(n, -np.inf))
    tree = _Tree(whole, shapes, layouts, batch, root)
    tree.branch(max_nodes)
    for i, labels in enumerate(tree.labels):
        if labels is None:
            raise InfeasibleError(f"sample {i}: the members of {type(whole).__name__} exclude every output")
    bounds = np.maximum(tree.bounds, root.best)
    return Solved([y for y in tree.labels if y is not None], bounds, (bounds - root.best <= root.tolerance).tolist())


class _Tree:
    """The subproblems that are open, instance by instance; all instances are branched in lockstep."""

    def __init__(self, whole: Whole, shapes: Sequence[Shape], layouts: Sequence[Layout], batch: Batch, root: Rounds) -> None:
        self.whole, self.shapes, self.layouts, self.batch, self.root = whole, shapes, layouts, batch, root
        self.labels, self.bounds = root.labels, root.low
        self.queues: list[list[Node]] = [[] for _ in layouts]
        self.ages = [0] * len(layouts)

    def branch(self, max_nodes: int | None) -> None:
        """Pin parts until the gaps are closed, or max_nodes subproblems of an instance are solved."""
        n, cheap = len(self.layouts), np.flatnonzero([not one.expensive for one in self.layouts])
        left = self.root.descend(cheap, ROUNDS if len(cheap) else 0)
        self._finish(self.root, np.union1d(left, np.setdiff1d(np.arange(n), cheap)), np.arange(n), ROUNDS)
        left = np.flatnonzero([len(queue) > 0 for queue in self.queues])
        most, best = ENOUGH if max_nodes is None else max_nodes, self.root.best
        while True:
            open_ones, pinned = [], []
            for i in left.tolist():
                queue = self.queues[i]
                self.bounds[i] = max(-queue[0].key if queue else -np.inf, best[i])
                closed = not queue or self.bounds[i] - best[i] <= self.root.tolerance[i]
                if closed or queue[0].part < 0 or self.ages[i] > most or (max_nodes is None and best[i] > -np.inf):
                    continue
                node = heappop(queue)
                for sign in (1, -1):
                    pins = node.pins.copy()
                    pins[node.part] = sign
                    open_ones.append(i)
                    pinned.append((pins, node.multipliers))
            if not open_ones:
                return
            self._solve(np.array(open_ones), pinned)

    def _solve(self, owners: Integers, pinned: list[tuple[Integers, Floats]]) -> None:
        """Solve subproblems, and open those that may hold a better output."""
        batch, ends = Batch([self.layouts[i] for i in owners.tolist()]), self.batch.part_ends
        theta = np.concatenate([self.root.theta[ends[i] : ends[i + 1]] for i in owners.tolist()])
        pins, multipliers = (np.concatenate(pieces) for pieces in zip(*pinned, strict=True))
        shapes, best = [self.shapes[i] for i in owners.tolist()], self.root.best[owners]
        rounds = Rounds(self.whole, shapes, batch, theta, self.root.sizes[owners], pins, multipliers, best)
        self._finish(rounds, np.arange(len(owners)), owners, PINNED)
        for k, i in enumerate(owners.tolist()):
            if (found := rounds.labels[k]) is not None and rounds.best[k] > self.root.best[i]:
                self.root.best[i], self.labels[i] = rounds.best[k], found

    def _finish(self, rounds: Rounds, left: Integers, owners: Integers, limit: int) -> None:
        """Rounds of the bundle method in the subproblems `left`; those that it does not solve are opened."""
        bundle = Bundle(rounds)
        left = bundle.run(left, limit)
        batch, split = rounds.batch, np.empty(len(left), np.int64)
        _kernels().nearest_to_half(
            left, batch.slot_ends, batch.shared, batch.shared_ends, batch.copies, rounds.pins, bundle.point, split
        )
        for k, (s, i) in enumerate(zip(left.tolist(), owners[left].tolist(), strict=True)):
            self.ages[i] += 1
            if rounds.low[s] < -rounds.sizes[s]:
                continue  # no output keeps the pins
            first, last = batch.part_ends[s], batch.part_ends[s + 1]
            a, b = batch.copy_ends[batch.member_ends[s]], batch.copy_ends[batch.member_ends[s + 1]]
            part = int(split[k] - first) if split[k] >= 0 else -1
            node = Node(-rounds.low[s], self.ages[i], part, rounds.pins[first:last].copy(), rounds.multipliers[a:b].copy())
            heappush(self.queues[i], node)
