"""Feature maps that lie: scores, adjoints, calls for blocks and sums, data that change."""

from itertools import count
from typing import Any

import numpy as np
from lies_runs import plant
from lies_world import FastRows, OwnRows, Rich, World

from structpred.core.sparse import SparseVector, coalesced

LOG = World("log")
SOME = ("bcfw", "n_slack", "one_slack", "sgd", "bmrm")
LOGS = ("lbfgs", "oeg", "bmrm", "sgd")


def margin(*trainers: str, **others: Any) -> Any:
    """Planted under the margin, with an oracle that has no batches unless one is named."""
    return plant("feature maps", "features", *(trainers or SOME), **others)


def log_loss(*trainers: str) -> Any:
    """Planted under the log loss, with an oracle that has marginals and their batches."""
    return plant("feature maps", "features", *(trainers or LOGS), world=LOG, oracle=Rich)


def blocks(*trainers: str) -> Any:
    """Planted under the margin with an oracle that answers in batches."""
    return plant("feature maps", "features", *(trainers or SOME), oracle=Rich)


class Scaled(OwnRows):
    """The adjoint is wrong by a factor for some instances."""

    factor = 1.0

    def lies(self, i: int) -> bool:
        return True

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        found = super().adjoint(i, parts, counts)
        return SparseVector(found.indices, self.factor * found.values) if self.lies(i) else found


@log_loss()
@margin()
class AdjointTooSmall(Scaled):
    """The adjoint is too small by a tenth."""

    factor = 0.9


@log_loss()
@margin()
class AdjointDoubled(Scaled):
    """The adjoint is doubled."""

    factor = 2.0


@margin()
class AdjointOffByLittle(Scaled):
    """The adjoint is too large by 1e-3."""

    factor = 1.001


@log_loss()
@margin()
class AdjointDoubledForOne(Scaled):
    """The adjoint is doubled for instance 33 of 40."""

    factor = 2.0

    def lies(self, i: int) -> bool:
        return i == 33


@margin()
class AdjointForgetsAColumn(OwnRows):
    """The adjoint leaves the last column out."""

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        found = super().adjoint(i, parts, counts)
        return SparseVector(found.indices[found.indices < 3], found.values[found.indices < 3])


@margin()
class AdjointSwapsColumns(OwnRows):
    """The adjoint has its first two columns swapped."""

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        return coalesced(np.array([1, 0, 2, 3]), counts @ self.rows[i][parts])


@margin()
class AdjointOfAbsoluteCounts(OwnRows):
    """The adjoint takes counts without their sign."""

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        return super().adjoint(i, parts, np.abs(counts))


@log_loss()
@margin()
class AdjointOfHalfPrecision(OwnRows):
    """The adjoint is computed in half precision."""

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        found = super().adjoint(i, parts, counts)
        return coalesced(found.indices, found.values.astype(np.float16).astype(np.float64))


@margin()
class NonsenseForOne(OwnRows):
    """The adjoint of instance 3 has an index beyond dim, and one twice."""

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        found = super().adjoint(i, parts, counts)
        return SparseVector(np.array([0, 0, 2, 40]), counts @ self.rows[i][parts]) if i == 3 else found


@margin()
class AdjointOfTheNeighbour(OwnRows):
    """The adjoint is that of the next instance for one of ten."""

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        return super().adjoint(min(i + (i % 10 == 4), len(self) - 1), parts, counts)


@log_loss()
@margin()
class Rectified(OwnRows):
    """Scores below zero are zero: the map is not linear."""

    def scores(self, w: Any, i: int) -> Any:
        return np.maximum(super().scores(w, i), 0.0)


@margin()
class Squashed(OwnRows):
    """Scores go through a tanh."""

    def scores(self, w: Any, i: int) -> Any:
        return 3.0 * np.tanh(super().scores(w, i) / 3.0)


@log_loss()
@margin()
class ConstantAdded(OwnRows):
    """Scores have a constant that no weight explains."""

    def scores(self, w: Any, i: int) -> Any:
        return super().scores(w, i) + np.array([0.5, 0.0, -0.5, 0.0, 0.3])


@log_loss()
@margin()
class DropoutInScores(OwnRows):
    """Dropout was left on: one score of ten is dropped, another one each time."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        self.rng = np.random.default_rng(0)

    def scores(self, w: Any, i: int) -> Any:
        return super().scores(w, i) * (self.rng.random(5) > 0.1)


@margin()
class DropoutInAdjoint(OwnRows):
    """Dropout was left on in the adjoint: one value of ten is dropped."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        self.rng = np.random.default_rng(0)

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        found = super().adjoint(i, parts, counts)
        return coalesced(found.indices, found.values * (self.rng.random(len(found.values)) > 0.1))


@log_loss("lbfgs", "bmrm")
@margin()
class DataThatChange(OwnRows):
    """After 300 calls the rows are others: someone writes into the array."""

    def __init__(self, rows: Any) -> None:
        super().__init__(rows)
        self.calls = count()

    def scores(self, w: Any, i: int) -> Any:
        if next(self.calls) == 300:
            self.rows[:20] *= 1.5
        return super().scores(w, i)


@margin()
class ScoresOfTheNeighbour(OwnRows):
    """The scores of instance 12 are those of instance 13."""

    def scores(self, w: Any, i: int) -> Any:
        return super().scores(w, i + (i == 12))


@margin()
class ScoresShifted(OwnRows):
    """Scores are off by one part."""

    def scores(self, w: Any, i: int) -> Any:
        return np.roll(super().scores(w, i), 1)


@margin()
class ScoresScaled(OwnRows):
    """Scores are divided by their largest size where it is above 3."""

    def scores(self, w: Any, i: int) -> Any:
        found = super().scores(w, i)
        return found * min(1.0, 3.0 / max(float(np.abs(found).max()), 1e-9))


@blocks()
class BlockScoresTripled(FastRows):
    """score_block is three times too large."""

    def score_block(self, w: Any, scale: float, start: int, stop: int, places: Any, out: Any) -> None:
        super().score_block(w, 3.0 * scale, start, stop, places, out)


@blocks()
class BlockScoresOfOneScaled(FastRows):
    """score_block gives instance 5 the scores of one and a half times the weights."""

    def score_block(self, w: Any, scale: float, start: int, stop: int, places: Any, out: Any) -> None:
        super().score_block(w, scale, start, stop, places, out)
        if start <= 5 < stop:
            out[places[5 - start] : places[6 - start]] *= 1.5


@log_loss()
@blocks()
class BlockAdjointHalved(FastRows):
    """adjoint_block is half of what it should be."""

    def adjoint_block(self, start: int, parts: Any, counts: Any, ends: Any) -> Any:
        indices, values, ends = super().adjoint_block(start, parts, counts, ends)
        return indices, 0.5 * values, ends


@blocks()
class BlockAdjointOfTheLast(FastRows):
    """adjoint_block is too large by a half for the last instance of a block."""

    def adjoint_block(self, start: int, parts: Any, counts: Any, ends: Any) -> Any:
        indices, values, ends = super().adjoint_block(start, parts, counts, ends)
        values[ends[-2] :] *= 1.5
        return indices, values, ends


@log_loss("oeg")
class TotalHalved(FastRows):
    """`total` is half of what it should be."""

    def total(self, mu: Any, places: Any, coefs: Any) -> Any:
        return 0.5 * super().total(mu, places, coefs)


@log_loss("oeg")
class SpreadHalved(FastRows):
    """`spread` writes half of what it should."""

    def spread(self, i: int, mu: Any, scratch: Any) -> float:
        return super().spread(i, 0.5 * mu, scratch)


@log_loss("oeg")
class NormForgotten(FastRows):
    """`spread` returns the norm in place of its square."""

    def spread(self, i: int, mu: Any, scratch: Any) -> float:
        return float(np.sqrt(super().spread(i, mu, scratch)))


@log_loss("oeg")
class FlushedTwice(FastRows):
    """`flush` adds twice what it should."""

    def flush(self, i: int, scratch: Any, coef: float, w: Any) -> None:
        super().flush(i, scratch, 2.0 * coef, w)


@plant("feature maps", "features", "pragam", "projected_ascent", oracle=Rich)
class TotalWithoutCoefficients(FastRows):
    """`total` leaves the coefficients of instances out."""

    def total(self, mu: Any, places: Any, coefs: Any) -> Any:
        return super().total(mu, places, np.full(len(self), float(np.mean(coefs)) * 0.7))
