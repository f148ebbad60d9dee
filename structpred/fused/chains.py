"""Chains: scoring and decoding in one compiled call, and the training steps on top of it, over the features of sequences.

`ChainPair` and `ChainSteps` serve every kind of feature map whose parts are those of ChainOracle.
"""

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
from structpred.features.fixed_scores import FixedScores
from structpred.features.sequences import SequenceFeatures
from structpred.oracles.chain import ChainOracle, SumScratch, best_scratch
from structpred.runtime.entries import entry_of
from structpred.runtime.threads import run_ranges, split_evenly
from structpred.task.fast.moves import Moves

#: true labels, token weights, rows of label costs, and the row of each token
Aim = tuple[Integers, Floats, Floats, Integers]
NO_AIM: Aim = (np.empty(0, np.int64), np.empty(0), np.empty((0, 0)), np.empty(0, np.int64))
#: label pairs that one compiled call of `visit` looks at: some hundredths of a second
VISITED_PARTS = 1 << 26
#: tokens of a block of log_losses; its errors take width * 8 bytes each
BLOCK_TOKENS = 1 << 18
#: pieces of a block, each summed by one thread
PIECES = 16


class Step(NamedTuple):
    """The compiled step for these weights, with their table, and these arrays for differences."""

    w: Vector
    table: Floats
    idx: Integers
    val: Floats
    call: Callable[..., tuple[int, float, float]]


def _no_step(*_: object) -> tuple[int, float, float]:
    raise AssertionError("no arrays have been seen")


NO_STEP = Step(np.empty(0), np.empty((0, 0)), np.empty(0, np.int64), np.empty(0), _no_step)


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


class ChainSteps:
    """Scoring, decoding and differences of chains, one compiled call each (the Fused protocol)."""

    def __init__(
        self, pair: "ChainPair", labels: Sequence[Labels], costs: Floats, token_weights: Sequence[Floats] | None,
        rows: Sequence[Integers] | None,
    ) -> None:  # fmt: skip
        self.pair, self.takes_groups, self.n_jobs = pair, pair.takes_groups, 1
        self.space, self.rule = pair.space, pair.rule
        padded_costs = np.zeros((len(costs), pair.width))
        padded_costs[:, : pair.n_labels] = costs
        n, gold = int(pair.offsets[-1]), np.concatenate([*labels, np.empty(0, np.int64)])
        weights = np.ones(n) if token_weights is None else np.concatenate([*token_weights, np.empty(0)])
        if not len(gold) == len(weights) == n:
            raise DataError(
                f"{n} tokens but {len(gold)} labels and {len(weights)} token weights: give one of each for every position"
            )
        self.aim: Aim = (gold, weights, padded_costs, gold if rows is None else np.concatenate([*rows, np.empty(0, np.int64)]))
        longest = int(pair.lengths.max(initial=1))
        self.scratch, self.out = best_scratch(pair.n_labels, longest), np.empty(longest, np.int64)
        self.idx2, self.val2 = np.empty(pair.most_pairs, np.int64), np.empty(pair.most_pairs)
        self._step, self.most = NO_STEP, -(-VISITED_PARTS // pair.width**2)

    def buffer_size(self) -> int:
        """The most pairs of a difference."""
        return self.pair.most_pairs

    def step_into(
        self, w: Vector, scale: Any, i: int, loss_weight: float, idx: Integers, val: Floats
    ) -> tuple[int, float, float]:
        """Decode sequence i and write its difference, sorted and unique."""
        step = self._step
        if not (w is step.w and idx is step.idx and val is step.val):
            step = self._step = self._step_for(w, idx, val)
        return step.call(
            w, step.table, self.pair.factors(scale), self.space, i, self.rule, self.aim, loss_weight, self.scratch, self.out,
            idx, val, self.idx2, self.val2,
        )  # fmt: skip

    def _step_for(self, w: Vector, idx: Integers, val: Floats) -> Step:
        """The compiled code for these arrays: trainers change them in place, so it is looked for once."""
        table, factors = self.pair.table(w), self.pair.factors(1.0)
        found = entry_of(
            self.pair.kernels().step, w, table, factors, self.space, 0, self.rule, self.aim, 1.0, self.scratch, self.out,
            idx, val, self.idx2, self.val2,
        )  # fmt: skip
        return Step(w, table, idx, val, found)

    def last_parts(self, i: int) -> Integers:
        """The parts of the labels that the last step found."""
        from structpred.oracles.chains._chain_kernels import parts_of

        out: Integers = parts_of(self.out, int(self.pair.lengths[i]), self.pair.n_labels)
        return out

    def sweep(self, w: Vector, scale: Any, start: int, stop: int, loss_weight: float) -> tuple[Labels, Floats, Floats]:
        """Decode sequences start..stop-1, on n_jobs threads: (flat labels, losses, violations)."""
        return self.pair.sweep(w, scale, self.aim, start, stop, loss_weight, self.n_jobs)


class SequenceSteps(ChainSteps):
    """Those over SequenceFeatures: also many steps in a call, and likelihoods."""

    @property
    def features(self) -> SequenceFeatures:
        """The feature map."""
        features: SequenceFeatures = self.pair.features
        return features

    def visit(self, items: Integers, moves: Moves, loss_weight: float) -> tuple[int, bool]:
        """Steps of many sequences with an online trainer's moves (`Visits` of the core)."""
        from structpred.fused._chain_kernels import visit_sequences

        pairs = np.empty_like(self.idx2), np.empty_like(self.val2), self.idx2, self.val2
        found: tuple[int, bool] = visit_sequences(
            items, self.features.table(moves.weights.v), self.space, self.rule, self.aim, loss_weight, self.scratch, self.out,
            *pairs, self.most, moves.rule, moves.limits, moves.state,
        )  # fmt: skip
        return found

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

    def _log_losses_of(self, block: Block, w: Vector, shares: Floats, values: Floats, gradient: Floats) -> None:
        from structpred.fused._chain_kernels import gather_rows, log_loss_sweep

        f, offsets = self.features, self.features.data.offsets
        base = offsets[block.start]
        errors = np.empty((int(offsets[block.stop] - base), f.width))
        edges = {piece: np.empty((f.n_labels, f.width)) for piece in block.pieces}

        def run(a: int, b: int) -> None:
            s = SumScratch(f.n_labels, int(f.data.lengths[a:b].max()))
            scratch = (s.trans, s.exp_trans, s.emissions, s.alpha, s.local, s.norm, s.counts, s.work)
            here = errors[offsets[a] - base : offsets[b] - base]
            log_loss_sweep(f.table(w), self.space, a, b, self.rule, self.aim[0], shares, scratch, here, edges[a, b], values[a:b])

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

    def _squares_of(self, block: Block, w: Vector, shares: Floats, out: Floats) -> None:
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
                log_loss_sweep(f.table(w), self.space, i, i + 1, self.rule, self.aim[0], ones, scratch, here, edge, value.copy())
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
    def _blocks(self) -> list[Block]:
        n = -(-self.features.data.n_tokens // BLOCK_TOKENS)
        return [Block.of(self.features, a, b) for a, b in split_evenly(self.features.data.lengths, n)]


class ChainPair:
    """A kind of label sequences, and ChainOracle (the Pair protocol of the core): what subclasses share.

    rule and space are those of _chain_body_kernels.py; most_pairs: the most pairs of a difference.
    """

    #: whether the scale of weights may be `GroupScales`
    takes_groups = False
    kind: type[ChainSteps] = ChainSteps

    def __init__(
        self, features: Any, offsets: Integers, width: int, fixed: FixedScores, most_pairs: int, space: tuple[Any, ...]
    ) -> None:
        self.features, self.n_labels, self.width = features, features.n_labels, width
        self.offsets, self.lengths = offsets, np.diff(offsets)
        rows, edges = np.zeros((len(fixed.rows), width)), np.zeros((self.n_labels, width))
        rows[:, : self.n_labels], edges[:, : self.n_labels] = fixed.rows, fixed.edges
        self.rule, self.space, self.most_pairs = (self.n_labels, edges, rows, fixed.row_of), (offsets, *space), most_pairs

    def kernels(self) -> Any:
        """The bodies compiled over the calls of this kind."""
        raise NotImplementedError

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

    def steps(
        self, labels: Sequence[Labels], costs: GridCosts, token_weights: Sequence[Floats] | None, rows: Sequence[Integers] | None
    ) -> ChainSteps:
        """Training steps towards `labels`."""
        return self.kind(self, labels, costs.table(self.n_labels), token_weights, rows)


def unless_ones(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The values of features, or none of them where all are one: these need not be read, nor multiplied by."""
    return values[:0] if (values == 1.0).all() else values


class SequencePair(ChainPair):
    """SequenceFeatures with transitions, and ChainOracle."""

    kind = SequenceSteps

    def __init__(self, features: SequenceFeatures) -> None:
        data = features.data
        pairs = data.indptr[data.offsets[1:]] - data.indptr[data.offsets[:-1]]
        most_pairs = int((2 * (pairs + data.lengths)).max(initial=0)) + 4  # every token wrong: its features twice, a transition,
        space = data.indices, unless_ones(data.values), data.indptr, features.start_row, features.width  # and start and stop
        super().__init__(features, data.offsets, features.width, features.fixed, most_pairs, space)

    def kernels(self) -> Any:
        """Those of sparse feature rows."""
        from structpred.fused import _chain_kernels

        return _chain_kernels

    def table(self, w: Vector) -> Any:
        """A row a feature."""
        return self.features.table(w)


def chain_pair(features: SequenceFeatures, oracle: ChainOracle) -> SequencePair | None:
    """The pair of these two; None without transitions."""
    return SequencePair(features) if features.transitions else None
