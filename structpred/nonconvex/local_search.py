"""Local combinatorial search: swap the labels of the pair that gains most, while the unlabelled weight grows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.nonconvex.problem import SemiSupervisedProblem
from structpred.nonconvex.search import Search, Solution, Solver


@dataclass(frozen=True)
class LocalSearch(Solver):
    """From the labels of the supervised classifier, with C2 doubling from `first` of its value.

    With a balance the positive and the negative point whose swap lowers the loss most change labels and the classifier is trained
    again, until no swap lowers it; without, single points do. Joachims 1999.
    """

    name: ClassVar[str] = "local_search"
    first: float = 1e-3

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        if not 0.0 < self.first <= 1.0:
            raise ParameterError(f"LocalSearch: first must be in (0, 1], got {self.first!r}")
        p = search.supervised() if start is None else start
        share, swaps = self.first, 0
        while True:
            problem = search.problem.with_C2(share * search.problem.C2)
            inner = problem.solve(p)
            search.n_inner += 1
            while not search.exhausted and len(pair := _best_change(problem, p, problem.gradient(inner))):
                p = p.copy()
                p[pair] = 1.0 - p[pair]
                inner, swaps = problem.solve(p, start=inner), swaps + 1
                search.n_inner += 1
            if share == 1.0 or search.exhausted:
                break
            share = min(1.0, 2.0 * share)
        search.offer(p, None, "swapped")
        return search.solution(swaps=swaps)


def _best_change(problem: SemiSupervisedProblem, p: Floats, gradient: Floats) -> list[int]:
    """The positive point with the least, the negative one with the largest gain of +1, if swapping saves; or one point."""
    plus, minus = np.flatnonzero(p > 0.5), np.flatnonzero(p < 0.5)
    i = int(plus[gradient[plus].argmin()]) if len(plus) else -1
    j = int(minus[gradient[minus].argmax()]) if len(minus) else -1
    least = 1e-6 * problem.C2
    if problem.positives is not None:
        return [i, j] if i >= 0 and j >= 0 and gradient[j] - gradient[i] > least else []
    save_i, save_j = (-gradient[i] if i >= 0 else 0.0), (gradient[j] if j >= 0 else 0.0)
    if max(save_i, save_j) <= least:
        return []
    return [i] if save_i >= save_j else [j]
