"""A zoo of broken oracles, each with the rule of the contract that it breaks."""
# ruff: noqa: D101 - a broken oracle's name says what is wrong with it

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from broken_capabilities import (
    BoundIgnoresRows,
    BoundOfLabels,
    ClipsInstead,
    CliquesApart,
    CliquesFromTheStart,
    CliquesOfOtherParts,
    ForgetsLosses,
    GivesUp,
    IgnoresRows,
    LowBound,
    NanBound,
    NanConstrainedBound,
    NanMarginals,
    NarrowPolytope,
    NoProjection,
    ProductOfNegatives,
    ProductWithoutOffsets,
    ProjectsOutside,
    ProjectsPartly,
    ProjectsRoughly,
    RelaxedConstrainedOutside,
    RelaxedCurved,
    RelaxedFilters,
    RelaxedIgnoresRows,
    RelaxedOutside,
    RelaxedTooLow,
    RelaxedWorst,
    RepeatedBest,
    SingleProjection,
    UnprovenNone,
    UnsortedBest,
    WrongMarginals,
)

from structpred.core.oracle import Oracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle


class Subsets(Oracle):
    """All subsets of n items with at most two of them: labels are the chosen items in order. Right in every respect."""

    def n_parts(self, shape):
        return shape[0]

    def argmax(self, scores, shape):
        best = np.argsort(-scores, kind="stable")[:2]
        return np.sort(best[scores[best] > 0]).astype(np.int64)

    def parts(self, labels, shape):
        n = len(labels)
        if n > 2 or (n and not 0 <= labels[0] <= labels[-1] < shape[0]) or (n == 2 and labels[0] == labels[1]):
            raise ValueError(f"not at most two items in order: {labels}")
        return labels.copy()

    def enumerate(self, shape):
        return (np.array(y, dtype=np.int64) for k in range(3) for y in itertools.combinations(range(shape[0]), k))

    @staticmethod
    def example_shapes():
        return [(2,), (4,), (6,)]


class SubsetsBlind(Subsets):
    """The same without a way to list its outputs."""

    enumerate = None


class Infeasible(Subsets):
    def argmax(self, scores, shape):
        return np.flatnonzero(scores > 0)  # forgets that two is the most


class WrongArgmax(AssignmentOracle):
    argmax_batch = project = None  # they would be wrong, too

    def argmax(self, scores, shape):
        left, out = scores.reshape(shape[0], -1).copy(), []
        for row in left:  # greedy
            out.append(int(row.argmax()))
            left[:, out[-1]] = -np.inf
        return np.array(out, dtype=np.int64)


class Negated(AssignmentOracle):
    argmax_batch = project = None

    def argmax(self, scores, shape):
        return super().argmax(-scores, shape)


class NegatedBlind(Negated):
    enumerate = None


class WrongBlind(WrongArgmax):
    enumerate = None


class Mutates(Subsets):
    def argmax(self, scores, shape):
        scores -= scores.min()
        return np.sort(np.argsort(-scores, kind="stable")[:2]).astype(np.int64)


class MutatesLabels(Subsets):
    def parts(self, labels, shape):
        labels.sort()
        labels += 0
        if len(labels):
            labels[0] = 0
        return labels.copy()


class NanLabels(Subsets):
    def argmax(self, scores, shape):
        return np.array([0.0, np.nan])


class FloatLabels(MulticlassOracle):
    argmax_batch = None

    def argmax(self, scores, shape):
        return np.array([float(scores.argmax())])


class Int32Labels(MulticlassOracle):
    def argmax(self, scores, shape):
        return np.array([scores.argmax()], dtype=np.int32)


class ListLabels(MulticlassOracle):
    def argmax(self, scores, shape):
        return [int(scores.argmax())]


class ScalarLabels(MulticlassOracle):
    def argmax(self, scores, shape):
        return np.int64(scores.argmax())


class MatrixLabels(MulticlassOracle):
    def argmax(self, scores, shape):
        return np.array([[scores.argmax()]])


class RandomTies(MulticlassOracle):
    argmax_batch = None
    rng = np.random.default_rng(0)

    def argmax(self, scores, shape):
        return np.array([self.rng.choice(np.flatnonzero(scores == scores.max()))])


class Remembers(MulticlassOracle):
    """Ties go to the label given last: the same question at once gets the same answer, but not later."""

    argmax_batch = None
    last = 0

    def argmax(self, scores, shape):
        best = np.flatnonzero(scores == scores.max())
        self.last = int(self.last if self.last in best else best[-1])
        return np.array([self.last])


class OtherBatch(ChainOracle):
    def argmax_batch(self, scores, offsets, shapes):
        labels, ends = super().argmax_batch(scores, offsets, shapes)
        if len(shapes) > 1:
            labels[0] = (labels[0] + 1) % shapes[0][1]
        return labels, ends

    def argmax(self, scores, shape):
        return ChainOracle().argmax(scores, shape)


class OtherSums(ChainOracle):
    """Batches are summed up in another order: log_z differs in the last digits."""

    def marginals_batch(self, scores, offsets, shapes):
        log_zs, mu = super().marginals_batch(scores, offsets, shapes)
        return log_zs + (len(shapes) > 1) * 1e-12, mu


class OtherProjections(MulticlassOracle):
    def project_batch(self, points, offsets, shapes):
        pieces = [self.project(points[a:b], s) for a, b, s in zip(offsets, offsets[1:], shapes, strict=False)]
        return np.concatenate([*pieces[::-1], np.empty(0)])


class OtherParts(ChainOracle):
    """The label-label parts of a batch are those of the first instance's length."""

    def parts_batch(self, labels, ends, shapes):
        parts, places = super().parts_batch(labels, ends, shapes)
        for a, b, n in zip(places, places[1:], np.diff(ends), strict=False):
            parts[a + n : b] += (ends[1] - n) * shapes[0][1]
        return parts, places


class OneShapeBatch(MulticlassOracle):
    """Takes every instance of a batch for one of the first one's shape."""

    def argmax_batch(self, scores, offsets, shapes):
        if not shapes:
            return np.empty(0, np.int64), np.zeros(1, np.int64)
        n = shapes[0][0]
        rows = [scores[k * n : (k + 1) * n] for k in range(len(shapes))]
        return np.array([r.argmax() if len(r) else 0 for r in rows], dtype=np.int64), np.arange(len(shapes) + 1)


class PartsOutOfRange(Subsets):
    def parts(self, labels, shape):
        return labels + 1


class FloatParts(Subsets):
    def parts(self, labels, shape):
        return labels / 1


class PartsChange(Subsets):
    calls = 0

    def parts(self, labels, shape):
        self.calls += 1
        return super().parts(labels, shape) if self.calls % 7 else np.empty(0, np.int64)


class HalfParts(Subsets):
    def n_parts(self, shape):
        return shape[0] * 2 / 2


class Duplicates(Subsets):
    def enumerate(self, shape):
        return (np.array(sorted(y), dtype=np.int64) for y in itertools.product(range(shape[0]), repeat=2))


class Raises(Subsets):
    def argmax(self, scores, shape):
        if shape[0] > 3:
            raise IndexError("index 4 is out of bounds")
        return super().argmax(scores, shape)


class RaisesLater(Subsets):
    def enumerate(self, shape) -> Iterator[Any]:
        yield np.array([0])
        raise ZeroDivisionError("in the middle")


class NeedsToWrite(Subsets):
    def argmax(self, scores, shape):
        kept, scores[0] = scores[0], 0.0
        scores[0] = kept
        return super().argmax(scores, shape)


class PartsBuffer(Subsets):
    buffer = np.zeros(2, np.int64)

    def parts(self, labels, shape):
        self.buffer[: len(labels)] = super().parts(labels, shape)
        return self.buffer[: len(labels)]


class EnumerateBuffer(Subsets):
    def enumerate(self, shape):
        y = np.zeros(2, np.int64)
        yield np.empty(0, np.int64)
        for items in itertools.chain(*(itertools.combinations(range(shape[0]), k) for k in (1, 2))):
            y[: len(items)] = items
            yield y[: len(items)]


class WrongGrid(ChainOracle):
    def label_grid(self, shape):
        return shape[1], shape[0]


class BadShapes(Subsets):
    @staticmethod
    def example_shapes():
        return [[3], [4]]


ZOO: list[tuple[Callable[[], Oracle], str]] = [
    (Infeasible, "infeasible output"),
    (WrongArgmax, "wrong argmax"),
    (WrongBlind, "wrong argmax"),
    (Negated, "negated scores"),
    (NegatedBlind, "negated scores"),
    (Mutates, "mutated input"),
    (MutatesLabels, "mutated input"),
    (NanLabels, "NaN"),
    (FloatLabels, "wrong dtype"),
    (Int32Labels, "wrong dtype"),
    (ListLabels, "wrong dtype"),
    (ScalarLabels, "wrong dtype"),
    (MatrixLabels, "wrong dimension"),
    (RandomTies, "nondeterminism"),
    (Remembers, "nondeterminism"),
    (OtherBatch, "batch different from loop"),
    (OneShapeBatch, "batch different from loop"),
    (OtherParts, "parts of a batch different from loop"),
    (OtherSums, "marginals of a batch different from loop"),
    (OtherProjections, "project of a batch different from loop"),
    (PartsOutOfRange, "parts range"),
    (FloatParts, "parts dtype"),
    (PartsChange, "parts change"),
    (HalfParts, "n_parts"),
    (Duplicates, "duplicates"),
    (Raises, "no exceptions"),
    (RaisesLater, "no exceptions"),
    (NeedsToWrite, "read-only input"),
    (PartsBuffer, "shared buffer"),
    (EnumerateBuffer, "shared buffer"),
    (WrongGrid, "label grid"),
    (BadShapes, "shapes"),
    (NanMarginals, "NaN"),
    (WrongMarginals, "marginals"),
    (UnsortedBest, "kbest"),
    (RepeatedBest, "kbest"),
    (LowBound, "argmax_bound"),
    (NanBound, "NaN"),
    (IgnoresRows, "argmax_constrained"),
    (GivesUp, "argmax_constrained"),
    (RelaxedTooLow, "argmax_relaxed"),
    (RelaxedCurved, "argmax_relaxed"),
    (BoundOfLabels, "argmax_constrained_bound"),
    (UnprovenNone, "argmax_constrained_bound"),
    (BoundIgnoresRows, "argmax_constrained_bound"),
    (NanConstrainedBound, "NaN"),
    (RelaxedIgnoresRows, "argmax_relaxed_constrained"),
    (RelaxedFilters, "argmax_relaxed_constrained"),
    (RelaxedWorst, "argmax_relaxed_constrained"),
    (RelaxedOutside, "argmax_relaxed"),
    (RelaxedConstrainedOutside, "argmax_relaxed_constrained"),
    (ForgetsLosses, "argmax_per_loss"),
    (ProductOfNegatives, "argmax_product"),
    (ProductWithoutOffsets, "argmax_product"),
    (NoProjection, "project"),
    (ClipsInstead, "project"),
    (ProjectsRoughly, "project"),
    (ProjectsPartly, "project"),
    (ProjectsOutside, "project"),
    (SingleProjection, "project"),
    (CliquesApart, "project_cliques"),
    (CliquesOfOtherParts, "project_cliques"),
    (CliquesFromTheStart, "project_cliques"),
    (NarrowPolytope, "polytope"),
]
