"""A balance that is an interval: the best labels for every number of positives in it."""

import numpy as np

from structpred.nonconvex.problem import SemiSupervisedProblem
from structpred.nonconvex.search import Search, Solution, Solver

#: how many numbers of positives are solved for from scratch; the most inner problems for each of the others
_SOLVED, _BETWEEN = 9, 100


def over_shares(problem: SemiSupervisedProblem, solver: Solver, seed: int, least: int, most: int) -> dict[int, Solution]:
    """The solution for each number of positives from `least` to `most`.

    At nine numbers at most, even apart, by the solver; between these by alternating steps from the labels of both neighbours,
    one label more or less, of which the better count: their labels are local solutions, their bounds those of no labels at all.
    """
    solved = np.unique(np.linspace(least, most, min(_SOLVED, most - least + 1)).round().astype(int)).tolist()
    found = {k: solver.solve(problem.with_positives(k), seed) for k in solved}
    for step, order in ((1, range(least + 1, most)), (-1, range(most - 1, least, -1))):
        for k in order:
            if k not in solved:
                here = problem.with_positives(k)
                search = Search(here, _BETWEEN)
                start = here.best_vertex(here.gradient(found[k - step].inner))
                search.offer(*search.climb(start, found[k - step].inner), "share")
                found[k] = min([search.solution(), *([found[k]] if k in found else [])], key=lambda one: one.objective)
    return dict(sorted(found.items()))
