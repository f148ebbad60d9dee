"""Branch and bound over hidden states, depth first, for few rows."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.nonconvex.branch_and_bound import EXACT
from structpred.nonconvex.latent import LatentInner, LatentProblem
from structpred.nonconvex.latent_search import TIGHT, LatentSearch, LatentSolution, LatentSolver


class _Node(NamedTuple):
    """States decided so far (-1: open), and the solution of the parent."""

    states: Integers
    parent: LatentInner


@dataclass(frozen=True)
class LatentBranchAndBound(LatentSolver):
    """Depth-first search for the best states, with the objective of the rows decided so far as the lower bound.

    The next row is that which loses most; its states are tried from the best one on. States of one group differ in their names
    only, so of those that no row has yet one is tried. max_inner: the most inner problems; the best states so far are then
    returned, "local", with the least bound of what was not looked at. It proves tens of rows, not hundreds.
    """

    name: ClassVar[str] = "branch_and_bound"
    max_inner: int = 100_000

    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> LatentSolution:
        problem = search.problem
        search.offer(*search.climb(start), "start")
        nothing = problem.solve(np.zeros(problem.shape))
        todo, bound = [_Node(np.full(len(problem.groups), -1), nothing)], np.inf
        while todo and not search.exhausted:
            node = todo.pop()
            cutoff = search.objective * (1.0 - EXACT)
            inner = search.solve(decided(problem, node.states), node.parent, TIGHT, cutoff)
            if inner.objective >= cutoff:
                bound = min(bound, inner.objective)
                continue
            losses = np.where(node.states < 0, problem.losses(inner), -1.0)
            i = int(losses.argmax())
            if losses[i] <= 0.0:  # nothing is open, or what is open costs nothing: these are the best states below this node
                search.offer(
                    problem.best_vertex(np.where(decided(problem, node.states) > 0.0, np.inf, inner.scores)), inner, "leaf"
                )
                bound = min(bound, inner.objective)
                continue
            for state in _candidates(problem, node.states, inner, i):
                below = node.states.copy()
                below[i] = state
                todo.append(_Node(below, inner))
        proven = not todo
        bound = min([bound, *(node.parent.objective for node in todo)])
        return search.solution("global" if proven else "local", bound)


def decided(problem: LatentProblem, states: Integers) -> Floats:
    """p with the states that are decided; weights of open rows are zero."""
    p = np.zeros(problem.shape)
    there = np.flatnonzero(states >= 0)
    p[there, states[there]] = 1.0
    return p


def _candidates(problem: LatentProblem, states: Integers, inner: LatentInner, i: int) -> list[int]:
    """The states of row i to try, the best last: those of its group that have rows, and one that has none."""
    own = np.flatnonzero(problem.inside[i])
    used = np.isin(own, states)
    found = [*own[used].tolist(), *own[~used][:1].tolist()]
    return sorted(found, key=lambda state: float(inner.scores[i, state]))
