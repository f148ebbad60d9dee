"""Regularisers that break their contract, each in one way, with the rule and what the likely cause must say."""
# ruff: noqa: D101 - the name of a broken regulariser says what is wrong with it

import numpy as np

from structpred.core.regulariser import DualMap, Regulariser
from structpred.objectives.regularisers.composite import Composite
from structpred.objectives.regularisers.group_lasso import GroupLasso
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import L2
from structpred.projections.prox.groups import prox_of_group_norms


class HalfForgotten(L2):
    def value(self, w):
        return float(w @ w)


class StepForgotten(L1):
    def prox(self, w, step):
        return super().prox(w, 1.0)


class Constant(L2):
    def value(self, w):
        return super().value(w) + 1.0


class Negative(L2):
    def value(self, w):
        return -super().value(w)


class ArrayForSum(L2):
    def value(self, w):
        return w * w / 2


class HalfBound(L1):
    def bound(self, loss, lam, u):
        return loss - 2.0 * lam * self.dual_map().conjugate(u)


class ProudBound(L2):
    def bound(self, loss, lam, u):
        return loss - 0.25 * lam * sum(float(x @ x) for x in u)


class LastPiece(L2):
    def bound(self, loss, lam, u):
        return super().bound(loss, lam, list(u)[-1:])


class TooConvex(L2):
    strong_convexity = 2.0


class OtherMap(L1):
    def value(self, w):
        return L1(0.5).value(w)

    def prox(self, w, step):
        return L1(0.5).prox(w, step)

    def bound(self, loss, lam, u):
        return L1(0.5).bound(loss, lam, u)


class ShortTable(L2):
    def dual_map(self):
        return DualMap.of([1], 1.0)


class WiderType(L2):
    def prox(self, w, step):
        return w.astype(np.float64) / (1.0 + step)


class InPlace(L2):
    def prox(self, w, step):
        w /= 1.0 + step
        return w.copy()


class WrongGradient(L2):
    def gradient(self, w):
        return 0.5 * float(w @ w), 2.0 * w


class OutsideTheDomain(Regulariser):
    """1/2 |w|^2 over w >= 0."""

    def dual_map(self):
        return DualMap.alike(1.0, -np.inf, 0.0)

    def prox(self, w, step):
        return super().prox(w, step) if step else w.copy()


class Scaled(Regulariser):
    """|w|^2, which is not 1/2 |w|^2."""

    def dual_map(self):
        return DualMap.alike(0.5)

    def squared_norm(self, w):
        return 2.0 * float(w @ w)


class WrongSplit(L1):
    def smooth_part(self):
        return L2(), 2.0 * self.mu


class Forgets(L2):
    def grouped(self, groups, names):
        self.groups = groups


class Counts(L2):
    calls = 0

    def value(self, w):
        self.calls += 1
        return super().value(w) * (1 + 1e-6 * self.calls)


class TooNear(GroupLasso):
    def reach(self, value):
        return 0.5 * value


class OtherGroupProx(GroupLasso):
    def group_prox(self, norms, step):
        return np.maximum(norms - 2.0 * step, 0.0)

    def prox(self, w, step):
        found = prox_of_group_norms(super().group_prox, w.astype(np.float64), self.groups, step)
        return found.astype(w.dtype)


class LooksAtEntries(L2):
    def group_prox(self, norms, step):
        return norms / (1.0 + step)

    def value(self, w):
        return super().value(w) + 1e-3 * max(float(w[0]), 0.0) ** 2


class ForgetsATerm(Composite):
    def __init__(self):
        super().__init__(L2(), L1(0.1))

    def grouped(self, groups, names):
        return self

    def terms(self):
        return super().terms()[:1]


class SteeperScales(GroupLasso):
    """Its scales settle where abs(u_k) is 2 mu."""

    def slopes(self, norms):
        return 2.0 * super().slopes(norms)


class StiffScales(GroupLasso):
    def rescale(self, scale, memory, squares):
        return scale, memory


BROKEN = [
    (SteeperScales, "rescale", "the gap of trainers stays open"),
    (StiffScales, "rescale", "the gap of trainers stays open"),
    (TooNear, "reach", "a factor left out"),
    (OtherGroupProx, "Proposition 1", "different functions"),
    (LooksAtEntries, "Proposition 1", "more than the groups' norms"),
    (ForgetsATerm, "terms", "left out"),
    (HalfForgotten, "prox", "another r than `value`"),
    (StepForgotten, "prox", "without `step`"),
    (Constant, r"r\(0\) = 0", "a constant"),
    (Negative, "r >= 0", "a wrong sign"),
    (ArrayForSum, "value", "in place of its sum"),
    (HalfBound, "bound is tight", "a factor left out"),
    (ProudBound, "bound", "a factor left out"),
    (LastPiece, "bound in pieces", "restarts with each piece"),
    (TooConvex, "strong convexity", "strong_convexity = 2 is more than it has"),
    (OtherMap, "dual map", "low or high of another r"),
    (ShortTable, "dual map", "DualMap.of"),
    (WiderType, "prox", "cast back"),
    (InPlace, "mutated input", "work on a copy"),
    (WrongGradient, "gradient", "a factor left out"),
    (OutsideTheDomain, "prox to the domain", "step 0"),
    (Scaled, "squared norm", r"1/2 \|w\|\^2 alone"),
    (WrongSplit, "smooth part", "another mu"),
    (Forgets, "grouped", "a missing return"),
    (Counts, "nondeterminism", "state kept between calls"),
]
