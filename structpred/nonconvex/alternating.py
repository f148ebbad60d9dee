"""Alternating optimisation: the classifier for the labels, the labels for the classifier."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats
from structpred.nonconvex.search import Search, Solution, Solver, random_labels
from structpred.runtime.settings import checked_whole


@dataclass(frozen=True)
class AlternatingOptimisation(Solver):
    """From the labels of the supervised classifier, or those given; then from random ones, `starts` in all; the best counts.

    starts: 0 continues until the budget is used up. Sindhwani, Keerthi & Chapelle 2006, without annealing.
    """

    name: ClassVar[str] = "ao"
    starts: int = 1

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        checked_whole(self.starts, "AlternatingOptimisation: starts", 0)
        p, done = search.supervised() if start is None else start, 0
        while not search.exhausted and (done < self.starts or self.starts == 0):
            search.offer(*search.climb(p), "climbed")
            p, done = random_labels(search.problem, rng), done + 1
        return search.solution(starts=done)
