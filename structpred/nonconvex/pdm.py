"""Parametric dual maximisation with the level sets left out: probes wherever the inner problem has a solution."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.nonconvex.branch_and_bound import EXACT, Tree
from structpred.nonconvex.problem import Inner, SemiSupervisedProblem
from structpred.nonconvex.search import Search, Solution, Solver, random_labels
from structpred.nonconvex.spreading import grow
from structpred.runtime.settings import checked_whole

#: added to |h|, so that the boundary does not count as near to everything
_SURE = 0.1


def nearest(problem: SemiSupervisedProblem, centre: int, size: int) -> Integers:
    """The `size` unlabelled points nearest to one of them, in the metric of the kernel; numbers among the unlabelled."""
    return np.argpartition(problem.distances(centre), size - 1)[:size].astype(np.int64)


def lifted_probe(problem: SemiSupervisedProblem, p: Floats, inner: Inner, rng: np.random.Generator) -> Integers:
    """The labels +1 and -1 of p, with 0 (both weights zero) in one or two random balls, or outside them.

    One time in three the labels in another ball are turned first. Half of the time the balls lie about points where the
    classifier pays. The weights (plus, minus) of these labels do not sum to one: q lies in the orthant p+, p- >= 0, where F is
    finite and convex, too. Of a label that the balance allows fewer of, some at random become 0.
    """
    labels = np.where(p > 0.5, 1, -1)
    weights = np.abs(inner.beta[problem.unlabelled])
    where = weights / weights.sum() if rng.random() < 0.5 and weights.sum() > 0.0 else None
    if rng.random() < 1 / 3:
        labels[_ball(problem, rng, None)] *= -1
    left_out = np.zeros(problem.u, bool)
    for _ in range(1 + int(rng.random() < 0.5)):
        left_out[_ball(problem, rng, where)] = True
    labels[left_out if rng.random() < 0.85 else ~left_out] = 0
    if problem.positives is not None:
        for label, most in ((1, int(problem.positives)), (-1, problem.u - int(problem.positives))):
            there = np.flatnonzero(labels == label)
            if len(there) > most:
                labels[rng.choice(there, len(there) - most, replace=False)] = 0
    return labels


def doubtful_probe(problem: SemiSupervisedProblem, p: Floats, inner: Inner, rng: np.random.Generator) -> Integers:
    """As `lifted_probe`, with 0 for the least products of |h| and the distance to a random point: near it, and in doubt.

    Where classes overlap, labels that are to change together are those near the boundary, not those of a whole ball.
    """
    labels = np.where(p > 0.5, 1, -1)
    away = problem.distances(int(rng.integers(problem.u)))
    away -= away.min()
    doubt = (away / max(float(away.max()), 1e-300)) * (_SURE + np.abs(inner.h[problem.unlabelled]))
    size = _size(problem, rng)
    labels[np.argpartition(doubt, size - 1)[:size]] = 0
    return labels


def reach(p: Floats, ray: Floats) -> float:
    """The largest step for which p + step ray is within [0, 1]^u.

    >>> reach(np.array([0.5, 0.5]), np.array([0.25, -1.0]))
    0.5
    """
    room = np.where(ray > 0.0, 1.0 - p, p)
    moving = ray != 0.0
    return float(np.min(room[moving] / np.abs(ray[moving]))) if moving.any() else 0.0


def tangent_value(problem: SemiSupervisedProblem, inner: Inner) -> tuple[Floats, float]:
    """(u, F(q) + g(q)' (u - q)) with u = argmax_P g(q)' u, from the solution at q.

    It is -P(w_q, b_q; u), minus the objective of the classifier at q with the labels that suit it best. Since F is convex, F(u)
    is at least that: where it exceeds F(r), u is better than r. No level set is needed (Theorem 3, Proposition 2, any q).
    """
    u = problem.best_vertex(problem.gradient(inner))
    return u, -problem.primal(inner, u)


def _ball(problem: SemiSupervisedProblem, rng: np.random.Generator, where: Floats | None) -> Integers:
    """A ball about a random point."""
    return nearest(problem, int(rng.choice(problem.u, p=where)), _size(problem, rng))


def _size(problem: SemiSupervisedProblem, rng: np.random.Generator) -> int:
    """2 % to 50 % of the unlabelled points, at least one; small numbers are as likely as large ones."""
    return max(1, round(problem.u * float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))))


#: a round of probes, as a share of the number of unlabelled points
_ROUND = 0.2
#: the share of probes that are the anchor's rays, of those about points in doubt, and of those from the labelled points alone
_RAYS, _DOUBTFUL, _FRESH = 1 / 20, 1 / 3, 1 / 20
#: more unlabelled points than this are too many for branch and bound to complete a probe
_MANY = 5_000
#: the least and the most inner problems of the branch and bound
#: that completes a probe; and how far above the best objective labels may be that grow
_NODES, SLACK = (30, 300), 1.05


@dataclass(frozen=True)
class PDM(Solver):
    """Maximise the convex F(p) from local maxima, by probes q whose tangents promise more than the best F so far.

    A probe's value F(q) + g(q)' (u - q), the most that its tangent reaches on P at a vertex u, is a lower bound of F(u). The
    published algorithm looks for q on the level set of F, which no ray reaches before it leaves the box where F is finite
    (`PrintedPDM`); for the bound that is not needed, so q may be any point with a solution: on the boundary of the box, or
    with the weights of some points zero. Where the tangent of such a probe promises nothing, its open labels are filled in:
    they grow from the others, or a small branch and bound decides them; then alternating steps climb on. The objective never
    rises. Its end proves nothing: not all q were tried.

    idle: it ends after `idle` times a fifth of the unlabelled points (10 at least) of probes in a row that find nothing.
    max_inner: the most inner problems. `PDMRounds` has the paper's degree m.

    Zhou, Kang & Spanos 2017, Algorithm 1, repaired.
    """

    name: ClassVar[str] = "pdm"
    max_inner: int = 20_000
    idle: int = 30

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        checked_whole(self.idle, "PDM: idle")
        search.offer(*search.climb(random_labels(search.problem, rng) if start is None else start), "start")
        anchor, _ = search.problem.anchor()
        most = self.idle * max(10, round(_ROUND * search.problem.u))
        tried = successes = idle = 0
        while idle < most and not search.exhausted:
            better = probe(search, anchor, rng)
            tried, successes, idle = tried + 1, successes + better, 0 if better else idle + 1
        return search.solution(probes=tried, successes=successes)


def probe(search: Search, anchor: Floats, rng: np.random.Generator) -> bool:
    """One probe from the best labels; whether it led to better ones."""
    before, rates = search.objective, (0.0 if search.problem.u <= _MANY else 0.03, 0.03, 0.1, 0.2)
    found = candidate(search, anchor, rng, rates, trees=search.problem.u <= _MANY)
    if found is not None:
        search.offer(*found)
    return search.objective < before


def candidate(
    search: Search, anchor: Floats, rng: np.random.Generator, rates: Sequence[float], trees: bool
) -> tuple[Floats, Inner, str] | None:
    """The local maximum that a probe from the best labels leads to, and how; None where it leads to nothing better.

    rates: how much faster labels grow than those that have one, by chance. trees: whether half of the time a small branch and
    bound takes the place of growth, which offers what it finds by itself.
    """
    problem, inner, before = search.problem, search.inner, search.objective
    assert inner is not None
    draw = rng.random()
    if draw < _RAYS:  # the local maximum above the tangent where a ray from the anchor through a random point leaves the box
        ray = rng.random(len(anchor)) - anchor
        at_q = search.solve(np.clip(anchor + reach(anchor, ray) * ray, 0.0, 1.0))
        return *search.climb(tangent_value(problem, at_q)[0], at_q), "ray"
    if draw > 1.0 - _FRESH:
        labels = np.zeros(problem.u, np.int64)
    else:
        labels = (doubtful_probe if draw < _RAYS + _DOUBTFUL else lifted_probe)(problem, search.p, inner, rng)
    at_q = search.solve((labels > 0).astype(float), (labels < 0).astype(float), start=inner, stop_at=before)
    if at_q.objective >= before:
        return None  # however the open labels are filled in
    u, value = tangent_value(problem, at_q)
    if value > -before:  # certainly better: Proposition 2
        return *search.climb(u, at_q), "tangent"
    if not trees or rng.random() < 0.5:
        grown = grow(search, labels, at_q, rng.choice(rates), rng, before * SLACK)
        return None if grown is None else (*search.climb(*grown), "grown")
    more = int(np.exp(rng.uniform(*np.log(_NODES))))
    Tree(search, EXACT, labels, at_q, rng).run(min(search.max_inner, search.n_inner + more))
    return None
