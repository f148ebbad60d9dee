"""Parametric dual maximisation with the paper's degree: rounds of m probes, the best of which is taken."""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.nonconvex.pdm import candidate
from structpred.nonconvex.search import Search, Solution, Solver, random_labels

#: how much faster labels grow than those that have one, by chance
_RATES = (0.03, 0.03, 0.1, 0.2)


@dataclass(frozen=True)
class PDMRounds(Solver):
    """Algorithm 1 with probes in place of the level set: of m probes about r the best local maximum is the next r.

    It ends where no probe of a round is better than r. A run begins as that with half the degree: rounds of m / 2^j, ..., m / 2,
    m probes, each until it finds nothing; and probe k of round t is the same for every m. So, with the budget left out of
    account, doubling the degree never makes the labels worse, and costs time.

    degree: m, as a share of the number of unlabelled points (the paper: 0.1 and 0.2). max_inner: the most inner problems.
    report: "rounds", "probes".

    Zhou, Kang & Spanos 2017, Algorithm 1, repaired as in `PDM`.
    """

    name: ClassVar[str] = "pdm_rounds"
    degree: float = 0.2
    max_inner: int = 20_000

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        if not 0.0 < self.degree < np.inf:
            raise ParameterError(f"PDMRounds: degree must be > 0, got {self.degree!r}")
        search.offer(*search.climb(random_labels(search.problem, rng) if start is None else start), "start")  # line 2
        anchor, _ = search.problem.anchor()
        seed, whole = int(rng.integers(2**31)), self.degree * search.problem.u
        rounds = probes = 0
        for j in range(max(0, math.floor(math.log2(whole))), -1, -1):
            better, m = True, math.ceil(whole / 2**j)
            while better and not search.exhausted:
                probe = partial(candidate, search, anchor, rates=_RATES, trees=False)
                found = [probe(np.random.default_rng([seed, rounds, k])) for k in range(m) if not search.exhausted]
                best = min(filter(None, found), key=lambda one: one[1].objective, default=None)  # i*
                better = best is not None and search.offer(best[0], best[1], "round")
                rounds, probes = rounds + 1, probes + m
        return search.solution(rounds=rounds, probes=probes)
