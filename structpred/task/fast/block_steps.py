"""The general compiled step: features score per block, the costs are added, the oracle decodes it, features write the difference.

It serves every feature map that has the calls of BlockFeatures and every oracle with `argmax_batch` whose outputs are one label a
position and nothing else, under a loss that costs the same for each wrong label. Neither of the two knows the other, or the loss.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import Any, Protocol, cast

import numpy as np

from structpred.core.costs import GridCosts
from structpred.core.feature_map import FeatureMap
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle
from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError, InfeasibleError
from structpred.runtime.memory import check_fits
from structpred.runtime.threads import run_ranges, split_evenly
from structpred.task.fast import welds
from structpred.task.inference import Inference
from structpred.task.steps import Visits
from structpred.task.two_ways import DRIFT, refuse_two_ways

#: the calls of an oracle that compiled steps replace
_ORACLE = ("argmax", "parts", "n_parts", "marginals", "label_grid")


class BlockFeatures(FeatureMap, Protocol):
    """A feature map with compiled calls for blocks of instances. Working memory is the caller's: one scratch per thread."""

    def block_scratch(self, start: int, stop: int) -> Any:
        """Working memory for any of the instances start..stop-1."""
        ...

    def score_into(self, w: Vector, scale: float, start: int, stop: int, places: Integers, out: Floats, scratch: Any) -> None:
        """out[places[i - start]:]: the scores of instance i at the weights scale * w, fixed scores included."""
        ...

    def most_pairs(self) -> int:
        """The largest number of pairs that emit_difference writes."""
        ...

    def emit_difference(self, truth: Labels, found: Labels, idx: Integers, val: Floats, scratch: Any) -> int:
        """phi(truth) - phi(found) as unsorted pairs, for the instance that score_into scored last; returns their number."""
        ...

    def add_spread(self, i: int, mu: Floats, coef: float, out: Floats) -> None:
        """out += coef * Psi_i^T mu for dense mu."""
        ...


def block_steps(
    inference: Inference, labels: Sequence[Labels], costs: GridCosts, token_weights: Sequence[Floats] | None
) -> "BlockSteps | None":
    """The steps, or None where features, oracle or costs are of another kind."""
    features, oracle = inference.features, inference.oracle
    calls = ("block_scratch", "score_into", "most_pairs", "emit_difference", "add_spread")
    if np.ndim(costs.cost) > 0 or not all(callable(getattr(features, name, None)) for name in calls):
        return None
    if (
        inference.bounded
        or not inference.batched
        or stand_in(oracle, "argmax_batch", _ORACLE) is None
        or not _all_on_grid(inference)
    ):
        return None
    return BlockSteps(inference, labels, float(costs.cost), token_weights)


def _all_on_grid(inference: Inference) -> bool:
    grid = getattr(inference.oracle, "label_grid", None)
    return grid is not None and all(prod(grid(s)) == n for s, n in zip(inference.shapes, inference.sizes.tolist(), strict=True))


@lru_cache(maxsize=1)
def _kernels() -> tuple[Any, Any]:
    """What adds the loss to scores, and what ends a step."""
    from structpred.task.fast._block_kernels import add_wrong, finish_checked

    return add_wrong, finish_checked


class BlockSteps:
    """Compiled steps (the Fused protocol of steps.py) over the blocks of an Inference."""

    takes_groups = False

    def __init__(
        self, inference: Inference, labels: Sequence[Labels], cost: float, token_weights: Sequence[Floats] | None
    ) -> None:
        self.inference, self.n_jobs = inference, inference.n_jobs
        self.features, self.oracle = cast(BlockFeatures, inference.features), cast(Any, inference.oracle)
        self.starts = np.cumsum([0, *map(len, labels)])
        self.gold = np.concatenate([*labels, np.empty(0, np.int64)])
        n = len(self.gold)
        self.weights = cost * (np.ones(n) if token_weights is None else np.concatenate([*token_weights, np.empty(0)]))
        positions = sum(self.oracle.label_grid(shape)[0] for shape in inference.shapes)
        if not n == len(self.weights) == positions:
            raise DataError(f"{positions} positions but {n} labels and {len(self.weights)} token weights")
        self.scratch = self.features.block_scratch(0, len(inference))
        self.out = np.empty(int(inference.sizes.max(initial=1)))
        self.idx2, self.val2 = np.empty(self.buffer_size(), np.int64), np.empty(self.buffer_size())
        self._ends, self._sizes, self._place = self.starts.tolist(), inference.sizes.tolist(), np.zeros(2, np.int64)

    @cached_property
    def visit(self) -> Visits | None:
        """Many steps with an online trainer's moves in one call, where such code was written for features and oracle."""
        found: Visits | None = welds.find("visits of trees", self.features, self.oracle, self)
        return found

    def buffer_size(self) -> int:
        """The largest number of pairs of a difference."""
        return self.features.most_pairs()

    def step_into(
        self, w: Vector, scale: float, i: int, loss_weight: float, idx: Integers, val: Floats
    ) -> tuple[int, float, float]:
        """Decode instance i and write its difference, sorted and unique."""
        add_wrong, finish_checked = _kernels()
        f, s, here, places = self.features, self.scratch, slice(self._ends[i], self._ends[i + 1]), self._place
        places[1] = size = self._sizes[i]
        out = self.out[:size]
        f.score_into(w, scale, i, i + 1, places, out, s)
        add_wrong(places, self.starts, i, i + 1, self.gold, self.weights, loss_weight, out)
        labels, gold = self.oracle.argmax(out, self.inference.shapes[i]), self.gold[here]
        self._last = labels, size // max(len(labels), 1)
        n = f.emit_difference(gold, labels, idx, val, s)
        n, loss, product, gap, size = finish_checked(w, labels, gold, self.weights[here], n, idx, val, self.idx2, self.val2, out)
        gap, size = gap + loss_weight * loss, size + abs(loss_weight * loss)
        if not abs(gap - scale * product) <= DRIFT * size:
            at, n_labels, phi = np.flatnonzero(gold != labels), len(out) // len(gold), SparseVector(idx[:n], val[:n])
            parts = np.concatenate((at * n_labels + gold[at], at * n_labels + labels[at]))
            refuse_two_ways(f, i, (parts, np.repeat([1.0, -1.0], len(at))), (gap, size), phi, w, scale)
        return n, loss, scale * product

    def last_parts(self, i: int) -> Integers:
        """The parts of the labels that the last step found."""
        labels, n_labels = self._last
        parts: Integers = np.arange(len(labels)) * n_labels + labels
        return parts

    def sweep(self, w: Vector, scale: float, start: int, stop: int, loss_weight: float) -> tuple[Labels, Floats, Floats]:
        """Decode instances start..stop-1, on n_jobs threads: (flat labels, losses, violations)."""
        from structpred.task.fast._block_kernels import add_wrong, grid_values

        base = self._ends[start]
        labels = np.empty(self._ends[stop] - base, np.int64)
        losses, found, truths = np.empty((3, stop - start))

        def run(a: int, b: int) -> None:
            s = self.features.block_scratch(a, b)
            for first, last, places in self.inference.blocks(a, b):
                out = np.empty(places[-1])
                self.features.score_into(w, scale, first, last, places, out, s)
                add_wrong(places, self.starts, first, last, self.gold, self.weights, loss_weight, out)
                best = self.oracle.argmax_batch(out, places, self.inference.shapes[first:last])[0]
                labels[self._ends[first] - base : self._ends[last] - base] = best
                here = slice(first - start, last - start)
                grid_values(
                    out, places, self.starts, first, last, best, self.gold, self.weights, losses[here], found[here], truths[here]
                )

        pieces = 1 if self.n_jobs == 1 else 4 * self.n_jobs
        ranges = [(start + a, start + b) for a, b in split_evenly(self.inference.sizes[start:stop], pieces)]
        run_ranges(run, ranges, self.n_jobs)
        if (impossible := np.flatnonzero(found <= 0.5 * FORBIDDEN)).size:
            i = start + int(impossible[0])
            raise InfeasibleError(f"sample {i}: no {cast(Oracle, self.oracle).output} satisfies the constraints")
        return labels, losses, found - truths

    def log_losses(self, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """-log p(y_i | x_i) of every instance, and the gradient of their sum weighed by `shares`: flat, float64."""
        values, gradient = np.empty(len(self.inference)), np.zeros(self.features.dim)
        for i, size in enumerate(self.inference.sizes.tolist()):
            check_fits(16 * size, f"the marginals of sample {i} with {size:,} parts")
            out = np.empty(size)
            self.features.score_into(w, 1.0, i, i + 1, np.array([0, size]), out, self.scratch)
            log_z, mu = self.oracle.marginals(out, self.inference.shapes[i])
            gold = self.gold[self._ends[i] : self._ends[i + 1]]
            on = np.arange(len(gold)) * (size // max(len(gold), 1)) + gold
            values[i] = max(log_z - float(np.add.accumulate(out[on])[-1]), 0.0)
            mu[on] -= 1.0
            self.features.add_spread(i, mu, float(shares[i]), gradient)
        return values, gradient
