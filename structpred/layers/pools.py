"""Losses over a pool of outputs for each instance: contrast with gold, or learn the order of the pool.

v_k are the part counts of the K outputs of an instance's pool, c its true scores, g its gold.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Oracle
from structpred.core.own_code import asked, asked_parts
from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.layers.loss import Given, Loss, Terms, keys_of
from structpred.layers.record import Scores
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import ends_of
from structpred.runtime.settings import checked_whole
from structpred.task.regret import packed_labels

_kernels = later("structpred.layers._record_kernels")


class Pool(NamedTuple):
    """The outputs of all instances, one pool behind the other: those of instance i are ends[i]..ends[i + 1] - 1.

    owners: the instance of each output. scores, truths: theta . v and c . v of each. sizes: how many an instance has.
    """

    scores: Floats
    truths: Floats
    owners: Integers
    ends: Integers

    @property
    def sizes(self) -> Floats:
        """K of each instance."""
        return np.diff(self.ends).astype(np.float64)

    def sums(self, numbers: Floats) -> Floats:
        """The sum over each pool, in order."""
        return np.bincount(self.owners, numbers, len(self.ends) - 1).astype(np.float64, copy=False)

    def first_best(self, numbers: Floats) -> Integers:
        """For each pool the place of its first largest number."""
        return np.array([a + int(numbers[a:b].argmax()) for a, b in zip(self.ends[:-1], self.ends[1:], strict=True)], np.int64)

    def softmax(self, numbers: Floats) -> tuple[Floats, Floats]:
        """(softmax within each pool, logarithm of its denominator)."""
        top = np.maximum.reduceat(numbers, self.ends[:-1]) if len(self.ends) > 1 else np.empty(0)
        weights = np.exp(numbers - top[self.owners])
        total = self.sums(weights)
        return weights / total[self.owners], top + np.log(total)


class PoolLoss(Loss):
    """The parent: the call is given a pool=, a list of outputs for each instance, or the loss makes one.

    Its own pool are the `size` best outputs at the true scores where the oracle has `kbest`. Otherwise it is what training meets:
    the best output at the true scores, and the best ones at theta of the calls until there are `size`; with ids= it is kept from
    call to call, and then values depend on the calls before.

    Parameters
    ----------
    oracle : Oracle
    size : int
        Outputs an instance, at most.
    """

    nonnegative = False
    takes = ("gold", "true_scores")

    def __init__(self, oracle: Oracle, *, size: int = 10) -> None:
        super().__init__(oracle)
        self.size = checked_whole(size, "size", 2)
        self._pools: dict[tuple[int, bytes], dict[bytes, Labels]] = {}

    @abstractmethod
    def weigh(self, pool: Pool, gold_scores: Floats) -> tuple[Floats, Floats, float]:
        """(values (n,), their derivatives by the scores of the outputs, and by -theta . g); gold_scores are theta . g."""

    def terms(self, batch: Scores, theta: Floats, given: Given) -> Terms:
        """The loss of the pools' scores, and its gradient by the chain rule."""
        outputs = given.pool if given.pool is not None else self._own(batch, theta, given)
        found: list[Integers] = []
        for i, (pool, shape) in enumerate(zip(outputs, batch.shapes, strict=True)):
            if not len(pool):
                raise DataError(f"sample {i}: its pool has no output")
            found += [asked_parts(batch.oracle, i, np.asarray(own), shape) for own in pool]
        parts, part_ends = packed_labels(found)
        ends = ends_of(np.array([len(pool) for pool in outputs], dtype=np.int64))
        owners = np.repeat(np.arange(len(batch), dtype=np.int64), np.diff(ends))
        scores, truths = np.empty(len(owners)), np.empty(len(owners))
        for numbers, out in ((theta, scores), (given.truth, truths)):
            _kernels().score_outputs(numbers, batch.offsets, parts, part_ends, owners, out)
        values, weights, share = self.weigh(Pool(scores, truths, owners, ends), batch.dots(theta, given.target))
        gradient = -share * given.target
        _kernels().add_outputs(weights, batch.offsets, parts, part_ends, owners, gradient)
        return Terms(values, gradient, np.zeros(len(batch)))

    def _own(self, batch: Scores, theta: Floats, given: Given) -> list[list[Labels]]:
        """The loss's own pools, new ones filled, those that are not full with what is best at theta."""
        keys = keys_of(batch, given.ids, given.truth)
        pools = [self._pools.get(key, {}) if given.kept else {} for key in keys]
        new = np.array([i for i, pool in enumerate(pools) if not pool], dtype=np.int64)
        if callable(getattr(self.oracle, "kbest", None)):
            for i in new.tolist():
                truth = given.truth[batch.offsets[i] : batch.offsets[i + 1]]
                listed = asked(i, self.oracle, "kbest", truth, batch.shapes[i], self.size)
                pools[i].update((own.tobytes(), own.copy()) for own in listed)
        else:
            self._meet(batch, given.truth, new, pools)
            self._meet(batch, theta, np.array([i for i, own in enumerate(pools) if len(own) < self.size], np.int64), pools)
        if given.kept:
            self._pools.update(zip(keys, pools, strict=True))
        return [list(pool.values()) for pool in pools]

    def get_state(self) -> dict[str, Any]:
        """The pools that are kept for ids, flat: each with its id and the digest of its true scores."""
        flat = [own for pool in self._pools.values() for own in pool.values()]
        counts = ([len(pool) for pool in self._pools.values()], [len(own) for own in flat], [key for key, _ in self._pools])
        names = ("sizes", "lengths", "ids")
        arrays = {name: np.array(own, dtype=np.int64) for name, own in zip(names, counts, strict=True)}
        labels = np.concatenate([np.empty(0, np.int64), *flat])
        return {**arrays, "labels": labels, "digests": [digest.hex() for _, digest in self._pools]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take them up again; their outputs are checked when they are used."""
        self._pools = {}
        if not state:
            return
        ids, sizes, lengths = (np.asarray(state[name], dtype=np.int64).tolist() for name in ("ids", "sizes", "lengths"))
        labels, digests = np.asarray(state["labels"], dtype=np.int64), [bytes.fromhex(text) for text in state["digests"]]
        if not (len(ids) == len(sizes) == len(digests) and sum(sizes) == len(lengths) and sum(lengths) == len(labels)):
            raise DataError("saved pools of outputs: their numbers do not fit together")
        outputs = iter(np.split(labels, np.cumsum(lengths)[:-1]) if lengths else [])
        pools = [[next(outputs) for _ in range(size)] for size in sizes]
        self._pools = {
            key: {own.tobytes(): own.copy() for own in pool}
            for key, pool in zip(zip(ids, digests, strict=True), pools, strict=True)
        }

    def _meet(self, batch: Scores, scores: Floats, rows: Integers, pools: list[dict[bytes, Labels]]) -> None:
        """Put the best outputs of these instances into their pools."""
        if len(rows):
            some, places = batch.take(rows)
            for i, own in zip(rows.tolist(), some.best(scores[places]).outputs, strict=True):
                pools[i].setdefault(own.tobytes(), own.copy())


class NCE(PoolLoss):
    """mean_k theta . (v_k - g), noise-contrastive (Mulamba et al. 2021).

    It is linear in theta, so it has no minimum: scores only grow. centred: mean_k (theta - c) . (v_k - g) instead,
    which is 0 at theta = c; it is linear, too, and needs a model that cannot follow it for ever.
    """

    name = "nce"
    smooth = True

    def __init__(self, oracle: Oracle, *, size: int = 10, centred: bool = False) -> None:
        super().__init__(oracle, size=size)
        self.centred = bool(centred)

    def weigh(self, pool: Pool, gold_scores: Floats) -> tuple[Floats, Floats, float]:
        """Means."""
        values = pool.sums(pool.scores) / pool.sizes - gold_scores
        if self.centred:
            values -= pool.sums(pool.truths) / pool.sizes - pool.truths[pool.first_best(pool.truths)]
        return values, 1.0 / pool.sizes[pool.owners], 1.0


class ContrastiveMAP(PoolLoss):
    """max_k theta . (v_k - g): the perceptron loss over the pool (Mulamba et al. 2021)."""

    name = "contrastive_map"

    def weigh(self, pool: Pool, gold_scores: Floats) -> tuple[Floats, Floats, float]:
        """The largest."""
        best = pool.first_best(pool.scores)
        weights = np.zeros(len(pool.scores))
        weights[best] = 1.0
        return pool.scores[best] - gold_scores, weights, 1.0


class PointwiseRanking(PoolLoss):
    """mean_k ((theta - c) . v_k)^2: least squares of the outputs' worth (Mandi et al. 2022)."""

    name = "pointwise"
    smooth, nonnegative = True, True

    def weigh(self, pool: Pool, gold_scores: Floats) -> tuple[Floats, Floats, float]:
        """Squares."""
        errors = pool.scores - pool.truths
        return pool.sums(errors**2) / pool.sizes, 2.0 * errors / pool.sizes[pool.owners], 0.0


class PairwiseRanking(PoolLoss):
    """1/(K-1) sum_k [theta . (v_k - v_best)]_+, v_best the truly best of the pool (Mandi et al. 2022)."""

    name = "pairwise"
    nonnegative = True

    def weigh(self, pool: Pool, gold_scores: Floats) -> tuple[Floats, Floats, float]:
        """Those that score more than the best."""
        best = pool.first_best(pool.truths)
        excess = np.maximum(pool.scores - pool.scores[best][pool.owners], 0.0)
        share = 1.0 / np.maximum(pool.sizes - 1.0, 1.0)
        weights = np.where(excess > 0.0, share[pool.owners], 0.0)
        values = share * pool.sums(excess)
        weights[best] = -pool.sums(weights)
        return values, weights, 0.0


class ListwiseRanking(PoolLoss):
    """The cross entropy of softmax(c . v) and softmax(theta . v) over the pool (Mandi et al. 2022)."""

    name = "listwise"
    smooth, nonnegative = True, True

    def weigh(self, pool: Pool, gold_scores: Floats) -> tuple[Floats, Floats, float]:
        """The cross entropy; its derivative is the difference of the two distributions."""
        true, _ = pool.softmax(pool.truths)
        predicted, log_total = pool.softmax(pool.scores)
        return log_total - pool.sums(true * pool.scores), predicted - true, 0.0
