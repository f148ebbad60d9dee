"""Contract checks for projections onto convex sets: every broken rule is explained, with the likely cause."""

from collections.abc import Callable, Iterable
from contextlib import suppress

import numpy as np

from structpred.contracts.engine import Examiner, brief, kind_of
from structpred.contracts.report import Report, raise_if_broken
from structpred.core.types import Floats
from structpred.errors import OracleError, ProjectionError, StructpredError

Projection = Callable[[Floats], Floats]

#: shapes of the points: one entry, few, some
SHAPES = ((1,), (2,), (7,), (40,))
#: how large the points are
SCALES = (0.01, 0.3, 1.0, 10.0, 1000.0)
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
    rng = np.random.default_rng(seed)
    examiner = Examiner(_Named(project), rng)
    examiner.name = getattr(project, "__name__", type(project).__name__)
    tried = [tuple(shape) for shape in shapes]
    for shape in tried:
        with suppress(OracleError):
            _Case(examiner, shape, outside, np.asarray(metric, dtype=np.float64) ** 2).examine(n_random)
    if outside is None:
        examiner.skip("in the set", "no `outside` was given")
    raise_if_broken(examiner, ProjectionError)
    return Report(examiner.name, tuple(tried), dict(examiner.checked), examiner.skipped)


class _Named:
    """The projection as a method, so that the examiner can call it by name."""

    def __init__(self, project: Projection) -> None:
        self.project = project


class _Case:
    """Points of one shape."""

    def __init__(
        self, examiner: Examiner, shape: tuple[int, ...], outside: Callable[[Floats], float] | None, weights: Floats
    ) -> None:
        self.examiner, self.shape, self.outside, self.weights = examiner, shape, outside, weights
        self.where = f"points of shape {shape}"

    def examine(self, n_random: int) -> None:
        rng = self.examiner.rng
        points = [SCALES[k % len(SCALES)] * rng.normal(size=self.shape) for k in range(n_random)]
        points += [rng.integers(-1, 2, self.shape).astype(np.float64) for _ in range(3)] + [np.zeros(self.shape)]
        images = [self.image(x) for x in points]
        for k, (x, p) in enumerate(zip(points, images, strict=True)):
            others = [images[j] for j in rng.permutation(len(images))[:6]]
            self.examine_nearest(x, p, others)
            self.examine_stays(x, p, others[0], k)
            self.examine_distance(x, p, points[k - 1], images[k - 1])
        for bad in (np.full(self.shape, np.nan), np.zeros((0, *self.shape[1:]))):
            self.examine_refused(bad)

    def image(self, x: Floats) -> Floats:
        found = self.examiner.call("project", self.where, x)
        right = isinstance(found, np.ndarray) and found.shape == x.shape and found.dtype == np.float64
        cause = "a reduction over the entries, or a result of another type"
        expected = f"a new float64 array of shape {x.shape}"
        self.examiner.insist("answer", right, self.where, expected, kind_of(found), cause)
        self.examiner.finite(found, self.where, "project")
        again = self.examiner.call("project", self.where, x)
        cause = "state kept between calls, or a random number"
        self.examiner.expect("nondeterminism", np.array_equal(found, again), self.where, "twice the same point", again, cause)
        if self.outside is not None:
            off, size = float(self.outside(found)), 1.0 + float(np.abs(found).max())
            cause = "a constraint that is forgotten, or one that holds roughly"
            told = "a point that breaks no constraint by more than 1e-8"
            self.examiner.expect("in the set", off <= _SOLVED * size, self.where, told, f"{off:.3g}", cause)
        return np.asarray(found)

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

    def examine_refused(self, bad: Floats) -> None:
        what = "NaN" if bad.size else "no entries"
        try:
            found: object = self.examiner.oracle.project(bad)
        except StructpredError:
            self.examiner.checked["bad points"] += 1
            return
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        cause = "the point is not looked at before the work begins: raise DataError"
        self.examiner.expect("bad points", False, self.where, f"an error of structpred for a point with {what}", found, cause)
