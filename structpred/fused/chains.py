"""Chains over sequence features: scoring and decoding in one compiled call, and the training steps on top of it."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.costs import GridCosts
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError, InfeasibleError
from structpred.features.sequences import SequenceFeatures
from structpred.oracles.chain import ChainOracle
from structpred.oracles.chains._chain_scratch import SumScratch, best_scratch
from structpred.runtime.entries import entry_of
from structpred.runtime.threads import run_ranges, split_evenly
from structpred.task.fast.moves import Moves

#: (true labels, token weights, label costs) where there are none
NO_AIM = (np.empty(0, np.int64), np.empty(0), np.empty((0, 0)), np.empty(0, np.int64))


def chain_pair(features: SequenceFeatures, oracle: ChainOracle) -> "ChainPair | None":
    """The pair of these two; None without transitions."""
    return ChainPair(features) if features.transitions else None


class ChainPair:
    """SequenceFeatures with transitions, and ChainOracle (the Pair protocol of the core)."""

    def __init__(self, features: SequenceFeatures) -> None:
        self.features = features
        n_labels, fixed = features.n_labels, features.fixed
        self.rows, self.edges = np.zeros((len(fixed.rows), features.width)), np.zeros((n_labels, features.width))
        self.rows[:, :n_labels], self.edges[:, :n_labels] = fixed.rows, fixed.edges
        data = features.data
        self.corpus = (data.indices, unless_ones(data.values), data.indptr, data.offsets)
        self.rule = (features.start_row, n_labels, self.edges, self.rows, fixed.row_of)

    def decode(self, w: Vector, n_jobs: int) -> tuple[Labels, Integers]:
        """The best labels of all tokens, flat, and where each sequence begins."""
        from structpred.fused._chain_kernels import sweep_sequences

        f, data = self.features, self.features.data
        offsets = data.offsets
        labels = np.empty(data.n_tokens, np.int64)
        losses, found, truths = np.empty((3, len(data)))

        def run(a: int, b: int) -> None:
            s, here = best_scratch(f.n_labels, int(data.lengths[a:b].max())), labels[offsets[a] : offsets[b]]
            sweep_sequences(
                f.table(w), 1.0, self.corpus, a, b, self.rule, NO_AIM, 0.0, s, here, losses[a:b], found[a:b], truths[a:b]
            )

        run_pieces(run, data.lengths, 0, n_jobs)
        refuse_impossible(found, 0)
        return labels, offsets

    def steps(
        self, labels: Sequence[Labels], costs: GridCosts, token_weights: Sequence[Floats] | None, rows: Sequence[Integers] | None
    ) -> "ChainSteps":
        """Training steps towards `labels`."""
        return ChainSteps(self, labels, costs.table(self.features.n_labels), token_weights, rows)


def unless_ones(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The values of features, or none of them where all are one: these need not be read, nor multiplied by."""
    return values[:0] if (values == 1.0).all() else values


def parts_of_chain(labels: Labels, length: int, n_labels: int) -> Integers:
    """The parts of the first `length` labels."""
    from structpred.oracles.chains._chain_kernels import parts_of

    out: Integers = parts_of(labels, length, n_labels)
    return out


def run_pieces(run: Any, lengths: Integers, start: int, n_jobs: int) -> None:
    """run(first, last + 1) over sequences from `start` on, on n_jobs threads."""
    pieces = 1 if n_jobs == 1 else 4 * n_jobs  # more than threads, so that one that is held up does less
    run_ranges(run, [(start + a, start + b) for a, b in split_evenly(lengths, pieces)], n_jobs)


def refuse_impossible(found: Floats, start: int) -> None:
    """InfeasibleError where the best sequence, whose score is `found`, uses a forbidden part."""
    if (impossible := np.flatnonzero(found <= 0.5 * FORBIDDEN)).size:
        raise InfeasibleError(f"sample {start + int(impossible[0])}: no label sequence satisfies the constraints")


class Step(NamedTuple):
    """The compiled step for these weights, with their table, and these arrays for differences."""

    w: Vector
    table: Floats
    idx: Integers
    val: Floats
    call: Callable[..., tuple[int, float, float]]


def _no_step(*_: object) -> tuple[int, float, float]:
    raise AssertionError("no arrays have been seen")


#: label pairs that one compiled call of `visit` looks at: some hundredths of a second
VISITED_PARTS = 1 << 26
NO_STEP = Step(np.empty(0), np.empty((0, 0)), np.empty(0, np.int64), np.empty(0), _no_step)


class ChainSteps:
    """Scoring, decoding and differences of chains over sequence features, one compiled call each (the Fused protocol)."""

    takes_groups = False

    def __init__(
        self, pair: ChainPair, labels: Sequence[Labels], costs: Floats, token_weights: Sequence[Floats] | None,
        rows: Sequence[Integers] | None,
    ) -> None:  # fmt: skip
        features = pair.features
        self.features, data, self.n_jobs = features, features.data, 1
        self.costs = np.zeros((len(costs), features.width))
        self.costs[:, : features.n_labels] = costs
        self.corpus, self.rule = pair.corpus, pair.rule
        self.gold = np.concatenate([*labels, np.empty(0, np.int64)])
        self.token_weights = np.ones(data.n_tokens) if token_weights is None else np.concatenate([*token_weights, np.empty(0)])
        if not len(self.gold) == len(self.token_weights) == data.n_tokens:
            raise DataError(
                f"{data.n_tokens} tokens but {len(self.gold)} labels and {len(self.token_weights)} token weights: "
                "give one of each for every position"
            )
        cost_rows = self.gold if rows is None else np.concatenate([*rows, np.empty(0, np.int64)])
        self.aim = (self.gold, self.token_weights, self.costs, cost_rows)
        longest = int(data.lengths.max(initial=1))
        self.scratch, self.out = best_scratch(features.n_labels, longest), np.empty(longest, np.int64)
        self.idx2, self.val2 = np.empty(self.buffer_size(), np.int64), np.empty(self.buffer_size())
        self._step = NO_STEP
        self.pairs = (np.empty_like(self.idx2), np.empty_like(self.val2), self.idx2, self.val2)
        self.most = -(-VISITED_PARTS // features.width**2)

    def buffer_size(self) -> int:
        """Every token wrong: its features twice, a transition, and start and stop."""
        data = self.features.data
        pairs = data.indptr[data.offsets[1:]] - data.indptr[data.offsets[:-1]]
        return int((2 * (pairs + data.lengths)).max(initial=0)) + 4

    def step_into(
        self, w: Vector, scale: float, i: int, loss_weight: float, idx: Integers, val: Floats
    ) -> tuple[int, float, float]:
        """Decode sequence i and write its difference, sorted and unique."""
        step = self._step
        if not (w is step.w and idx is step.idx and val is step.val):
            step = self._step = self._step_for(w, idx, val)
        n, loss, product = step.call(
            w, step.table, scale, self.corpus, i, self.rule, self.aim, loss_weight, self.scratch, self.out,
            idx, val, self.idx2, self.val2,
        )  # fmt: skip
        return n, loss, scale * product

    def visit(self, items: Integers, moves: Moves, loss_weight: float) -> tuple[int, bool]:
        """Steps of many sequences with an online trainer's moves (`Visits` of the core)."""
        from structpred.fused._chain_kernels import visit_sequences

        found: tuple[int, bool] = visit_sequences(
            items, self.features.table(moves.weights.v), self.corpus, self.rule, self.aim, loss_weight, self.scratch, self.out,
            *self.pairs, self.most, moves.rule, moves.limits, moves.state,
        )  # fmt: skip
        return found

    def last_parts(self, i: int) -> Integers:
        """The parts of the labels that the last step found."""
        offsets = self.features.data.offsets
        return parts_of_chain(self.out, int(offsets[i + 1] - offsets[i]), self.features.n_labels)

    def _step_for(self, w: Vector, idx: Integers, val: Floats) -> "Step":
        """The compiled code for these arrays: trainers change them in place, so it is looked for once."""
        from structpred.fused._chain_kernels import step_sequence

        table = self.features.table(w)
        arguments = (
            w,
            table,
            1.0,
            self.corpus,
            0,
            self.rule,
            self.aim,
            1.0,
            self.scratch,
            self.out,
            idx,
            val,
            self.idx2,
            self.val2,
        )
        return Step(w, table, idx, val, entry_of(step_sequence, *arguments))

    def sweep(self, w: Vector, scale: float, start: int, stop: int, loss_weight: float) -> tuple[Labels, Floats, Floats]:
        """Decode sequences start..stop-1, on n_jobs threads: (flat labels, losses, violations)."""
        from structpred.fused._chain_kernels import sweep_sequences

        f, offsets = self.features, self.features.data.offsets
        labels = np.empty(int(offsets[stop] - offsets[start]), np.int64)
        losses, found, truths = np.empty((3, stop - start))

        def run(a: int, b: int) -> None:
            s = self.scratch if self.n_jobs == 1 else best_scratch(f.n_labels, int(f.data.lengths[a:b].max()))
            here, tokens = slice(a - start, b - start), slice(int(offsets[a] - offsets[start]), int(offsets[b] - offsets[start]))
            sweep_sequences(
                f.table(w), scale, self.corpus, a, b, self.rule, self.aim, loss_weight, s,
                labels[tokens], losses[here], found[here], truths[here],
            )  # fmt: skip

        run_pieces(run, f.data.lengths[start:stop], start, self.n_jobs)
        refuse_impossible(found, start)
        return labels, losses, found - truths

    def log_losses(self, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """-log p(y_i | x_i) of every sequence, and the gradient of their sum weighed by `shares`: flat, float64.

        A block of sequences goes through forward-backward in pieces that do not depend on the number of threads; then the
        gradient is gathered feature by feature, each in the order of its tokens. So it is the same for any n_jobs.
        """
        f = self.features
        values, gradient = np.empty(len(f.data)), np.zeros((f.n_rows, f.width))
        for block in self._blocks:
            self._log_losses_of(block, w, shares, values, gradient)
        return values, gradient.ravel()

    def _log_losses_of(self, block: "Block", w: Vector, shares: Floats, values: Floats, gradient: Floats) -> None:
        from structpred.fused._chain_kernels import gather_rows, log_loss_sweep

        f, offsets = self.features, self.features.data.offsets
        base = offsets[block.start]
        errors = np.empty((int(offsets[block.stop] - base), f.width))
        edges = {piece: np.empty((f.n_labels, f.width)) for piece in block.pieces}

        def run(a: int, b: int) -> None:
            s = SumScratch(f.n_labels, int(f.data.lengths[a:b].max()))
            scratch = (s.trans, s.exp_trans, s.emissions, s.alpha, s.local, s.norm, s.counts, s.work)
            here = errors[offsets[a] - base : offsets[b] - base]
            log_loss_sweep(f.table(w), self.corpus, a, b, self.rule, self.gold, shares, scratch, here, edges[a, b], values[a:b])

        def gather(a: int, b: int) -> None:
            gather_rows(block.starts, block.tokens, block.values, errors, a, b, -1.0, gradient)

        run_ranges(run, block.pieces, self.n_jobs)
        run_ranges(gather, split_evenly(np.diff(block.starts) + 1, self.n_jobs), self.n_jobs)
        firsts, ends = offsets[block.start : block.stop] - base, offsets[block.start + 1 : block.stop + 1] - base
        gradient[f.start_row] -= errors[firsts].sum(axis=0)
        gradient[f.start_row + 1] -= errors[ends - 1].sum(axis=0)
        for piece in block.pieces:
            gradient[f.start_row + 2 :] -= edges[piece]

    def squared_gradients(self, w: Vector, shares: Floats) -> Floats:
        """sum_i shares_i g_i^2, g_i the gradient of -log p(y_i | x_i), squared weight by weight: flat, float64."""
        f = self.features
        out = np.zeros((f.n_rows, f.width))
        for block in self._blocks:
            self._squares_of(block, w, shares, out)
        return out.ravel()

    def _squares_of(self, block: "Block", w: Vector, shares: Floats, out: Floats) -> None:
        from structpred.fused._chain_kernels import gather_squares, log_loss_sweep

        f, offsets = self.features, self.features.data.offsets
        base, ones, value = offsets[block.start], np.ones(len(shares)), np.empty(1)
        errors = np.empty((int(offsets[block.stop] - base), f.width))
        edges = {piece: np.zeros((f.n_labels, f.width)) for piece in block.pieces}

        def run(a: int, b: int) -> None:
            s, edge = SumScratch(f.n_labels, int(f.data.lengths[a:b].max())), np.empty((f.n_labels, f.width))
            scratch = (s.trans, s.exp_trans, s.emissions, s.alpha, s.local, s.norm, s.counts, s.work)
            for i in range(a, b):
                here = errors[offsets[i] - base : offsets[i + 1] - base]
                log_loss_sweep(f.table(w), self.corpus, i, i + 1, self.rule, self.gold, ones, scratch, here, edge, value.copy())
                edges[a, b] += shares[i] * edge**2

        own = shares[block.start : block.stop]
        sequence = np.repeat(np.arange(len(own)), np.diff(offsets[block.start : block.stop + 1]))

        def gather(a: int, b: int) -> None:
            gather_squares(block.starts, block.tokens, block.values, errors, sequence, own, a, b, out)

        run_ranges(run, block.pieces, self.n_jobs)
        run_ranges(gather, split_evenly(np.diff(block.starts) + 1, self.n_jobs), self.n_jobs)
        firsts, ends = offsets[block.start : block.stop] - base, offsets[block.start + 1 : block.stop + 1] - base
        out[f.start_row] += (own[:, None] * errors[firsts] ** 2).sum(axis=0)
        out[f.start_row + 1] += (own[:, None] * errors[ends - 1] ** 2).sum(axis=0)
        for piece in block.pieces:
            out[f.start_row + 2 :] += edges[piece]

    @cached_property
    def _blocks(self) -> list["Block"]:
        n = -(-self.features.data.n_tokens // BLOCK_TOKENS)
        return [Block.of(self.features, a, b) for a, b in split_evenly(self.features.data.lengths, n)]


#: tokens of a block of log_losses; its errors take width * 8 bytes each
BLOCK_TOKENS = 1 << 18
#: pieces of a block, each summed by one thread
PIECES = 16


class Block(NamedTuple):
    """Sequences start..stop-1, their pieces, and their features by column: f is at tokens[starts[f]:starts[f+1]]."""

    start: int
    stop: int
    pieces: list[tuple[int, int]]
    starts: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]

    @staticmethod
    def of(features: SequenceFeatures, start: int, stop: int) -> "Block":
        """The block of sequences start..stop-1."""
        from scipy import sparse

        part = features.data.take(start, stop)
        matrix = sparse.csr_array((part.values, part.indices, part.indptr), shape=(part.n_tokens, part.n_features)).tocsc()
        pieces = [(start + a, start + b) for a, b in split_evenly(part.lengths, PIECES)]
        return Block(start, stop, pieces, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)
