"""Scalar losses that break their contract, each in one way, with the rule and what the likely cause must say."""
# ruff: noqa: D101 - the name of a broken loss says what is wrong with it

import numpy as np

from structpred.objectives.scalar.errors import Absolute, Squared
from structpred.objectives.scalar.margins import Hinge, Logistic
from structpred.rows.scalar_loss import ScalarLoss


class SignOfTheSlope(Squared):
    def derivative(self, z, y):
        return y - z


class HalfForgotten(Squared):
    def value(self, z, y):
        return (z - y) ** 2


class BelowZero(Absolute):
    def value(self, z, y):
        return np.abs(z - y) - 1.0


class MeanOfAll(Absolute):
    def value(self, z, y):
        return np.abs(z - y) + 1e-3 * np.abs(z).mean()


class NotConvex(ScalarLoss):
    def value(self, z, y):
        return np.log1p((z - y) ** 2)

    def derivative(self, z, y):
        return 2.0 * (z - y) / (1.0 + (z - y) ** 2)


class TooSmooth(Logistic):
    gamma = 8.0


class SmoothCorner(Hinge):
    gamma = 1.0


class OtherTable(Logistic):
    def dual_table(self, y):
        table = super().dual_table(y)
        return table._replace(entropy=2.0 * table.entropy)


class EndlessTable(Hinge):
    def dual_table(self, y):
        return super().dual_table(y)._replace(high=np.full(len(y), np.inf))


class ShortStep(Squared):
    def dual_step(self, old, z, q, y):
        return 0.5 * (old + super().dual_step(old, z, q, y))


class StepWithoutEnds(Hinge):
    def dual_step(self, old, z, q, y):
        return old + (y - z) / (q + 1e-3)


class OneAtZero(Squared):
    def r_loss(self, y, shares=None):
        return 1.0


class OneNumber(Squared):
    def value(self, z, y):
        return float(((z - y) ** 2).sum() / 2)


class Changing(Squared):
    def value(self, z, y):
        z -= y
        return z * z / 2


BROKEN = [
    (SignOfTheSlope, "derivative", "a wrong sign"),
    (HalfForgotten, "derivative", "another function than `value`"),
    (BelowZero, "phi >= 0", "a constant left out"),
    (MeanOfAll, "each on its own", "a mean or a sum"),
    (NotConvex, "convexity", "not convex"),
    (TooSmooth, "smoothness", "too large"),
    (SmoothCorner, "smoothness", "kinks"),
    (OtherTable, "conjugate is tight", "the table"),
    (EndlessTable, "dual table", "made by hand"),
    (ShortStep, "dual step", "the step of another conjugate"),
    (StepWithoutEnds, "dual step", "an interval"),
    (OneAtZero, "r_loss", "depends on the targets"),
    (OneNumber, "value", "a single number"),
    (Changing, "mutated input", "in place"),
]
