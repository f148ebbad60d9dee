"""Points q outside the incumbent from which a search looks for better labels: rays from the anchor, partly weighted labels."""

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.nonconvex.problem import Inner, SemiSupervisedProblem

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


def boundary_probe(anchor: Floats, rng: np.random.Generator) -> Floats:
    """Where the ray from the anchor p*, the least F, through a random point of the box leaves the box."""
    ray = rng.random(len(anchor)) - anchor
    return np.clip(anchor + reach(anchor, ray) * ray, 0.0, 1.0)


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
