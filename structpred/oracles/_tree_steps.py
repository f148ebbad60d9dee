"""Compiled steps of trees over arc features (the Fused protocol of the core): any oracle of heads decodes them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.arc_features import ArcFeatures, ArcScratch
from structpred.core.costs import GridCosts
from structpred.core.features import FeatureMap
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.memory import check_fits
from structpred.core.oracle import Labels, Oracle
from structpred.core.steps import Fused
from structpred.core.threads import run_ranges, split_evenly
from structpred.core.weights import Vector
from structpred.errors import DataError, InfeasibleError

Floats = npt.NDArray[np.float64]

#: arcs of a block that is scored before it is decoded: its scores stay in the cache
BLOCK_ARCS = 1 << 15


def fuse_trees(
    features: FeatureMap, oracle: Oracle, labels: Sequence[Labels], costs: GridCosts, token_weights: Sequence[Floats] | None
) -> Fused | None:
    """Steps for arc features and a loss that costs the same for each wrong head; None for anything else."""
    if not isinstance(features, ArcFeatures) or np.ndim(costs.cost) > 0:
        return None
    return TreeSteps(features, oracle, labels, float(costs.cost), token_weights)


class TreeSteps:
    """Scoring, decoding and differences of trees over arc features; `oracle` decodes flat scores (argmax, argmax_batch)."""

    def __init__(
        self,
        features: ArcFeatures,
        oracle: Any,
        labels: Sequence[Labels],
        cost: float,
        token_weights: Sequence[Floats] | None,
    ) -> None:
        self.features, self.oracle, self.cost, self.n_jobs = features, oracle, cost, 1
        self.gold = np.concatenate([*labels, np.empty(0, np.int64)])
        n_words = features.data.n_words
        self.token_weights = cost * (np.ones(n_words) if token_weights is None else np.concatenate([*token_weights, np.empty(0)]))
        if not len(self.gold) == len(self.token_weights) == n_words:
            raise DataError(f"{n_words} words but {len(self.gold)} heads and {len(self.token_weights)} token weights")
        longest = int(features.data.lengths.max(initial=1))
        self.scratch = features.new_scratch(longest)
        self.out = np.empty(longest * (longest + 1))
        self.idx2, self.val2 = np.empty(self.buffer_size(), np.int64), np.empty(self.buffer_size())
        self.offsets = features.data.offsets.tolist()

    def buffer_size(self) -> int:
        """Every head wrong: two arcs a word, with all templates and all tags between."""
        f = self.features
        return (
            2 * int(f.data.lengths.max(initial=1)) * (len(f.templates) + min(f.data.n_tags, int(f.data.lengths.max(initial=1))))
        )

    def _scored(
        self, w: Vector, scale: float, start: int, stop: int, loss_weight: float, s: ArcScratch, places: npt.NDArray[np.int64],
        out: Floats,
    ) -> None:  # fmt: skip
        """Fill `out` with the scores of sentences start..stop-1, losses, candidates and fixed scores included."""
        from structpred.oracles._tree_step_kernels import score_block

        f, c = self.features, self.features.compiled
        corpus = (f.data.offsets, start, stop, *f.sentence_arguments(), c.atoms, c.ends, c.seeds)
        listed = (f.candidates.starts, f.candidates.heads)
        target = (self.gold, self.token_weights, loss_weight, FORBIDDEN, places, out)
        score_block(w, scale, *corpus, *listed, *f.scoring(s), *target)
        if f.fixed.scores is not None:
            for i in range(start, stop):
                if (fixed := f.fixed.of(i)) is not None:
                    out[places[i - start] : places[i - start + 1]] += fixed

    def step_into(
        self, w: Vector, scale: float, i: int, loss_weight: float, idx: npt.NDArray[np.int64], val: Floats
    ) -> tuple[int, float, float]:
        """Decode sentence i and write its difference, sorted and unique."""
        from structpred.oracles._tree_step_kernels import tree_difference

        first, last, s = self.offsets[i], self.offsets[i + 1], self.scratch
        n = last - first
        out = self.out[: n * (n + 1)]
        self._scored(w, scale, i, i + 1, loss_weight, s, np.array([0, n * (n + 1)]), out)
        labels = self.oracle.argmax(out, (n,))
        found: tuple[int, float, float] = tree_difference(
            w, labels, self.gold[first:last], self.token_weights[first:last],
            *self.features.emitting(s), idx, val, self.idx2, self.val2,
        )  # fmt: skip
        return found

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[int, int, npt.NDArray[np.int64]]]:
        """Sentences start..stop-1 in blocks of at most BLOCK_ARCS arcs (or one sentence): (first, last + 1, places)."""
        arcs = self.features.data.lengths[start:stop] * (self.features.data.lengths[start:stop] + 1)
        begin = 0
        while begin < len(arcs):
            places = np.concatenate(([0], np.cumsum(arcs[begin : begin + 512])))
            size = max(int(np.searchsorted(places, BLOCK_ARCS, side="right")) - 1, 1)
            yield start + begin, start + begin + size, places[: size + 1]
            begin += size

    def sweep(self, w: Vector, scale: float, start: int, stop: int, loss_weight: float) -> tuple[Labels, Floats, Floats]:
        """Decode sentences start..stop-1, on n_jobs threads: (flat heads, losses, violations)."""
        from structpred.oracles._tree_step_kernels import tree_values

        data = self.features.data
        labels = np.empty(self.offsets[stop] - self.offsets[start], np.int64)
        losses, found, truths = np.empty((3, stop - start))

        def run(a: int, b: int) -> None:
            s = self.features.new_scratch(int(data.lengths[a:b].max()))
            longest = int(data.lengths[a:b].max())
            buffer = np.empty(max(longest * (longest + 1), BLOCK_ARCS))
            for first, last, places in self._blocks(a, b):
                out = buffer[: places[-1]]
                self._scored(w, scale, first, last, loss_weight, s, places, out)
                shapes = [(n,) for n in data.lengths[first:last].tolist()]
                heads = self.oracle.argmax_batch(out, places, shapes)[0]
                here = slice(first - start, last - start)
                labels[self.offsets[first] - self.offsets[start] : self.offsets[last] - self.offsets[start]] = heads
                tree_values(
                    out, places, data.offsets, first, last, heads, self.gold, self.token_weights,
                    losses[here], found[here], truths[here],
                )  # fmt: skip

        pieces = 1 if self.n_jobs == 1 else 4 * self.n_jobs
        run_ranges(run, [(start + a, start + b) for a, b in split_evenly(data.lengths[start:stop] ** 2, pieces)], self.n_jobs)
        if (impossible := np.flatnonzero(found <= 0.5 * FORBIDDEN)).size:
            raise InfeasibleError(f"sample {start + int(impossible[0])}: the constraints leave no tree at all")
        return labels, losses, found - truths

    def log_losses(self, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """-log p(y_i | x_i) of every sentence, and the gradient of their sum weighed by `shares`: flat, float64."""
        values, gradient = np.empty(len(self.features)), np.zeros(self.features.dim)
        for i in range(len(values)):
            first, last = self.offsets[i], self.offsets[i + 1]
            n = last - first
            check_fits(16 * n * (n + 1), f"the marginals of a sentence of {n:,} words")
            out = np.empty(n * (n + 1))
            self._scored(w, 1.0, i, i + 1, 0.0, self.scratch, np.array([0, len(out)]), out)
            log_z, mu = self.oracle.marginals(out, (n,))
            on = np.arange(n) * (n + 1) + self.gold[first:last]
            values[i] = max(log_z - float(np.add.accumulate(out[on])[-1]), 0.0)
            mu[on] -= 1.0
            self.features.add_spread(i, mu, float(shares[i]), gradient)
        return values, gradient
