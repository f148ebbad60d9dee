"""The proximal bundle method for the dual function of compositions, in lockstep: a cut for each member and answer."""

import numpy as np

from structpred.core.oracle import Labels
from structpred.core.types import AnyArray, Integers
from structpred.oracles.composition.rounds import Rounds
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import spans

_kernels = later("structpred.oracles.composition._bundle_kernels")

#: the first step's length, in units of Polyak's rule; calls are about the same from 1.2 to 2.5, and more at 0.3 and at 4
FIRST = 1.5
#: a step is serious if the dual function falls by this share of what the model says
SERIOUS = 0.1
#: the quadratic program is solved to this share of what the model promises
SHARE = 0.05
#: null steps after which the proximal term is weakened, and by what
PATIENCE, WEAKER = 5, 0.65


class Bundle:
    """Answers that members gave in the rounds of a batch, their mixtures, and the multipliers with the lowest dual value.

    center: these multipliers; level: the dual function there. point: each copy's share in the mixture; totals: sums of these by
    part. model: what the kept answers say of the dual function where members are asked next; gap: of the quadratic program.
    """

    def __init__(self, rounds: Rounds) -> None:
        self.rounds, n = rounds, len(rounds.sizes)
        whole, real = np.empty(0, np.int64), np.empty(0)
        self.heads, self.starts, self.n_kept = np.full(len(rounds.values), -1), np.zeros(1, np.int64), 0
        self.entries, self.following, self.owners, self.weights, self.codes = whole, whole, whole, real, whole
        self.keys = np.random.default_rng(0).integers(1 << 62, size=len(rounds.counts))
        self.labels: dict[int, Labels] = {}
        self.level, self.tightness, self.nulls = np.zeros(n), np.ones(n), np.zeros(n, np.int64)
        self.point, self.room, self.totals = *np.zeros((2, len(rounds.counts))), np.zeros(len(rounds.theta))
        self.model, self.gap = np.zeros(n), np.zeros(n)
        self.pinned = np.add.reduceat(rounds.force * rounds.wanted, rounds.batch.member_ends[:-1])

    def run(self, active: Integers, limit: int) -> Integers:
        """At most `limit` rounds; returns the instances that are not solved. The multipliers are those of the center then."""
        rounds = self.rounds
        rounds.ask()
        rounds.moved[:] = 1
        active = everyone = rounds.settle(active, offer=rounds.cheap_parts)
        self.center, self.level[:] = rounds.multipliers.copy(), rounds.dual
        self.tightness[active] = FIRST * rounds.room(active) / rounds.square[active]
        self._keep(np.flatnonzero(np.isin(rounds.batch.slot_of, active)))
        for _ in range(limit):
            self._mix(active)
            active = rounds.only(active[self.level[active] - self.model[active] + self.gap[active] > rounds.tolerance[active]])
            if not len(active):
                break
            rounds.ask()
            left = rounds.settle(active, offer=rounds.cheap_parts)
            self._keep(np.flatnonzero(rounds.moved))
            self._judge(active)
            active = left
        rounds.multipliers[:] = self.center
        left = everyone[rounds.unsolved(everyone)]
        self._offer(left)
        return left[rounds.unsolved(left)]

    @property
    def kept(self) -> tuple[AnyArray, ...]:
        """The lists of answers, as kernels take them."""
        return self.heads, self.starts, self.entries, self.following, self.weights

    def _mix(self, active: Integers) -> None:
        """Solve the quadratic program, and propose multipliers."""
        rounds, batch = self.rounds, self.rounds.batch
        _kernels().mix(
            active, batch.member_ends, SHARE, self.kept, batch.part_of, batch.holders, rounds.pinned, self.center, self.tightness,
            self.level + self.pinned, self.point, self.totals, self.model, self.gap, self.room,
        )  # fmt: skip
        self.model[active] -= self.pinned[active]
        rounds.propose(active, self.tightness, self.point, self.center)

    def _keep(self, members: Integers) -> None:
        """Keep those answers of these members that are new."""
        rounds, batch, n = self.rounds, self.rounds.batch, self.n_kept
        if (size := int(self.starts[n] + rounds.answer_sizes[members].sum())) > len(self.entries):
            self.entries = _longer(self.entries, size)
        if n + len(members) > len(self.weights):
            self.starts, self.following, self.owners, self.weights, self.codes = (
                _longer(array, n + len(members)) for array in (self.starts, self.following, self.owners, self.weights, self.codes)
            )
        self.n_kept = _kernels().insert(
            members, batch.copy_ends, batch.part_of, rounds.counts, self.keys, self.codes, self.owners, self.kept, n, self.point,
            self.totals,
        )  # fmt: skip
        for v, m in enumerate(self.owners[n : self.n_kept].tolist(), n):
            if rounds.kept[m]:
                self.labels[v] = rounds.answers[m]

    def _judge(self, active: Integers) -> None:
        """Move the center where the dual function has fallen enough; tighten or weaken the proximal term."""
        rounds, batch = self.rounds, self.rounds.batch
        fall, promised = self.level[active] - rounds.dual[active], self.level[active] - self.model[active]
        solved = self.gap[active] <= 0.5 * promised
        rows = active[(fall >= SERIOUS * promised) & (fall > 0.0)]
        self.level[rows] = rounds.dual[rows]
        at = spans(batch.copy_ends[batch.member_ends[rows]], batch.copy_ends[batch.member_ends[rows + 1]])
        self.center[at] = rounds.multipliers[at]
        self.tightness[active[(fall > 0.5 * promised) & solved]] *= 2.0
        self.nulls[active] += 1
        self.nulls[rows] = 0
        tired = active[(self.nulls[active] == PATIENCE) | ~solved]
        self.tightness[tired] *= WEAKER
        self.nulls[tired] = 0

    def _offer(self, rows: Integers) -> None:
        """Offer the heaviest answers as outputs."""
        rounds = self.rounds
        heaviest: dict[int, int] = {}
        for v in np.lexsort((self.weights[: self.n_kept], self.owners[: self.n_kept])).tolist():
            heaviest[int(self.owners[v])] = v
        for m in np.flatnonzero(rounds.kept & np.isin(rounds.batch.slot_of, rows)).tolist():
            rounds.answers[m] = self.labels[heaviest[m]]
        rounds.keep_offered(rows)


def _longer(array: AnyArray, size: int) -> AnyArray:
    return np.append(array, np.zeros(size + 1, array.dtype))
