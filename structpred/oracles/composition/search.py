"""The best outputs of a batch of compositions: rounds of the bundle method, then best-first branch and bound."""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Shape
from structpred.core.types import Floats, Integers
from structpred.errors import ConvergenceError, InfeasibleError
from structpred.oracles.composition.bundle import Bundle
from structpred.oracles.composition.layout import Batch, Layout
from structpred.oracles.composition.rounds import Rounds

#: rounds of the bundle method at most, and where parts are pinned
ROUNDS, PINNED = 60, 20
#: subproblems that are looked at where only some output is wanted
ENOUGH = 1000


class Solved(NamedTuple):
    """Of each instance: the best output found, a bound on all, and whether that proves it best."""

    labels: list[Labels]
    bounds: Floats
    proven: list[bool]


#: a subproblem: minus its bound, its age, the part to pin next (-1: none is left), the pins, multipliers to start from
Node = tuple[float, int, int, Integers, Floats]


class Search:
    """Subproblems of a batch, instance by instance; all instances are branched in lockstep.

    Forbidden parts score so little that no output makes up for it, and no less, so that shares of their scores keep their digits.
    max_nodes: the most subproblems of an instance; None: none are solved once there is an output. states: last multipliers.
    """

    def __init__(
        self, whole: Any, shapes: Sequence[Shape], layouts: Sequence[Layout], scores: Floats, max_nodes: int | None
    ) -> None:
        self.whole, self.shapes, self.layouts, self.max_nodes = whole, shapes, layouts, max_nodes
        self.batch, n = Batch(layouts), len(layouts)
        self.best, self.labels, self.bounds = np.full(n, -np.inf), [np.empty(0, np.int64)] * n, np.zeros(n)
        owners, forbidden = np.repeat(np.arange(n), np.diff(self.batch.part_ends)), scores <= 0.5 * FORBIDDEN
        self.theta, self.sizes, self.least = np.where(forbidden, 0.0, scores), np.ones(n), np.zeros(n)
        #: outputs without forbidden parts score more
        self.floor = np.full(n, -np.inf)
        if len(some := np.unique(owners[forbidden])):
            self._reach(some)
            self.floor[some] = self.least[some] + self.sizes[some] - 0.5
            self.theta -= np.where(forbidden, self.sizes[owners], 0.0)
        self.sizes[:] = 1.0 + np.bincount(owners, np.abs(self.theta), n)
        self.queues: list[list[Node]] = [[] for _ in layouts]
        self.ages = [0] * n

    def go(self, starts: Sequence[Floats | None] | None = None) -> Solved:
        """All stages. Raises InfeasibleError where the members exclude every output, ConvergenceError where none was found."""
        n = len(self.layouts)
        start = self.batch.centred(starts or [None] * n, self.sizes)
        root = self._rounds(np.arange(n), np.zeros(len(self.theta), np.int64), start, self.batch)
        self._finish(root, np.arange(n), np.arange(n), ROUNDS)
        self.bounds[:] = np.maximum(root.low, self.best)
        self.states = np.split(root.multipliers, self.batch.copy_ends[self.batch.member_ends[1:-1]])
        if len(some := np.flatnonzero(self.ages)):
            self._reach(some)
        while work := [(i, *one) for i in range(n) for one in self._branches(i)]:
            owners, pins, multipliers = zip(*work, strict=True)
            at = np.array(owners)
            rounds = self._rounds(at, np.concatenate(pins), np.concatenate(multipliers), Batch([self.layouts[i] for i in owners]))
            self._finish(rounds, np.arange(len(at)), at, PINNED)
        if np.isinf(self.best).any():
            i = int(np.isinf(self.best).argmax())
            error = ConvergenceError if self.queues[i] else InfeasibleError
            raise error(f"sample {i}: no output was found on which the members of {type(self.whole).__name__} agree")
        return Solved(self.labels, self.bounds, (self.bounds - self.best <= root.tolerance).tolist())

    def _rounds(self, owners: Integers, pins: Integers, multipliers: Floats, batch: Batch, sign: float = 1.0) -> Rounds:
        ends, shapes = self.batch.part_ends, [self.shapes[i] for i in owners.tolist()]
        theta = sign * np.concatenate([self.theta[ends[i] : ends[i + 1]] for i in owners.tolist()])
        return Rounds(self.whole, shapes, batch, theta, self.sizes[owners], pins, multipliers, self.best[owners])

    def _reach(self, rows: Integers) -> None:
        """Write what no output scores less than, and as sizes more than two outputs can differ by."""
        batch, found = Batch([self.layouts[i] for i in rows.tolist()]), []
        for sign in (1.0, -1.0):
            size = int(batch.part_ends[-1])
            rounds = self._rounds(rows, np.zeros(size, np.int64), np.zeros(len(batch.part_of)), batch, sign)
            rounds.ask()
            found.append(np.add.reduceat(rounds.values, batch.member_ends[:-1]))
        self.sizes[rows] = 1.0 + found[0] + found[1]
        self.least[rows] = -found[1] - self.sizes[rows]  # room for rounding; a pin that cannot be kept costs more

    def _branches(self, i: int) -> list[tuple[Integers, Floats]]:
        """Pins and multipliers of the next two subproblems of an instance; none where its search is over."""
        queue = self.queues[i]
        if self.ages[i]:
            self.bounds[i] = max(-queue[0][0] if queue else -np.inf, self.best[i])
        enough = self.best[i] > -np.inf if self.max_nodes is None else self.ages[i] > self.max_nodes
        if not queue or enough or queue[0][2] < 0 or self.ages[i] > (self.max_nodes or ENOUGH):
            return []
        (_, _, part, before, multipliers), found = heappop(queue), []
        for sign in (1, -1):
            pins = before.copy()
            pins[part] = sign
            # where nothing is left to agree on, multipliers only blur what pins cost that cannot be kept
            found.append((pins, multipliers * (not pins[self.layouts[i].shared].all())))
        return found

    def _finish(self, rounds: Rounds, left: Integers, owners: Integers, limit: int) -> None:
        """Rounds of the bundle method in the subproblems `left`; those that may hold a better output are opened."""
        bundle, batch = Bundle(rounds), rounds.batch
        left = bundle.run(left, limit)
        for s, i in enumerate(owners.tolist()):
            if (found := rounds.labels[s]) is not None and rounds.best[s] > self.best[i]:
                self.best[i], self.labels[i] = rounds.best[s], found
        for s, i in zip(left.tolist(), owners[left].tolist(), strict=True):
            self.ages[i] += 1
            shared = self.layouts[i].shared
            a, b = batch.part_ends[[s, s + 1]].tolist()
            first, last = batch.copy_ends[batch.member_ends[[s, s + 1]]].tolist()
            pins = rounds.pins[a:b].copy()
            apart = np.abs(bundle.totals[a:b] / batch.holders[a:b] - 0.5)[shared] + 9.0 * (pins[shared] != 0)
            part = int(shared[apart.argmin()]) if apart.min() < 9.0 else -1
            if rounds.low[s] >= self.least[i] or rounds.batch is self.batch:  # else no output keeps the pins
                heappush(self.queues[i], (-rounds.low[s], self.ages[i], part, pins, rounds.multipliers[first:last].copy()))
