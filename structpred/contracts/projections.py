"""Contract checks for projections onto convex sets and for proximal operators: every broken rule is explained, with its cause."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from structpred.contracts.engine import Examiner, Report, brief, examined, kind_of
from structpred.core.types import Floats
from structpred.errors import ProjectionError, StructpredError

#: how large the points are
SCALES = (0.01, 0.3, 1.0, 10.0, 1000.0)


class Points:
    """Points of one shape for the methods of `examiner.oracle`."""

    def __init__(self, examiner: Examiner, where: str) -> None:
        self.examiner, self.where = examiner, where

    def drawn(self, shape: tuple[int, ...], n_random: int) -> list[Floats]:
        """Random points, three with ties, and zero."""
        rng = self.examiner.rng
        points = [SCALES[k % len(SCALES)] * rng.normal(size=shape) for k in range(n_random)]
        return points + [rng.integers(-1, 2, shape).astype(np.float64) for _ in range(3)] + [np.zeros(shape)]

    def answer(self, method: str, x: Floats, *step: float) -> Floats:
        """What a method gives: a new array like x, of finite numbers, the same when asked again."""
        found = self.examiner.call(method, self.where, x, *step)
        expected, cause = f"a new float64 array of shape {x.shape}", "a reduction over the entries, or a result of another type"
        right = isinstance(found, np.ndarray) and found.shape == x.shape and found.dtype == np.float64
        self.examiner.insist("answer", right, self.where, expected, kind_of(found), cause)
        self.examiner.finite(found, self.where, method)
        again = self.examiner.call(method, self.where, x, *step)
        cause = "state kept between calls, or a random number"
        self.examiner.expect("nondeterminism", np.array_equal(found, again), self.where, "twice the same point", again, cause)
        return np.asarray(found)

    def refuses(self, expected: str, cause: str, method: str, *args: Any) -> None:
        """An error of structpred, `expected`, for arguments that are no point or no step."""
        try:
            found: object = getattr(self.examiner.oracle, method)(*args)
        except StructpredError:
            self.examiner.checked["bad points"] += 1
            return
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        self.examiner.expect("bad points", False, self.where, expected, found, cause)


Projection = Callable[[Floats], Floats]

#: shapes of the points: one entry, few, some
SHAPES = ((1,), (2,), (7,), (40,))
#: of the size of the numbers: what a solver may leave, and what rounding may
_SOLVED, _ROUNDED = 1e-8, 1e-9


def check_projection(
    project: Projection, *, shapes: Iterable[tuple[int, ...]] = SHAPES, outside: Callable[[Floats], float] | None = None,
    metric: Floats | float = 1.0, n_random: int = 20, seed: int = 0,
) -> Report:  # fmt: skip
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
        _Projections(examiner, shape, outside, np.asarray(metric, dtype=np.float64) ** 2).examine(n_random)

    return examined(project, examine, ProjectionError, seed, map(tuple, shapes))


class _Projections(Points):
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
            cause = "another point of the set is nearer: a threshold that is off, the wrong metric, or too few iterations"
            for z in others:
                residual = self.weights * (x - p)
                gap, size = float((residual * (z - p)).sum()), float((np.abs(residual) * (np.abs(z) + np.abs(p))).sum())
                ok = gap <= _SOLVED * max(1.0, size)
                expected = f"<x - p, z - p> <= 0 for p = {brief(p)} and z = {brief(z)} of the set"
                self.examiner.expect("nearest", ok, self.where, expected, f"{gap:.3g}", cause)
            mixture, beyond = 0.25 * p + 0.75 * others[0], p + (0.1, 0.5, 3.0)[k % 3] * (x - p)
            cases = (
                ("idempotent", p, p, "a step towards the set in place of its nearest point"),
                ("identity inside", mixture, mixture, "a set that is not convex, or a point inside that is moved"),
                ("along the normal", beyond, p, "an answer that depends on how far away the point is"),
            )
            for rule, start, wanted, cause in cases:
                off, size = float(np.abs(self.image(start) - wanted).max()), 1.0 + float(np.abs(start).max())
                expected = f"{brief(start)} to lead to {brief(wanted)}"
                self.examiner.expect(rule, off <= _ROUNDED * size * 10.0, self.where, expected, f"{off:.3g} away", cause)
            self.examine_distance(x, p, points[k - 1], images[k - 1])
        for bad in (np.full(self.shape, np.nan), np.zeros((0, *self.shape[1:]))):
            expected = f"an error of structpred for a point with {'NaN' if bad.size else 'no entries'}"
            cause = "the point is not looked at before the work begins: raise DataError"
            self.refuses(expected, cause, "project", bad)

    def image(self, x: Floats) -> Floats:
        found = self.answer("project", x)
        if self.outside is not None:
            off, size = float(self.outside(found)), 1.0 + float(np.abs(found).max())
            cause = "a constraint that is forgotten, or one that holds roughly"
            expected = "a point that breaks no constraint by more than 1e-8"
            self.examiner.expect("in the set", off <= _SOLVED * size, self.where, expected, f"{off:.3g}", cause)
        return found

    def examine_distance(self, x: Floats, p: Floats, y: Floats, q: Floats) -> None:
        before, after = (float(np.sqrt((self.weights * (a - b) ** 2).sum())) for a, b in ((x, y), (p, q)))
        ok = after <= before + _ROUNDED * (1.0 + before)
        cause = "no projection onto a convex set moves two points apart"
        expected = f"projections no further apart than their points, {before:.9g}"
        self.examiner.expect("non-expansive", ok, self.where, expected, f"{after:.9g}", cause)


Prox = Callable[[Floats, float], Floats]
Value = Callable[[Floats], float]

#: lengths of the points, and the steps
SIZES, STEPS = (1, 2, 7, 40), (0.1, 1.0, 30.0)


def check_prox(
    prox: Prox, value: Value, *, conjugate: Value | None = None, conjugate_prox: Prox | None = None,
    sizes: Iterable[int] = SIZES, steps: Iterable[float] = STEPS, n_random: int = 20, seed: int = 0,
) -> Report:  # fmt: skip
    """Check whether prox(x, s) is argmin_z |z - x|^2 / 2 + s f(z) for the convex function f of `value`.

    Tried are random points, ties and zero. The answer p must be a new float64 array of finite numbers like x, the same when asked
    again. No point may have a smaller |z - x|^2 / 2 + s f(z); by strong convexity all must be larger by half their squared
    distance from p. For the step 0 p is the point of f's domain next to x. The operator is firmly non-expansive:
    |p - q|^2 <= <p - q, x - y>. With u = (x - p) / s, f(p) + f*(u) = <p, u>, and by Moreau's identity
    p + s prox_{f* / s}(x / s) = x, to 1e-10. NaN, points without entries and steps below 0 must be refused by an error of
    structpred.

    Parameters
    ----------
    prox : callable
        From a point (n,) and a step to a point.
    value : callable
        f(x); inf outside its domain.
    conjugate : callable, optional
        f*(u) = max_x <u, x> - f(x).
    conjugate_prox : callable, optional
        The proximal operator of f*, from a point and a step, made otherwise than by Moreau's identity.
    sizes, steps : sequences
        The lengths of the points and the steps to try.
    n_random : int
        How many points are tried for each length.
    seed : int
        Seed of these points.

    Raises
    ------
    ProjectionError
        If a rule is broken. It lists every broken rule with the case, what was expected, what came and the likely cause.

    Examples
    --------
    >>> from structpred.projections.prox.entries import prox_l1
    >>> check_prox(prox_l1, lambda x: float(np.abs(x).sum())).checked["prox"] > 100
    True
    """
    given = {"conjugacy": conjugate, "Moreau": conjugate_prox}

    def examine(examiner: Examiner, shape: tuple[int]) -> None:
        examiner.oracle = SimpleNamespace(prox=prox, value=value, conjugate=conjugate, conjugate_prox=conjugate_prox)
        for rule in [rule for rule, function in given.items() if function is None]:
            examiner.skip(rule, "the conjugate was not given")
        _Steps(examiner, *shape, tuple(steps)).examine(n_random)

    return examined(prox, examine, ProjectionError, seed, [(int(n),) for n in sizes])


def examine_argmin(
    examiner: Examiner, where: str, value: Value, w: Floats, step: float, x: Floats, others: Iterable[Floats]
) -> None:
    """No other point has a smaller |x - w|^2 / 2 + step r(x); by strong convexity all are larger by half their distance^2."""
    best = 0.5 * float((x - w) @ (x - w)) + step * value(x)
    for z in others:
        found = 0.5 * float((z - w) @ (z - w)) + (step * value(z) if step else 0.0)
        least = best + 0.5 * float((z - x) @ (z - x))
        ok = found >= least - 1e-9 * (1.0 + abs(least))
        cause = "a threshold or a shrinkage without `step` in it, or that of another r than `value`"
        expected = f"no point to beat prox(w, {step:g}) in |x - w|^2 / 2 + {step:g} r(x) = {best:.9g}"
        examiner.expect("prox", ok, where, expected, f"{found:.9g} at {brief(z)}", cause)


class _Steps(Points):
    """Points of one length."""

    def __init__(self, examiner: Examiner, n: int, steps: tuple[float, ...]) -> None:
        super().__init__(examiner, f"points of {n} entries")
        self.n, self.steps, self.given = n, steps, examiner.oracle

    def examine(self, n_random: int) -> None:
        points = self.drawn((self.n,), n_random)
        for k, x in enumerate(points):
            step = self.steps[k % len(self.steps)]
            p = self.answer("prox", x, step)
            size = 1.0 + float(np.abs(p).max())
            around = [p + scale * size * self.examiner.rng.normal(size=self.n) for scale in (1e-4, 0.01, 1.0)]
            others = [0.9 * p, 1.1 * p, *(self.answer("prox", z, 0.0) for z in (x, 0.0 * x, points[k - 1], *around))]
            examine_argmin(self.examiner, self.where, self.value, x, step, p, others)
            self.examine_distance(x, p, points[k - 1], self.answer("prox", points[k - 1], step))
            inside = self.answer("prox", x, 0.0)
            cause = "for step 0 it gives the point of f's domain next to x: x itself where f(x) is finite"
            ok = np.isfinite(self.value(inside)) and (np.array_equal(inside, x) or not np.isfinite(self.value(x)))
            self.examiner.expect("step 0", ok, self.where, f"prox(x, 0) in the domain next to {brief(x)}", inside, cause)
            u = (x - p) / step
            if self.given.conjugate is not None:
                product, f, g = float(u @ p), self.value(p), float(self.examiner.call("conjugate", self.where, u))
                ok = abs(f + g - product) <= 1e-9 * (1.0 + abs(f) + abs(g))
                cause = "a factor left out of the conjugate, f*(u) = max_x <u, x> - f(x), or that of another f than `value`"
                expected = f"f(p) + f*(u) = <p, u> = {product:.9g} at u = (x - p) / s"
                self.examiner.expect("conjugacy", ok, self.where, expected, f"{f + g:.9g}", cause)
            if self.given.conjugate_prox is not None:
                off = p + step * self.answer("conjugate_prox", x / step, 1.0 / step) - x
                ok = float(np.abs(off).max()) <= 1e-10 * (1.0 + float(np.abs(x).max()))
                cause = "a wrong factor in one of the two: prox_{s f}(x) + s prox_{f* / s}(x / s) = x"
                self.examiner.expect("Moreau", ok, self.where, f"the two parts to sum up to {brief(x)}", brief(x + off), cause)
        ones, cause = np.ones(self.n), "the arguments are not looked at before the work begins: raise DataError or ParameterError"
        for bad, step in ((np.nan * ones, 1.0), (np.empty(0), 1.0), (ones, -1.0), (ones, np.nan)):
            expected = f"an error of structpred for the point {brief(bad)} and the step {step:g}"
            self.refuses(expected, cause, "prox", bad, step)

    def value(self, x: Floats) -> float:
        return float(self.examiner.call("value", self.where, x))

    def examine_distance(self, x: Floats, p: Floats, y: Floats, q: Floats) -> None:
        square, product = float((p - q) @ (p - q)), float((p - q) @ (x - y))
        ok = square <= product + 1e-9 * (1.0 + square)
        cause = "no proximal operator of a convex function moves two points apart: f is not convex, or this is not its prox"
        expected = f"|p - q|^2 <= <p - q, x - y> = {product:.9g}"
        self.examiner.expect("non-expansive", ok, self.where, expected, f"{square:.9g}", cause)
