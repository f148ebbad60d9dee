"""BMRM with a line search in place of the quadratic program: two planes, an aggregate of all former ones and the newest."""

from typing import Annotated, NamedTuple

import numpy as np

from structpred.core.types import Floats
from structpred.trainers.planes.bundles import Bundle, BundleMethod, Plane, line_search
from structpred.trainers.problem import Problem
from structpred.trainers.states import Values


class Aggregate(NamedTuple):
    """A convex combination of all planes so far: R(w) >= offset - <w, slope>.

    scale: of each group of the dual map, now. memory: what the regulariser remembers of earlier scales.
    """

    slope: Floats
    offset: Floats
    scale: Annotated[Floats, Values(0)]
    memory: Floats


class LineSearchBMRM(BundleMethod):
    """Bundle method whose memory and time for an iteration do not grow, under any regulariser whose conjugate is known.

    The aggregate plane R(w) >= bbar - <w, abar> is a convex combination of all planes so far; w = grad r*(abar / lam) minimises
    lam r(w) plus the plane. The step eta in [0, 1] towards the newest plane (a, b) maximises the dual value of both,

        (1 - eta) bbar + eta b - lam r*((1 - eta) abar / lam + eta a / lam),

    exactly: a concave function whose slope is piecewise linear. For 1/2 |w|^2 this is
    eta = clip((lam (b - bbar) - <abar, a - abar>) / |a - abar|^2, 0, 1), and 1 where the planes are parallel and b is larger.
    One "pass" is one iteration; after t of them the gap is O(1 / (lam t)), and in the worst case no better.

    References
    ----------
    Teo, Vishwanathan, Smola and Le (2010), ls-BMRM; Saha, Zhang and Vishwanathan (2009), equations 3 and 4.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=LineSearchBMRM(), max_iter=200, tol=0.05).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    name = "ls_bmrm"
    regulariser_requires = ("dual_map",)

    def empty(self, problem: Problem) -> Aggregate:
        """The zero plane, and the regulariser's first scales."""
        scale = problem.dual_map.scale.copy()
        return Aggregate(np.zeros(problem.task.dim), np.array(0.0), scale, problem.regulariser.first_memory(len(scale)))

    def improved(self, problem: Problem, model: Aggregate, plane: Plane) -> Aggregate:
        """The aggregate after the line search; new scales where the regulariser adapts them."""
        dual_map = problem.dual_map._replace(scale=model.scale)
        eta = line_search(dual_map, Plane(model.slope, model.offset), plane, problem.lam)
        slope = (1.0 - eta) * model.slope + eta * plane.slope
        offset = np.array((1.0 - eta) * float(model.offset) + eta * float(plane.offset))
        scales = model.scale, model.memory
        if problem.regulariser.adapts:
            scales = problem.regulariser.rescale(*scales, dual_map.squares([slope / problem.lam]))
        return Aggregate(slope, offset, *scales)

    def solution(self, problem: Problem, model: Aggregate) -> tuple[Floats, float]:
        """w = grad r*(abar / lam), and the dual value bbar - lam r*(abar / lam)."""
        u = model.slope / problem.lam
        w = problem.dual_map._replace(scale=model.scale).weights(u)
        return w, problem.regulariser.bound(float(model.offset), problem.lam, [u])

    def report(self, problem: Problem, state: Bundle) -> dict[str, Floats]:
        """dual_point: u, where w is not linear in it."""
        return {} if problem.dual_map.linear else {"dual_point": state.model.slope / problem.lam}
