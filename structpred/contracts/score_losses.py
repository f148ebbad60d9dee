"""Contract checks for losses of scores: of one score and one target, and of part scores, with their layers.

Every broken rule is explained, with the likely cause: gradients and pull-backs are derivatives, duals are conjugates, and what is
declared is true.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from structpred.contracts.engine import Examiner, Report, examined, kind_of
from structpred.core.oracle import Shape
from structpred.core.types import Flags, Floats
from structpred.errors import LossError
from structpred.layers.loss import Layer, LayerRecord, Loss, LossRecord
from structpred.layers.record import Scores
from structpred.rows.scalar_loss import DualTable, ScalarLoss

#: width of a difference, the shares of an interval that are tried, and the curvatures of dual steps
NARROW, SHARES, STEEP = 1e-6, np.linspace(0.0, 1.0, 101), (0.0, 0.01, 1.0, 100.0)


def check_scalar_loss(loss: ScalarLoss, *, n_random: int = 40, seed: int = 0) -> Report:
    """Check whether value, derivative, dual table, gamma and r_loss of a loss phi(z; y) agree.

    phi must be convex, finite and >= 0. The derivative must lie between the slopes to both sides, and change by at most
    |z - z'| / gamma. With a dual table, Fenchel and Young must hold, phi(z) + phi*(-a) + z a >= 0 for all a of the interval, with
    equality at a = -phi'(z), and no a may do better than the dual step.

    Parameters
    ----------
    loss : ScalarLoss
        With `dual_table`, or with `value` and `derivative`.
    n_random : int
        How many pairs of score and target are tried besides kinks, zero and scores of a thousand.
    seed : int
        Seed of these pairs.

    Raises
    ------
    LossError
        If a rule is broken. It lists every broken rule with the case, what was expected, what came and the likely cause.

    Examples
    --------
    >>> from structpred.objectives.scalar.margins import Hinge
    >>> check_scalar_loss(Hinge()).checked["dual step"] > 100
    True
    """

    def examine(examiner: Examiner, _: object) -> None:
        rng = examiner.rng
        y = (
            np.where(rng.random(n_random) < 0.5, 1.0, -1.0)
            if loss.signs
            else np.r_[0.0, 1.0, 3.0 * rng.normal(size=n_random - 2)]
        )
        z = rng.normal(size=n_random) * rng.choice([0.1, 1.0, 10.0], n_random)
        _Pairs(examiner, loss, np.concatenate([z, y, 0.0 * y, 1000.0 * y, -1000.0 * y]), np.tile(y, 5)).examine()

    return examined(loss, examine, LossError, seed, [(5 * n_random,)])


class _Pairs:
    """One loss at many pairs of scores and targets at once."""

    def __init__(self, examiner: Examiner, loss: ScalarLoss, z: Floats, y: Floats) -> None:
        self.examiner, self.loss, self.z, self.y = examiner, loss, z, y
        self.table = self.dual_table() if hasattr(loss, "dual_table") else None
        self.values, self.slopes = self.numbers("value", z, y), self.numbers("derivative", z, y)
        self.sizes = 1.0 + np.abs(z) + np.abs(y) + self.values

    def examine(self) -> None:
        z, y, values = self.z, self.y, self.values
        self.each("phi >= 0", values >= 0.0, "value >= 0", values, "a constant left out, or a wrong sign")
        some = np.arange(len(z)) % 3 == 0
        again = self.numbers("value", z[some], y[some])
        same = np.ones(len(z), bool)
        same[some] = again == values[some]
        self.each("each on its own", same, "the same value among other samples", values, "a mean or a sum over samples")
        self.examine_slopes()
        gamma, rng = self.loss.gamma, self.examiner.rng
        both = not (gamma > 0.0 and self.loss.piecewise_linear)
        cause = "a maximum of linear functions has kinks, so gamma is 0"
        self.examiner.expect("smoothness", both, "the attributes", "gamma = 0 where piecewise_linear", gamma, cause)
        if gamma > 0.0:
            apart = self.z + rng.normal(size=len(self.z)) * rng.choice([1e-3, 0.1, 10.0], len(self.z))
            change = np.abs(self.numbers("derivative", apart, self.y) - self.slopes)
            most = np.abs(apart - self.z) / gamma
            expected = f"a derivative that changes by at most |z - z'| / gamma, gamma = {gamma:g}"
            self.each("smoothness", change <= most * (1.0 + 1e-9) + 1e-12, expected, change, "a gamma that is too large")
        at_zero, shares = self.numbers("value", 0.0 * z, y), self.examiner.rng.dirichlet(np.ones(len(y)))
        cause = "it is the mean (or weighted sum) of phi(0; y_i), which depends on the targets"
        for args, wanted in (((y,), float(at_zero.mean())), ((y, shares), float(shares @ at_zero))):
            found = self.examiner.call("r_loss", "all targets", *args)
            ok = abs(found - wanted) <= 1e-9 * (1.0 + abs(wanted))
            self.examiner.expect("r_loss", ok, "all targets", f"{wanted:.9g}, by `value`", found, cause)
        if self.table is not None:
            self.examine_dual(self.table)
        else:
            self.examiner.skip("dual step", "no dual_table(y): trainers that ascend the dual refuse it")

    def numbers(self, method: str, *args: Floats) -> Floats:
        """What a method gives, if that is one finite number a sample."""
        found = self.examiner.call(method, "all pairs", *args)
        expected, cause = f"{method} to give one float64 a sample", "a single number, or another type of array"
        right = isinstance(found, np.ndarray) and found.dtype == np.float64 and found.shape == args[0].shape
        self.examiner.insist(method, right, "all pairs", expected, kind_of(found), cause)
        self.examiner.finite(found, "all pairs", method)
        return np.asarray(found)

    def each(self, rule: str, ok: Flags, expected: str, came: Floats, cause: str) -> None:
        """One check a pair; the first that fails is reported."""
        self.examiner.checked[rule] += len(self.z) - 1
        k = int(np.argmin(ok))
        self.examiner.expect(rule, bool(ok[k]), f"z = {self.z[k]:.6g}, y = {self.y[k]:.6g}", expected, f"{came[k]:.9g}", cause)

    def examine_slopes(self) -> None:
        z, slopes = self.z, self.slopes
        below, above = (self.numbers("value", z + step, self.y) for step in (-NARROW, NARROW))
        room = 1e-9 * self.sizes / NARROW * 1e-3 + 1e-9
        low, high = (self.values - below) / NARROW - room, (above - self.values) / NARROW + room
        cause = "the derivative of another function than `value`, a wrong sign, or one that is not convex"
        expected = "a derivative between the slopes to both sides"
        self.each("derivative", (low <= slopes) & (slopes <= high), expected, slopes, cause)
        other = self.examiner.rng.permutation(z)
        chord = 0.5 * (self.values + self.numbers("value", other, self.y))
        middle = self.numbers("value", 0.5 * (z + other), self.y)
        expected = "half way between two scores at most the mean of their losses"
        ok = middle <= chord + 1e-9 * (self.sizes + np.abs(chord))
        self.each("convexity", ok, expected, middle, "phi is not convex: its dual bounds nothing")

    def dual_table(self) -> DualTable:
        found = self.examiner.call("dual_table", "all targets", self.y)
        fault = found.fault(len(self.y)) if isinstance(found, DualTable) else f"a DualTable is expected, not {kind_of(found)}"
        cause = "arrays made by hand: DualTable.of makes them"
        self.examiner.insist("dual table", fault is None, "all targets", "a table that fits", fault, cause)
        assert isinstance(found, DualTable)
        return found

    def examine_dual(self, table: DualTable) -> None:
        z, a = self.z, -self.slopes
        excess = self.values + self.conjugate(a) + z * a
        expected = "phi(z) + phi*(-a) + z a = 0 at a = -derivative(z)"
        cause = "the table, or `value`, of another function: phi*(-a) = max_z -a z - phi(z)"
        self.each("conjugate is tight", np.abs(excess) <= 1e-9 * self.sizes, expected, excess, cause)
        least, most = np.maximum(table.low, a - 5.0), np.minimum(table.high, a + 5.0)
        old = np.clip(self.examiner.rng.normal(size=len(z)), table.low, table.high)
        tried = [least + share * (most - least) for share in SHARES] + [old]
        known = [(trial, self.conjugate(trial)) for trial in tried]
        for trial, value in known:
            excess = self.values + value + z * trial
            expected = "phi(z) + phi*(-a) + z a >= 0 for every a (Fenchel and Young)"
            self.each("Fenchel and Young", excess >= -1e-9 * self.sizes, expected, excess, cause)
        for q in STEEP:
            # no point of a grid has more of what the step maximises
            new = self.numbers("dual_step", old, self.z, np.full(len(old), q), self.y)
            cause = "an interval that the step forgets"
            self.each("dual step", (new >= table.low) & (new <= table.high), "a step within the interval", new, cause)
            near = [np.clip(new + step, table.low, table.high) for step in (-1e-4, 1e-4)]
            best = self.gained(new, self.conjugate(new), old, q)
            expected = f"no a with more of -phi*(-a) - z (a - old) - {q:g}/2 (a - old)^2"
            for trial, value in (*known, *((trial, self.conjugate(trial)) for trial in near)):
                ok = best >= self.gained(trial, value, old, q) - 1e-9 * (self.sizes + q * (1.0 + np.abs(self.slopes)) ** 2)
                self.each("dual step", ok, expected, new, "the step of another conjugate, or of another curvature q")

    def gained(self, a: Floats, conjugate: Floats, old: Floats, q: float) -> Floats:
        return -conjugate - self.z * (a - old) - 0.5 * q * (a - old) ** 2

    def conjugate(self, a: Floats) -> Floats:
        found = self.examiner.call("conjugate", "all pairs", a, self.y)
        right = isinstance(found, np.ndarray) and found.shape == a.shape and not np.isnan(found).any()
        self.examiner.insist("conjugate", right, "all pairs", "one number or inf a sample", kind_of(found), "inf * 0")
        return np.asarray(found)


#: half the distance of two scores whose difference shows the slope, and how many such pairs are tried
WIDTH, TIMES = 1e-5, 6


def check_score_loss(loss: Loss, *, shapes: Iterable[Shape] | None = None, seed: int = 0) -> Report:
    """Check a loss of part scores: its gradient is the derivative of its value; `smooth` and `nonnegative` are true.

    Tried is a batch of `shapes` (None: the oracle's example shapes) at random scores; gold outputs are best at others. A `smooth`
    loss must lie above its tangents; one with noise that is not smooth has an estimate for a gradient, which is not compared.
    Raises LossError, which lists every broken rule.

    >>> from structpred.layers import CRF
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> check_score_loss(CRF(MulticlassOracle())).checked["gradient"]
    3
    """

    def examine(examiner: Examiner) -> None:
        case, expect = _Batch(examiner, loss, shapes), examiner.expect
        truth, dots = case.draw(), case.batch.dots
        gold = case.batch.counts(case.batch.best(truth))
        given = {"gold": gold, "true_scores": truth, "costs": np.where(gold > 0.0, -1.0, 1.0)}
        options = {name: value for name, value in given.items() if name in loss.takes}
        for _ in range(TIMES):
            theta, way, far = (case.draw() for _ in range(3))
            here, behind, ahead, there, again = (
                case.at(x, LossRecord, "gradient", **options)
                for x in (theta, theta - WIDTH * way, theta + WIDTH * way, far, theta)
            )
            examiner.near("nondeterminism", again.values, here.values, "a batch", "the same values", "noise of no seed", 0.0)
            ok, cause = not loss.nonnegative or (here.values >= -1e-9).all(), "a constant left out; else set nonnegative = False"
            expect("nonnegative", ok, "a batch", "values >= 0", here.values, cause)
            if loss.smooth:
                low = here.values + dots(here.gradient, far - theta) - there.gap
                room = 1e-7 * (1.0 + np.abs(there.values) + dots(np.abs(here.gradient), np.abs(far - theta)))
                cause = "not convex, or another slope: set smooth = False"
                expect("convexity", (low <= there.values + room).all(), "a batch", "tangents below the values", low, cause)
            if loss.smooth or here._flips is None:
                slopes = (ahead.values - behind.values) / (2.0 * WIDTH)
                case.pairs.append((slopes, dots(0.5 * (ahead.gradient + behind.gradient), way)))
        case.compare("gradient")

    return examined(loss, examine, LossError, seed)


def check_layer(layer: Layer, *, shapes: Iterable[Shape] | None = None, seed: int = 0) -> Report:
    """Check a layer: mu in the hull of outputs; where it is `smooth` a linear pull-back, which is the derivative of mu.

    Tried is a batch of `shapes` (None: the oracle's example shapes) at random scores. mu is in the hull if no direction, drawn or
    towards mu, leads further than the best output there. Raises LossError, which lists every broken rule.

    >>> from structpred.layers import SoftLayer
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> check_layer(SoftLayer(MulticlassOracle())).checked["pull-back"]
    3
    """

    def examine(examiner: Examiner) -> None:
        case = _Batch(examiner, layer, shapes)
        dots = case.batch.dots
        for _ in range(TIMES):
            theta, way, bar, other = (case.draw() for _ in range(4))
            points = (theta, theta - WIDTH * way, theta + WIDTH * way, theta)
            here, behind, ahead, again = (case.at(x, LayerRecord, "mu") for x in points)
            examiner.near("nondeterminism", again.mu, here.mu, "a batch", "the same mu", "noise of no seed", 0.0)
            for way_out in (other, here.mu - case.batch.counts(case.batch.best(theta))) if layer.oracle.exact else ():
                excess = dots(way_out, here.mu) - case.batch.best(way_out).values
                ok, cause = (excess <= 1e-6 * (1.0 + dots(np.abs(way_out), np.abs(here.mu)))).all(), "a sum that is no mean"
                examiner.expect("hull", ok, "a batch", "a point of the hull of outputs", f"{excess.max():.3g} outside", cause)
            one, two, both = (examiner.ask(here.pull, "the pull-back", g) for g in (bar, other, bar - 2.0 * other))
            examiner.numbers(one, case.batch.size, "the pull-back", "pull")
            if layer.smooth:
                expected, cause = "a linear map, the same in each call", "something is kept, or drawn, in the pull-back"
                examiner.near("linear", both, one - 2.0 * two, "the pull-back", expected, cause, 1e-6)
                case.pairs.append((dots(ahead.mu - behind.mu, bar) / (2.0 * WIDTH), dots(one, way)))
        case.compare("pull-back")

    return examined(layer, examine, LossError, seed)


class _Batch:
    """A batch, and pairs of a difference quotient and what was said of it, for each instance."""

    def __init__(self, examiner: Examiner, thing: Any, shapes: Iterable[Shape] | None) -> None:
        self.examiner, self.thing, oracle = examiner, thing, thing.oracle
        tried = oracle.example_shapes() if shapes is None else shapes
        self.batch = Scores.of(oracle, [shape for shape in tried if oracle.n_parts(shape)])
        self.pairs: list[tuple[Floats, Floats]] = []

    def draw(self) -> Floats:
        return self.examiner.rng.normal(size=self.batch.size)

    def at(self, theta: Floats, kind: type, numbers: str, **options: Any) -> Any:
        found = self.examiner.ask(self.thing, "a batch", self.batch, theta, **options)
        cause = "write `terms` or `point`, not `__call__`"
        self.examiner.insist("record", isinstance(found, kind), "a batch", f"a {kind.__name__}", kind_of(found), cause)
        self.examiner.numbers(getattr(found, numbers), self.batch.size, "a batch", numbers)
        return found

    def compare(self, rule: str) -> None:
        """Kinks may lie between two scores, but not half the time."""
        if not self.pairs:
            return self.examiner.skip(rule, "it is an estimate, and no derivative")
        slopes, found = (np.array(own) for own in zip(*self.pairs, strict=True))
        wrong = np.abs(slopes - found) > 1e-4 * (1.0 + np.abs(slopes))
        for k in range(wrong.shape[1]):
            at, cause = int(wrong[:, k].argmax()), "the derivative of another function, or a factor or sign left out"
            expected = f"the difference quotient {slopes[at, k]:.9g}"
            self.examiner.expect(rule, wrong[:, k].sum() < TIMES / 2, f"instance {k}", expected, f"{found[at, k]:.9g}", cause)
        return None
