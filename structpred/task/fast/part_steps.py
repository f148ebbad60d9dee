"""Steps of many instances: scores, outputs, parts, losses and differences of a block, each in one compiled call.

They serve every oracle with `argmax_batch`, whatever its parts and the loss are, and give what single steps give, to the last
bit. They run on threads where features and oracle have compiled calls for blocks; the results do not depend on their number.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from structpred.core.costs import FlatGrid, TaskCosts
from structpred.core.feature_map import FeatureMap
from structpred.core.own_code import blamed
from structpred.core.packing import parts_batch
from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import OracleError
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of
from structpred.task.inference import Inference
from structpred.task.plain_steps import PlainSteps
from structpred.task.score_consistency import DRIFT, FREE, kernels, refuse_inconsistent
from structpred.task.steps import Block, Terms, added, checked_shares, one_run
from structpred.task.task_checks import checked_bound, doubtful

#: what must be as it was written for compiled calls to replace it
_FEATURES, _ORACLE = ("adjoint", "n_parts"), ("parts", "n_parts")
log = logging.getLogger("structpred.core")


def steps_of(inference: Inference, parts: Sequence[Integers], costs: TaskCosts) -> PlainSteps:
    """The fastest steps that there are for features and oracle, towards outputs with these parts."""
    steps: PlainSteps | None = inference.welded("steps", inference, parts, costs)
    if steps is None:
        log.debug(
            "no single steps were compiled for %s and %s", type(inference.features).__name__, type(inference.oracle).__name__
        )
    return steps or (PartSteps if inference.batched else PlainSteps)(inference, parts, costs)


class PartSteps(PlainSteps):
    """Steps in blocks; those of single instances are plain."""

    @cached_property
    def truth(self) -> Integers:
        """The parts of the true outputs, flat."""
        return np.concatenate([*self.parts, np.empty(0, np.int64)])

    @cached_property
    def ends(self) -> Integers:
        """Those of instance i are truth[ends[i]:ends[i + 1]]."""
        return ends_of(np.array([len(own) for own in self.parts], dtype=np.int64))

    @cached_property
    def grid(self) -> FlatGrid | None:
        """The costs, where they are one grid for all instances: they are written when they are needed."""
        return self.costs.flat_grid()

    def _jobs(self, *methods: str) -> int:
        """Threads: code of a user's own may not be ready for more than one."""
        ready = self.inference.scores_blocks and stand_in(self.features, "adjoint_block", _FEATURES) is not None
        ready = ready and all(stand_in(self.oracle, name, _ORACLE) is not None for name in methods)
        return self.inference.n_jobs if ready else 1

    def terms(self, w: Vector, rows: ArrayLike, shares: ArrayLike | None, loss_weight: float) -> Terms:
        """Of neighbours, from their blocks."""
        if (run := one_run(rows, len(self.inference))) is None:
            return super().terms(w, rows, shares, loss_weight)
        blocks = self._on_threads(partial(self._block, w, loss_weight), run.start, run.stop)
        # the additions of `summed`, one after the other
        weights, difference, total = checked_shares(shares, len(run)), np.zeros(self.features.dim), 0.0
        losses, violations, bounds = np.empty((3, len(run)))
        for block, here in added(difference, blocks, weights, run.start, self.inference.n_jobs):
            losses[here], violations[here], bounds[here] = block.losses, block.violations, block.bounds
        for share, loss in zip(weights.tolist(), losses.tolist(), strict=True):
            total += share * (loss_weight * loss)
        return Terms(difference, total, losses, violations, bounds)

    def violations(self, w: Vector, loss_weight: float) -> Floats:
        """The bound on the violation of each instance."""
        call = partial(self._block, w, loss_weight)
        return np.concatenate(list(self._on_threads(lambda *block: call(*block).bounds, 0, len(self.inference))))

    def _on_threads(self, call: Callable[[int, int, Integers], Any], start: int, stop: int) -> Iterator[Any]:
        if self.grid is None:
            self.costs.of(0)  # all are written before threads ask for them
        return self.inference.in_blocks(call, start, stop, self._jobs(self.inference.batch_method, "parts_batch"))

    def _block(self, w: Vector, loss_weight: float, first: int, last: int, places: Integers) -> Block:
        if self.grid is None:
            constants, costs = self.costs.block(first, last)
        else:
            constants, costs = np.zeros(last - first), np.zeros(places[-1])
            kernels().add_grid(self.grid, first, last, places, 1.0, costs)
        scores = self.inference.score_block(w, 1.0, first, last, places)
        scores += loss_weight * costs
        labels, label_ends, bounds = self.inference.best_of_block(scores, first, last, places)
        found, found_ends = parts_batch(self.oracle, labels, label_ends, self.inference.shapes[first:last], first)
        (losses, gaps, sizes), ends = np.empty((3, last - first)), np.empty(last - first + 1, np.int64)
        outputs = self.truth, self.ends[first : last + 1], found, found_ends
        into = places, losses, gaps, sizes, ends
        wrong, parts, counts = kernels().compare_each(*outputs, constants, costs, scores, loss_weight, FREE, *into)

        def look(k: int) -> None:
            answer = labels[label_ends[k] : label_ends[k + 1]], None if bounds is None else float(bounds[k])
            self.towards(answer, scores[places[k] : places[k + 1]], w, first + k, loss_weight)

        if wrong >= 0:
            look(wrong)
        products, pairs = checked_block(self.features, w, first, parts, counts, ends, gaps, sizes)
        # from the differences, not from the scores: so sweeps and single steps agree to the last bit
        violations = loss_weight * losses - products
        block = Block(first, losses, violations, violations, *pairs)
        expected = block.violations >= doubtful(loss_weight * losses)  # False for NaN
        for k in np.flatnonzero(~(expected & (losses >= 0.0) & np.isfinite(block.violations))).tolist():
            look(k)
        if bounds is not None:
            block = block._replace(bounds=self._bounds(block, bounds, scores, places, found, found_ends))
        for k in range(last - first) if self._found is not None else ():
            own, bound = slice(found_ends[k], found_ends[k + 1]), None if bounds is None else float(bounds[k])
            try:
                self.recall(first + k, scores[places[k] : places[k + 1]], found[own], bound)
            except OracleError:
                look(k)  # raises a plainer cause, if there is one
                raise
        return block

    def _bounds(self, block: Block, bounds: Floats, scores: Floats, places: Integers, found: Integers, ends: Integers) -> Floats:
        """By how much, at most, outputs score above the truth: as the oracle bounds them, never below what was found."""
        truths = [float(scores[places[k] :][self.parts[block.first + k]].sum()) for k in range(len(bounds))]
        above = bounds - np.array(truths)
        for k in np.flatnonzero(~((block.violations <= above) & (above < np.inf))).tolist():  # False for NaN
            own = scores[places[k] :][found[ends[k] : ends[k + 1]]]
            checked_bound(self.oracle, "argmax_bound_batch", block.first + k, float(bounds[k]), own)
        return np.array(np.maximum(block.violations, above))

    def log_losses(self, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """-log p(y_i | x_i) of every instance, and the gradient of their sum weighed by `shares`; added up in order.

        A map's own `add_spread` adds part by part, and not what differs in order of the features: the last bits are its own.
        """
        values, gradient = np.empty(len(self.inference)), np.zeros(self.features.dim)
        if (add := stand_in(self.features, "add_spread", _FEATURES)) is not None:
            blocks = self.inference.in_blocks(partial(self._errors, w), 0, len(values), self._jobs("marginals_batch"))
            for first, places, found, _, error in blocks:
                values[first : first + len(found)] = found
                for i, (a, b) in enumerate(pairwise(places.tolist()), first):
                    add(i, error[a:b], -float(shares[i]), gradient)
            return values, gradient
        if stand_in(self.oracle, "marginals_batch", ("marginals", "n_parts")) is None:
            return super().log_losses(w, shares)
        for block, here in added(gradient, self._soft_blocks(w), -shares, 0, self.inference.n_jobs):
            values[here] = block.violations
        return values, gradient

    def _soft_blocks(self, w: Vector) -> Iterator[Block]:
        """phi(x_i, y_i) - E[phi(x_i, y)], with -log p(y_i | x_i) as the violation and no loss, of all instances, in order."""

        def block(*given: Any) -> Block:
            first, places, values, scores, error = self._errors(w, *given)
            on = np.flatnonzero(error)
            ends = np.searchsorted(on, places)
            parts = on - np.repeat(places[:-1], np.diff(ends))
            gaps, sizes = np.zeros((2, len(values)))
            kernels().weigh_each(scores, on, error[on], ends, gaps, gaps, sizes, DRIFT)
            _, found = checked_block(self.features, w, first, parts, error[on], ends, gaps, sizes)
            return Block(first, np.zeros(len(values)), values, values, *found)

        return self.inference.in_blocks(block, 0, len(self.inference), self._jobs("marginals_batch"))

    def _errors(self, w: Vector, first: int, last: int, places: Integers) -> tuple[int, Integers, Floats, Floats, Floats]:
        """(first, places, -log p(y_i | x_i), part scores, the true part counts less the expected ones: dense) of a block."""
        check_fits(16 * int(places[-1]), f"the marginals of sample {first} with {places[-1]:,} parts")
        scores = self.inference.score_block(w, 1.0, first, last, places)
        log_zs, mu = self.inference.sums_of_block(scores, first, last, places)
        lengths = np.diff(self.ends[first : last + 1])
        at = self.truth[self.ends[first] : self.ends[last]] + np.repeat(places[:-1], lengths)
        pieces = pairwise((self.ends[first : last + 1] - self.ends[first]).tolist())
        truths = np.array([np.add.accumulate(scores[at[a:b]])[-1] if a < b else 0.0 for a, b in pieces])
        for k in np.flatnonzero(~(log_zs - truths > doubtful(0.0))).tolist():
            self.soft(w, first + k)
        error = -mu
        np.add.at(error, at, 1.0)
        return first, places, np.maximum(log_zs - truths, 0.0), scores, error


def checked_block(
    features: FeatureMap, w: Vector, first: int, parts: Integers, counts: Floats, ends: Integers, gaps: Floats, sizes: Floats
) -> tuple[Floats, tuple[Integers, Floats, Integers]]:
    """(products with w, `adjoint_block`); OracleError for a product that is not its gap, which is what its parts score."""
    indices, values, at = adjoint_block(features, first, parts, counts, ends)
    products = np.empty(len(gaps))
    if kernels().weigh_each(w, indices, values, at, products, gaps, sizes, DRIFT):
        for k in np.flatnonzero(~(abs(gaps - products) <= DRIFT * sizes)).tolist():  # True for NaN
            mu, phi = slice(ends[k], ends[k + 1]), SparseVector(indices[at[k] : at[k + 1]], values[at[k] : at[k + 1]])
            refuse_inconsistent(features, first + k, (parts[mu], counts[mu]), (float(gaps[k]), float(sizes[k])), phi, w)
    return products, (indices, values, at)


def adjoint_block(
    features: FeatureMap, first: int, parts: Integers, counts: Floats, ends: Integers
) -> tuple[Integers, Floats, Integers]:
    """features.adjoint of the instances from `first` on, flat: (indices, values, offsets). Parts ascend within an instance.

    This is the only caller of a map's own `adjoint_block`; without one, or where a subclass has changed `adjoint`, it loops.
    """
    if (block := stand_in(features, "adjoint_block", _FEATURES)) is not None:
        return block(first, parts, counts, ends)
    pieces: list[SparseVector] = []
    for k, (a, b) in enumerate(pairwise(ends.tolist())):
        try:
            pieces.append(features.adjoint(first + k, parts[a:b], counts[a:b]))
        except Exception as error:
            raise blamed(error, first + k, features, "adjoint") from error
    indices = np.concatenate([np.empty(0, np.int64), *(piece.indices for piece in pieces)])
    values = np.concatenate([np.empty(0), *(piece.values for piece in pieces)])
    return indices, values, ends_of(np.array([len(piece.indices) for piece in pieces], dtype=np.int64))
