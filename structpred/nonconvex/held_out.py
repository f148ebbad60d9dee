"""Whether the labels that were found make a worse classifier than none: folds of the labelled points say so."""

from collections.abc import Sequence

import numpy as np

from structpred.core.types import Flags, Floats, Integers
from structpred.nonconvex.problem import SemiSupervisedProblem

#: folds; and how rare a lead of the labelled points alone must be by chance
_FOLDS, _RARE = 5, 0.05


def left_out(problem: SemiSupervisedProblem, p: Floats, folds: Integers) -> tuple[Floats, Floats]:
    """(n,), twice: h at the labelled points of classifiers without their fold, with the labels p of the others and with none.

    folds: (n,) the fold of each labelled point, -1 elsewhere. Two inner problems for each fold. The labels p were found with all
    labelled points, which favours the first.
    """
    nothing, found = np.zeros(problem.u), np.zeros((2, problem.n))
    for k, weights in enumerate(((p, 1.0 - p), (nothing, nothing))):
        for fold in range(int(folds.max()) + 1):
            out = folds == fold
            upper, lower = (np.where(out, 0.0, side) for side in problem.boxes(*weights))
            found[k, out] = problem.solve_boxes(upper, lower).h[out]
    return found[0], found[1]


def worse(problems: Sequence[SemiSupervisedProblem], ps: Sequence[Floats], codes: Integers) -> tuple[int, int] | None:
    """(wrong with the labels p, wrong with none) of the labelled points; None unless the first are more than chance allows.

    problems, ps: for each class against the others, or one for two classes. codes: the classes of the labelled points. What one
    classifier gets right and the other wrong is counted for either, and judged by a sign test.
    """
    from scipy.stats import binom

    labelled = np.flatnonzero(problems[0].y != 0)
    folds = np.full(problems[0].n, -1)
    for code in np.unique(codes):
        own = labelled[codes == code]
        folds[own] = np.arange(len(own)) % _FOLDS
    both = [left_out(problem, p, folds) for problem, p in zip(problems, ps, strict=True)]
    wrong: list[Flags] = []
    for h in (np.array([one[k][labelled] for one in both]) for k in (0, 1)):
        wrong.append(((h[0] > 0.0) if len(h) == 1 else h.argmax(axis=0)) != codes)
    lost, won = int((wrong[0] & ~wrong[1]).sum()), int((wrong[1] & ~wrong[0]).sum())
    is_rare = lost > won and binom.sf(lost - 1, lost + won, 0.5) < _RARE
    return (int(wrong[0].sum()), int(wrong[1].sum())) if is_rare else None
