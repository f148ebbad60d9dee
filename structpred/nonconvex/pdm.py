"""Parametric dual maximisation with the level sets left out: probes wherever the inner problem has a solution."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.nonconvex.branch_and_bound import EXACT, Tree
from structpred.nonconvex.growing import grow
from structpred.nonconvex.probes import boundary_probe, doubtful_probe, lifted_probe, tangent_value
from structpred.nonconvex.search import Search, Solution, Solver, random_labels

#: the share of probes that are the anchor's rays, of those about points in doubt, and of those from the labelled points alone
_RAYS, _DOUBTFUL, _FRESH = 1 / 20, 1 / 3, 1 / 20
#: more unlabelled points than this are too many for branch and bound to complete a probe
_MANY = 5_000
#: the least and the most inner problems of the branch and bound
#: that completes a probe; and how far above the best objective labels may be that grow
_NODES, _SLACK = (30, 300), 1.05


@dataclass(frozen=True)
class PDM(Solver):
    """Maximise the convex F(p) from local maxima, by probes q whose tangents promise more than the best F so far.

    A probe's value F(q) + g(q)' (u - q), the most that its tangent reaches on P at a vertex u, is a lower bound of F(u). The
    published algorithm looks for q on the level set of F, which no ray reaches before it leaves the box where F is finite
    (`PrintedPDM`); for the bound that is not needed, so q may be any point with a solution: on the boundary of the box, or
    with the weights of some points zero. Where the tangent of such a probe promises nothing, its open labels are filled in:
    they grow from the others, or a small branch and bound decides them; then alternating steps climb on. The objective never
    rises. Its end proves nothing: not all q were tried.

    degree: probes of a round, as a share of the number of unlabelled points (m in the paper is 0.1 and 0.2 of it).
    idle: rounds in a row that find nothing, after which it ends. max_inner: the most inner problems.

    Zhou, Kang & Spanos 2017, Algorithm 1, repaired.
    """

    name: ClassVar[str] = "pdm"
    degree: float = 0.2
    max_inner: int = 20_000
    idle: int = 30

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        if not self.degree > 0.0 or self.idle < 1:
            raise ParameterError(f"PDM: expected degree > 0 and idle >= 1, got {self.degree!r} and {self.idle!r}")
        search.offer(*search.climb(random_labels(search.problem, rng) if start is None else start), "start")
        anchor, _ = search.problem.anchor()
        m = max(10, round(self.degree * search.problem.u))
        tried = successes = idle = 0
        while idle < self.idle * m and not search.exhausted:
            better = probe(search, anchor, rng)
            tried, successes, idle = tried + 1, successes + better, 0 if better else idle + 1
        return search.solution(probes=tried, successes=successes)


def probe(search: Search, anchor: Floats, rng: np.random.Generator) -> bool:
    """One probe from the best labels; whether it led to better ones."""
    problem, inner, before = search.problem, search.inner, search.objective
    assert inner is not None
    draw = rng.random()
    if draw < _RAYS:
        at_q = search.solve(boundary_probe(anchor, rng))
        search.offer(*search.climb(tangent_value(problem, at_q)[0], at_q), "ray")
        return search.objective < before
    if draw > 1.0 - _FRESH:
        labels = np.zeros(problem.u, np.int64)
    else:
        labels = (doubtful_probe if draw < _RAYS + _DOUBTFUL else lifted_probe)(problem, search.p, inner, rng)
    at_q = search.solve((labels > 0).astype(float), (labels < 0).astype(float), inner, stop_at=before)
    if at_q.objective >= before:
        return False  # however the open labels are filled in
    u, value = tangent_value(problem, at_q)
    if value > -before:  # certainly better
        search.offer(*search.climb(u, at_q), "tangent")
    elif problem.u > _MANY or rng.random() < 0.5:
        rate = rng.choice([0.0 if problem.u <= _MANY else 0.03, 0.03, 0.1, 0.2])
        grown = grow(search, labels, at_q, rate, rng, before * _SLACK)
        if grown is not None:
            search.offer(*search.climb(*grown), "grown")
    else:
        more = int(np.exp(rng.uniform(*np.log(_NODES))))
        Tree(search, EXACT, labels, at_q, rng).run(min(search.max_inner, search.n_inner + more))
    return search.objective < before
