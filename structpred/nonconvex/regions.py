"""Critical regions: the weights of labels for which the solution of the inner problem is one affine function of them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import ParameterError
from structpred.nonconvex.problem import Inner, SemiSupervisedProblem


class Region(NamedTuple):
    """Where a set of points stays strictly between its bounds with h = sides, and all others keep theirs.

    free: the unbounded support vectors, sides: their h, +1 or -1. paid_plus, paid_minus: (n,) whether a label +1 or -1 is paid
    for (h < 1, h > -1), so that its dual variable is at its upper bound. Others are zero. at: a solution in the region.
    """

    problem: SemiSupervisedProblem
    free: Integers
    sides: Floats
    paid_plus: Floats
    paid_minus: Floats
    at: Inner

    def solution(self, plus: Floats, minus: Floats | None = None) -> Inner:
        """The solution of the inner problem for weights in the region; elsewhere that of its equations, which is not optimal.

        beta_i of a bounded point is a bound or zero, and for the changes of the free ones S, with k = K_S,

            k dbeta_S + db = -K_S,rest dbeta_rest,    sum(dbeta) = 0.

        This is equation (2) of Zhou, Kang & Spanos 2017 with the term - H 1 that is missing there, for twins of opposite labels,
        whose Q has no inverse; only the matrix of the free points is inverted, and it may be singular.
        """
        upper, lower = self.problem.boxes(plus, 1.0 - plus if minus is None else minus)
        gram, s, k = self.problem.gram, self.free, len(self.free)
        beta = self.paid_plus * upper - self.paid_minus * lower
        beta[s] = self.at.beta[s]
        change = beta - self.at.beta
        system = np.ones((k + 1, k + 1))
        system[:k, :k], system[k, k] = gram[np.ix_(s, s)], 0.0
        found = np.linalg.lstsq(system, -np.append(gram[s] @ change, change.sum()), rcond=None)[0]
        beta[s] += found[:k]
        b, f = self.at.b + float(found[k]), gram @ beta
        total = np.minimum(2.0 * upper - beta, 2.0 * lower + beta).sum()
        return Inner(beta, f, b, b, float(total - 0.5 * beta @ f))

    def hessian(self) -> Floats:
        """(u, u): the second derivatives of F in the region, positive semidefinite: Theorem 2 (2).

        Between regions that share a facet they differ by a multiple of a a', a the facet's normal: Theorem 2 (3) and (4).
        """
        gram, s, k = self.problem.gram, self.free, len(self.free)
        moves = self.problem.C2 * (self.paid_plus + self.paid_minus)  # beta_i for p_i
        moves[s] = 0.0
        system, sides = np.ones((k + 1, k + 1)), np.vstack([gram[s], np.ones(self.problem.n)])
        system[:k, :k], system[k, k] = gram[np.ix_(s, s)], 0.0
        left = gram - sides.T @ np.linalg.lstsq(system, sides, rcond=None)[0]
        return np.asarray((moves[:, None] * left * moves)[np.ix_(self.problem.unlabelled, self.problem.unlabelled)])

    def room(self, plus: Floats, minus: Floats | None = None) -> Floats:
        """What is left to each bound of the free points and to each margin of the others; affine in the weights."""
        upper, lower = self.problem.boxes(plus, 1.0 - plus if minus is None else minus)
        found, s = self.solution(plus, minus), self.free
        beta, kink = found.beta[s], (upper - lower)[s]
        least, most = np.where(self.sides > 0.0, -lower[s], kink), np.where(self.sides > 0.0, kink, upper[s])
        rest, y = np.delete(np.arange(self.problem.n), s), self.problem.y
        above = np.where(self.paid_plus > 0.0, 1.0 - found.h, found.h - 1.0)[rest][y[rest] >= 0]
        below = np.where(self.paid_minus > 0.0, found.h + 1.0, -1.0 - found.h)[rest][y[rest] <= 0]
        return np.concatenate([beta - least, most - beta, above, below])


def region_of(problem: SemiSupervisedProblem, inner: Inner, tol: float = 1e-6) -> Region:
    """The critical region about a solution of the inner problem, which must be accurate (tol=1e-9).

    ParameterError where no support vector is strictly between its bounds: the offset is then any number of an interval, F has no
    gradient, and `gradient_vertices` gives its subgradients.
    """
    h = inner.h
    free = np.flatnonzero(np.minimum(np.abs(h - 1.0), np.abs(h + 1.0)) <= tol)
    if inner.high - inner.low > tol or len(free) == 0:
        raise ParameterError("critical region: no support vector is strictly between its bounds, so F has no gradient here")
    return Region(problem, free, np.sign(h[free]), (h < 1.0).astype(float), (h > -1.0).astype(float), inner)


def gradient_vertices(problem: SemiSupervisedProblem, inner: Inner, tol: float = 1e-6) -> list[Floats]:
    """The vertices of the subgradients of F that the offset gives: one gradient, or one for each end of the offset's interval."""
    if inner.high - inner.low <= tol:
        return [problem.gradient(inner)]
    ends = (inner._replace(high=inner.low), inner._replace(low=inner.high))
    return [problem.gradient(end) for end in ends]


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
