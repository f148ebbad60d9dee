"""Contract checks for proximal operators: every broken rule is explained, with the likely cause."""

from collections.abc import Callable, Iterable
from contextlib import suppress

import numpy as np

from structpred.contracts.engine import Examiner, brief, kind_of
from structpred.contracts.report import Report, raise_if_broken
from structpred.core.types import Floats
from structpred.errors import OracleError, ProjectionError, StructpredError

Prox = Callable[[Floats, float], Floats]
Value = Callable[[Floats], float]

#: lengths of the points, how large they are, and the steps
SIZES, SCALES, STEPS = (1, 2, 7, 40), (0.01, 0.3, 1.0, 10.0, 1000.0), (0.1, 1.0, 30.0)


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
    rng = np.random.default_rng(seed)
    examiner = Examiner(_Named(prox, value, conjugate, conjugate_prox), rng)
    examiner.name = getattr(prox, "__name__", type(prox).__name__)
    tried = tuple((int(n),) for n in sizes)
    for (n,) in tried:
        with suppress(OracleError):
            _Case(examiner, n, tuple(steps)).examine(n_random)
    for rule, given in (("conjugacy", conjugate), ("Moreau", conjugate_prox)):
        if given is None:
            examiner.skip(rule, "the conjugate was not given")
    raise_if_broken(examiner, ProjectionError)
    return Report(examiner.name, tried, dict(examiner.checked), examiner.skipped)


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


class _Named:
    """The functions as methods, so that the examiner can call them by name."""

    def __init__(self, prox: Prox, value: Value, conjugate: Value | None, conjugate_prox: Prox | None) -> None:
        self.prox, self.value, self.conjugate, self.conjugate_prox = prox, value, conjugate, conjugate_prox


class _Case:
    """Points of one length."""

    def __init__(self, examiner: Examiner, n: int, steps: tuple[float, ...]) -> None:
        self.examiner, self.n, self.steps, self.where = examiner, n, steps, f"points of {n} entries"
        self.given: _Named = examiner.oracle

    def examine(self, n_random: int) -> None:
        rng, n = self.examiner.rng, self.n
        points = [SCALES[k % len(SCALES)] * rng.normal(size=n) for k in range(n_random)]
        points += [rng.integers(-1, 2, n).astype(np.float64) for _ in range(3)] + [np.zeros(n)]
        for k, x in enumerate(points):
            step = self.steps[k % len(self.steps)]
            p = self.image(x, step)
            others = [0.9 * p, 1.1 * p, *(self.image(z, 0.0) for z in (x, 0.0 * x, points[k - 1], *self.around(p)))]
            examine_argmin(self.examiner, self.where, self.value, x, step, p, others)
            self.examine_distance(x, p, points[k - 1], self.image(points[k - 1], step))
            self.examine_domain(x)
            self.examine_conjugate(x, p, step)
        for bad, step in ((np.full(n, np.nan), 1.0), (np.empty(0), 1.0), (np.ones(n), -1.0), (np.ones(n), np.nan)):
            self.examine_refused(bad, step)

    def around(self, p: Floats) -> list[Floats]:
        size = 1.0 + float(np.abs(p).max())
        return [p + scale * size * self.examiner.rng.normal(size=self.n) for scale in (1e-4, 0.01, 1.0)]

    def value(self, x: Floats) -> float:
        return float(self.examiner.call("value", self.where, x))

    def image(self, x: Floats, step: float, method: str = "prox") -> Floats:
        found = self.examiner.call(method, self.where, x, step)
        right = isinstance(found, np.ndarray) and found.shape == x.shape and found.dtype == np.float64
        cause = "a reduction over the entries, or a result of another type"
        self.examiner.insist("answer", right, self.where, f"a new float64 array of shape {x.shape}", kind_of(found), cause)
        self.examiner.finite(found, self.where, method)
        again = self.examiner.call(method, self.where, x, step)
        cause = "state kept between calls, or a random number"
        self.examiner.expect("nondeterminism", np.array_equal(found, again), self.where, "twice the same point", again, cause)
        return np.asarray(found)

    def examine_distance(self, x: Floats, p: Floats, y: Floats, q: Floats) -> None:
        square, product = float((p - q) @ (p - q)), float((p - q) @ (x - y))
        ok = square <= product + 1e-9 * (1.0 + square)
        cause = "no proximal operator of a convex function moves two points apart: f is not convex, or this is not its prox"
        told = f"|p - q|^2 <= <p - q, x - y> = {product:.9g}"
        self.examiner.expect("non-expansive", ok, self.where, told, f"{square:.9g}", cause)

    def examine_domain(self, x: Floats) -> None:
        inside = self.image(x, 0.0)
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
            off = p + step * self.image(x / step, 1.0 / step, "conjugate_prox") - x
            ok = float(np.abs(off).max()) <= 1e-10 * (1.0 + float(np.abs(x).max()))
            cause = "a wrong factor in one of the two: prox_{s f}(x) + s prox_{f* / s}(x / s) = x"
            self.examiner.expect("Moreau", ok, self.where, f"the two parts to sum up to {brief(x)}", brief(x + off), cause)

    def examine_refused(self, bad: Floats, step: float) -> None:
        try:
            found: object = self.given.prox(bad, step)
        except StructpredError:
            self.examiner.checked["bad points"] += 1
            return
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        cause = "the arguments are not looked at before the work begins: raise DataError or ParameterError"
        told = f"an error of structpred for the point {brief(bad)} and the step {step:g}"
        self.examiner.expect("bad points", False, self.where, told, found, cause)
