"""Rounds of a batch of composed instances in lockstep: all members of one oracle that see new scores are asked in one call."""

from collections.abc import Sequence
from typing import Any

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


class Rounds:
    """Multipliers and members' answers of a batch.

    whole: the composition, asked for `output_of` and `outputs`. theta: the scores of all parts, finite. sizes: 1 + sum |theta| of
    each instance. pins: 1 or -1 for parts that are forced to be on or off, else 0. multipliers: one for each copy, which sum to
    zero for each part. best: what outputs that are known score.

    Of each instance: dual, its dual function; low, the least so far, a bound on all outputs that keep the pins; square, how much
    the members differ; best and labels, the best output found, labels None where it is not better than what was known.
    """

    def __init__(
        self, whole: Any, shapes: Sequence[Shape], batch: Batch, theta: Floats, sizes: Floats, pins: Integers,
        multipliers: Floats, best: Floats,
    ) -> None:  # fmt: skip
        self.whole, self.shapes, self.batch, self.theta, self.sizes = whole, shapes, batch, theta, sizes
        self.pins, self.multipliers, self.best, n, n_members = pins, multipliers, best, len(sizes), len(batch.slot_of)
        self.force, self.tolerance, on = (FORCE * sizes)[batch.slot_of], TOLERANCE * sizes, pins[batch.part_of]
        self.plain, self.shared = theta[batch.part_of] / batch.holders[batch.part_of], batch.holders[batch.part_of] > 1
        self.pinned, self.copy_pins = self.plain + self.force[batch.member_of] * on, on
        self.wanted = np.bincount(batch.member_of[on > 0], minlength=n_members)
        self.changed, self.moved = np.ones(n_members, np.uint8), np.ones(n_members, np.uint8)
        self.counts, self.values, self.answer_sizes = np.zeros(len(on)), np.zeros(n_members), np.full(n_members, -1)
        self.answers: list[Labels] = [np.empty(0, np.int64)] * n_members
        self.by_all, self.cheap_parts = whole.by_all_members, whole.cheap_parts
        self.kept = np.full(n_members, self.by_all)
        self.kept[batch.member_ends[:-1]] = True
        self.dual, self.square, self.low = np.zeros(n), np.zeros(n), np.full(n, np.inf)
        self.labels: list[Labels | None] = [None] * n

    def ask(self) -> None:
        """Ask the members whose scores have changed, those of one oracle in one call."""
        batch = self.batch
        self.moved[:] = 0
        for oracle, members, shapes in batch.groups:
            at = np.flatnonzero(self.changed[members])
            if not len(at):
                continue
            asked = members[at]
            ends = ends_of(batch.copy_ends[asked + 1] - batch.copy_ends[asked])
            scores, own = np.empty(int(ends[-1])), shapes if len(at) == len(shapes) else [shapes[k] for k in at.tolist()]
            _kernels().gather(asked, batch.copy_ends, self.pinned, self.multipliers, scores)
            labels, label_ends = argmax_batch(oracle, scores, ends, own)
            parts, part_ends = parts_batch(oracle, labels, label_ends, own)
            wrong = _kernels().take(
                asked, parts, part_ends, batch.copy_ends, self.shared, self.plain, self.copy_pins, self.wanted, self.force,
                self.multipliers, self.counts, self.answer_sizes, self.values, self.moved,
            )  # fmt: skip
            if wrong >= 0:
                raise OracleError(
                    f"{type(oracle).__name__} as a member: expected parts in [0, {ends[wrong + 1] - ends[wrong]}), none of "
                    f"those that it shares twice, got {parts[part_ends[wrong] : part_ends[wrong + 1]]}"
                )
            kept = np.flatnonzero(self.kept[asked] & (self.moved[asked] > 0))
            starts, stops = label_ends[kept].tolist(), label_ends[kept + 1].tolist()
            for m, a, b in zip(asked[kept].tolist(), starts, stops, strict=True):
                self.answers[m] = labels[a:b]
        self.changed[:] = 0

    def settle(self, active: Integers, *, offer: bool) -> Integers:
        """Measure what the answers of a round are worth, and keep the outputs that they make.

        offer: also look at those of members that differ. Returns the instances that are not solved, which alone are asked again.
        """
        batch = self.batch
        _kernels().measure(
            active, batch.member_ends, batch.slot_ends, batch.shared_ends, batch.copies, self.values, self.counts, self.dual,
            self.square,
        )  # fmt: skip
        self.low[active] = np.minimum(self.low[active], self.dual[active])
        for s in active[self.square[active] == 0.0].tolist():
            a, b = batch.copy_ends[batch.member_ends[[s, s + 1]]]
            score = float((self.plain[a:b] * self.counts[a:b]).sum())
            if score > self.best[s] and (found := self._output_of(s)) is not None:
                self.best[s], self.labels[s] = score, found
        if offer:
            firsts = batch.member_ends[:-1]
            fresh = np.maximum.reduceat(self.moved, firsts) if self.by_all else self.moved[firsts]
            self.keep_offered(active[(self.square[active] > 0.0) & (fresh[active] > 0)])
        return self.only(active[self.unsolved(active)])

    def unsolved(self, rows: Integers) -> AnyArray:
        """Whose members differ, and leave room for an output that is better."""
        return (self.square[rows] > 0.0) & (self.low[rows] - self.best[rows] > self.tolerance[rows])

    def only(self, active: Integers) -> Integers:
        """These instances; no member of the others is asked again."""
        alive = np.zeros(len(self.sizes), np.bool_)
        alive[active] = True
        self.changed[~alive[self.batch.slot_of]] = 0
        return active

    def room(self, rows: Integers) -> Floats:
        """How far the dual function may fall: to the best output; where none is known, the mean score for each disagreement."""
        mean = self.sizes[rows] / np.diff(self.batch.part_ends)[rows]
        return np.where(np.isfinite(self.best[rows]), self.dual[rows] - self.best[rows], mean * self.square[rows])

    def _output_of(self, s: int) -> Labels | None:
        first, last = self.batch.member_ends[s], self.batch.member_ends[s + 1]
        found: Labels | None = self.whole.output_of(self.answers[first : last if self.by_all else first + 1], self.shapes[s])
        return found

    def keep_offered(self, rows: Integers) -> None:
        """Keep outputs that are made of answers that differ, where these are better."""
        found = [(s, y) for s in rows.tolist() if (y := self._output_of(s)) is not None]
        which, parts, ends = self.whole.outputs([y for _, y in found], [self.shapes[s] for s, _ in found])
        at, places = np.array([found[k][0] for k in which], dtype=np.int64), np.repeat(np.arange(len(which)), np.diff(ends))
        scores = np.bincount(places, self.theta[self.batch.part_ends[at][places] + parts], len(which))
        for k in np.flatnonzero(scores > self.best[at]).tolist():
            self.best[at[k]], self.labels[at[k]] = scores[k], found[which[k]][1]

    def propose(self, active: Integers, steps: Floats, point: Floats, center: Floats) -> None:
        """New multipliers for the next round."""
        batch = self.batch
        _kernels().propose(
            active, steps, batch.slot_ends, batch.shared_ends, batch.copies, batch.member_of, point, center, self.multipliers,
            self.changed,
        )  # fmt: skip
