"""Rounds of a batch of composed instances in lockstep: all members of one oracle that see new scores are asked in one call."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from structpred.core.oracle import Labels, Shape
from structpred.core.packing import argmax_batch, parts_batch
from structpred.core.types import AnyArray, Floats, Integers
from structpred.errors import OracleError
from structpred.oracles.composition.layout import Batch
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import ends_of

_kernels = later("structpred.oracles.composition._rounds_kernels")

#: what the sum of |theta| is multiplied by for the force that pins a part
FORCE = 4.0
#: a gap that is smaller than this share of the sum of |theta| is closed
TOLERANCE = 1e-13


class Whole(Protocol):
    """What the rounds ask the composition itself."""

    @property
    def parts_by_members(self) -> bool:
        """Whether `parts_of` calls members, and not code of a subclass."""
        ...

    @property
    def by_all_members(self) -> bool:
        """Whether `output_of` looks at all members' answers, and not at the first one alone."""
        ...

    def output_of(self, answers: Sequence[Labels], shape: Shape) -> Labels | None:
        """The labels of the whole."""
        ...

    def parts_of(self, labels: list[Labels], shapes: list[Shape]) -> tuple[Integers, Integers, Integers]:
        """(which of the labels are outputs, their parts, where each output's begin)."""
        ...


class Rounds:
    """Multipliers and members' answers of a batch.

    theta: the scores of all parts, finite. sizes: 1 + sum |theta| of each instance. pins: 1 or -1 for parts that are forced to be
    on or off, else 0. multipliers: one for each copy, which sum to zero for each part. best: what outputs that are known score.

    Of each instance: dual, its dual function; low, the least so far, a bound on all outputs that keep the pins; square, how much
    the members differ; best and labels, the best output found, labels None where it is not better than what was known.
    """

    def __init__(
        self, whole: Whole, shapes: Sequence[Shape], batch: Batch, theta: Floats, sizes: Floats, pins: Integers,
        multipliers: Floats, best: Floats,
    ) -> None:  # fmt: skip
        self.whole, self.shapes, self.batch, self.theta, self.sizes = whole, shapes, batch, theta, sizes
        self.pins, self.multipliers, self.best = pins, multipliers, best
        n, members = len(sizes), np.diff(batch.member_ends)
        self.slot_of = np.repeat(np.arange(n), members)
        self.member_of = np.repeat(np.arange(len(self.slot_of)), np.diff(batch.copy_ends))
        self.changed = np.ones(len(self.slot_of), np.uint8)
        self.counts, self.values = np.zeros(len(batch.part_of)), np.zeros(len(self.slot_of))
        self.answers: list[Labels] = [np.empty(0, np.int64)] * len(self.slot_of)
        self.kept = np.full(len(self.slot_of), whole.by_all_members)
        self.kept[batch.member_ends[:-1]] = True
        self.force, self.tolerance = np.repeat(FORCE * sizes, members), TOLERANCE * sizes
        self.plain, on = theta[batch.part_of] / batch.holders[batch.part_of], pins[batch.part_of]
        self.pinned = self.plain + np.repeat(self.force, np.diff(batch.copy_ends)) * on
        self.wanted = np.bincount(self.member_of[on > 0], minlength=len(self.slot_of))
        self.answer_sizes, self.moved = np.full(len(self.slot_of), -1), np.ones(len(self.slot_of), np.uint8)
        self.differing, self.ends = np.zeros(len(batch.shared) + 1, np.int64), np.zeros(n, np.int64)
        self.dual, self.square, self.low = np.zeros(n), np.zeros(n), np.full(n, np.inf)
        self.labels: list[Labels | None] = [None] * n

    def ask(self) -> AnyArray:
        """Ask the members whose scores have changed, those of one oracle in one call; returns who has other answers then."""
        batch, kernels = self.batch, _kernels()
        self.moved[:] = 0
        for oracle, members, shapes in batch.groups:
            at = np.flatnonzero(self.changed[members])
            if not len(at):
                continue
            asked = members[at]
            ends = ends_of(batch.copy_ends[asked + 1] - batch.copy_ends[asked])
            scores, own = np.empty(int(ends[-1])), [shapes[k] for k in at.tolist()]
            kernels.gather(asked, batch.copy_ends, self.pinned, self.multipliers, scores)
            labels, label_ends = argmax_batch(oracle, scores, ends, own)
            parts, part_ends = parts_batch(oracle, labels, label_ends, own)
            wrong = kernels.take(
                asked, parts, part_ends, batch.copy_ends, batch.part_of, batch.holders, self.plain, self.pins, self.wanted, self.force,
                self.multipliers, self.counts, self.answer_sizes, self.values, self.moved,
            )  # fmt: skip
            if wrong >= 0:
                raise OracleError(
                    f"{type(oracle).__name__} as a member: expected parts in [0, {ends[wrong + 1] - ends[wrong]}), none of "
                    f"those that it shares twice, got {parts[part_ends[wrong] : part_ends[wrong + 1]]}"
                )
            kept = np.flatnonzero(self.kept[asked])
            starts, stops = label_ends[kept].tolist(), label_ends[kept + 1].tolist()
            for m, a, b in zip(asked[kept].tolist(), starts, stops, strict=True):
                self.answers[m] = labels[a:b]
        firsts = self.batch.member_ends[:-1]
        self.changed[:] = 0
        return np.maximum.reduceat(self.moved, firsts) if self.whole.by_all_members else self.moved[firsts]

    def measure(self, active: Integers) -> None:
        """The dual function at the multipliers, its least value so far, and how much the members differ."""
        batch = self.batch
        _kernels().measure(
            active, batch.member_ends, batch.slot_ends, batch.shared_ends, batch.copies, self.values, self.counts, self.dual,
            self.square, self.differing, self.ends,
        )  # fmt: skip
        self.low[active] = np.minimum(self.low[active], self.dual[active])

    def settle(self, active: Integers, fresh: Integers, offer: bool) -> Integers:
        """Keep the outputs that the answers make; returns the instances that are not solved yet, which alone are asked again.

        offer: also look at those of members that differ, where `fresh` says that there are new ones.
        """
        differ = self.square[active] > 0.0
        self._keep_agreed(active[~differ])
        if offer:
            self.keep_offered(active[differ & (fresh[active] != 0)])
        return self.only(active[self.unsolved(active)])

    def unsolved(self, rows: Integers) -> AnyArray:
        """Whose members differ, and leave room for an output that is better."""
        return (self.square[rows] > 0.0) & (self.low[rows] - self.best[rows] > self.tolerance[rows])

    def only(self, active: Integers) -> Integers:
        """These instances; no member of the others is asked again."""
        alive = np.zeros(len(self.sizes), np.bool_)
        alive[active] = True
        self.changed[~alive[self.slot_of]] = 0
        return active

    def room(self, rows: Integers) -> Floats:
        """How far the dual function may fall: to the best output; where none is known, the mean score for each disagreement."""
        mean = self.sizes[rows] / np.diff(self.batch.part_ends)[rows]
        return np.where(np.isfinite(self.best[rows]), self.dual[rows] - self.best[rows], mean * self.square[rows])

    def _answers_of(self, s: int) -> Labels | None:
        first, last = self.batch.member_ends[s], self.batch.member_ends[s + 1]
        return self.whole.output_of(self.answers[first : last if self.whole.by_all_members else first + 1], self.shapes[s])

    def _keep_agreed(self, rows: Integers) -> None:
        batch, scores = self.batch, np.empty(len(rows))
        first, last = batch.copy_ends[batch.member_ends[rows]], batch.copy_ends[batch.member_ends[rows + 1]]
        _kernels().worth(rows, batch.part_ends, first, last, batch.part_of, self.theta, self.counts, scores)
        for s, score in zip(rows.tolist(), scores.tolist(), strict=True):
            if score > self.best[s] and (found := self._answers_of(s)) is not None:
                self.best[s], self.labels[s] = score, found

    def keep_offered(self, rows: Integers) -> None:
        """Outputs made of answers that differ, in one call."""
        found = [(s, y) for s in rows.tolist() if (y := self._answers_of(s)) is not None]
        if found:
            self.keep(np.array([s for s, _ in found]), [y for _, y in found])

    def keep(self, rows: Integers, labels: list[Labels]) -> None:
        """Remember the best of these, where they are outputs."""
        which, parts, ends = self.whole.parts_of(labels, [self.shapes[s] for s in rows.tolist()])
        rows, scores = rows[which], np.empty(len(which))
        if (wrong := _kernels().sums(rows, self.batch.part_ends, parts, ends, self.theta, scores)) >= 0:
            raise OracleError(f"{type(self.whole).__name__}.parts gave parts out of range: {parts[ends[wrong] :][:9]}")
        for k in np.flatnonzero(scores > self.best[rows]).tolist():
            s = int(rows[k])
            if scores[k] > self.best[s]:
                self.best[s], self.labels[s] = scores[k], labels[int(which[k])]

    def descend(self, active: Integers, limit: int) -> Integers:
        """Rounds of the subgradient method: the step of Polyak's rule in the first one, divided by 1 + the rises of the dual.

        Returns the instances that are not solved. Koo et al., Dual decomposition for parsing, EMNLP 2010.
        """
        first, rises, last = np.zeros(len(self.sizes)), np.zeros(len(self.sizes)), np.full(len(self.sizes), np.inf)
        batch = self.batch
        for k in range(limit):
            fresh = self.ask()
            self.measure(active)
            active = self.settle(active, fresh, not self.whole.parts_by_members or k & (k - 1) == 0)
            if not len(active):
                break
            if k == 0:
                first[active] = 2.0 * self.room(active) / self.square[active]
            rises += self.dual > last
            last[active] = self.dual[active]
            _kernels().descend(
                active, first / (1.0 + rises), batch.slot_ends, self.differing, self.ends, batch.shared_ends, batch.copies,
                self.member_of, self.counts, self.multipliers, self.changed,
            )  # fmt: skip
        return active
