"""F along a segment of weights, region by region: exact, piecewise quadratic."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from structpred.core.types import Floats
from structpred.nonconvex.problem import SemiSupervisedProblem
from structpred.nonconvex.regions import Region, region_of

#: how far beyond the end of a piece the next region is looked for: shorter pieces are skipped
_BEYOND = 1e-6


class Piece(NamedTuple):
    """J(p + t (q - p)) = a + b t + c t^2 for start <= t <= end, in one critical region. c <= 0.

    h: (2, n), the decision values at both ends; they are affine between them.
    """

    start: float
    end: float
    a: float
    b: float
    c: float
    region: Region
    h: Floats

    def value(self, t: float) -> float:
        """J there."""
        return self.a + t * (self.b + t * self.c)


def along(problem: SemiSupervisedProblem, p: Floats, q: Floats) -> Iterator[Piece]:
    """The pieces of J = -F from p to q, one inner problem for each.

    p, q: (u,), the weights of label +1, or (2, u), those of both labels, which need not sum to one: from s (p, 1 - p) to
    (p, 1 - p) C2 rises from s times its value. In a region the solution is affine in t, so it ends where a free point reaches a
    bound or another one the margin.
    ParameterError where no support vector is strictly between its bounds (`region_of`).
    """
    first, last = (np.stack([one, 1.0 - one]) if one.ndim == 1 else one for one in (p, q))
    t, inner = 0.0, None
    while t < 1.0:
        inside = min(t + _BEYOND, 1.0)
        plus, minus = weights = (1.0 - inside) * first + inside * last
        inner = problem.solve(plus, minus, inner, tol=1e-10)
        region = region_of(problem, inner, tol=1e-8)
        here, there = region.room(*weights), region.room(*last)
        falls = there < np.minimum(0.0, here)
        shares = np.maximum(here[falls], 0.0) / (np.maximum(here[falls], 0.0) - there[falls])
        end = min(1.0, inside + (1.0 - inside) * float(shares.min(initial=1.0)))  # where the segment leaves the region
        at = np.array([t, 0.5 * (t + end), end])
        found = [region.solution(*((1.0 - x) * first + x * last)) for x in at]
        c, b, a = np.polyfit(at - t, [one.objective for one in found], 2)
        yield Piece(t, end, a - b * t + c * t * t, b - 2.0 * c * t, c, region, np.array([found[0].h, found[2].h]))
        t = end
