"""Parametric dual maximisation as printed: level sets along rays from the anchor. It shows what is wrong with it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats
from structpred.nonconvex.pdm import reach
from structpred.nonconvex.regions import gradient_vertices
from structpred.nonconvex.search import LOOSE, Search, Solution, Solver, random_labels
from structpred.runtime.settings import checked_positive


@dataclass(frozen=True)
class PrintedPDM(Solver):
    """Algorithm 1 of Zhou, Kang & Spanos 2017, with the anchor p* in closed form. A reference: use `PDM`.

    Its lemma 2, that every ray from p* meets the level set F(q) = F(r), does not hold: F is infinite outside [0, 1]^u, and rays
    leave that box first. Such rays give no point. report: "rays" tried, those that
    "reached" the level set, and how often that "improved" a local solution.
    degree: m, the number of directions, as a share of the number of unlabelled points.
    """

    name: ClassVar[str] = "printed_pdm"
    unlabelled_only: ClassVar[bool] = True
    degree: float = 0.1

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        checked_positive(self.degree, "PrintedPDM: degree")
        problem = search.problem
        anchor, _ = problem.anchor()  # p*
        m = min(problem.u, max(1, round(self.degree * problem.u)))
        p = random_labels(problem, rng) if start is None else start
        rays = reached = improved = 0
        while not search.exhausted:
            r, inner = search.climb(p)  # the local maximiser r
            search.offer(r, inner, "local")
            directions = np.linalg.qr(rng.normal(size=(problem.u, m)))[0].T  # h^1 .. h^m, orthonormal
            tests = []
            for ray in directions:
                rays += 1
                q = _on_level_set(search, anchor, ray, -inner.objective)  # (9), (10)
                if q is None:
                    continue
                reached += 1
                at_q = search.solve(q)
                for g in gradient_vertices(problem, at_q):  # g^j
                    u = problem.best_vertex(g)  # the linear program
                    tests.append((float(g @ (u - q)), u))
            best = max(tests, key=lambda one: one[0], default=(0.0, r))
            if best[0] <= 0.0:  # "optimality checked"
                break
            p, improved = best[1], improved + 1
        return search.solution(rays=rays, reached=reached, improved=improved)


def _on_level_set(search: Search, anchor: Floats, ray: Floats, level: float) -> Floats | None:
    """The q = p* + gamma ray, gamma > 0, with F(q) = level, by bisection; None where the ray leaves the box before."""
    far = reach(anchor, ray)
    if -search.solve(np.clip(anchor + far * ray, 0.0, 1.0)).objective < level:
        return None
    near = 0.0
    while far - near > LOOSE * far and not search.exhausted:
        middle = 0.5 * (near + far)
        value = -search.solve(np.clip(anchor + middle * ray, 0.0, 1.0)).objective
        near, far = (middle, far) if value < level else (near, middle)
    return np.clip(anchor + far * ray, 0.0, 1.0)
