"""The best output within linear constraints: their multipliers, then outputs in the order of their scores with these.

Handler & Zang, A dual algorithm for the constrained shortest path problem, Networks 1980.
"""

from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Shape
from structpred.core.types import Floats
from structpred.oracles.composition.listing import Listing
from structpred.oracles.solvers._constraint_rows import keeps

#: the most outputs that choose the multipliers; how far these go, as a multiple of what the scores differ by
_CUTS, _FAR = 30, 10.0


def best_within(whole: Any, scores: Floats, shape: Shape, A: Floats, b: Floats) -> Labels | None:
    """The best output with A mu <= b, None if there is none: max_y (theta - u A) . mu(y) + u . b bounds it, for all u >= 0."""
    from scipy.optimize import linprog

    free, u, rows = np.where(scores <= 0.5 * FORBIDDEN, 0.0, scores), np.zeros(len(b)), list[list[float]]()
    most, least = whole.argmax_bound(free, shape)[1], -whole.argmax_bound(-free, shape)[1]
    limits = _FAR * (1.0 + most - least) / np.maximum(np.abs(A).max(axis=1, initial=0.0), 1e-300)
    for _ in range(_CUTS):
        mu = np.bincount(whole.parts(whole.argmax_bound(scores - u @ A, shape)[0], shape), minlength=len(scores))
        if (row := [*(b - A @ mu), -1.0, -free @ mu]) in rows:
            break
        rows.append(row)
        cuts, bounds = np.array(rows), [*((0.0, limit) for limit in limits.tolist()), (None, None)]
        found = linprog(np.eye(len(b) + 1)[-1], cuts[:, :-1], cuts[:, -1], bounds=bounds).x
        u = u if found is None else found[:-1]

    def worth(labels: Labels, _: float) -> float:
        parts = np.sort(whole.parts(labels, shape))
        return float(free[parts].sum() - u @ b) if keeps(A, b, parts) else -np.inf

    search = whole._search(scores - u @ A, np.array([0, len(scores)]), [shape])
    search.floor[:] = np.maximum(search.floor, least - u @ b - 1.0)
    return next(iter(Listing(search, 1, worth).go()), None)
