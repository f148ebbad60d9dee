"""Contract checks for proximal operators: every broken rule is explained, with the likely cause."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace

import numpy as np

from structpred.contracts.engine import Examiner, brief
from structpred.contracts.points import Points
from structpred.contracts.report import Report, examined
from structpred.core.types import Floats
from structpred.errors import ProjectionError

Prox = Callable[[Floats, float], Floats]
Value = Callable[[Floats], float]

#: lengths of the points, and the steps
SIZES, STEPS = (1, 2, 7, 40), (0.1, 1.0, 30.0)


def check_prox(
    prox: Prox,
    value: Value,
    *,
    conjugate: Value | None = None,
    conjugate_prox: Prox | None = None,
    sizes: Iterable[int] = SIZES,
    steps: Iterable[float] = STEPS,
    n_random: int = 20,
    seed: int = 0,
) -> Report:
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
        _Case(examiner, *shape, tuple(steps)).examine(n_random)

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


class _Case(Points):
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
            self.examine_domain(x)
            self.examine_conjugate(x, p, step)
        ones, cause = np.ones(self.n), "the arguments are not looked at before the work begins: raise DataError or ParameterError"
        for bad, step in ((np.nan * ones, 1.0), (np.empty(0), 1.0), (ones, -1.0), (ones, np.nan)):
            told = f"an error of structpred for the point {brief(bad)} and the step {step:g}"
            self.refuses(told, cause, "prox", bad, step)

    def value(self, x: Floats) -> float:
        return float(self.examiner.call("value", self.where, x))

    def examine_distance(self, x: Floats, p: Floats, y: Floats, q: Floats) -> None:
        square, product = float((p - q) @ (p - q)), float((p - q) @ (x - y))
        ok = square <= product + 1e-9 * (1.0 + square)
        cause = "no proximal operator of a convex function moves two points apart: f is not convex, or this is not its prox"
        told = f"|p - q|^2 <= <p - q, x - y> = {product:.9g}"
        self.examiner.expect("non-expansive", ok, self.where, told, f"{square:.9g}", cause)

    def examine_domain(self, x: Floats) -> None:
        inside = self.answer("prox", x, 0.0)
        cause = "for step 0 it gives the point of f's domain next to x: x itself where f(x) is finite"
        ok = np.isfinite(self.value(inside)) and (np.array_equal(inside, x) or not np.isfinite(self.value(x)))
        self.examiner.expect("step 0", ok, self.where, f"prox(x, 0) in the domain next to {brief(x)}", inside, cause)

    def examine_conjugate(self, x: Floats, p: Floats, step: float) -> None:
        u = (x - p) / step
        if self.given.conjugate is not None:
            product, f, g = float(u @ p), self.value(p), float(self.examiner.call("conjugate", self.where, u))
            ok = abs(f + g - product) <= 1e-9 * (1.0 + abs(f) + abs(g))
            cause = "a factor left out of the conjugate, f*(u) = max_x <u, x> - f(x), or that of another f than `value`"
            told = f"f(p) + f*(u) = <p, u> = {product:.9g} at u = (x - p) / s"
            self.examiner.expect("conjugacy", ok, self.where, told, f"{f + g:.9g}", cause)
        if self.given.conjugate_prox is not None:
            off = p + step * self.answer("conjugate_prox", x / step, 1.0 / step) - x
            ok = float(np.abs(off).max()) <= 1e-10 * (1.0 + float(np.abs(x).max()))
            cause = "a wrong factor in one of the two: prox_{s f}(x) + s prox_{f* / s}(x / s) = x"
            self.examiner.expect("Moreau", ok, self.where, f"the two parts to sum up to {brief(x)}", brief(x + off), cause)
