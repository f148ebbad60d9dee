"""Subgradient descent for the support vector machine with hidden states."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats
from structpred.nonconvex.latent_search import LatentSearch, LatentSolver
from structpred.nonconvex.search import Solution
from structpred.runtime.settings import checked_whole


@dataclass(frozen=True)
class LatentGradientDescent(LatentSolver):
    """Steps 1 / t against the subgradient w + C sum_i (x_i at the worst state - x_i at its group's best), from the start's w.

    The states at the end are those that suit the classifier best; theirs is the objective returned. steps: passes over all rows,
    each for one inner problem of the budget. Kantchelian et al. 2014 with all rows at each step.
    """

    name: ClassVar[str] = "gradient"
    steps: int = 300

    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> Solution:
        checked_whole(self.steps, "LatentGradientDescent: steps")
        problem, rows = search.problem, np.arange(len(start))
        inner = search.solve(start)
        coef, done = inner.coef.copy(), 0
        while done < self.steps and not search.exhausted:
            scores = problem.space.scores(coef)
            toward = problem.best_vertex(scores)
            toward[rows, (problem.wrong + scores).argmax(axis=1)] -= 1.0
            done += 1
            search.n_inner += 1
            coef += (problem.C * toward - coef) / (done + 1.0)
        search.offer(problem.best_vertex(problem.space.scores(coef)), None, "descended")
        return search.solution(steps=done)
