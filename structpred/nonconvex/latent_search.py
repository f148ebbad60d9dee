"""Solvers of the support vector machine with hidden states: alternation, annealing, changes, descent, branch and bound, PDM."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import ParameterError
from structpred.nonconvex.branch_and_bound import EXACT
from structpred.nonconvex.latent import LatentInner, LatentProblem
from structpred.nonconvex.search import Incumbent, Solution
from structpred.runtime.settings import checked_whole

#: the gap of states that are kept, as a share of the objective
TIGHT = 1e-6
#: of more rows than this, states are kept with this gap: a millionth would take most of the time
MANY, _MANY_TIGHT = 5_000, 1e-3


class LatentSearch(Incumbent):
    """The state of one run over states."""

    problem: LatentProblem
    inner: LatentInner | None

    def __init__(self, problem: LatentProblem, max_inner: int) -> None:
        tight = TIGHT if problem.shape[0] <= MANY else _MANY_TIGHT
        super().__init__(problem, max_inner, tight, np.zeros(problem.shape))


@dataclass(frozen=True)
class LatentSolver(ABC):
    """A method for `LatentProblem`; its settings are plain numbers. max_inner: the most inner problems that it may solve."""

    #: what users call it
    name: ClassVar[str] = ""
    max_inner: int = 500

    def solve(self, problem: LatentProblem, seed: int = 0, start: ArrayLike | None = None) -> Solution:
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
            return search.solution("global", min(search.inner.objective, search.objective))
        return self._run(search, rng, p)

    @abstractmethod
    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> Solution:
        """Offer states to the search until the budget is used up, or sooner."""


@dataclass(frozen=True)
class Alternation(LatentSolver):
    """The concave-convex procedure from clusters, or the start given; then from random states, `starts` in all."""

    name: ClassVar[str] = "cccp"
    starts: int = 1

    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> Solution:
        if self.starts < 1:
            raise ParameterError(f"Alternation: starts must be >= 1, got {self.starts!r}")
        for k in range(self.starts):
            states = start if k == 0 else search.problem.best_vertex(rng.normal(size=search.problem.shape))
            search.offer(*search.climb(states), "climbed")
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

    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> Solution:
        if not (0.0 < self.last <= self.first and self.steps >= 1):
            raise ParameterError(f"DeterministicAnnealing: expected 0 < last <= first, steps >= 1, got {self!r}")
        inside = search.problem.inside
        p = start + 0.5 * inside / inside.sum(axis=1, keepdims=True)
        p, inner = p / p.sum(axis=1, keepdims=True), None
        for T in np.geomspace(self.first, self.last, self.steps):
            inner = search.solve(p, start=inner)
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

    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> Solution:
        search.offer(*search.climb(start), "climbed")
        found = True
        while found and not search.exhausted:
            assert search.inner is not None
            inner, others = search.inner, np.where(search.problem.inside & (search.p == 0.0), search.inner.scores, -np.inf)
            costs = inner.scores[np.arange(len(others)), search.p.argmax(axis=1)] - others.max(axis=1)
            found = False
            for i in np.argsort(costs, kind="stable"):  # keep the first single change that helps
                if search.exhausted or not np.isfinite(costs[i]):
                    break
                p = search.p.copy()
                p[i] = 0.0
                p[i, others[i].argmax()] = 1.0
                if search.offer(*search.climb(p, inner), "changed"):
                    found = True
                    break
        return search.solution()


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
        coef, done = search.solve(start).coef.copy(), 0
        while done < self.steps and not search.exhausted:
            scores = problem.space.scores(coef)
            toward = problem.best_vertex(scores)
            toward[rows, (problem.wrong + scores).argmax(axis=1)] -= 1.0
            done += 1
            search.n_inner += 1
            coef += (problem.C * toward - coef) / (done + 1.0)
        search.offer(problem.best_vertex(problem.space.scores(coef)), None, "descended")
        return search.solution(steps=done)


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

    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> Solution:
        problem = search.problem
        search.offer(*search.climb(start), "start")
        nothing = problem.solve(np.zeros(problem.shape))
        todo, bound = [_Node(np.full(len(problem.groups), -1), nothing)], np.inf
        while todo and not search.exhausted:
            node = todo.pop()
            cutoff = search.objective * (1.0 - EXACT)
            inner = search.solve(decided(problem, node.states), start=node.parent, tol=TIGHT, stop_at=cutoff)
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
            # the states of row i to try, the best last: those of its group that have rows, and one that has none
            own = np.flatnonzero(problem.inside[i])
            used = np.isin(own, node.states)
            tried = [*own[used].tolist(), *own[~used][:1].tolist()]
            for state in sorted(tried, key=lambda state: float(inner.scores[i, state])):
                below = node.states.copy()
                below[i] = state
                todo.append(_Node(below, inner))
        proven = not todo
        bound = min([bound, search.objective, *(node.parent.objective for node in todo)])
        return search.solution("global" if proven else "local", bound)


def decided(problem: LatentProblem, states: Integers) -> Floats:
    """p with the states that are decided; weights of open rows are zero."""
    p = np.zeros(problem.shape)
    there = np.flatnonzero(states >= 0)
    p[there, states[there]] = 1.0
    return p


@dataclass(frozen=True)
class LatentPDM(LatentSolver):
    """Maximise the convex F(p) from local maxima, by probes q whose tangents promise more than the best F so far.

    A probe solves the inner problem at q; its tangent's largest value on P is minus the objective of that classifier with the
    states that suit it best, a lower bound of F there. q is the best p so far with one of three changes: rows of a random ball
    have weight zero; they go to another state; a state is dissolved, and another split between two of its rows. From the
    three best probes of a round alternating steps climb on. The first start is the better of clusters, or what is given, and
    one state for all rows of a group. Where `idle` rounds in a row find nothing, the search starts again from other clusters;
    the best is kept. The objective never rises. Its end proves nothing: not all q were tried.

    degree: probes of a round, as a share of the number of rows. Zhou, Kang & Spanos 2017, Algorithm 1, without level sets.
    """

    name: ClassVar[str] = "pdm"
    degree: float = 0.02
    idle: int = 3

    def _run(self, search: LatentSearch, rng: np.random.Generator, start: Floats) -> Solution:
        if not self.degree > 0.0 or self.idle < 1:
            raise ParameterError(f"LatentPDM: expected degree > 0 and idle >= 1, got {self.degree!r} and {self.idle!r}")
        together = search.climb(search.problem.vertex(search.problem.inside.argmax(axis=1)))
        search.offer(*together, "one state in each group")
        first = True
        while True:
            p, inner = search.climb(start)
            if first and together[1].objective < inner.objective:
                p, inner = together
            first = False
            search.offer(p, inner, "start")
            idle = 0
            while idle < self.idle and not search.exhausted:
                found = self._round(search, p, inner, rng)
                idle = idle + 1 if found is None else 0
                if found is not None:
                    p, inner = found
                    search.offer(p, inner, "probe")
            if search.exhausted:
                return search.solution()
            start = clusters(search.problem, rng)

    def _round(
        self, search: LatentSearch, p: Floats, inner: LatentInner, rng: np.random.Generator
    ) -> tuple[Floats, LatentInner] | None:
        """States with a larger F, from the best three probes; None if there are none."""
        problem, found = search.problem, []
        for _ in range(max(6, round(self.degree * len(p)))):
            if search.exhausted:
                break
            at_q = search.solve(propose(problem, p, rng), start=inner)
            u = problem.best_vertex(problem.gradient(at_q))
            found.append((problem.primal(at_q, u), u, at_q))
        for _, u, at_q in sorted(found, key=lambda one: one[0])[:3]:
            better, there = search.climb(u, at_q)
            if there.objective < inner.objective * (1.0 - 1e-3):
                return better, there
        return None


def propose(problem: LatentProblem, p: Floats, rng: np.random.Generator) -> Floats:
    """A point q near p: see `LatentPDM`."""
    group = int(rng.choice(np.unique(problem.groups)))
    own, states = np.flatnonzero(problem.groups == group), np.flatnonzero(problem.group_of_state == group)
    q, draw = p.copy(), rng.random()
    if draw < 0.5 and len(states) > 1:
        # rows of one state lose their weight (their next best state follows); those of another part between two of them
        gone, split = rng.choice(states, 2, replace=False)
        q[:, gone] = 0.0
        rows = np.flatnonzero(q[:, split])
        if len(rows) > 1:
            a, b = rng.choice(rows, 2, replace=False)
            nearer_b = problem.space.distances(int(b), rows) < problem.space.distances(int(a), rows)
            q[rows[nearer_b], split], q[rows[nearer_b], gone] = 0.0, 1.0
        return q
    size = max(1, round(len(own) * float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))))
    away = problem.space.distances(int(rng.choice(own)), own)
    ball = own[np.argpartition(away, size - 1)[:size]]
    q[ball] = 0.0
    if draw > 0.75:
        q[ball, int(rng.choice(states))] = 1.0
    return q
