"""Contract checks for losses and layers of part scores: gradients and pull-backs are derivatives; what is declared is true."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from structpred.contracts.engine import Examiner, Report, examined, kind_of
from structpred.core.oracle import Shape
from structpred.core.types import Floats
from structpred.errors import LossError
from structpred.layers.layer import Layer, LayerRecord
from structpred.layers.loss import Loss, LossRecord
from structpred.layers.record import Scores

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
        case, expect = _Case(examiner, loss, shapes), examiner.expect
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
        case = _Case(examiner, layer, shapes)
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


class _Case:
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
