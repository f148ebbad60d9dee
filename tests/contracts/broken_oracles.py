"""A zoo of broken oracles, each with the rule of the contract that it breaks."""
# ruff: noqa: D101 - a broken oracle's name says what is wrong with it

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

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
        return labels

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
    project = None  # it would be wrong, too

    def argmax(self, scores, shape):
        left, out = scores.reshape(shape[0], -1).copy(), []
        for row in left:  # greedy
            out.append(int(row.argmax()))
            left[:, out[-1]] = -np.inf
        return np.array(out, dtype=np.int64)


class Negated(AssignmentOracle):
    project = None

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
        return labels if self.calls % 7 else np.empty(0, np.int64)


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


class WrongGrid(ChainOracle):
    def label_grid(self, shape):
        return shape[1], shape[0]


class BadShapes(Subsets):
    @staticmethod
    def example_shapes():
        return [3, 4]


class NanMarginals(MulticlassOracle):
    def marginals(self, scores, shape):
        with np.errstate(all="ignore"):
            weights = np.exp(scores)
            return float(np.log(weights.sum())), weights / weights.sum()


class WrongMarginals(MulticlassOracle):
    def marginals(self, scores, shape):
        log_z, mu = super().marginals(2 * scores, shape)
        return log_z, mu


class UnsortedBest(MulticlassOracle):
    def kbest(self, scores, shape, k):
        return super().kbest(scores, shape, k)[::-1]


class RepeatedBest(MulticlassOracle):
    def kbest(self, scores, shape, k):
        return super().kbest(scores, shape, 1) * k


class LowBound(MulticlassOracle):
    def argmax_bound(self, scores, shape):
        return self.argmax(scores, shape), float(np.sort(scores)[-min(2, len(scores))])


class NanBound(MulticlassOracle):
    def argmax_bound(self, scores, shape):
        return self.argmax(scores, shape), float("nan")


class IgnoresRows(MulticlassOracle):
    def argmax_constrained(self, scores, shape, A, b):
        return self.argmax(scores, shape)


class GivesUp(MulticlassOracle):
    def argmax_constrained(self, scores, shape, A, b):
        best = self.argmax(scores, shape)
        return best if (A[:, best[0]] <= b).all() else None


class RelaxedTooLow(MulticlassOracle):
    def argmax_relaxed(self, scores, shape):
        return np.full(shape[0], 1.0 / shape[0])


class RelaxedCurved(MulticlassOracle):
    """The answer depends on the size of the scores: not the best point of any one polytope."""

    def argmax_relaxed(self, scores, shape):
        return np.where(scores > 0, 1.0, 0.0) * (1.0 + np.abs(scores)) + np.eye(shape[0])[scores.argmax()]


class BoundOfLabels(MulticlassOracle):
    """A heuristic for outputs within the rows, whose own score is given as the bound."""

    def argmax_constrained_bound(self, scores, shape, A, b):
        allowed = [k for k in range(shape[0]) if (A[:, k] <= b).all()]
        return (np.array([allowed[-1]]), float(scores[allowed[-1]])) if allowed else (None, -np.inf)


class UnprovenNone(MulticlassOracle):
    """Looks at the best output only, and says that there is none where the rows rule it out."""

    def argmax_constrained_bound(self, scores, shape, A, b):
        best = self.argmax(scores, shape)
        return (best, float(scores[best[0]])) if (A[:, best[0]] <= b).all() else (None, -np.inf)


class BoundIgnoresRows(MulticlassOracle):
    def argmax_constrained_bound(self, scores, shape, A, b):
        best = self.argmax(scores, shape)
        return best, float(scores[best[0]])


class NanConstrainedBound(MulticlassOracle):
    def argmax_constrained_bound(self, scores, shape, A, b):
        return None, float("nan")


class RelaxedIgnoresRows(MulticlassOracle):
    def argmax_relaxed_constrained(self, scores, shape, A, b):
        return np.eye(shape[0])[scores.argmax()]


class RelaxedFilters(MulticlassOracle):
    """The best point is looked at and thrown away where the rows rule it out."""

    def argmax_relaxed_constrained(self, scores, shape, A, b):
        return np.eye(shape[0])[scores.argmax()] if (A[:, scores.argmax()] <= b).all() else None


class RelaxedWorst(MulticlassOracle):
    def argmax_relaxed_constrained(self, scores, shape, A, b):
        allowed = [k for k in range(shape[0]) if (A[:, k] <= b).all()]
        return np.eye(shape[0])[min(allowed, key=lambda k: scores[k])] if allowed else None


class SimplexRows(MulticlassOracle):
    """The simplex as rows, for oracles whose relaxation then leaves it."""

    def polytope(self, shape):
        n = shape[0]
        return np.vstack((np.eye(n), np.ones((1, n)))), np.append(np.zeros(n), 1.0), np.ones(n + 1)


class RelaxedOutside(SimplexRows):
    def argmax_relaxed(self, scores, shape):
        return 2.0 * np.abs(np.sign(scores)) * np.where(scores > 0, 1.0, 0.0) + np.eye(shape[0])[scores.argmax()]


class RelaxedConstrainedOutside(SimplexRows):
    """A box in place of the simplex."""

    def argmax_relaxed_constrained(self, scores, shape, A, b):
        from scipy.optimize import linprog

        found = linprog(-scores / np.abs(scores).max(initial=1.0), A, b, bounds=(0.0, 1.0))
        return found.x if found.success else None


class ForgetsLosses(MulticlassOracle):
    def argmax_per_loss(self, scores, costs, shape):
        best = int(scores.argmax())
        return np.array([int(costs[best])]), scores[[best]], [np.array([best])]


class ProductOfNegatives(MulticlassOracle):
    def argmax_product(self, scores, costs, offsets, shape):
        return np.array([np.argmax(np.abs(offsets[0] + scores) * (offsets[1] + costs))])


class ProductWithoutOffsets(MulticlassOracle):
    def argmax_product(self, scores, costs, offsets, shape):
        return np.array([np.argmax(np.maximum(0.0, scores) * costs)])


class NoProjection(MulticlassOracle):
    def project(self, point, shape):
        return point.copy()


class ClipsInstead(MulticlassOracle):
    def project(self, point, shape):
        clipped = np.clip(point, 0.0, 1.0)
        return clipped / clipped.sum() if clipped.sum() > 0 else np.full(shape[0], 1.0 / shape[0])


class ProjectsRoughly(ChainOracle):
    """In the hull, near the nearest point, but after forty steps of Frank-Wolfe only."""

    def project(self, point, shape):
        mu = np.zeros(len(point))
        for k in range(40):
            vertex = np.bincount(self.parts(self.argmax(point - mu, shape), shape), minlength=len(point))
            mu += 2.0 / (k + 2.0) * (vertex - mu)
        return mu


class ProjectsPartly(ChainOracle):
    """Each position by itself, and the transitions as they follow from independent positions: in the hull, but not nearest."""

    def project(self, point, shape):
        length, n_labels = shape
        nodes = [MulticlassOracle().project(row, (n_labels,)) for row in point[: length * n_labels].reshape(shape)]
        edges = sum((np.outer(a, b) for a, b in itertools.pairwise(nodes)), np.zeros((n_labels, n_labels)))
        return np.concatenate((*nodes, edges.ravel()))


class ProjectsOutside(AssignmentOracle):
    """Rows that add up to 1 and columns that need not: nearer than anything in the hull."""

    def project(self, point, shape):
        return np.concatenate([MulticlassOracle().project(row, shape) for row in point.reshape(shape[0], -1)])


class SingleProjection(AssignmentOracle):
    """In single precision: wrong by 1e-7 of the point."""

    def project(self, point, shape):
        return super().project(point.astype(np.float32).astype(np.float64), shape)


class NarrowPolytope(MulticlassOracle):
    def polytope(self, shape):
        return np.eye(shape[0]), np.zeros(shape[0]), np.full(shape[0], 0.5)


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
    (PartsOutOfRange, "parts range"),
    (FloatParts, "parts dtype"),
    (PartsChange, "parts change"),
    (HalfParts, "n_parts"),
    (Duplicates, "duplicates"),
    (Raises, "no exceptions"),
    (RaisesLater, "no exceptions"),
    (NeedsToWrite, "read-only input"),
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
    (NarrowPolytope, "polytope"),
]
