"""The default solver: a dive and a try to prove first, probes where that does not suffice, and the rest of the proof last."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.errors import ParameterError
from structpred.nonconvex.branch_and_bound import whole_tree
from structpred.nonconvex.growing import grow
from structpred.nonconvex.pdm import probe
from structpred.nonconvex.problem import Floats
from structpred.nonconvex.search import Search, Solution, Solver, random_labels


@dataclass(frozen=True)
class StagedSearch(Solver):
    """Branch and bound, probes of the incumbent, and branch and bound again with what they found.

    1. Branch and bound, whose first dive finds good labels, with the share `first` of the budget; where it closes, all is proven.
    2. Labels that grow from the labelled points in larger steps, and those of the start, or of the labelled points; each climbs.
    3. Probes as in `PDM`, until the share `last` of the budget is left.
    4. Branch and bound goes on where it was.

    max_inner: the most inner problems.
    """

    name: ClassVar[str] = "staged"
    first: float = 0.3
    last: float = 0.2

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        if min(self.first, self.last) < 0.0 or self.first + self.last > 1.0:
            raise ParameterError(f"StagedSearch: first + last must be in [0, 1], got {self.first!r} + {self.last!r}")
        tree = whole_tree(search)
        tree.run(round(self.first * self.max_inner))
        if tree.open:
            self._heuristics(search, rng, start)
        tree.run(self.max_inner)
        return search.solution(tree.level, tree.bound(), nodes=tree.nodes)

    def _heuristics(self, search: Search, rng: np.random.Generator, start: Floats | None) -> None:
        """Stages 2 and 3."""
        problem, until = search.problem, round((1.0 - self.last) * self.max_inner)
        for p in (search.supervised(), random_labels(problem, rng) if start is None else start):
            search.offer(*search.climb(p), "start")
        for batch in sorted({2, 1 + problem.u // 50, 1 + problem.u // 20}):
            grown = grow(search, np.zeros(problem.u, np.int64), search.root(), batch, stop_at=search.objective)
            if grown is not None:
                search.offer(*search.climb(*grown), "grown")
        anchor, _ = problem.anchor()
        while search.n_inner < until:
            probe(search, anchor, rng)
