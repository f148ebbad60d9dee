"""Labels that spread from the labelled points in large steps: for many points."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.errors import ParameterError
from structpred.nonconvex.growing import grow
from structpred.nonconvex.probes import lifted_probe
from structpred.nonconvex.problem import Floats
from structpred.nonconvex.search import Search, Solution, Solver


@dataclass(frozen=True)
class Growing(Solver):
    """The points that the classifier is surest of take their labels, it is trained again, and so on; alternating steps follow.

    Points beyond the margin take their labels at once; of the others a share `step` of all, the surest. Then rounds follow until
    the budget is used up: the best labels so far are given up within or outside random balls (one time in `fresh`: everywhere)
    and grow again, in steps of another size, the surest points being chosen with some randomness; what is better is kept. A pass
    takes about as many inner problems as there are steps, not one for each point, so this is for numbers of points for which
    other solvers never complete a labelling. max_inner: the most inner problems.
    """

    name: ClassVar[str] = "growing"
    max_inner: int = 2_000
    step: float = 0.02
    fresh: int = 4

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        if not 0.0 < self.step <= 1.0 or self.fresh < 1:
            raise ParameterError(f"Growing: expected step in (0, 1] and fresh >= 1, got {self.step!r} and {self.fresh!r}")
        problem, rounds = search.problem, 0
        if start is not None:
            search.offer(*search.climb(start), "start")
        labels, at_q = np.zeros(problem.u, np.int64), search.root()
        while not search.exhausted:
            share = self.step * (1.0 if rounds == 0 else float(np.exp(rng.uniform(np.log(0.1), np.log(2.0)))))
            grown = grow(search, labels, at_q, max(1, round(share * problem.u)), rng if rounds else None, search.objective)
            if grown is not None:
                search.offer(*search.climb(*grown), "grown")
            rounds += 1
            if search.inner is None or rounds % self.fresh == 0:
                labels, at_q = np.zeros(problem.u, np.int64), search.root()
            else:
                labels = lifted_probe(problem, search.p, search.inner, rng)
                at_q = search.solve((labels > 0).astype(float), (labels < 0).astype(float), search.inner)
        return search.solution(rounds=rounds)
