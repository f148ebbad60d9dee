"""Annealing of the unlabelled weight without steps: the exact path of the classifier from one change of a label to the next."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import ParameterError
from structpred.nonconvex.problem import FeatureProblem
from structpred.nonconvex.regions import along
from structpred.nonconvex.search import Search, Solution, Solver

#: how far beyond a change of a label the path goes on; the share of the rest that it steps where the offset is not unique
_BEYOND, _STEP = 1e-6, 0.01


@dataclass(frozen=True)
class PathAnnealing(Solver):
    """C2 rises from `first` of its value; between changes of labels the solution is followed region by region (`segment.along`).

    A label changes where its gain is zero (with a balance: where a +1 gains no more than a -1 would, and both change), which is
    where the labels cease to be a local optimum. J is concave, so the change raises no objective; alternating steps climb on,
    and the path goes on from there. Each region takes one inner problem. Where no support vector is strictly between its bounds
    the path takes a short step instead. It needs a kernel matrix. report: "regions", "changes" of labels.

    Ogawa, Imamura, Takeuchi & Sugiyama 2013, by Theorems 1 and 2 of Zhou, Kang & Spanos 2017.
    """

    name: ClassVar[str] = "path_annealing"
    unlabelled_only: ClassVar[bool] = True
    first: float = 1e-4

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        if not 0.0 < self.first <= 1.0:
            raise ParameterError(f"PathAnnealing: expected first in (0, 1], got {self.first!r}")
        if isinstance(search.problem, FeatureProblem):
            raise ParameterError("PathAnnealing: it needs the kernel matrix, which features take the place of; take 'annealing'")
        whole, p, share = search.problem, search.supervised() if start is None else start, self.first
        regions = changes = 0
        try:
            while share < 1.0 and not search.exhausted:
                search.problem = whole.with_C2(share * whole.C2)
                p, _ = search.climb(p)
                at, weights = share, np.stack([p, 1.0 - p])
                share = min(1.0, at + _STEP * (1.0 - at))  # unless the path leads further
                try:
                    for piece in along(whole, at * weights, weights):
                        regions, search.n_inner = regions + 1, search.n_inner + 1
                        t, changed = _first_change(whole.unlabelled, p, piece.h, whole.positives is not None)
                        t = piece.start + t * (piece.end - piece.start)
                        share = min(1.0, at + t * (1.0 - at) + (_BEYOND if len(changed) else 0.0))
                        if len(changed) or search.exhausted:
                            p = p.copy()
                            p[changed] = 1.0 - p[changed]
                            changes += len(changed) > 0
                            break
                except ParameterError:  # the offset is any number of an interval
                    continue
        finally:
            search.problem = whole
        search.offer(*search.climb(p), "annealed")
        return search.solution(regions=regions, changes=changes)


def _first_change(rows: Integers, p: Floats, h: Floats, pairs: bool) -> tuple[float, list[int]]:
    """(share of the piece, points): where a label first ceases to suit the classifier; (1, none) where all suit it to the end.

    h: (2, n) at both ends. pairs: whether a +1 and a -1 change together.
    """
    ends = h[:, rows]
    plus, minus = np.flatnonzero(p > 0.5), np.flatnonzero(p < 0.5)
    leads = ends[:, plus, None] - ends[:, None, minus] if pairs else ends * np.where(p > 0.5, 1.0, -1.0)
    falls = (leads[1] < 0.0) & (leads[0] > leads[1])
    if not falls.any():
        return 1.0, []
    shares = np.where(falls, np.maximum(leads[0], 0.0) / np.maximum(leads[0] - leads[1], 1e-300), np.inf)
    k = np.unravel_index(shares.argmin(), shares.shape)
    return float(shares[k]), [int(plus[k[0]]), int(minus[k[1]])] if pairs else [int(k[0])]
