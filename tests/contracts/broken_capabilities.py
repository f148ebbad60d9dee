"""Oracles whose optional methods break their contract, each in one way."""
# ruff: noqa: D101 - a broken oracle's name says what is wrong with it

import itertools

import numpy as np

from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle


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


class CliquesApart(ChainOracle):
    """Each table by itself: neighbours need not agree."""

    def project_cliques(self, points, offsets, shapes, start=None, n_jobs=1):
        pieces = []
        for point, (length, _) in zip(np.split(points, offsets[1:-1]), shapes, strict=True):
            rows = point.reshape(max(1, length - 1), -1)
            pieces += [MulticlassOracle().project(row, (rows.shape[1],)) for row in rows]
        return np.concatenate(pieces), np.zeros(0)


class CliquesOfOtherParts(ChainOracle):
    """A table's entry counts for the label before it, where it must count for the one after."""

    def clique_parts(self, shape):
        ends, parts = super().clique_parts(shape)
        moved = parts.copy()
        if shape[0] > 1:
            moved[ends[:-1] + 1] = parts[ends[:-1] + 1] - shape[1]
        return ends, moved


class CliquesFromTheStart(ChainOracle):
    """What it is given to start from is added to the point."""

    def project_cliques(self, points, offsets, shapes, start=None, n_jobs=1):
        x, multipliers = super().project_cliques(points, offsets, shapes, None, n_jobs)
        return (x if start is None or not start.any() else 0.5 * x), multipliers


class NarrowPolytope(MulticlassOracle):
    def polytope(self, shape):
        return np.eye(shape[0]), np.zeros(shape[0]), np.full(shape[0], 0.5)
