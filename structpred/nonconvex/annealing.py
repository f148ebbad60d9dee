"""Annealing of the unlabelled weight: labels follow the classifier while C2 rises from almost nothing."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.nonconvex.search import Search, Solution, Solver


@dataclass(frozen=True)
class Annealing(Solver):
    """C2 rises by a constant factor from `first` of its value in `steps` steps, or a third of the budget; after each, labels and
    classifier alternate.

    The published method follows the path without steps, from one change of a label to the next; small steps see the same changes.
    Ogawa, Imamura, Takeuchi & Sugiyama 2013.
    """

    name: ClassVar[str] = "annealing"
    steps: int = 100
    first: float = 1e-4

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        if self.steps < 1 or not 0.0 < self.first <= 1.0:
            raise ParameterError(f"Annealing: expected steps >= 1 and first in (0, 1], got {self.steps!r} and {self.first!r}")
        p = search.supervised() if start is None else start
        whole, inner = search.problem, None
        try:
            for share in np.geomspace(self.first, 1.0, min(self.steps, 1 + self.max_inner // 3)):
                search.problem = whole.with_C2(share * whole.C2)
                p, inner = search.climb(p, inner)
                if search.exhausted:
                    break
        finally:
            search.problem = whole
        search.offer(p, None, "annealed")
        return search.solution()
