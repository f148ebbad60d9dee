"""Oracles that lie with what they have besides argmax: bounds, marginals, searches for slack, projections."""

from itertools import count, pairwise
from typing import Any

import numpy as np
from lies_of_oracles import OTHERS, SINGLE, SOME, best
from lies_runs import plant
from lies_world import Bounded, ByLoss, Rich, World

LOG, SLACK = World("log"), World("slack")
LOGS = ("oeg", "lbfgs", "bmrm", "ls_bmrm", "sgd")

# bounds


@plant("oracles", "oracle", *SOME, *OTHERS)
class BoundIsNaN(Bounded):
    """The bound is no number: the solver ran out of time before it had one."""

    def argmax_bound(self, scores: Any, shape: Any) -> Any:
        return np.flatnonzero(scores > 0.0)[:2], float("nan")


@plant("oracles", "oracle", *SOME, *OTHERS)
class BoundIsNaNAtTimes(Bounded):
    """One bound of ten is no number, where the search was cut short."""

    def __init__(self) -> None:
        self.calls = count()

    def argmax_bound(self, scores: Any, shape: Any) -> Any:
        if next(self.calls) % 10 == 9:
            return np.flatnonzero(scores > 0.0)[:1], float("nan")
        return super().argmax_bound(scores, shape)


@plant("oracles", "oracle", *SOME, *OTHERS)
class BoundIsInfinite(Bounded):
    """The bound is infinite."""

    def argmax_bound(self, scores: Any, shape: Any) -> Any:
        return np.flatnonzero(scores > 0.0)[:2], float("inf")


@plant("oracles", "oracle", *SOME, *OTHERS)
class BoundBelowTheFound(Bounded):
    """The bound is lower by one than the output that came with it."""

    def argmax_bound(self, scores: Any, shape: Any) -> Any:
        found, bound = super().argmax_bound(scores, shape)
        return found, bound - 1.0


@plant("oracles", "oracle", *SOME, *OTHERS)
class BoundIsTheFound(Bounded):
    """A greedy output, with its own score as the bound."""

    def argmax_bound(self, scores: Any, shape: Any) -> Any:
        found = np.flatnonzero(scores > 0.0)[:2]
        return found, float(scores[found].sum())

    def argmax(self, scores: Any, shape: Any) -> Any:
        return np.flatnonzero(scores > 0.0)[:2]


@plant("oracles", "oracle", *SOME, *OTHERS, world=SINGLE)
class BoundOfSingles(Bounded):
    """Outputs of two items are neither found nor counted in the bound, and no true output has two."""

    def argmax_bound(self, scores: Any, shape: Any) -> Any:
        found = best(scores)[:0] if scores.max() <= 0.0 else np.array([int(scores.argmax())])
        return found, float(scores[found].sum())

    def argmax(self, scores: Any, shape: Any) -> Any:
        return self.argmax_bound(scores, shape)[0]


@plant("oracles", "oracle", *SOME, *OTHERS)
class BoundsOfBatchesAreTheFound(Bounded):
    """In batches the output is greedy, and the bound its own score; alone both are right."""

    def argmax_bound_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        own = [scores[a:b] for a, b in pairwise(offsets)]
        found = [np.flatnonzero(one > 0.0)[:2] for one in own]
        bounds = np.array([float(one[y].sum()) for one, y in zip(own, found, strict=True)])
        return np.concatenate([*found, np.empty(0, np.int64)]), np.cumsum([0, *map(len, found)]), bounds


@plant("oracles", "oracle", *SOME, *OTHERS)
class NaNBoundsInBatches(Bounded):
    """In batches greedy outputs come without bounds: NaN."""

    def argmax_bound_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        found = [np.flatnonzero(scores[a:b] > 0.0)[:2] for a, b in pairwise(offsets)]
        return np.concatenate([*found, np.empty(0, np.int64)]), np.cumsum([0, *map(len, found)]), np.full(len(shapes), np.nan)


# marginals


@plant("oracles", "oracle", *LOGS, world=LOG)
class MaxForLogSumExp(Rich):
    """log_z is the largest score, and mu the best output."""

    marginals_batch = None  # type: ignore[assignment]

    def marginals(self, scores: Any, shape: Any) -> Any:
        found = best(scores)
        return float(scores[found].sum()), np.bincount(found, minlength=shape[0]).astype(float)


@plant("oracles", "oracle", *LOGS, world=LOG)
class LogZTooLarge(Rich):
    """log_z + .3."""

    def marginals(self, scores: Any, shape: Any) -> Any:
        log_z, mu = super().marginals(scores, shape)
        return log_z + 0.3, mu


@plant("oracles", "oracle", *LOGS, world=LOG)
class LogZTooSmall(Rich):
    """log_z - .3."""

    def marginals(self, scores: Any, shape: Any) -> Any:
        log_z, mu = super().marginals(scores, shape)
        return log_z - 0.3, mu


class Leaves(Rich):
    """Sums over some of the outputs."""

    sizes: tuple[int, ...] = (0, 1, 2)

    def listed(self, shape: Any) -> Any:
        outputs, counts = super().listed(shape)
        at = [k for k, y in enumerate(outputs) if len(y) in self.sizes]
        return [outputs[k] for k in at], counts[at]


@plant("oracles", "oracle", *LOGS, world=LOG)
class EmptyForgotten(Leaves):
    """Marginals and log_z leave out the empty output."""

    sizes = (1, 2)


@plant("oracles", "oracle", *LOGS, world=World("log", single=True))
class TwoForgotten(Leaves):
    """Marginals and log_z leave out the outputs of two items, and no true output has two."""

    sizes = (0, 1)


@plant("oracles", "oracle", *LOGS, world=LOG)
class MarginalsBatchOff(Rich):
    """From the ninth instance of a batch on, log_z is too large by .05."""

    def marginals_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        log_zs, mu = super().marginals_batch(scores, offsets, shapes)
        return log_zs + 0.05 * (np.arange(len(shapes)) >= 8), mu


@plant("oracles", "oracle", *LOGS, world=LOG)
class MarginalsBatchLow(Rich):
    """From the ninth instance of a batch on, log_z is too small by .05."""

    def marginals_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        log_zs, mu = super().marginals_batch(scores, offsets, shapes)
        return log_zs - 0.05 * (np.arange(len(shapes)) >= 8), mu


@plant("oracles", "oracle", *LOGS, world=LOG)
class MarginalsOfHalfTheScores(Rich):
    """mu belongs to half the scores, log_z to all."""

    marginals_batch = None  # type: ignore[assignment]

    def marginals(self, scores: Any, shape: Any) -> Any:
        return super().marginals(scores, shape)[0], super().marginals(0.5 * scores, shape)[1]


@plant("oracles", "oracle", *LOGS, world=LOG)
class MarginalsTooSmall(Rich):
    """mu is too small by a tenth."""

    def marginals(self, scores: Any, shape: Any) -> Any:
        log_z, mu = super().marginals(scores, shape)
        return log_z, 0.9 * mu


@plant("oracles", "oracle", *LOGS, world=LOG)
class MarginalsWrongForOneShape(Rich):
    """log_z and mu are the largest score and the best output for the shape of instance 17."""

    marginals_batch = None  # type: ignore[assignment]

    def marginals(self, scores: Any, shape: Any) -> Any:
        if shape[1] != 17:
            return super().marginals(scores, shape)
        found = best(scores)
        return float(scores[found].sum()), np.bincount(found, minlength=shape[0]).astype(float)


# searches for slack rescaling


@plant("oracles", "oracle", *SOME, "one_slack", "bmrm", world=SLACK)
class ProductIsArgmax(Rich):
    """argmax_product looks at the scores alone."""

    def argmax_product(self, scores: Any, costs: Any, offsets: Any, shape: Any) -> Any:
        return best(scores)


@plant("oracles", "oracle", *SOME, "one_slack", "bmrm", world=SLACK)
class ProductNeverTwo(Leaves):
    """argmax_product misses outputs of two items."""

    sizes = (0, 1)
    marginals = marginals_batch = kbest = None  # type: ignore[assignment]


@plant("oracles", "oracle", *SOME, "one_slack", "bmrm", world=SLACK)
class ProductWithoutOffsets(Rich):
    """argmax_product leaves the offsets out."""

    def argmax_product(self, scores: Any, costs: Any, offsets: Any, shape: Any) -> Any:
        return super().argmax_product(scores, costs, np.array([1.0, 1.0]), shape)


class Levels(ByLoss):
    """Changes what is said of the levels of the loss."""

    def changed(self, values: Any, scored: Any, labels: Any) -> Any:
        return values, scored, labels

    def argmax_per_loss(self, scores: Any, costs: Any, shape: Any) -> Any:
        return self.changed(*super().argmax_per_loss(scores, costs, shape))


@plant("oracles", "oracle", *SOME, "one_slack", "bmrm", world=SLACK)
class LevelsTooSmall(Levels):
    """argmax_per_loss says scores that are too small by .3."""

    def changed(self, values: Any, scored: Any, labels: Any) -> Any:
        return values, scored - 0.3, labels


@plant("oracles", "oracle", *SOME, "one_slack", "bmrm", world=SLACK)
class LargestLossMissed(Levels):
    """argmax_per_loss leaves out the largest loss."""

    def changed(self, values: Any, scored: Any, labels: Any) -> Any:
        return values[:-1], scored[:-1], labels[:-1]


@plant("oracles", "oracle", *SOME, "one_slack", "bmrm", world=SLACK)
class ListsMissTheSecond(Rich):
    """kbest leaves out the second best output."""

    argmax_product = enumerate = None  # type: ignore[assignment]

    def kbest(self, scores: Any, shape: Any, k: int) -> Any:
        found = super().kbest(scores, shape, k + 1)
        return found[:1] + found[2:]


# projections


@plant("oracles", "oracle", "projected_ascent", "pragam")
class ProjectsOutside(Rich):
    """The projection forgets that at most two items are chosen."""

    def project(self, point: Any, shape: Any) -> Any:
        return np.clip(point, 0.0, 1.0)


@plant("oracles", "oracle", "projected_ascent", "pragam")
class ProjectsToOutputs(Rich):
    """The projection is the best output, a corner of the hull."""

    def project(self, point: Any, shape: Any) -> Any:
        return np.bincount(best(point), minlength=len(point)).astype(float)


@plant("oracles", "oracle", "projected_ascent", "pragam")
class ProjectsTooFar(Rich):
    """The projection is farther from the middle of the hull by a tenth."""

    def project(self, point: Any, shape: Any) -> Any:
        return 0.3 + 1.1 * (super().project(point, shape) - 0.3)
