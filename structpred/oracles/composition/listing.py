"""The best outputs of a composition, best first: a subproblem whose best output is known is split around it (Lawler 1972)."""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count

import numpy as np

from structpred.core.oracle import Labels
from structpred.core.types import Flags, Floats, Integers
from structpred.errors import ConvergenceError, OracleError
from structpred.oracles.composition.bundle import Bundle
from structpred.oracles.composition.layout import Batch
from structpred.oracles.composition.rounds import TOLERANCE, Rounds
from structpred.oracles.composition.search import PINNED, ROUNDS, Search

#: answers whose codes differ by less are the same
_SAME = 1e-9
#: a subproblem: minus its bound, its age, its best output or None, the part to pin next then, pins, multipliers to start from
Open = tuple[float, int, Labels | None, int, Integers, Floats]


class Listing:
    """The k outputs of largest worth of one instance, without forbidden parts, best first; fewer where there are fewer.

    search: of that instance. worth: of labels and what they score in the search, which it does not exceed; -inf: not wanted.
    """

    def __init__(self, search: Search, k: int, worth: Callable[[Labels, float], float] = lambda _, score: score) -> None:
        self.search, self.k, self.worth, self.layout = search, k, worth, search.layouts[0]
        self.found, self.queue = dict[bytes, tuple[float, Labels]](), list[Open]()
        self.ages, self.left = count(), ((search.max_nodes or 0) + 1) * k
        search.best[:], self.tolerance = search.floor, TOLERANCE * search.sizes
        search._reach(np.zeros(1, np.int64))

    def go(self) -> list[Labels]:
        """All of them. Raises ConvergenceError where more than max_nodes subproblems for each have to be split."""
        self._solve([np.zeros(len(self.search.theta), np.int64)], [np.zeros(len(self.layout.part_of))], ROUNDS)
        while self.queue and -self.queue[0][0] > self.search.best[0]:
            pins, starts = list[Integers](), list[Floats]()
            for _ in range(min(self.k, len(self.queue))):
                _, _, labels, part, before, multipliers = heappop(self.queue)
                self.left -= 1
                if self.left < 0 or (labels is None and part < 0):
                    raise ConvergenceError(f"what is best is not proven by {self.search.max_nodes} subproblems: raise max_nodes")
                either = [np.where(np.arange(len(before)) == part, sign, before) for sign in (1, -1)]
                pins += either if labels is None else self._around(labels, before)
                starts += [multipliers] * (len(pins) - len(starts))
            if pins:
                self._solve(pins, starts, PINNED)
        return [labels for _, labels in sorted(self.found.values(), key=lambda one: -one[0])[: self.k]]

    def _solve(self, pins: Sequence[Integers], starts: Sequence[Floats], limit: int) -> None:
        """A round of all subproblems, then at most `limit` of those that may hold an output that is wanted; these are opened."""
        search, layout, n = self.search, self.layout, len(pins)
        batch = Batch([layout] * n)
        # where nothing is left to agree on, multipliers only blur what pins cost that cannot be kept
        multipliers = [start * (not one[layout.shared].all()) for one, start in zip(pins, starts, strict=True)]
        rounds = search._rounds(np.zeros(n, np.int64), np.concatenate(pins), np.concatenate(multipliers), batch)
        rounds.tolerance[:] = self.tolerance
        rounds.ask()
        left = rounds.settle(np.arange(n), offer=rounds.cheap_parts)
        self._note(rounds)
        bundle = Bundle(rounds)
        bundle.run(left[rounds.unsolved(left)], limit)
        self._note(rounds)
        shares, ends = (bundle.totals / batch.holders).reshape(n, -1)[:, layout.shared], rounds.multipliers.reshape(n, -1)
        for s in np.flatnonzero((rounds.low >= search.least) & (rounds.low - search.best > self.tolerance)).tolist():
            apart, labels = np.abs(shares[s] - 0.5) + 9.0 * (pins[s][layout.shared] != 0), rounds.labels[s]
            part = int(layout.shared[apart.argmin()]) if apart.min(initial=9.0) < 9.0 else -1
            if labels is None or rounds.unsolved(np.array([s]))[0] or ((2 * self._counts(labels) - 1) * pins[s] < 0).any():
                labels = None
            heappush(self.queue, (-rounds.low[s], next(self.ages), labels, part, pins[s], ends[s].copy()))

    def _note(self, rounds: Rounds) -> None:
        """Take the outputs that were found; what scores no more than k of them is not looked for any longer."""
        for labels, score in zip(rounds.labels, rounds.best.tolist(), strict=True):
            if labels is not None and labels.tobytes() not in self.found and (worth := self.worth(labels, score)) > -np.inf:
                self.found[labels.tobytes()] = worth, labels
        if len(self.found) >= self.k:
            self.search.best[0] = max(self.search.best[0], sorted(worth for worth, _ in self.found.values())[-self.k])
        np.maximum(rounds.best, self.search.best, out=rounds.best)

    def _counts(self, labels: Labels) -> Integers:
        return np.bincount(self.search.whole.parts(labels, self.search.shapes[0]), minlength=len(self.search.theta))

    def _around(self, labels: Labels, pins: Integers) -> list[Integers]:
        """Pins that part all other outputs: the first parts as the labels have them, the next one not."""
        counts, shared = self._counts(labels), self.layout.holders > 1
        signs, exact = np.where(counts > 0, 1, -1), pins.copy()
        order = np.flatnonzero(shared & (counts > 0) & (pins == 0)).tolist()
        ranked = np.lexsort((-signs, ~shared))  # what one member alone holds tells outputs apart, too
        exact[order] = 1
        while (several := self._several(exact)).any():
            known = shared & ~several & (exact == 0)
            exact[known] = signs[known]
            if known.any():
                continue
            free = ranked[(several & (exact == 0) & (counts <= 1))[ranked]]
            if not len(free):
                raise OracleError("outputs of a composition that differ only in how often they have a part cannot be listed")
            order.append(int(free[0]))
            exact[free[0]] = signs[free[0]]
        found = np.tile(pins, (len(order), 1))
        for j, part in enumerate(order):
            found[j, part], found[j + 1 :, part] = -signs[part], signs[part]
        return list(found)

    def _several(self, pins: Integers) -> Flags:
        """For each part, whether no member that holds it has one answer alone that keeps the pins. Codes tell them apart."""
        search, layout = self.search, self.layout
        codes, batch, ranges = 1.0 + np.random.default_rng(0).random(len(pins)), Batch([layout]), np.zeros(len(layout.members))
        for theta in (codes, -codes):
            none = np.zeros(len(layout.part_of)), np.full(1, -np.inf)
            rounds = Rounds(search.whole, search.shapes, batch, theta, np.full(1, 2.0 + codes.sum()), pins, *none)
            rounds.ask()
            ranges += rounds.values
        return np.bincount(layout.part_of, np.repeat(ranges <= _SAME, np.diff(layout.copy_ends))) == 0
