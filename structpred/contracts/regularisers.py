"""Contract checks for regularisers: every broken rule is explained, with the likely cause."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from structpred.contracts.engine import Examiner, Report, brief, examined, kind_of
from structpred.contracts.projections import examine_argmin
from structpred.core.regulariser import DualMap, Regulariser, capabilities
from structpred.core.types import Floats, Integers
from structpred.errors import MissingCapabilityError, RegulariserError

#: sizes of the groups of weights: one weight, several groups, an empty one among them
SIZES = ((1,), (3, 4), (2, 0, 5, 1))
STEPS = (0.1, 1.0, 7.0)
#: passes under fixed weights after which scales do not move any more
SETTLED = 300


def check_regulariser(
    regulariser: Regulariser, *, sizes: Iterable[tuple[int, ...]] = SIZES, n_random: int = 20, seed: int = 0
) -> Report:
    """Check whether value, prox, bound and dual map of a regulariser r agree; the report says what was checked.

    Parameters
    ----------
    regulariser : Regulariser
        With `value`, `prox` and `bound`. What it has of `structpred.core.regulariser.OPTIONAL` is checked, too.
    sizes : sequence of sequences of int
        For each case how many weights the groups have. They are named "group 0", "group 1" and so on.
    n_random : int
        How many vectors are tried for each case.
    seed : int
        Seed of these vectors.

    Raises
    ------
    RegulariserError
        If a rule is broken. It lists every broken rule with the case, what was expected, what came and the likely cause.

    Examples
    --------
    >>> from structpred.objectives.regularisers.l1 import L1
    >>> check_regulariser(L1(0.3)).checked["prox"] > 100
    True
    """

    def examine(examiner: Examiner, sizes: tuple[int, ...]) -> None:
        examiner.oracle = regulariser  # the case before has left one of its own
        ends, where = np.cumsum([0, *sizes]).astype(np.int64), f"groups of {sizes} weights"
        bound = examiner.call("grouped", where, ends, [f"group {k}" for k in range(len(sizes))])
        right, cause = isinstance(bound, Regulariser), "a missing return, or a class that is not a subclass of Regulariser"
        examiner.insist("grouped", right, where, "grouped to give a Regulariser", kind_of(bound), cause)
        _Case(examiner, bound, ends, where).examine(n_random)

    return examined(regulariser, examine, RegulariserError, seed, map(tuple, sizes))


class _Case:
    """One regulariser on vectors of one length."""

    def __init__(self, examiner: Examiner, regulariser: Regulariser, ends: Integers, where: str) -> None:
        self.examiner, self.r, self.ends, self.dim, self.where = examiner, regulariser, ends, int(ends[-1]), where
        self.has, self.rng = capabilities(regulariser), examiner.rng
        examiner.oracle = regulariser

    def examine(self, n_random: int) -> None:
        zero = np.zeros(self.dim)
        at_zero = self.value(zero)
        cause = "a constant that is added, or a domain without 0: training starts at w = 0"
        self.examiner.expect("r(0) = 0", at_zero == 0.0, self.where, "value(0) = 0", at_zero, cause)
        dual_map, exact = self.dual_map() if "dual_map" in self.has else None, self.has_prox()
        for k in range(n_random):
            x, y = self.point(), self.rng.normal(size=self.dim)
            step = STEPS[k % len(STEPS)]
            if exact:
                self.examine_prox(x, step)
                self.examine_tight(x, self.prox(x, 1.0), dual_map)
                x, y = self.prox(x, 0.0), self.prox(y, 0.0)
            self.examine_bound(self.point(), [zero, x, y, 0.01 * x, 0.01 * y])
            # half way between two points r is at most the mean, less m/8 |a - b|^2
            m, values = self.r.strong_convexity, (self.value(x), self.value(y))
            most = 0.5 * sum(values) - m / 8.0 * float((x - y) @ (x - y))
            middle = self.value(0.5 * (x + y))
            again = self.value(x.copy())
            self.expect(
                "nondeterminism", (values[0], again), 0.0, "twice the same value", "state kept between calls, or a random number"
            )
            ok = not np.isfinite(most) or middle <= most + 1e-9 * (1.0 + abs(most))
            cause = f"r is not convex, or strong_convexity = {m:g} is more than it has"
            self.examiner.expect("strong convexity", ok, self.where, f"value((a + b) / 2) <= {most:.9g}", f"{middle:.9g}", cause)
            # no w with the value has a larger norm than reach(value)
            value, length = values[0], float(np.linalg.norm(x))
            if np.isfinite(value):
                most = self.examiner.call("reach", self.where, value)
                cause = "a factor left out: it is the largest |w| with r(w) <= value, inf where none is known"
                ok = length <= most * (1.0 + 1e-9)
                self.examiner.expect("reach", ok, self.where, f"reach({value:.9g}) of at least |w| = {length:.9g}", most, cause)
            self.examine_smooth(x)
            if "group_prox" in self.has:
                self.examine_groups(x, step)
        if self.r.adapts and dual_map is not None:
            self.examine_rescale(dual_map)
        if "terms" in self.has:
            self.examine_terms(n_random)

    def point(self) -> Floats:
        return self.rng.normal(size=self.dim) * float(self.rng.choice([0.1, 1.0, 10.0]))

    def has_prox(self) -> bool:
        """Whether it leaves the prox to its terms."""
        if "terms" in self.has:
            try:
                self.r.prox(np.zeros(self.dim), 1.0)
            except MissingCapabilityError as error:
                self.examiner.skip("prox of the sum", str(error))
                return False
        return True

    def expect(self, rule: str, close: tuple[float, float], size: float, expected: str, cause: str) -> None:
        """Two numbers agree, to 1e-9 of their size."""
        left, right = close
        ok = left == right or abs(left - right) <= 1e-9 * (1.0 + size)
        self.examiner.expect(rule, ok, self.where, f"{expected} = {left:.9g}", f"{right:.9g}", cause)

    def value(self, w: Floats) -> float:
        found = self.number("value", "a number or inf", "an array in place of its sum, or inf * 0", w)
        cause = "a wrong sign, or a constant that is subtracted"
        self.examiner.insist("r >= 0", found >= 0.0, self.where, f"value({brief(w)}) >= 0", found, cause)
        return found

    def prox(self, w: Floats, step: float) -> Floats:
        found = self.examiner.call("prox", self.where, w, step)
        expected = f"prox to give a new array like w, {w.dtype} of shape {w.shape}"
        cause = "a reduction over the weights, or a result that is not cast back to the type of w"
        right = isinstance(found, np.ndarray) and found.shape == w.shape and found.dtype == w.dtype
        self.examiner.insist("prox", right, self.where, expected, kind_of(found), cause)
        self.examiner.finite(found, self.where, "prox")
        return np.asarray(found)

    def examine_prox(self, w: Floats, step: float) -> None:
        """It is the argmin, also where it is asked for float32, and leads into the domain."""
        x = self.prox(w, step)
        self.prox(w.astype(np.float32), step)
        nudges = self.rng.normal(size=(4, self.dim)) * np.array([[1e-3], [0.1], [1.0], [1.0]])
        nudges[3:] *= np.arange(self.dim) == self.rng.integers(self.dim)
        others = [self.prox(w, 0.0), np.zeros(self.dim), 0.9 * x, 1.1 * x, *(self.prox(x + nudge, 0.0) for nudge in nudges)]
        examine_argmin(self.examiner, self.where, self.value, w, step, x, others)
        inside = self.prox(w, 0.0)
        cause = "a domain that prox(w, 0) does not lead into: for step 0 it gives the point of the domain next to w"
        expected = f"value(prox(w, 0)) at w = {brief(w)} to be finite"
        self.examiner.expect("prox to the domain", np.isfinite(self.value(inside)), self.where, expected, "inf", cause)

    def examine_tight(self, x: Floats, p: Floats, dual_map: DualMap | None) -> None:
        """x - p is a subgradient at p = prox(x, 1), so that r(p) + r*(x - p) = <x - p, p> (Moreau, Fenchel and Young)."""
        u = x - p
        product = float(u @ p)
        loss, lam, found = self.examine_bound(u, [p, np.zeros(self.dim), 0.5 * p])
        known = loss - lam * (product - self.value(p))
        cause = "a factor left out of the conjugate, or that of another r than `value`: it is r*(u) = max_w <u, w> - r(w)"
        ok = found >= known - 1e-9 * (1.0 + abs(known) + abs(loss) + lam * abs(product))
        expected = f"bound(loss, lam, u) of at least loss - lam r*(u) = {known:.9g}"
        self.examiner.expect("bound is tight", ok, self.where, expected, f"{found:.9g}", cause)
        if dual_map is not None and not self.r.adapts:
            again = dual_map.weights(u)
            off = float(np.abs(again - p).max(initial=0.0))
            cause = "s, low or high of another r than `value` and `prox`: w = s (u - clip(u, low, high)) is the gradient of r*"
            expected = f"dual_map to lead from {brief(u)} to {brief(p)}, as prox does"
            ok = off <= 1e-9 * (1.0 + float(np.abs(x).max(initial=0.0)))
            self.examiner.expect("dual map", ok, self.where, expected, again, cause)

    def examine_bound(self, u: Floats, points: list[Floats]) -> tuple[float, float, float]:
        """(loss, lam, the bound): it is below the objectives at some points, and the same for u in pieces."""
        loss, lam = float(self.rng.exponential(2.0)), float(self.rng.choice([0.1, 1.0]))
        found = self.bound(loss, lam, [u])
        cause = "a factor left out of the conjugate, or that of another r than `value`: it is r*(u) = max_w <u, w> - r(w)"
        for w in points:
            # a training set of one sample with the linear pieces 0 and loss - lam <u, w>
            objective = lam * self.value(w) + max(0.0, loss - lam * float(u @ w))
            ok = found <= objective + 1e-9 * (1.0 + abs(objective) + loss)
            expected = f"bound(loss, lam, u) of at most an objective that is reached, {objective:.9g}"
            self.examiner.expect("bound", ok, self.where, expected, f"{found:.9g}", cause)
        pieces = self.bound(loss, lam, np.split(u, [self.dim // 3, self.dim // 2]))
        cause = "a sum that restarts with each piece, or groups that are counted from the start of a piece"
        size = abs(found) if np.isfinite(found) else 0.0
        self.expect("bound in pieces", (found, pieces), size, "the same bound for one piece and for three", cause)
        return loss, lam, found

    def examine_groups(self, x: Floats, step: float) -> None:
        """Proposition 1: r depends on the groups' norms alone, and its prox gives each group a new norm."""
        spans = [slice(a, b) for a, b in pairwise(self.ends.tolist())]
        norms = np.array([np.linalg.norm(x[span]) for span in spans])
        turned = x.copy()
        for span, norm in zip(spans, norms, strict=True):
            other = self.rng.normal(size=span.stop - span.start)
            turned[span] = norm * other / np.linalg.norm(other) if len(other) else other
        cause = "r looks at more than the groups' norms: leave group_prox out"
        values = self.value(x), self.value(turned)
        self.expect("Proposition 1", values, abs(values[0]), "the same value for groups of the same norms", cause)
        new = self.examiner.call("group_prox", self.where, norms, step)
        right = isinstance(new, np.ndarray) and new.shape == norms.shape
        self.examiner.insist("Proposition 1", right, self.where, "one new norm for each", kind_of(new), "a reduction over groups")
        wanted = np.zeros(self.dim)
        for span, norm, length in zip(spans, norms, new, strict=True):
            wanted[span] = x[span] * (length / norm) if norm else 0.0
        found = self.prox(x, step)
        ok = float(np.abs(found - wanted).max(initial=0.0)) <= 1e-9 * (1.0 + float(np.abs(x).max(initial=0.0)))
        cause = "prox and group_prox of different functions, or another direction than the group's"
        self.examiner.expect("Proposition 1", ok, self.where, f"prox(w, {step:g}) = {brief(wanted)}", found, cause)

    def examine_terms(self, n_random: int) -> None:
        """r is the sum of its terms, each of which keeps the contract."""
        terms = self.examiner.call("terms", self.where)
        right = isinstance(terms, tuple) and terms and all(isinstance(term, Regulariser) for term in terms)
        self.examiner.insist("terms", right, self.where, "a tuple of Regularisers", kind_of(terms), "a list, or no terms")
        for w in (self.point(), self.point(), np.zeros(self.dim)):
            values = self.value(w), sum(float(term.value(w)) for term in terms)
            size = abs(values[0]) if np.isfinite(values[0]) else 0.0
            self.expect(
                "terms", values, size, "the sum of the terms' values, value(w)", "a term that is left out, or twice there"
            )
        for k, term in enumerate(terms):
            _Case(self.examiner, term, self.ends, f"{self.where}, term {k}").examine(n_random)

    def bound(self, loss: float, lam: float, u: list[Floats]) -> float:
        return self.number("bound", "a number", "an array in place of its sum", loss, lam, u)

    def number(self, method: str, expected: str, cause: str, *args: Any) -> float:
        """What a method gives, if that is a number."""
        found = self.examiner.call(method, self.where, *args)
        number = isinstance(found, int | float | np.floating) and not np.isnan(found)
        self.examiner.insist(method, number, self.where, f"{method} to give {expected}", kind_of(found), cause)
        return float(found)

    def dual_map(self) -> DualMap:
        found = self.examiner.call("dual_map", self.where)
        fault = found.fault(self.dim) if isinstance(found, DualMap) else f"expected a DualMap, got {kind_of(found)}"
        cause = "arrays that are not of one length, or made by hand: DualMap.of and DualMap.alike make them"
        self.examiner.insist("dual map", fault is None, self.where, "dual_map to give a table that fits", fault, cause)
        assert isinstance(found, DualMap)
        return found

    def examine_smooth(self, w: Floats) -> None:
        """What the optional methods say of the value."""
        value = self.value(w)
        if "squared_norm" in self.has:
            square = float(self.examiner.call("squared_norm", self.where, w))
            cause = "squared_norm is for 1/2 |w|^2 alone: trainers that ask for it take w for the dual point itself"
            self.expect("squared norm", (float(w @ w), square), square, "squared_norm(w) = |w|^2", cause)
            self.expect("squared norm", (value, 0.5 * square), square, "half of squared_norm(w), value(w)", cause)
        if "gradient" in self.has:
            stated, gradient = self.examiner.call("gradient", self.where, w)
            cause = "a factor left out: it is (r(w), its gradient), of the same r as `value`"
            self.expect("gradient", (value, float(stated)), abs(value), "the value that gradient gives", cause)
            h = self.rng.normal(size=self.dim)
            slope = (self.value(w + 1e-5 * h) - self.value(w - 1e-5 * h)) / 2e-5
            ok = abs(slope - float(gradient @ h)) <= 1e-5 * (1.0 + abs(slope) + abs(value))
            expected = f"<gradient, h> = {slope:.6g} by differences"
            self.examiner.expect("gradient", ok, self.where, expected, f"{float(gradient @ h):.6g}", cause)
        if "smooth_part" in self.has and np.isfinite(value):
            smooth, mu = self.examiner.call("smooth_part", self.where)
            right = "gradient" in capabilities(smooth) and mu >= 0
            cause = "a smooth part without `gradient`, or the two in the wrong order"
            self.examiner.insist("smooth part", right, self.where, "(smooth, mu), mu >= 0", (smooth, mu), cause)
            split = float(smooth.value(w)) + float(mu) * float(np.abs(w).sum())
            self.expect(
                "smooth part", (value, split), abs(value), "smooth.value(w) + mu |w|_1", "another mu, or another smooth part"
            )

    def examine_rescale(self, dual_map: DualMap) -> None:
        """Scales fit the dual map; for r of degree two their quadratic is never below r. Where they settle under fixed w, so that
        training can end there, the u of w is a slope of r, of any degree.
        """
        now, memory = dual_map, self.examiner.call("first_memory", self.where, len(dual_map.scale))
        for _ in range(5):
            now, memory = self.rescaled(now, memory, self.rng.exponential(size=len(now.scale)))
            w = self.rng.normal(size=self.dim)
            value, quadratic = self.value(w), now.value([w])
            square = np.isclose(self.value(2.0 * w), 4.0 * value)  # else r is the least of quadratics and constants
            ok = not square or value <= quadratic + 1e-9 * (1.0 + abs(value))
            cause = "scales that are not normalised: r(w) is the least of w^2 / (2 s) over all scales that are allowed"
            expected = f"value(w) of at most the sum of w^2 / (2 s), {quadratic:.9g}"
            self.examiner.expect("rescale", ok, self.where, expected, f"{value:.9g}", cause)
        w, before = dual_map.prox(self.point(), 0.0), np.zeros(1)
        for _ in range(SETTLED):
            if np.abs(now.scale - before).max() <= 1e-10 * now.scale.max():
                break
            scale, low, high = now.expanded(self.dim)
            u = np.divide(w, scale, out=np.zeros(self.dim), where=scale > 0.0)
            u += np.where(w > 0.0, high, np.where(w < 0.0, low, np.clip(0.0, low, high)))
            before = now.scale
            now, memory = self.rescaled(now, memory, now.squares([u]))
        else:
            self.examiner.skip("rescale", f"scales that still move after {SETTLED} passes under fixed weights")
            return
        value, cause = self.value(w), "scales that do not come to |w| / (dr / d|w|): the gap of trainers stays open"
        for y in (0.0 * w, 2.0 * w, *(w * np.exp(self.rng.normal(size=(4, self.dim))))):
            tangent, other = value + float(u @ (y - w)), self.value(y)
            ok = tangent <= other + 1e-4 * (abs(value) + abs(other))
            expected = f"where scales settle, a tangent at w of at most value(y), {other:.9g}"
            self.examiner.expect("rescale", ok, self.where, expected, f"{tangent:.9g}", cause)

    def rescaled(self, dual_map: DualMap, memory: Any, squares: Floats) -> tuple[DualMap, Any]:
        """(the map with new scales, memory), of the form that they must have."""
        found = self.examiner.call("rescale", self.where, dual_map.scale, memory, squares)
        cause = "scales alone: what it remembers of earlier passes comes with them, an array of one row per group"
        fits = isinstance(found, tuple) and len(found) == 2 and _remembers(found[1], memory)
        self.examiner.insist("rescale", fits, self.where, "rescale to give (scales, memory)", kind_of(found), cause)
        changed = dual_map._replace(scale=found[0])
        fault, cause = changed.fault(self.dim), "a division by zero, or a rule that goes below 0"
        self.examiner.insist("rescale", fault is None, self.where, "rescale to give one scale >= 0 per group", fault, cause)
        return changed, found[1]


def _remembers(found: object, before: Floats) -> bool:
    """Whether it can be kept in a state in place of the memory before: finite numbers of the same shape and type."""
    if not isinstance(found, np.ndarray) or found.shape != before.shape or found.dtype != before.dtype:
        return False
    return bool(np.isfinite(np.asarray(found, np.float64)).all())
