"""F along a segment of weights, region by region: exact, piecewise quadratic."""

from typing import NamedTuple

import numpy as np

from structpred.core.types import Floats
from structpred.nonconvex.problem import SemiSupervisedProblem
from structpred.nonconvex.regions import Region, region_of

#: how far beyond the end of a piece the next region is looked for: shorter pieces are skipped
_BEYOND = 1e-6


class Piece(NamedTuple):
    """J(p + t (q - p)) = a + b t + c t^2 for start <= t <= end, in one critical region. c <= 0."""

    start: float
    end: float
    a: float
    b: float
    c: float
    region: Region

    def value(self, t: float) -> float:
        """J there."""
        return self.a + t * (self.b + t * self.c)


def along(problem: SemiSupervisedProblem, p: Floats, q: Floats) -> list[Piece]:
    """The pieces of J = -F from p to q, one inner problem for each.

    In a region the solution is affine in t, so it ends where a free point reaches a bound or another one the margin.
    ParameterError where no support vector is strictly between its bounds (`region_of`).
    """
    pieces: list[Piece] = []
    t, inner = 0.0, None
    while t < 1.0:
        inside = min(t + _BEYOND, 1.0)
        inner = problem.solve((1.0 - inside) * p + inside * q, start=inner, tol=1e-10)
        region = region_of(problem, inner, tol=1e-8)
        end = _end(region, p, q, inside)
        at = np.array([t, 0.5 * (t + end), end])
        c, b, a = np.polyfit(at - t, [region.solution((1.0 - x) * p + x * q).objective for x in at], 2)
        pieces.append(Piece(t, end, a - b * t + c * t * t, b - 2.0 * c * t, c, region))
        t = end
    return pieces


def _end(region: Region, p: Floats, q: Floats, t: float) -> float:
    """Where the segment leaves the region after t, at most 1."""
    if t == 1.0:
        return t
    here, there = _room(region, (1.0 - t) * p + t * q), _room(region, q)
    falls = there < np.minimum(0.0, here)
    shares = np.maximum(here[falls], 0.0) / (np.maximum(here[falls], 0.0) - there[falls])
    return min(1.0, t + (1.0 - t) * float(shares.min(initial=1.0)))


def _room(region: Region, weights: Floats) -> Floats:
    """What is left to each bound of the free points and to each margin of the others; affine in the weights."""
    upper, lower = region.problem.boxes(weights, 1.0 - weights)
    found, s = region.solution(weights), region.free
    beta, kink = found.beta[s], (upper - lower)[s]
    least, most = np.where(region.sides > 0.0, -lower[s], kink), np.where(region.sides > 0.0, kink, upper[s])
    rest, y = np.delete(np.arange(region.problem.n), s), region.problem.y
    plus = np.where(region.paid_plus > 0.0, 1.0 - found.h, found.h - 1.0)[rest][y[rest] >= 0]
    minus = np.where(region.paid_minus > 0.0, found.h + 1.0, -1.0 - found.h)[rest][y[rest] <= 0]
    return np.concatenate([beta - least, most - beta, plus, minus])
