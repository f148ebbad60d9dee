"""Labels that spread from the labelled points: along the shortest paths, or to the points that the classifier is surest of."""

from collections.abc import Iterator

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.nonconvex.problem import Inner, SemiSupervisedProblem
from structpred.nonconvex.search import Search

#: the powers of a step's length: the larger, the more a long step costs, and the closer paths stay to dense regions
_POWERS = (4.0, 8.0, 16.0)


def spread_labels(problem: SemiSupervisedProblem) -> Iterator[Floats]:
    """Labels within the balance by the lengths of paths through all points, for each power of a step's length.

    A step between two points costs |phi(x) - phi(x')|^q, so a path of short steps through a cluster is shorter than a direct one
    across a gap, and labels cross between clusters last. These are the density-sensitive distances of Chapelle & Zien 2005, for
    which the limit of large q is the longest step alone. Memory and time O(n^2): for problems with a kernel matrix of that size.
    """
    gram = problem.gram_of(np.arange(problem.n))
    squares = np.maximum(problem.diagonal[:, None] + problem.diagonal - 2.0 * gram, 0.0)
    squares /= max(float(squares.max()), 1e-300)
    for q in _POWERS:
        steps = squares ** (0.5 * q)
        to_plus, to_minus = (path_lengths(steps, np.flatnonzero(problem.y == label)) for label in (1, -1))
        nearer_plus = (to_minus - to_plus) / np.maximum(to_minus + to_plus, 1e-300)
        yield problem.best_vertex(nearer_plus[problem.unlabelled])


def path_lengths(steps: Floats, sources: Integers) -> Floats:
    """(n,): the length of the shortest path from the nearest source, for the lengths of all steps (n, n); Dijkstra's algorithm.

    >>> path_lengths(np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]]), np.array([0])).tolist()
    [0.0, 1.0, 2.0]
    """
    lengths, done = np.full(len(steps), np.inf), np.zeros(len(steps), np.bool_)
    lengths[sources] = 0.0
    for _ in range(len(steps)):
        i = int(np.where(done, np.inf, lengths).argmin())
        done[i] = True
        np.minimum(lengths, lengths[i] + steps[i], out=lengths)
    return lengths


#: |h| of a point that label sign(h) costs nothing: the classifier with it is the same
FREE = 1.0


def grow(
    search: Search, labels: Integers, inner: Inner, rate: float, rng: np.random.Generator | None = None, stop_at: float = np.inf
) -> tuple[Floats, Inner] | None:
    """Label all points (p, their solution), from labels +1, -1 and 0 (open) and their solution; None from stop_at on.

    Points beyond the margin cost nothing and take their label at once. Of the others those with the largest |h| follow, one and
    `rate` times as many as have a label, and the inner problem is solved again. rng: |h| is multiplied by random factors between
    0.5 and 1 first.
    """
    labels = labels.copy()
    while len(undecided := np.flatnonzero(labels == 0)):
        if search.exhausted or inner.objective >= stop_at:
            return None
        h = search.problem.surest(inner, undecided)
        size = np.abs(h) if rng is None else np.abs(h) * rng.uniform(0.5, 1.0, len(h))
        order = np.argsort(-size, kind="stable")
        free = np.abs(h[order]) >= FREE
        batch = 1 + int(rate * (len(labels) - len(undecided)))
        taken = order[free] if free.any() else order[:batch]
        _label(search.problem, labels, undecided[taken], np.where(h[taken] >= 0.0, 1, -1))
        inner = search.solve((labels > 0).astype(float), (labels < 0).astype(float), start=inner, stop_at=stop_at)
    return None if inner.objective >= stop_at else ((labels > 0).astype(np.float64), inner)


def _label(problem: SemiSupervisedProblem, labels: Integers, chosen: Integers, signs: Integers) -> None:
    """Give the points their labels in turn while the balance has room; where it has none left, all open points the other one."""
    if problem.positives is None:
        labels[chosen] = signs
        return
    for label, most in ((1, int(problem.positives)), (-1, problem.u - int(problem.positives))):
        room = most - int((labels == label).sum())
        wanted = chosen[signs == label]
        labels[wanted[:room]] = label
        if len(wanted) >= room:
            labels[labels == 0] = -label
            return
