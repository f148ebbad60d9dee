"""The concave-convex procedure in the classifier: the concave part of each loss is replaced by its tangent."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats
from structpred.nonconvex.problem import Inner
from structpred.nonconvex.search import Search, Solution, Solver


@dataclass(frozen=True)
class CCCP(Solver):
    """min(V(1, h), V(-1, h)) = V(1, h) + V(-1, h) - (1 + |h|) or less, and the tangent of |h| at label s is s h.

    Each step solves the convex problem with C2 (V(1, h) + V(-1, h) - s h - 1) at the unlabelled points, which is above the loss
    of label s; then s are the labels that suit its classifier, until they stay the same. Collobert et al. 2006.
    """

    name: ClassVar[str] = "cccp"
    unlabelled_only: ClassVar[bool] = True

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        from structpred.nonconvex._dual_kernels import smo

        problem, seen = search.problem, set[bytes]()
        upper, lower = problem.boxes(np.ones(problem.u), np.ones(problem.u))
        shift = np.zeros(problem.n)
        p = search.supervised() if start is None else start
        while p.tobytes() not in seen and not search.exhausted:
            seen.add(p.tobytes())
            search.offer(p, None, "step")
            search.n_inner += 1
            # gamma = beta - C2 s in [-C2, C2] at unlabelled points, bent at 0
            shift[problem.unlabelled] = problem.C2 * (2.0 * p - 1.0)
            gamma, f = -shift, np.zeros(problem.n)  # beta = 0
            settings = search.tol, np.inf, problem.max_steps
            _, value, low, high = smo(problem.gram, problem.diagonal, upper, lower, gamma, f, *settings)
            p = problem.best_vertex(problem.gradient(Inner(gamma + shift, f, low, high, value)))
        return search.solution(steps=len(seen))
