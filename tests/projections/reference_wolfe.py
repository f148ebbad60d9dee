"""Projection onto the convex hull of all outputs of an oracle in NumPy, one point at a time: a judge of the compiled one."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import ConvergenceError, DataError, OracleError, ParameterError

Argmax = Callable[[Floats], Integers]
Parts = Callable[[Integers], Integers]

#: below this share of its squared length a vertex's squared distance from the active ones' affine hull counts as zero
_DEPENDENT = 1e-10
#: how many answers of the oracle in a row may bring no new vertex: each time the weights are solved for again
_PATIENCE = 4


class HullPoint(NamedTuple):
    """A point of a convex hull as a mixture of few vertices.

    mu: the point, dense (n_parts,). labels: the outputs whose vertices are active, as the oracle gave them, affinely independent
    (so at most n_parts + 1). weights: theirs, > 0, sum 1; mu is the sum of weights[k] mu(labels[k]). gap: what `nearest_in_hull`
    reached. n_calls: how often it called the oracle.
    """

    mu: Floats
    labels: list[Integers]
    weights: Floats
    gap: float
    n_calls: int


def nearest_in_hull(
    point: Floats, argmax: Argmax, parts: Parts, n_parts: int, *, tol: float = 1e-13, max_iter: int = 10_000,
) -> HullPoint:  # fmt: skip
    """min_{labels, weights} |point - mu|^2  subject to  mu = sum_k weights_k mu(labels_k), weights >= 0, sum weights = 1.

    argmax(scores) gives an output with the largest scores . mu(y), exactly; parts(labels) the parts that are on in it, repeats
    counted; there are n_parts of them.

    Wolfe's algorithm for the nearest point of a polytope (1976), which is the active set method of SparseMAP (Niculae et al.
    2018): mu minimises the distance over the affine hull of the active vertices. Major cycle: the vertex v that is best for
    the scores point - mu becomes active. Minor cycles: move to the new affine minimiser; where the way leaves the hull, stop
    and drop what has weight zero. No active set comes twice, so it is finite; typically it takes about as many oracle calls
    as vertices end up active, each O(n_active^2 + n_parts).

    It stops when gap = <point - mu, v - mu> <= tol * max(1, <|point - mu|, v + mu>): the gap in proportion to the terms that
    cancel in it. No vertex has a larger gap, so the true projection mu* has |mu - mu*|^2 <= gap. That is the bound for
    any polytope; as a rule mu is right to the last few digits, since it is exact once the right vertices are active.

    max_iter: the most oracle calls, at least two. Raises ConvergenceError, with the gap reached, if they do not suffice, or if
    rounding keeps the gap from falling as far (a tol near 1e-16); DataError for a point that is not finite or not of
    length n_parts. An argmax that misses the maximum goes unnoticed: the gap is then that of the vertex it found.
    """
    if not (tol >= 0 and max_iter >= 2):
        raise ParameterError(f"expected tol >= 0 and max_iter >= 2, got {tol!r} and {max_iter!r}")
    point = np.asarray(point, dtype=np.float64)
    if point.shape != (n_parts,) or not np.isfinite(point).all():
        raise DataError(f"expected a point of {n_parts} finite coordinates, one per part, got shape {point.shape}")
    active = _ActiveSet(n_parts)
    first = argmax(point.copy())
    active.add(first, _counts(parts(first), n_parts))
    mu, stuck = active.point(), 0
    for n_calls in range(2, max_iter + 1):
        scores = point - mu
        labels = argmax(scores.copy())
        vertex = _counts(parts(labels), n_parts)
        gap = _dot(scores, vertex - mu)
        size = max(1.0, _dot(np.abs(scores), vertex + mu))
        if gap <= tol * size:
            return HullPoint(mu, active.labels, active.weights, max(gap, 0.0), n_calls)
        if stuck == _PATIENCE:
            break
        # In exact arithmetic the vertex is new, affinely independent, and stays. Where it is not, rounding has left
        # the weights a little off: they are solved for again, from the residual that is left.
        grown = active.add(labels, vertex)
        kept = active.minimise(point)
        stuck = 0 if grown and kept else stuck + 1
        mu = active.point()
    raise ConvergenceError(
        f"the projection reached a gap of {gap:.3g} after {n_calls} oracle calls, expected at most {tol * size:.3g} "
        f"(tol {tol:g} times terms of size {size:.3g}): "
        + ("rounding keeps it there, so tol is too small" if stuck == _PATIENCE else f"raise max_iter (now {max_iter})")
    )


def _counts(parts: Integers, n_parts: int) -> Floats:
    """mu(y), dense."""
    counts = np.bincount(parts, minlength=n_parts).astype(np.float64)
    if len(counts) != n_parts:
        raise OracleError(f"expected parts in [0, {n_parts}), got {int(parts.max())}; run check_oracle on the oracle")
    return counts


def _dot(a: Floats, b: Floats) -> float:
    """a . b, summed in pairs: nearer to exact than BLAS, whose threads also cost more than they bring at this size."""
    return float((a * b).sum())


class _ActiveSet:
    """Affinely independent vertices with weights, as one sparse list of (vertex, part, count).

    `factor` is the upper Cholesky factor of the Gram matrix v_k . v_l + 1. With the 1 that is positive definite for affinely
    independent vertices, even where one of them is zero. A vertex more is a column more, one less a rank-one update.
    """

    def __init__(self, n_parts: int) -> None:
        self.n_parts = n_parts
        self.labels: list[Integers] = []
        self.weights: Floats = np.empty(0)
        self.owners, self.parts, self.counts = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        self.factor = np.zeros((16, 16))

    def dots(self, x: Floats) -> Floats:
        """v_k . x for each active vertex."""
        return np.bincount(self.owners, self.counts * x[self.parts], len(self.labels)).astype(np.float64, copy=False)

    def point(self) -> Floats:
        """The mixture of the vertices, dense."""
        return np.bincount(self.parts, self.counts * self.weights[self.owners], self.n_parts).astype(np.float64, copy=False)

    def add(self, labels: Integers, vertex: Floats) -> bool:
        """Make a vertex active, with weight zero (the first: one). False, and nothing done, if it depends on the others."""
        from scipy.linalg import solve_triangular

        n = len(self.labels)
        column, square = self.dots(vertex) + 1.0, _dot(vertex, vertex) + 1.0
        above = solve_triangular(self.factor[:n, :n], column, trans=1, check_finite=False) if n else column
        pivot = square - _dot(above, above)  # that of the squared distance from the affine hull of the others
        if pivot <= _DEPENDENT * square:
            return False
        if n == len(self.factor):
            self.factor = np.pad(self.factor, (0, n))
        self.factor[:n, n], self.factor[n, n] = above, np.sqrt(pivot)
        at = np.flatnonzero(vertex)
        self.owners = np.concatenate((self.owners, np.full(len(at), n)))
        self.parts, self.counts = np.concatenate((self.parts, at)), np.concatenate((self.counts, vertex[at]))
        self.labels.append(labels)
        self.weights = np.append(self.weights, 0.0 if n else 1.0)
        return True

    def minimise(self, point: Floats) -> bool:
        """Minor cycles, until the affine minimiser lies in the hull; False if the newest vertex had to be dropped."""
        newest = self.labels[-1]
        while True:
            step = self._towards_minimiser(self.dots(point - self.point()))
            target = self.weights + step
            if (target > 0.0).all():
                self.weights = target / target.sum()
                return newest is self.labels[-1]
            leaving = target <= 0.0
            lengths = np.full(len(step), np.inf)
            lengths[leaving] = self.weights[leaving] / np.maximum(self.weights[leaving] - target[leaving], 1e-300)
            weights = np.maximum(self.weights + min(1.0, float(lengths.min())) * step, 0.0)
            weights[lengths.argmin()] = 0.0
            kept = weights > 0.0
            for k in np.flatnonzero(~kept)[::-1].tolist():
                drop_column(self.factor, len(self.labels), k)
                del self.labels[k]
            numbers = np.cumsum(kept) - 1
            entries = kept[self.owners]
            self.owners, self.parts, self.counts = numbers[self.owners[entries]], self.parts[entries], self.counts[entries]
            self.weights = weights[kept] / weights[kept].sum()

    def _towards_minimiser(self, dots: Floats) -> Floats:
        """The change d of the weights, sum d = 0, that minimises |residual - V d|, from dots = V^T residual.

        V^T V d = dots - tau 1 for some tau; adding 1 1^T to the left changes nothing. From the residual, and relative to its
        mean, so that nothing large cancels: each call also corrects the rounding of those before.
        """
        from scipy.linalg import cho_solve

        n = len(self.labels)
        sides = np.stack((dots - dots.mean(), np.ones(n)), axis=1)
        change, ones = cho_solve((self.factor[:n, :n], False), sides, check_finite=False).T
        return change - (change.sum() / ones.sum()) * ones


def drop_column(factor: Floats, n: int, k: int) -> None:
    """Change the upper Cholesky factor of an n by n matrix, in place, to that of the matrix without row and column k.

    The rows after k take up what row k held of them, as Cholesky on the smaller matrix would: R'R + rest rest', by rotations.
    """
    rest = factor[k, k + 1 : n].copy()
    factor[:k, k : n - 1] = factor[:k, k + 1 : n]
    factor[k : n - 1, k : n - 1] = factor[k + 1 : n, k + 1 : n]
    for i in range(k, n - 1):
        here, there = float(factor[i, i]), float(rest[i - k])
        size = float(np.hypot(here, there))
        cos, sin = here / size, there / size
        row, tail = factor[i, i : n - 1], rest[i - k :]
        row[:], tail[:] = cos * row + sin * tail, cos * tail - sin * row
