"""Contract checks for projections onto convex sets: every broken rule is explained, with the likely cause."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace

import numpy as np

from structpred.contracts.engine import Examiner, brief
from structpred.contracts.points import Points
from structpred.contracts.report import Report, examined
from structpred.core.types import Floats
from structpred.errors import ProjectionError

Projection = Callable[[Floats], Floats]

#: shapes of the points: one entry, few, some
SHAPES = ((1,), (2,), (7,), (40,))
#: of the size of the numbers: what a solver may leave, and what rounding may
_SOLVED, _ROUNDED = 1e-8, 1e-9


def check_projection(
    project: Projection,
    *,
    shapes: Iterable[tuple[int, ...]] = SHAPES,
    outside: Callable[[Floats], float] | None = None,
    metric: Floats | float = 1.0,
    n_random: int = 20,
    seed: int = 0,
) -> Report:
    """Check whether project(x) is the nearest point to x of a convex set: min_z |metric (x - z)|^2 subject to z in the set.

    Tried are random points, points with ties, points far away and points of the set. The answer p must be a new float64 array of
    finite numbers like x, the same when asked again, and leave x as it was. Then: the projection of p is p; p + t (x - p)
    leads to p for each t >= 0; mixtures of such p are in the set and stay as they are; <metric^2 (x - p), z - p> <= 1e-8 of
    its terms for each other point z of the set that is known (the optimality condition); two projections are no further apart
    than their points. NaN and points without entries must be refused by an error of structpred.

    Parameters
    ----------
    project : callable
        From a point to its projection.
    shapes : sequence of shapes
        The shapes of the points to try.
    outside : callable, optional
        How far a point is from the set, by whatever constraint is broken most; 0 inside. Without it a set that is too
        large goes unnoticed if it is convex.
    metric : array or float
        The weights of the entries in the distance.
    n_random : int
        How many points are tried for each shape.
    seed : int
        Seed of these points.

    Raises
    ------
    ProjectionError
        If a rule is broken. It lists every broken rule with the shape, what was expected, what came and the likely cause.

    Examples
    --------
    >>> from structpred.projections.simplex import project_onto_simplex
    >>> check_projection(project_onto_simplex).checked["nearest"] > 100
    True
    """

    def examine(examiner: Examiner, shape: tuple[int, ...]) -> None:
        examiner.oracle = SimpleNamespace(project=project)
        if outside is None:
            examiner.skip("in the set", "no `outside` was given")
        _Case(examiner, shape, outside, np.asarray(metric, dtype=np.float64) ** 2).examine(n_random)

    return examined(project, examine, ProjectionError, seed, map(tuple, shapes))


class _Case(Points):
    """Points of one shape."""

    def __init__(
        self, examiner: Examiner, shape: tuple[int, ...], outside: Callable[[Floats], float] | None, weights: Floats
    ) -> None:
        super().__init__(examiner, f"points of shape {shape}")
        self.shape, self.outside, self.weights = shape, outside, weights

    def examine(self, n_random: int) -> None:
        points = self.drawn(self.shape, n_random)
        images = [self.image(x) for x in points]
        for k, (x, p) in enumerate(zip(points, images, strict=True)):
            others = [images[j] for j in self.examiner.rng.permutation(len(images))[:6]]
            self.examine_nearest(x, p, others)
            self.examine_stays(x, p, others[0], k)
            self.examine_distance(x, p, points[k - 1], images[k - 1])
        for bad in (np.full(self.shape, np.nan), np.zeros((0, *self.shape[1:]))):
            told = f"an error of structpred for a point with {'NaN' if bad.size else 'no entries'}"
            cause = "the point is not looked at before the work begins: raise DataError"
            self.refuses(told, cause, "project", bad)

    def image(self, x: Floats) -> Floats:
        found = self.answer("project", x)
        if self.outside is not None:
            off, size = float(self.outside(found)), 1.0 + float(np.abs(found).max())
            cause = "a constraint that is forgotten, or one that holds roughly"
            told = "a point that breaks no constraint by more than 1e-8"
            self.examiner.expect("in the set", off <= _SOLVED * size, self.where, told, f"{off:.3g}", cause)
        return found

    def examine_nearest(self, x: Floats, p: Floats, others: list[Floats]) -> None:
        cause = "another point of the set is nearer: a threshold that is off, the wrong metric, or too few iterations"
        for z in others:
            residual = self.weights * (x - p)
            gap, size = float((residual * (z - p)).sum()), float((np.abs(residual) * (np.abs(z) + np.abs(p))).sum())
            ok = gap <= _SOLVED * max(1.0, size)
            expected = f"<x - p, z - p> <= 0 for p = {brief(p)} and z = {brief(z)} of the set"
            self.examiner.expect("nearest", ok, self.where, expected, f"{gap:.3g}", cause)

    def examine_stays(self, x: Floats, p: Floats, z: Floats, k: int) -> None:
        mixture = 0.25 * p + 0.75 * z
        cases = (
            ("idempotent", p, p, "a step towards the set in place of its nearest point"),
            ("identity inside", mixture, mixture, "a set that is not convex, or a point inside that is moved"),
            ("along the normal", p + (0.1, 0.5, 3.0)[k % 3] * (x - p), p, "an answer that depends on how far away the point is"),
        )
        for rule, start, wanted, cause in cases:
            found = self.image(start)
            off, size = float(np.abs(found - wanted).max()), 1.0 + float(np.abs(start).max())
            expected = f"{brief(start)} to lead to {brief(wanted)}"
            self.examiner.expect(rule, off <= _ROUNDED * size * 10.0, self.where, expected, f"{off:.3g} away", cause)

    def examine_distance(self, x: Floats, p: Floats, y: Floats, q: Floats) -> None:
        before, after = (float(np.sqrt((self.weights * (a - b) ** 2).sum())) for a, b in ((x, y), (p, q)))
        ok = after <= before + _ROUNDED * (1.0 + before)
        cause = "no projection onto a convex set moves two points apart"
        expected = f"projections no further apart than their points, {before:.9g}"
        self.examiner.expect("non-expansive", ok, self.where, expected, f"{after:.9g}", cause)
