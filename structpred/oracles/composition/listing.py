"""The best outputs of a composition, best first: a subproblem whose best output is known is split around it (Lawler 1972)."""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Labels
from structpred.core.types import Flags, Floats, Integers
from structpred.errors import ConvergenceError, OracleError
from structpred.oracles.composition.bundle import Bundle
from structpred.oracles.composition.layout import Batch
from structpred.oracles.composition.rounds import TOLERANCE, Rounds
from structpred.oracles.composition.search import PINNED, ROUNDS, Search

#: outputs whose codes differ by less are the same
_SAME = 1e-9


class Subproblem(NamedTuple):
    """Minus its bound, its age, the pins, multipliers to start from, its best output if known, and else the part to pin next."""

    bound: float
    age: int
    pins: Integers
    multipliers: Floats
    labels: Labels | None
    part: int


class Listing:
    """The k outputs of largest worth of one instance, without forbidden parts, best first; fewer where there are fewer.

    search: of that instance. worth: of labels and what they score in the search, which it does not exceed; -inf: not wanted.
    """

    def __init__(self, search: Search, k: int, worth: Callable[[Labels, float], float] = lambda _, score: score) -> None:
        self.search, self.k, self.worth, self.layout = search, k, worth, search.layouts[0]
        self.found: dict[bytes, tuple[float, Labels]] = {}
        self.queue: list[Subproblem] = []
        self.age, self.n_open = 0, 0
        search.best[:], self.tolerance = search.floor, TOLERANCE * search.sizes
        search._reach(np.zeros(1, np.int64))

    def go(self) -> list[Labels]:
        """All of them. Raises ConvergenceError after more than max_nodes subproblems for each that were not solved at once."""
        whole, copies = len(self.search.theta), len(self.layout.part_of)
        work, first = [(np.zeros(whole, np.int64), np.zeros(copies))], True
        while work:
            self._solve(work, first)
            work, first = [], False
            for _ in range(min(self.k, len(self.queue))):
                one = heappop(self.queue)
                if -one.bound > self.search.best[0]:
                    pins = self._either(one) if one.labels is None else self._around(one.labels, one.pins)
                    # where nothing is left to agree on, multipliers only blur what pins cost that cannot be kept
                    work += [(p, one.multipliers * (not p[self.layout.shared].all())) for p in pins]
        return [labels for _, labels in sorted(self.found.values(), key=lambda one: -one[0])[: self.k]]

    def _solve(self, work: Sequence[tuple[Integers, Floats]], first: bool) -> None:
        """One round of all subproblems, then more of those that may hold an output that is wanted; these are opened."""
        search, layout, n = self.search, self.layout, len(work)
        pins, multipliers = zip(*work, strict=True)
        batch = Batch([layout] * n)
        rounds = search._rounds(np.zeros(n, np.int64), np.concatenate(pins), np.concatenate(multipliers), batch)
        rounds.tolerance[:] = self.tolerance
        left = rounds.descend(np.arange(n), ROUNDS if first and not layout.expensive else 1)
        self._note(rounds)
        bundle = Bundle(rounds)
        bundle.run(left[rounds.unsolved(left)], ROUNDS if first else PINNED)
        self._note(rounds)
        shares = (bundle.totals / batch.holders).reshape(n, -1)[:, layout.shared]
        for s in np.flatnonzero((rounds.low >= search.least) & (rounds.low - search.best > rounds.tolerance)).tolist():
            apart = np.abs(shares[s] - 0.5) + 9.0 * (pins[s][layout.shared] != 0)
            part = int(layout.shared[apart.argmin()]) if apart.min(initial=9.0) < 9.0 else -1
            labels = rounds.labels[s]
            if rounds.unsolved(np.array([s]))[0] or labels is None or not self._keeps(labels, pins[s]):
                labels = None
            own = rounds.multipliers.reshape(n, -1)[s].copy()
            self.age += 1
            heappush(self.queue, Subproblem(-rounds.low[s], self.age, pins[s], own, labels, part))

    def _note(self, rounds: Rounds) -> None:
        """Take the outputs that were found; what scores no more than k of them is not looked for any longer."""
        for labels, score in zip(rounds.labels, rounds.best.tolist(), strict=True):
            if labels is not None and labels.tobytes() not in self.found and (worth := self.worth(labels, score)) > -np.inf:
                self.found[labels.tobytes()] = worth, labels
        values = sorted((worth for worth, _ in self.found.values()), reverse=True)
        if len(values) >= self.k:
            self.search.best[0] = max(self.search.best[0], values[self.k - 1])
        np.maximum(rounds.best, self.search.best, out=rounds.best)

    def _counts(self, labels: Labels) -> Integers:
        search = self.search
        return np.bincount(search.whole.parts(labels, search.shapes[0]), minlength=len(search.theta))

    def _keeps(self, labels: Labels, pins: Integers) -> bool:
        return bool(((self._counts(labels) > 0) == (pins > 0))[pins != 0].all())

    def _either(self, one: Subproblem) -> list[Integers]:
        """The pins of a subproblem that is not solved, with one part more, on and off."""
        self.n_open += 1
        most = (self.search.max_nodes or 0) * self.k
        if self.n_open > most or one.part < 0:
            raise ConvergenceError(f"the {self.k} best outputs are not proven after {most:,} subproblems; raise max_nodes")
        return [_pinned(one.pins, [one.part], np.array([sign])) for sign in (1, -1)]

    def _around(self, labels: Labels, pins: Integers) -> list[Integers]:
        """Pins that part all other outputs: the first parts as the labels have them, the next one not."""
        counts, shared = self._counts(labels), self.layout.shared
        signs = np.where(counts > 0, 1, -1)
        exact = _pinned(pins, shared, signs[shared])
        order = [int(p) for p in shared[np.argsort(-signs[shared], kind="stable")] if not pins[p]]
        if (members := self._left([exact])[0]).any():  # what one member alone holds tells outputs apart, too
            own = np.unique(self.layout.part_of[np.repeat(members, np.diff(self.layout.copy_ends))])
            own = own[(self.layout.holders[own] == 1) & (exact[own] == 0) & (counts[own] <= 1)]
            own = own[np.argsort(-signs[own], kind="stable")]
            open_ = self._left([_pinned(exact, own[:j], signs[own[:j]]) for j in range(len(own) + 1)]).any(axis=1)
            if open_.all():
                raise OracleError(
                    f"{type(self.search.whole).__name__}: outputs that differ only in how often they have a part cannot be listed"
                )
            order += own[: int(open_.argmin())].tolist()
        flipped = signs[order]
        return [_pinned(pins, order[: j + 1], np.append(flipped[:j], -flipped[j])) for j in range(len(order))]

    def _left(self, pins: Sequence[Integers]) -> Flags:
        """For each of these pins and each member: whether it may still have several answers. Codes tell them apart."""
        n, search = len(pins), self.search
        codes = 1.0 + np.random.default_rng(0).random(len(search.theta))
        batch, ranges = Batch([self.layout] * n), np.zeros(n * len(self.layout.members))
        for sign in (1.0, -1.0):
            rounds = Rounds(
                search.whole, [*search.shapes] * n, batch, np.tile(sign * codes, n), np.full(n, 2.0 + codes.sum()),
                np.concatenate(pins), np.zeros(len(batch.part_of)), np.full(n, -np.inf),
            )  # fmt: skip
            rounds.ask()
            ranges += rounds.values
        return ranges.reshape(n, -1) > _SAME


def _pinned(pins: Integers, parts: Sequence[int] | Integers, signs: Integers) -> Integers:
    found = pins.copy()
    found[parts] = signs
    return found
