"""The default solver: labels along paths, a dive and a try to prove, probes where that does not suffice, and the proof again."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.nonconvex.branch_and_bound import block_bound, whole_tree
from structpred.nonconvex.gradient import GradientDescent
from structpred.nonconvex.pdm import PDM, probe
from structpred.nonconvex.problem import FeatureProblem, SemiSupervisedProblem
from structpred.nonconvex.search import Search, Solution, Solver, random_labels
from structpred.nonconvex.spreading import grow, spread_labels

#: the powers of u / coarse that C2 is multiplied by where few points stand for all
_SHARES = (0.0, 0.5, 1.0)
#: the share of the budget for probes that `PDM` has for a search of its own
_APART = 0.5


@dataclass(frozen=True)
class StagedSearch(Solver):
    """Labels that spread along paths, branch and bound, PDM, probes of the best, and branch and bound again with what they found.

    1. Labels along paths from the labelled points, for three measures of paths, each with alternating steps after it.
    2. Branch and bound, whose first dive finds good labels, with the share `first` of the budget (where that allows a whole
       dive); where it closes, all is proven.
    3. Of more than `coarse` unlabelled points, `coarse` at random: the same search for them alone gives labels to all others, the
       best of three tries, with C2 as it is, in proportion, and between. Labels that grow from the labelled points in larger and
       larger steps, those of the start, of gradient descent, and of the labelled points' classifier. All climb.
    4. `PDM` from the start, apart from what was found so far, which may be a deep local optimum; then probes of the best, until
       the share `last` of the budget is left.
    5. Branch and bound continues where it stopped. Where it does not close, `blocks` blocks of points bound the objective from
       below (`block_bound`): few of them bound it more, and take longer; 0: they do not.

    max_inner: the most inner problems; beside these as many small ones, and at least 10 coarse, for each
    try of step 3, and those of the blocks.
    """

    name: ClassVar[str] = "staged"
    first: float = 0.25
    last: float = 0.2
    coarse: int = 1_000
    blocks: int = 0

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        if min(self.first, self.last, self.blocks) < 0.0 or self.first + self.last > 1.0 or self.coarse < 1:
            raise ParameterError(f"StagedSearch: expected first + last in [0, 1], coarse >= 1 and blocks >= 0, got {self!r}")
        if search.problem.coarsens and search.problem.u <= self.coarse:
            for p in spread_labels(search.problem):
                search.offer(*search.climb(p), "spread")
        tree = whole_tree(search)
        first = round(self.first * self.max_inner)
        if first >= search.problem.u:  # else the first dive would not reach the end
            tree.run(first)
        if tree.open:  # stages 3 and 4
            problem = search.problem
            start = random_labels(problem, rng) if start is None else start
            until = round((1.0 - self.last) * self.max_inner)
            if problem.coarsens and problem.u > self.coarse:
                tried = [self._coarse(problem, share, rng) for share in _SHARES]
                best = min(tried, key=lambda p: search.solve(p).objective)
                search.offer(*search.climb(best), "coarse")
            elif problem.coarsens and not isinstance(problem, FeatureProblem):
                search.offer(*search.climb(GradientDescent().solve(problem).p), "descended")
            for p in (search.supervised(), start):
                search.offer(*search.climb(p), "start")
            for rate in (0.03, 0.1, 0.3):
                grown = grow(search, np.zeros(problem.u, np.int64), search.root(), rate, stop_at=search.objective)
                if grown is not None:
                    search.offer(*search.climb(*grown), "grown")
            if (apart := round(_APART * (until - search.n_inner))) > 0:
                found = PDM(max_inner=apart).solve(problem, int(rng.integers(2**31)), start)
                search.n_inner += found.n_inner
                search.offer(found.p, found.inner, "apart")
            anchor, _ = problem.anchor()
            while search.n_inner < until:
                probe(search, anchor, rng)
        tree.run(self.max_inner)
        bound = tree.bound()
        if tree.open and self.blocks:
            bound = max(bound, block_bound(search.problem, self.blocks).value)
        return search.solution(tree.level, bound, nodes=tree.nodes)

    def _coarse(self, problem: SemiSupervisedProblem, share: float, rng: np.random.Generator) -> Floats:
        """Labels of all points from the best ones of some."""
        some = rng.choice(problem.unlabelled, self.coarse, replace=False)
        points = np.sort(np.append(np.flatnonzero(problem.y != 0), some))
        part = problem.subset(points, problem.C2 * (problem.u / self.coarse) ** share)
        found = replace(self, max_inner=max(self.max_inner, 10 * self.coarse)).solve(part, int(rng.integers(2**31)))
        return problem.best_vertex(problem.decision(points, found.inner)[problem.unlabelled])
