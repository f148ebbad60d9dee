"""What the tests of trees share: kinds of scores, and all trees of a few tokens."""

from functools import cache

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.oracles.arborescence import ArborescenceOracle

#: kind of scores -> whether sums of them are exact in float64, so that the best score must be met to the last digit
KINDS = {"random": False, "ties": True, "some forbidden": False, "most forbidden": True, "many forbidden": True, "wide": True}


def scores_of(rng, n, kind):
    """Scores of n * (n + 1) arcs."""
    normal = rng.normal(size=n * (n + 1))
    forbidden = rng.random(len(normal)) < {"some forbidden": 0.3, "most forbidden": 0.65, "many forbidden": 0.4}.get(kind, 0.0)
    if kind in ("ties", "most forbidden", "many forbidden"):
        normal = np.rint(normal)
    if kind == "wide":  # millions, many of them equal, and differences of 1e-8 that decide between them: 50 binary digits, exact
        normal = np.ldexp(np.rint(normal), 20) + np.ldexp(rng.integers(-9, 10, len(normal)), -27)
    return np.where(forbidden, FORBIDDEN, normal)


@cache
def all_arcs(n, single_root):
    """The arcs of all trees, one row a tree."""
    oracle = ArborescenceOracle(single_root)
    return np.array([oracle.parts(y, (n,)) for y in oracle.enumerate((n,))])
