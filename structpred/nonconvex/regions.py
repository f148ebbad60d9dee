"""Critical regions: the weights of labels for which the solution of the inner problem is one affine function of them."""

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

    def contains(self, plus: Floats, minus: Floats | None = None, tol: float = 1e-7) -> bool:
        """Whether the equations give the optimum there: free points between their bounds, the others on their sides.

        Of solutions that are not unique, such as those with copies of a point, they give only one: then False proves nothing.
        """
        found = self.solution(plus, minus)
        inside = (self.room(plus, minus) >= -tol).all() and abs(found.beta.sum()) <= tol
        return bool(inside and np.allclose(found.h[self.free], self.sides, atol=1e-6))

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
