"""Solvers of the support vector machine with hidden states: alternation, annealing, single changes, and probes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats, Integers
from structpred.errors import ParameterError
from structpred.nonconvex.latent import LatentInner, LatentProblem
from structpred.nonconvex.search import Incumbent, Level

#: gaps, as shares of the objective: of states that are only looked at, and of those that are kept
LOOSE, TIGHT = 1e-2, 1e-6
#: of more rows than this, states are kept with this gap: a millionth would take most of the time
_MANY, _MANY_TIGHT = 5_000, 1e-3


@dataclass(frozen=True)
class LatentSolution:
    """The states found, their classifier, and what is proven of them: as `structpred.nonconvex.search.Solution`.

    states: (n,) a state of each row's group.
    """

    states: Integers
    inner: LatentInner
    objective: float
    lower_bound: float
    level: Level
    history: list[dict[str, Any]]
    n_inner: int


class LatentSearch(Incumbent):
    """The state of one run over states."""

    problem: LatentProblem
    inner: LatentInner | None

    def __init__(self, problem: LatentProblem, max_inner: int) -> None:
        tight = TIGHT if problem.shape[0] <= _MANY else _MANY_TIGHT
        super().__init__(problem, max_inner, tight, np.zeros(problem.shape))

    def solve(self, p: Floats, start: LatentInner | None = None, tol: float = LOOSE, stop_at: float = np.inf) -> LatentInner:
        """An inner problem, counted."""
        self.n_inner += 1
        return self.problem.solve(p, start, tol, stop_at)

    def solution(self, level: Level = "local", lower_bound: float = 0.0) -> LatentSolution:
        """What the solver returns."""
        assert self.inner is not None
        bound = min(lower_bound, self.objective)
        return LatentSolution(self.p.argmax(axis=1), self.inner, self.objective, bound, level, self.history, self.n_inner)


@dataclass(frozen=True)
class LatentSolver(ABC):
    """A method for `LatentProblem`; its settings are plain numbers. max_inner: the most inner problems that it may solve."""

    #: what users call it
    name: ClassVar[str] = ""
    max_inner: int = 500

    def solve(self, problem: LatentProblem, seed: int = 0, start: npt.ArrayLike | None = None) -> LatentSolution:
        """The best states that it finds.

        start: (n,) a state of each row's group, to begin with; None: clusters of each group's rows.
        Raises ParameterError for a start outside that set, and for settings out of their range.
        """
        rng = np.random.default_rng(seed)
        p = clusters(problem, rng) if start is None else problem.vertex(problem.checked_states(start))
        search = LatentSearch(problem, self.max_inner)
        if problem.inside.sum(axis=1).max() == 1:
            search.offer(p, None, "one state each")
            assert search.inner is not None
            return search.solution("global", search.inner.objective)
        return self._run(search, rng, p)

    @abstractmethod
    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> LatentSolution:
        """Offer states to the search until the budget is used up, or sooner."""


@dataclass(frozen=True)
class Alternation(LatentSolver):
    """The concave-convex procedure from clusters, or the start given; then from random states, `starts` in all."""

    name: ClassVar[str] = "cccp"
    starts: int = 1

    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> LatentSolution:
        if self.starts < 1:
            raise ParameterError(f"Alternation: starts must be >= 1, got {self.starts!r}")
        for k in range(self.starts):
            search.offer(*search.climb(start if k == 0 else random_states(search.problem, rng)), "climbed")
            if search.exhausted:
                break
        return search.solution()


@dataclass(frozen=True)
class DeterministicAnnealing(LatentSolver):
    """p_iz in proportion to exp(s_iz / T), with T falling from `first` to `last` margins in `steps` steps; then alternation.

    As for semi-supervised machines by Sindhwani, Keerthi & Chapelle 2006.
    """

    name: ClassVar[str] = "annealing"
    first: float = 1.0
    last: float = 0.02
    steps: int = 20

    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> LatentSolution:
        if not (0.0 < self.last <= self.first and self.steps >= 1):
            raise ParameterError(f"DeterministicAnnealing: expected 0 < last <= first, steps >= 1, got {self!r}")
        inside = search.problem.inside
        p = start + 0.5 * inside / inside.sum(axis=1, keepdims=True)
        p, inner = p / p.sum(axis=1, keepdims=True), None
        for T in np.geomspace(self.first, self.last, self.steps):
            inner = search.solve(p, inner)
            scores = np.where(inside, inner.scores, -np.inf)
            p = np.exp((scores - scores.max(axis=1, keepdims=True)) / T)
            p /= p.sum(axis=1, keepdims=True)
            if search.exhausted:
                break
        search.offer(*search.climb(search.problem.best_vertex(p), inner), "annealed")
        return search.solution()


@dataclass(frozen=True)
class SingleChanges(LatentSolver):
    """After alternation, one row at a time takes its second best state, those first where it costs least, while that helps.

    The local combinatorial search of Joachims 1999, for states.
    """

    name: ClassVar[str] = "local_search"

    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> LatentSolution:
        search.offer(*search.climb(start), "climbed")
        found = True
        while found and not search.exhausted:
            found = self._change(search)
        return search.solution()

    def _change(self, search: LatentSearch) -> bool:
        """Keep the first single change that helps."""
        assert search.inner is not None
        inner, others = search.inner, np.where(search.problem.inside & (search.p == 0.0), search.inner.scores, -np.inf)
        rows = np.arange(len(others))
        costs = inner.scores[rows, search.p.argmax(axis=1)] - others.max(axis=1)
        for i in np.argsort(costs, kind="stable"):
            if search.exhausted or not np.isfinite(costs[i]):
                break
            p = search.p.copy()
            p[i] = 0.0
            p[i, others[i].argmax()] = 1.0
            if search.offer(*search.climb(p, inner), "changed"):
                return True
        return False


def random_states(problem: LatentProblem, rng: np.random.Generator) -> Floats:
    """A random state for each row."""
    return problem.best_vertex(rng.normal(size=problem.shape))


def clusters(problem: LatentProblem, rng: np.random.Generator) -> Floats:
    """Each row in the state of the nearest of some rows of its group, one per state, chosen far from each other (k-means++)."""
    states = np.zeros(len(problem.groups), np.int64)
    for group in np.unique(problem.groups):
        own, of_group = np.flatnonzero(problem.groups == group), np.flatnonzero(problem.group_of_state == group)
        nearest = np.full(len(own), np.inf)
        states[own] = of_group[0]
        for k, state in enumerate(of_group):
            weights = np.ones(len(own)) if k == 0 else nearest
            if weights.sum() <= 0.0:
                break  # all other rows are copies of those chosen
            centre = own[rng.choice(len(own), p=weights / weights.sum())]
            away = np.maximum(problem.space.distances(int(centre), own), 0.0)
            states[own[away < nearest]] = state
            nearest = np.minimum(nearest, away)
    return problem.vertex(states)
