"""Inference joins features and an oracle over many instances: scores, the best outputs, marginals, the k best.

All of prediction and training passes through here: chunks, fixed scores, threads and the naming of samples are only here.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from structpred.core.feature_map import FeatureMap
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.group_scales import GroupScales, Scale, scaled
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.own_code import asked, asked_parts, blamed, of_sample
from structpred.core.packing import argmax_batch, argmax_bound_batch, check_finite, checked_labels, marginals_batch
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError, InfeasibleError, OracleError
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.threads import run_ranges, split_evenly
from structpred.task.fast import welds
from structpred.task.instance_subset import take_features
from structpred.task.steps import Pair

_kernels = later("structpred.task.fast._part_kernels")

#: instances and part scores of a block, which is scored and then decoded: its scores stay in the cache
CHUNK, BLOCK = 256, 1 << 15
#: blocks for each of several threads, and part scores that are not worth a thread of their own
PIECES, TINY = 4, 1 << 11


class Inference:
    """What the weights say of each instance.

    Parameters
    ----------
    features: the joint features of n instances.
    oracle: the oracle of their outputs.
    shapes: the shape of each instance.
    n_jobs: threads of `decode`, used where the oracle has `argmax_batch`; the results do not depend on their number.
    compiled: whether compiled code may replace calls one by one in training and for pairs; the results are the same.

    Examples
    --------
    >>> from structpred.features.parts import PartFeatures
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> labels, ends = Inference(PartFeatures([np.eye(2)] * 3), MulticlassOracle(), [(2,)] * 3).decode(np.array([0.0, 1.0]))
    >>> labels.tolist(), ends.tolist()
    ([1, 1, 1], [0, 1, 2, 3])
    """

    def __init__(
        self, features: FeatureMap, oracle: Oracle, shapes: Sequence[Shape], *, n_jobs: int = 1, compiled: bool = True
    ) -> None:
        self.features, self.oracle, self.shapes, self.n_jobs = features, oracle, list(shapes), n_jobs
        self.compiled = compiled
        self.bounded = callable(getattr(oracle, "argmax_bound", None))
        self.starts: Callable[..., tuple[Labels, Integers, Floats]] | None = None  # in steps of a run: trainers/running/starts.py
        self._block_of_one = np.zeros(2, np.int64)
        self._in_blocks = stand_in(features, "score_block", ("scores", "fixed_scores", "n_parts")) is not None
        self.pair: Pair | None = self.welded("pair")

    def __len__(self) -> int:
        """The number of instances."""
        return len(self.shapes)

    def welded(self, work: str, *more: Any) -> Any:
        """The code for this work that was written for features and oracle of these kinds; None where there is none."""
        meets = self.compiled and self.shapes and not self.oracle.tolerance
        return welds.find(work, self.features, self.oracle, *more) if meets else None

    def take(self, rows: Integers) -> "Inference":
        """The inference of these instances, in this order."""
        features, shapes = take_features(self.features, rows), [self.shapes[i] for i in rows.tolist()]
        new = Inference(features, self.oracle, shapes, n_jobs=self.n_jobs, compiled=self.compiled)
        new.__dict__["sizes"] = self.sizes[rows]
        return new

    @cached_property
    def sizes(self) -> Integers:
        """The number of parts of each instance."""
        return np.array([self.features.n_parts(i) for i in range(len(self))], dtype=np.int64)

    def check_shapes(self) -> None:
        """DataError, naming the sample, where shapes and features do not fit each other."""
        if len(self.features) != len(self.shapes):
            raise DataError(f"X has {len(self.features)} samples but there are {len(self.shapes)} shapes")
        name = type(self.oracle).__name__
        for i, shape in enumerate(self.shapes):
            try:
                n_parts = self.oracle.n_parts(shape)
            except Exception as error:
                raise DataError(f"sample {i}: {name}.n_parts refuses the shape {shape!r}: {error!r}") from error
            if n_parts != self.features.n_parts(i):
                raise DataError(
                    f"sample {i}: shape {shape} has {n_parts} parts, but the features have {self.features.n_parts(i)} rows"
                )

    def scores(self, w: Vector, i: int, scale: Scale = 1.0) -> Scores:
        """Part scores of instance i at the weights scale * w, fixed scores included; DataError if one is not finite."""
        return part_scores(self.features, w, i, scale)

    def augmented(self, w: Vector, i: int, scale: Scale, costs: Floats, loss_weight: float) -> Floats:
        """scores(w, i, scale) + loss_weight * costs in a new array, without a look at each number twice."""
        augment, size = _kernels().augment, len(costs)
        if self._in_blocks and not isinstance(scale, GroupScales):
            scores = out = np.empty(size)
            places = self._block_of_one
            places[1] = size
            self.features.score_block(w, scale, i, i + 1, places, out)  # type: ignore[attr-defined]
        else:
            scores, out = np.ascontiguousarray(part_scores(self.features, w, i, scale), dtype=np.float64), np.empty(size)
        if not augment(scores, costs, loss_weight, out):
            self.scores(w, i, scale)  # says which
        return out

    def best(self, scores: Scores, i: int) -> tuple[Labels, float | None]:
        """The oracle's best output of instance i at given part scores; and its bound, where the oracle gives bounds."""
        try:
            if not self.bounded:
                labels = checked_labels(self.oracle.argmax(scores, self.shapes[i]), self.oracle)
                if not self.oracle.tolerance:
                    return labels, None
                found = float(scores[asked_parts(self.oracle, i, labels, self.shapes[i])].sum())
                return labels, found + self.oracle.tolerance * (1.0 + abs(found))
            if self.starts is not None:
                labels, _, bounds = self.starts(scores, i, i + 1, np.array([0, len(scores)]))
                return labels, float(bounds[0])
            labels, bound = self.oracle.argmax_bound(scores, self.shapes[i])  # type: ignore[attr-defined]
            return checked_labels(labels, self.oracle), float(bound)
        except Exception as error:
            raise blamed(error, i, self.oracle, "argmax_bound" if self.bounded else "argmax") from error

    @property
    def scores_blocks(self) -> bool:
        """Whether the features score blocks in one compiled call, which several threads may make at once."""
        return self.compiled and self._in_blocks

    @property
    def batched(self) -> bool:
        """Whether blocks are decoded in one call, which gives what `best` gives one by one."""
        plain = self.compiled and (self.bounded or not self.oracle.tolerance)
        return plain and stand_in(self.oracle, self.batch_method, ("argmax", "argmax_bound", "n_parts")) is not None

    @property
    def batch_method(self) -> str:
        """The oracle's method that decodes a block, if it has it."""
        return "argmax_bound_batch" if self.bounded else "argmax_batch"

    def blocks(self, start: int, stop: int, jobs: int = 1) -> Iterator[tuple[int, int, Integers]]:
        """Instances start..stop-1 in blocks: (first, last + 1, places), instance i from places[i - first] on.

        For several threads there are enough blocks, where they are not tiny, that all threads end at about the same time.
        """
        sizes, begin = self.sizes[start:stop], 0
        most = BLOCK if jobs == 1 else min(BLOCK, max(int(sizes.sum()) // (PIECES * jobs), TINY))
        while begin < len(sizes):
            places = np.concatenate(([0], np.cumsum(sizes[begin : begin + CHUNK])))
            n = max(int(np.searchsorted(places, most, side="right")) - 1, 1)
            yield start + begin, start + begin + n, places[: n + 1]
            begin += n

    def in_blocks(self, call: Callable[[int, int, Integers], Any], start: int, stop: int, jobs: int) -> Iterator[Any]:
        """call(first, last, places) for each block of instances start..stop-1, in order, a few blocks ahead on `jobs` threads."""
        blocks = list(self.blocks(start, stop, jobs))
        ahead = 1 if jobs == 1 else 8 * jobs
        for at in range(0, len(blocks), ahead):
            some = blocks[at : at + ahead]
            found: list[Any] = [None] * len(some)

            def run(a: int, b: int, some: list[Any] = some, found: list[Any] = found) -> None:
                for k in range(a, b):
                    found[k] = call(*some[k])

            run_ranges(run, [(k, k + 1) for k in range(len(some))], jobs)
            yield from found

    def score_block(self, w: Vector, scale: float, first: int, last: int, places: Integers) -> Floats:
        """The part scores of a block, flat, at the weights scale * w, fixed scores included."""
        size = int(places[-1])
        check_fits(8 * size, f"sample {first}: the scores of {size:,} parts")  # more than BLOCK are of one instance
        out = np.empty(size)
        block = stand_in(self.features, "score_block", ("scores", "fixed_scores", "n_parts"))
        if block is not None:
            block(w, scale, first, last, places, out)
            check_finite(out, places, first)
            return out
        for i in range(first, last):
            out[places[i - first] : places[i - first + 1]] = part_scores(self.features, w, i, scale)
        return out

    def best_of_block(self, scores: Scores, first: int, last: int, places: Integers) -> tuple[Labels, Integers, Floats | None]:
        """The best output of each instance of a block: (flat labels, label offsets, and bounds where the oracle gives them for
        blocks). What is raised names the sample.
        """

        def call(scores: Scores, first: int, last: int, places: Integers) -> tuple[Labels, Integers, Floats | None]:
            if self.starts is not None:
                return self.starts(scores, first, last, places)
            if self.bounded and self.batched:
                return argmax_bound_batch(self.oracle, scores, places, self.shapes[first:last])
            return *argmax_batch(self.oracle, scores, places, self.shapes[first:last]), None

        try:
            return call(scores, first, last, places)
        except Exception:
            for i in range(first, last):  # one by one, to say which sample it is
                own = scores[places[i - first] : places[i - first + 1]]
                try:
                    call(own, i, i + 1, np.array([0, len(own)]))
                except Exception as error:
                    raise of_sample(error, i, self.oracle, "argmax") from error
            raise

    def decode(self, w: Vector) -> tuple[Labels, Integers]:
        """The best output of every instance: (flat labels, label offsets). No more scores are held than a block of each thread.

        Raises InfeasibleError, naming the sample, where fixed scores forbid every output.
        """
        if self.pair is not None:
            return self.pair.decode(w, self.n_jobs)
        jobs = self.n_jobs if self.batched else 1  # code of a user's own may not be ready for threads
        blocks = list(self.blocks(0, len(self), jobs))
        found: list[tuple[Labels, Integers]] = [(np.empty(0, np.int64), np.zeros(1, np.int64))] * len(blocks)

        def run(start: int, stop: int) -> None:
            for k in range(start, stop):
                found[k] = self._decoded(w, *blocks[k])

        sizes = np.array([places[-1] for _, _, places in blocks], dtype=np.int64)
        run_ranges(run, split_evenly(sizes, 1 if jobs == 1 else PIECES * jobs), jobs)
        lengths = [np.diff(ends) for _, ends in found]
        labels = np.concatenate([np.empty(0, np.int64), *(labels for labels, _ in found)])
        return labels, np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, np.int64), *lengths]))]).astype(np.int64)

    def _decoded(self, w: Vector, first: int, last: int, places: Integers) -> tuple[Labels, Integers]:
        scores = self.score_block(w, 1.0, first, last, places)
        labels, ends, _ = self.best_of_block(scores, first, last, places)
        if len(scores) and scores.min() <= 0.5 * FORBIDDEN:
            for i in range(first, last):
                k = i - first
                parts = asked(i, self.oracle, "parts", labels[ends[k] : ends[k + 1]], self.shapes[i])
                if len(parts) and scores[places[k] : places[k + 1]][parts].min() <= 0.5 * FORBIDDEN:
                    raise InfeasibleError(f"sample {i}: no {self.oracle.output} satisfies the constraints")
        return labels, ends

    def outputs(self, w: Vector) -> list[Labels]:
        """The best output of every instance, one array each."""
        labels, ends = self.decode(w)
        return np.split(labels, ends[1:-1]) if len(self) else []

    def part_scores(self, w: Vector) -> Iterator[Scores]:
        """The part scores of each instance, one after the other."""
        return (self.scores(w, i) for i in range(len(self)))

    def log_partition(self, scores: Scores, i: int) -> tuple[float, Floats]:
        """(log partition function, expected part counts) of instance i at given part scores."""
        try:
            log_z, mu = self.oracle.marginals(scores, self.shapes[i])  # type: ignore[attr-defined]
            return float(log_z), mu
        except Exception as error:
            raise of_sample(error, i, self.oracle, "marginals") from error

    def sums_of_block(self, scores: Scores, first: int, last: int, places: Integers) -> tuple[Floats, Floats]:
        """(log partition functions, expected part counts, flat) of a block; what is raised names the sample."""
        try:
            return marginals_batch(self.oracle, scores, places, self.shapes[first:last])
        except Exception:
            for i in range(first, last):  # one by one, to say which sample it is
                self.log_partition(scores[places[i - first] : places[i - first + 1]], i)
            raise

    def marginals(self, w: Vector) -> Iterator[Floats]:
        """The expected part counts of each instance; the oracle must have `marginals`."""
        if not self.compiled or stand_in(self.oracle, "marginals_batch", ("marginals", "n_parts")) is None:
            yield from (self.log_partition(theta, i)[1] for i, theta in enumerate(self.part_scores(w)))
            return

        def of_block(first: int, last: int, places: Integers) -> list[Floats]:
            scores = self.score_block(w, 1.0, first, last, places)
            return np.split(self.sums_of_block(scores, first, last, places)[1], places[1:-1])

        for found in self.in_blocks(of_block, 0, len(self), self.n_jobs if self.scores_blocks else 1):
            yield from found

    def kbest(self, w: Vector, k: int) -> Iterator[list[tuple[Labels, float]]]:
        """The k best outputs of each instance with their scores, best first; the oracle must have `kbest`."""
        for i, (theta, shape) in enumerate(zip(self.part_scores(w), self.shapes, strict=True)):
            best = asked(i, self.oracle, "kbest", theta, shape, k)
            yield [(labels, float(theta[asked(i, self.oracle, "parts", labels, shape)].sum())) for labels in best]


def part_scores(features: FeatureMap, w: Vector, i: int, scale: Scale = 1.0) -> Scores:
    """Part scores of instance i at the weights scale * w, fixed scores included; errors name the sample."""
    try:
        if not isinstance(scale, GroupScales):
            theta = features.scores(w, i)
        elif (own := stand_in(features, "group_scores", ("scores", "n_parts"))) is not None:  # makes no copy of all weights
            theta = own(w, scale, i)
        else:
            theta = features.scores(scaled(w, scale), i)
        fixed = features.fixed_scores(i)
    except Exception as error:
        raise blamed(error, i, features, "scores") from error
    if not isinstance(scale, GroupScales) and scale != 1.0:
        theta = scale * theta
    if np.shape(theta) != (features.n_parts(i),):
        raise OracleError(
            f"sample {i}: {type(features).__name__}.scores must give one number per part, {features.n_parts(i)} in all, "
            f"got an array of shape {np.shape(theta)}"
        )
    if fixed is not None:
        theta = theta + fixed
    if np.count_nonzero(np.isfinite(theta)) < len(theta):  # faster than all() for a few numbers
        check_finite(theta, np.array([0, len(theta)]), first=i)
    return theta
