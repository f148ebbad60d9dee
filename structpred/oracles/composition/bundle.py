"""The proximal bundle method for the dual function of compositions, in lockstep: a cut for each member and answer."""

import numpy as np

from structpred.core.oracle import Labels
from structpred.core.types import AnyArray, Integers
from structpred.oracles.composition.rounds import Rounds
from structpred.runtime.lazy_names import later

_kernels = later("structpred.oracles.composition._bundle_kernels")

#: a step is serious if the dual function falls by this share of what the model says
SERIOUS = 0.1
#: the quadratic program is solved to this share of what the model promises
SHARE = 0.05
#: null steps after which the proximal term is weakened, and by what
PATIENCE, WEAKER = 5, 0.65


class Bundle:
    """Answers that members gave in the rounds of a batch, their mixtures, and the multipliers with the lowest dual value.

    center: these multipliers; level: the dual function there. point: each copy's share in the mixture; totals: their sums by part.
    model: what the kept answers say of the dual function where members were asked last.
    """

    def __init__(self, rounds: Rounds) -> None:
        self.rounds, n_members, n = rounds, len(rounds.slot_of), len(rounds.sizes)
        self.heads = np.full(n_members, -1)
        self.starts, self.entries, self.following = np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
        self.weights, self.codes, self.owners = np.empty(0), np.empty(0, np.uint64), np.empty(0, np.int64)
        self.labels: dict[int, Labels] = {}
        self.n_kept = 0
        self.center, self.level, self.tightness = rounds.multipliers.copy(), np.zeros(n), np.ones(n)
        self.point, self.totals, self.model = np.zeros(len(rounds.counts)), np.zeros(len(rounds.theta)), np.zeros(n)
        self.nulls, self.gap = np.zeros(n, np.int64), np.zeros(n)

    @property
    def kept(self) -> tuple[AnyArray, ...]:
        """The lists of answers, as kernels take them."""
        return self.heads, self.starts, self.entries, self.following, self.weights

    def run(self, active: Integers, limit: int) -> Integers:
        """At most `limit` rounds; returns the instances that are not solved. The multipliers are those of the center then."""
        rounds, batch = self.rounds, self.rounds.batch
        active = everyone = self._begin(active)
        for k in range(limit):
            self._mix(active)
            active = rounds.only(active[self.level[active] - self.model[active] + self.gap[active] > rounds.tolerance[active]])
            if not len(active):
                break
            asked = np.flatnonzero(rounds.changed)
            fresh = rounds.ask()
            rounds.measure(active)
            self._keep(asked)
            self._judge(active)
            active = rounds.settle(active, fresh, not rounds.whole.parts_by_members or k & (k - 1) == 0)
        left = everyone[rounds.unsolved(everyone)]
        self._offer(left)
        _kernels().copied(left, batch.member_ends, batch.copy_ends, self.center, rounds.multipliers)
        return left[rounds.unsolved(left)]

    def _begin(self, active: Integers) -> Integers:
        """Ask at the multipliers as they are, and keep every member's answer."""
        rounds, batch = self.rounds, self.rounds.batch
        rounds.ask()
        rounds.measure(active)
        active = rounds.settle(active, np.ones(len(rounds.sizes)), offer=True)
        self.center[:], self.level[:] = rounds.multipliers, rounds.dual
        self.tightness[active] = 0.3 * rounds.room(active) / rounds.square[active]
        self.pinned = np.add.reduceat(rounds.force * rounds.wanted, batch.member_ends[:-1])
        self._keep(np.flatnonzero(np.isin(rounds.slot_of, active)))
        _kernels().start(active, batch.member_ends, batch.copy_ends, batch.part_of, rounds.counts, self.point, self.totals)
        return active

    def _mix(self, active: Integers) -> None:
        """Solve the quadratic program; propose multipliers, and what the model says of them."""
        rounds, batch = self.rounds, self.rounds.batch
        ends = batch.member_ends, batch.copy_ends, batch.part_of
        linear = rounds.pinned + self.center
        goals = self.level + self.pinned
        _kernels().mix(active, *ends, batch.holders, linear, self.tightness, goals, SHARE, self.kept, self.point, self.totals, self.gap)
        _kernels().propose(
            active, batch.slot_ends, batch.shared, batch.shared_ends, batch.copies, rounds.member_of, self.tightness, self.point,
            self.totals, self.center, rounds.multipliers, rounds.changed,
        )  # fmt: skip
        _kernels().model_of(
            active, batch.member_ends, batch.part_of, rounds.plain, rounds.pins, rounds.wanted, rounds.force, rounds.multipliers,
            self.kept, self.model,
        )

    def _keep(self, members: Integers) -> None:
        """Keep those answers of these members that are new."""
        rounds, n = self.rounds, self.n_kept
        size = int(self.starts[n] + rounds.counts.sum())
        if size > len(self.entries):
            self.entries = np.append(self.entries, np.zeros(size, np.int64))
        if n + len(members) > len(self.weights):
            more = np.zeros(n + len(members), np.int64)
            self.starts, self.following = np.append(self.starts, more), np.append(self.following, more)
            self.owners, self.codes = np.append(self.owners, more), np.append(self.codes, more.astype(np.uint64))
            self.weights = np.append(self.weights, more.astype(np.float64))
        self.n_kept = _kernels().insert(members, rounds.batch.copy_ends, rounds.counts, self.codes, self.owners, self.kept, n)
        for v, m in enumerate(self.owners[n : self.n_kept].tolist(), n):
            if rounds.kept[m]:
                self.labels[v] = rounds.answers[m]

    def _judge(self, active: Integers) -> None:
        """Move the center where the dual function has fallen enough; tighten or weaken the proximal term."""
        rounds, batch = self.rounds, self.rounds.batch
        fall, promised = self.level[active] - rounds.dual[active], self.level[active] - self.model[active]
        solved = self.gap[active] <= 0.5 * promised
        serious = (fall >= SERIOUS * promised) & (fall > 0.0)
        rows = active[serious]
        self.level[rows] = rounds.dual[rows]
        _kernels().copied(rows, batch.member_ends, batch.copy_ends, rounds.multipliers, self.center)
        self.tightness[active[(fall > 0.5 * promised) & solved]] *= 2.0
        self.nulls[active] += 1
        self.nulls[rows] = 0
        tired = active[(self.nulls[active] == PATIENCE) | ~solved]
        self.tightness[tired] *= WEAKER
        self.nulls[tired] = 0

    def _offer(self, rows: Integers) -> None:
        """Offer the heaviest answers as outputs."""
        rounds = self.rounds
        members = np.flatnonzero(rounds.kept & np.isin(rounds.slot_of, rows))
        found = np.empty(len(members), np.int64)
        _kernels().heaviest(members, self.following, self.heads, self.weights, found)
        for m, v in zip(members.tolist(), found.tolist(), strict=True):
            rounds.answers[m] = self.labels[v]
        rounds.keep_offered(rows)
