"""Labels that spread: from the points that have some, to the points that the classifier is surest of, a few at a time."""

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.nonconvex.problem import Inner, SemiSupervisedProblem
from structpred.nonconvex.search import LOOSE, Search

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
        inner = search.solve((labels > 0).astype(float), (labels < 0).astype(float), inner, LOOSE, stop_at)
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
