"""Parametric dual maximisation over hidden states: probes with the weights of some rows zero, or states merged and split."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import ParameterError
from structpred.nonconvex.latent import LatentInner, LatentProblem
from structpred.nonconvex.latent_search import LatentSearch, LatentSolver, clusters
from structpred.nonconvex.search import Solution


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
        _merge_and_split(problem, q, states, rng)
        return q
    size = max(1, round(len(own) * float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))))
    away = problem.space.distances(int(rng.choice(own)), own)
    ball = own[np.argpartition(away, size - 1)[:size]]
    q[ball] = 0.0
    if draw > 0.75:
        q[ball, int(rng.choice(states))] = 1.0
    return q


def _merge_and_split(problem: LatentProblem, q: Floats, states: Integers, rng: np.random.Generator) -> None:
    """Rows of one state lose their weight (their next best state follows); those of another part between two of them."""
    gone, split = rng.choice(states, 2, replace=False)
    q[:, gone] = 0.0
    rows = np.flatnonzero(q[:, split])
    if len(rows) < 2:
        return
    a, b = rng.choice(rows, 2, replace=False)
    nearer_b = problem.space.distances(int(b), rows) < problem.space.distances(int(a), rows)
    q[rows[nearer_b], split], q[rows[nearer_b], gone] = 0.0, 1.0
