"""Chains over functions of kernels: scores are read off and decoded in one compiled call, and the training steps on top of it."""

from collections.abc import Sequence

import numpy as np

from structpred.core.costs import GridCosts
from structpred.core.group_scales import GroupScales, Scale
from structpred.core.oracle import Labels
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector, check_length
from structpred.features.fixed_scores import FixedScores
from structpred.features.positions import PositionFeatures
from structpred.fused.chains import parts_of_chain, refuse_impossible, run_pieces
from structpred.oracles.chain import ChainOracle
from structpred.oracles.chains._chain_scratch import best_scratch


class PositionPair:
    """PositionFeatures and ChainOracle (the Pair protocol of the core)."""

    def __init__(self, features: PositionFeatures, oracle: ChainOracle) -> None:
        self.features, n_labels = features, features.n_labels
        fixed = features.fixed or FixedScores.none(int(features.offsets[-1]), n_labels)
        self.rule = (fixed.edges, fixed.rows, fixed.row_of)

    def decode(self, w: Vector, n_jobs: int) -> tuple[Labels, Integers]:
        """The best labels of all positions, flat, and where each sequence begins."""
        n, n_labels = int(self.features.offsets[-1]), self.features.n_labels
        steps = PositionSteps(self, [np.zeros(n, np.int64)], np.zeros((n_labels, n_labels)), None, None)
        steps.n_jobs = n_jobs
        return steps.sweep(w, 1.0, 0, len(self.features), 0.0)[0], self.features.offsets

    def steps(
        self, labels: Sequence[Labels], costs: GridCosts, token_weights: Sequence[Floats] | None, rows: Sequence[Integers] | None
    ) -> "PositionSteps":
        """Training steps towards `labels`."""
        return PositionSteps(self, labels, costs.table(self.features.n_labels), token_weights, rows)


class PositionSteps:
    """Scores, decoding and differences, one compiled call each (the Fused protocol); factors of groups are no obstacle."""

    takes_groups = True

    def __init__(
        self, pair: PositionPair, labels: Sequence[Labels], costs: Floats, token_weights: Sequence[Floats] | None,
        rows: Sequence[Integers] | None,
    ) -> None:  # fmt: skip
        f = pair.features
        self.features, self.rule, self.n_jobs, self.lengths = f, pair.rule, 1, np.diff(f.offsets)
        self.space = (f.groups, (f.space.n, f.n_labels, len(f.space.grams)))
        gold = np.concatenate([*labels, np.empty(0, np.int64)])
        weights = np.ones(len(gold)) if token_weights is None else np.concatenate([*token_weights, np.empty(0)])
        cost_rows = gold if rows is None else np.concatenate([*rows, np.empty(0, np.int64)])
        self.aim = (gold, weights, np.ascontiguousarray(costs, dtype=np.float64), cost_rows)
        longest = int(self.lengths.max(initial=1))
        self.scratch, self.out = best_scratch(f.n_labels, longest), np.empty(longest, np.int64)
        self.idx2, self.val2 = np.empty(self.buffer_size(), np.int64), np.empty(self.buffer_size())

    def buffer_size(self) -> int:
        """Every position wrong: its values twice, a transition, and start and stop."""
        return int(self.lengths.max(initial=0)) * (2 * len(self.features.space.grams) + 2) + 4

    def _factors(self, scale: Scale) -> Floats:
        return scale.factors if isinstance(scale, GroupScales) else np.full(len(self.features.groups) - 1, float(scale))

    def step_into(
        self, w: Vector, scale: Scale, i: int, loss_weight: float, idx: Integers, val: Floats
    ) -> tuple[int, float, float]:
        """Decode sequence i and write its difference, sorted and unique."""
        from structpred.fused._position_chain_kernels import step_positions

        f = self.features
        check_length(w, f.dim)
        found: tuple[int, float, float] = step_positions(
            w, self._factors(scale), self.space, f.offsets, i, self.rule, self.aim, loss_weight, self.scratch, self.out,
            idx, val, self.idx2, self.val2,
        )  # fmt: skip
        return found

    def last_parts(self, i: int) -> Integers:
        """The parts of the labels that the last step found."""
        return parts_of_chain(self.out, int(self.lengths[i]), self.features.n_labels)

    def sweep(self, w: Vector, scale: Scale, start: int, stop: int, loss_weight: float) -> tuple[Labels, Floats, Floats]:
        """Decode sequences start..stop-1, on n_jobs threads: (flat labels, losses, violations)."""
        from structpred.fused._position_chain_kernels import sweep_positions

        f, offsets, factors = self.features, self.features.offsets, self._factors(scale)
        check_length(w, f.dim)
        labels = np.empty(int(offsets[stop] - offsets[start]), np.int64)
        losses, found, truths = np.empty((3, stop - start))

        def run(a: int, b: int) -> None:
            s = best_scratch(f.n_labels, int(self.lengths[a:b].max()))
            here, tokens = slice(a - start, b - start), slice(int(offsets[a] - offsets[start]), int(offsets[b] - offsets[start]))
            sweep_positions(
                w, factors, self.space, offsets, a, b, self.rule, self.aim, loss_weight, s,
                labels[tokens], losses[here], found[here], truths[here],
            )  # fmt: skip

        run_pieces(run, self.lengths[start:stop], start, self.n_jobs)
        refuse_impossible(found, start)
        return labels, losses, found - truths
