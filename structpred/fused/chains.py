"""Chains: scoring and decoding in one compiled call, and the training steps on top of it, over features of sequences or kernels.

`ChainPair` and `ChainSteps` serve every kind of feature map whose parts are those of ChainOracle.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from structpred.core.costs import FlatGrid, TaskCosts
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.group_scales import GroupScales, Scale
from structpred.core.oracle import Labels
from structpred.core.sparse import SparseVector
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector, check_length, padded
from structpred.errors import InfeasibleError
from structpred.features.fixed_scores import FixedScores
from structpred.features.positions import PositionFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.oracles.chain import ChainOracle, SumScratch, best_scratch
from structpred.runtime.entries import entry_of
from structpred.runtime.lazy_names import later
from structpred.runtime.threads import run_ranges, split_evenly
from structpred.task.fast.update_rules import UpdateRule
from structpred.task.inference import Inference
from structpred.task.plain_steps import PlainSteps
from structpred.task.steps import CompiledUpdates, Step
from structpred.task.task_checks import doubtful

#: true labels, token weights, rows of label costs, and the row of each token
Aim = tuple[Integers, Floats, Floats, Integers]
NO_AIM: Aim = (np.empty(0, np.int64), np.empty(0), np.empty((0, 0)), np.empty(0, np.int64))
#: the weights, their table, and the compiled step for them
Call = tuple[Vector, Any, Any]
#: label pairs that one compiled call of `update_many` looks at: some hundredths of a second
UPDATE_PARTS = 1 << 26
#: tokens of a block of log_losses; its errors take width * 8 bytes each
BLOCK_TOKENS = 1 << 18
#: pieces of a block, each summed by one thread
PIECES = 16


#: a block: ranges of sequences that follow each other, each summed by one thread
Block = list[tuple[int, int]]


class ChainSteps(PlainSteps):
    """Scoring, decoding and differences of chains, one compiled call each."""

    def __init__(
        self, pair: "ChainPair", grid: FlatGrid, inference: Inference, parts: Sequence[Integers], costs: TaskCosts
    ) -> None:
        super().__init__(inference, parts, costs)
        self.pair, self.space, self.rule = pair, pair.space, pair.rule
        _, _, gold, rows, weights, table = grid
        padded = np.zeros((max(len(table), pair.n_labels), pair.width))
        padded[:, : pair.n_labels] = table if len(table) else 1.0 - np.eye(pair.n_labels)
        self.aim: Aim = (gold, weights, padded, rows)
        longest, most = int(pair.lengths.max(initial=1)), pair.most_pairs
        self.scratch, self.out = best_scratch(pair.n_labels, longest), np.empty(longest, np.int64)
        self.pairs = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64), np.empty(most)
        self._step: Call = np.empty(0), None, None
        self.most = -(-UPDATE_PARTS // pair.width**2)

    def one(self, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0) -> Step:
        """The plain step looks at what seems to contradict itself."""
        if not self.pair.takes_groups and isinstance(scale, GroupScales):
            return super().one(w, i, loss_weight, scale)
        if w is not self._step[0]:  # trainers change weights in place, so compiled code is looked for once
            table, given = self.pair.table(w), (self.space, 0, self.rule, self.aim, 1.0, self.scratch, self.out, *self.pairs)
            self._step = w, table, entry_of(self.pair.kernels().step, w, table, self.pair.factors(1.0), *given)
        _, table, step = self._step
        n, loss, product = step(
            w, table, self.pair.factors(scale), self.space, i, self.rule, self.aim, loss_weight, self.scratch, self.out,
            *self.pairs,
        )  # fmt: skip
        violation = loss_weight * loss - product
        if violation < 0.0 and violation < doubtful(loss_weight * loss):
            super().one(w, i, loss_weight, scale)
        return Step(SparseVector(self.pairs[0][:n], self.pairs[1][:n]), loss, violation, violation)

    def last_parts(self, i: int) -> Integers:
        """The parts of the labels that the last step found."""
        from structpred.oracles.chains._chain_kernels import parts_of

        return parts_of(self.out, int(self.pair.lengths[i]), self.pair.n_labels)

    def violations(self, w: Vector, loss_weight: float) -> Floats:
        """From what the labels found and the true ones score, not from differences: the last bits may not be those of steps."""
        _, losses, values = self.pair.sweep(w, 1.0, self.aim, 0, len(self.inference), loss_weight, self.inference.n_jobs)
        return self.confirmed(w, loss_weight, losses, values)


class SequenceSteps(ChainSteps):
    """Those over SequenceFeatures: also many steps in one call, and likelihoods."""

    features: SequenceFeatures

    def compiled_updates(self) -> CompiledUpdates:
        """Steps of many sequences with the update of an online trainer."""
        return self.update_many

    def update_many(self, items: Integers, update: UpdateRule, loss_weight: float) -> tuple[int, bool]:
        """As `CompiledUpdates` of task/steps.py."""
        from structpred.fused._chain_kernels import sequence_updates

        return sequence_updates(
            items, self.features.table(update.weights.v), self.space, self.rule, self.aim, loss_weight, self.scratch, self.out,
            *self.pairs, self.most, update.fixed, update.limits, update.state,
        )  # fmt: skip

    def log_losses(self, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """-log p(y_i | x_i) of every sequence, and the gradient of their sum weighed by `shares`: flat, float64.

        A block of sequences goes through forward-backward in pieces that do not depend on the number of threads; then each
        thread adds up some columns of the gradient, in the order of the tokens. So it is the same for any n_jobs, and its last
        bits are not those of single sequences.
        """
        f = self.features
        values, gradient = np.empty(len(f.data)), np.zeros((f.n_rows, f.width))
        for block in self._blocks:
            self._log_losses_of(block, w, shares, values, gradient)
        return values, gradient.ravel()

    def _log_losses_of(self, block: Block, w: Vector, shares: Floats, values: Floats, gradient: Floats) -> None:
        from structpred.fused._chain_kernels import log_loss_sweep, scatter_rows

        f, offsets, (start, stop) = self.features, self.features.data.offsets, (block[0][0], block[-1][1])
        base = offsets[start]
        errors = np.empty((int(offsets[stop] - base), f.width))
        edges = {piece: np.empty((f.n_labels, f.width)) for piece in block}

        def run(a: int, b: int) -> None:
            scratch = SumScratch(f.n_labels, int(f.data.lengths[a:b].max())).rows
            here = errors[offsets[a] - base : offsets[b] - base]
            log_loss_sweep(f.table(w), self.space, a, b, self.rule, self.aim[0], shares, scratch, here, edges[a, b], values[a:b])

        def scatter(a: int, b: int) -> None:
            scatter_rows(f.data.indptr, f.data.indices, self.space[2], base, errors, -1.0, a, b, gradient)

        run_ranges(run, block, self.inference.n_jobs)
        run_ranges(scatter, split_evenly(np.ones(f.width // padded(1), np.int64), self.inference.n_jobs), self.inference.n_jobs)
        firsts, ends = offsets[start:stop] - base, offsets[start + 1 : stop + 1] - base
        gradient[f.start_row] -= errors[firsts].sum(axis=0)
        gradient[f.start_row + 1] -= errors[ends - 1].sum(axis=0)
        for piece in block:
            gradient[f.start_row + 2 :] -= edges[piece]

    def squared_gradients(self, w: Vector, shares: Floats) -> Floats:
        """sum_i shares_i g_i^2, g_i the gradient of -log p(y_i | x_i), squared weight by weight: flat, float64."""
        f = self.features
        out = np.zeros((f.n_rows, f.width))
        for block in self._blocks:
            self._squares_of(block, w, shares, out)
        return out.ravel()

    def _squares_of(self, block: Block, w: Vector, shares: Floats, out: Floats) -> None:
        from scipy import sparse

        from structpred.fused._chain_kernels import gather_squares, log_loss_sweep

        f, offsets, (start, stop) = self.features, self.features.data.offsets, (block[0][0], block[-1][1])
        base, ones, value = offsets[start], np.ones(len(shares)), np.empty(1)
        errors = np.empty((int(offsets[stop] - base), f.width))
        edges = {piece: np.zeros((f.n_labels, f.width)) for piece in block}

        def run(a: int, b: int) -> None:
            scratch, edge = SumScratch(f.n_labels, int(f.data.lengths[a:b].max())).rows, np.empty((f.n_labels, f.width))
            for i in range(a, b):
                here = errors[offsets[i] - base : offsets[i + 1] - base]
                log_loss_sweep(f.table(w), self.space, i, i + 1, self.rule, self.aim[0], ones, scratch, here, edge, value.copy())
                edges[a, b] += shares[i] * edge**2

        own = shares[start:stop]
        sequence = np.repeat(np.arange(len(own)), np.diff(offsets[start : stop + 1]))
        part = f.data.take(start, stop)
        by_feature = sparse.csr_array((part.values, part.indices, part.indptr), shape=(part.n_tokens, part.n_features)).tocsc()
        starts, tokens = by_feature.indptr.astype(np.int64), by_feature.indices.astype(np.int32)

        def gather(a: int, b: int) -> None:
            gather_squares(starts, tokens, by_feature.data, errors, sequence, own, a, b, out)

        run_ranges(run, block, self.inference.n_jobs)
        run_ranges(gather, split_evenly(np.diff(starts) + 1, self.inference.n_jobs), self.inference.n_jobs)
        firsts, ends = offsets[start:stop] - base, offsets[start + 1 : stop + 1] - base
        out[f.start_row] += (own[:, None] * errors[firsts] ** 2).sum(axis=0)
        out[f.start_row + 1] += (own[:, None] * errors[ends - 1] ** 2).sum(axis=0)
        for piece in block:
            out[f.start_row + 2 :] += edges[piece]

    @cached_property
    def _blocks(self) -> list[Block]:
        lengths = self.features.data.lengths
        blocks = split_evenly(lengths, -(-self.features.data.n_tokens // BLOCK_TOKENS))
        return [[(a + c, a + d) for c, d in split_evenly(lengths[a:b], PIECES)] for a, b in blocks]


class ChainPair:
    """A kind of label sequences, and ChainOracle (the Pair protocol of the core): what subclasses share.

    rule and space are those of _chain_body_kernels.py; most_pairs: the most pairs of a difference.
    """

    #: whether the scale of weights may be `GroupScales`
    takes_groups = False
    kind: type[ChainSteps] = ChainSteps
    #: the module with the bodies compiled over the calls of this kind
    kernels: "staticmethod[[], Any]"

    def __init__(
        self, features: Any, offsets: Integers, width: int, fixed: FixedScores, most_pairs: int, space: tuple[Any, ...]
    ) -> None:
        self.features, self.n_labels, self.width = features, features.n_labels, width
        self.offsets, self.lengths = offsets, np.diff(offsets)
        rows, edges = np.zeros((len(fixed.rows), width)), np.zeros((self.n_labels, width))
        rows[:, : self.n_labels], edges[:, : self.n_labels] = fixed.rows, fixed.edges
        self.rule, self.space, self.most_pairs = (self.n_labels, edges, rows, fixed.row_of), (offsets, *space), most_pairs

    def table(self, w: Vector) -> Any:
        """The weights as scores are read from them; DataError for another number of weights."""
        raise NotImplementedError

    def factors(self, scale: Any) -> Any:
        """The scale of weights as the kernels take it."""
        return scale

    def decode(self, w: Vector, n_jobs: int) -> tuple[Labels, Integers]:
        """The best labels of all tokens, flat, and where each sequence begins."""
        return self.sweep(w, 1.0, NO_AIM, 0, len(self.offsets) - 1, 0.0, n_jobs)[0], self.offsets

    def sweep(
        self, w: Vector, scale: Any, aim: Aim, start: int, stop: int, loss_weight: float, n_jobs: int
    ) -> tuple[Labels, Floats, Floats]:
        """Decode sequences start..stop-1: (flat labels, losses, by how much they score above the truth)."""
        sweep, table, factors, offsets = self.kernels().sweep, self.table(w), self.factors(scale), self.offsets
        lengths = self.lengths[start:stop]
        labels = np.empty(int(offsets[stop] - offsets[start]), np.int64)
        losses, found, truths = np.empty((3, stop - start))

        def run(a: int, b: int) -> None:
            scratch = best_scratch(self.n_labels, int(lengths[a:b].max()))
            tokens = slice(int(offsets[start + a] - offsets[start]), int(offsets[start + b] - offsets[start]))
            sweep(
                table, factors, self.space, start + a, start + b, self.rule, aim, loss_weight, scratch,
                labels[tokens], losses[a:b], found[a:b], truths[a:b],
            )  # fmt: skip

        pieces = 1 if n_jobs == 1 else 4 * n_jobs  # more than threads, so that one that is held up does less
        run_ranges(run, split_evenly(lengths, pieces), n_jobs)
        if (impossible := np.flatnonzero(found <= 0.5 * FORBIDDEN)).size:
            raise InfeasibleError(f"sample {start + int(impossible[0])}: no label sequence satisfies the constraints")
        return labels, losses, found - truths


class SequencePair(ChainPair):
    """SequenceFeatures with transitions, and ChainOracle."""

    kind = SequenceSteps
    kernels = staticmethod(later("structpred.fused._chain_kernels"))

    def __init__(self, features: SequenceFeatures) -> None:
        data = features.data
        pairs = data.indptr[data.offsets[1:]] - data.indptr[data.offsets[:-1]]
        most_pairs = int((2 * (pairs + data.lengths)).max(initial=0)) + 4  # every token wrong: its features twice, a transition,
        values = data.values[:0] if (data.values == 1.0).all() else data.values  # ones need not be read, nor multiplied by
        space = data.indices, values, data.indptr, features.start_row, features.width  # and start and stop
        super().__init__(features, data.offsets, features.width, features.fixed, most_pairs, space)

    def table(self, w: Vector) -> Any:
        """A row a feature."""
        return self.features.table(w)


def chain_pair(features: SequenceFeatures, oracle: ChainOracle) -> SequencePair | None:
    """The pair of these two; None without transitions."""
    return SequencePair(features) if features.transitions else None


class PositionPair(ChainPair):
    """PositionFeatures and ChainOracle: factors of groups are no obstacle to compiled steps."""

    takes_groups = True
    kernels = staticmethod(later("structpred.fused._position_chain_kernels"))

    def __init__(self, features: PositionFeatures, oracle: ChainOracle) -> None:
        offsets, n_labels, n_kernels = features.offsets, features.n_labels, len(features.space.grams)
        fixed = features.fixed or FixedScores.none(int(offsets[-1]), n_labels)
        # every position wrong: its values twice, a transition, and start and stop
        most_pairs = int(np.diff(offsets).max(initial=0)) * (2 * n_kernels + 2) + 4
        space = features.groups, (features.space.n, n_labels, n_kernels)
        super().__init__(features, offsets, n_labels, fixed, most_pairs, space)

    def table(self, w: Vector) -> Vector:
        """The weights themselves: they hold the values of all functions."""
        check_length(w, self.features.dim)
        return w

    def factors(self, scale: Scale) -> Floats:
        """One factor a group."""
        if isinstance(scale, GroupScales):
            return np.ascontiguousarray(scale.factors, dtype=np.float64)
        return np.full(len(self.features.groups) - 1, float(scale))


def chain_steps(features: object, oracle: ChainOracle, inference: Inference, *more: Any) -> ChainSteps | None:
    """The steps of the pair of these two; None without a pair, and for costs that are no one grid."""
    pair, grid = cast(ChainPair | None, inference.pair), more[1].flat_grid()
    return None if pair is None or grid is None else pair.kind(pair, grid, inference, *more)
