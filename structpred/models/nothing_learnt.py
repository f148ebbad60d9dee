"""A warning where the weights of a finished run are no better than zero, and a word where they leave no loss."""

import logging
import warnings

import numpy as np

from structpred.core.products import dot
from structpred.core.result import Result
from structpred.errors import NoUpdateWarning
from structpred.runtime.standard_error import callers_level
from structpred.trainers.problem import Problem

#: samples that are asked first
FEW = 64


def warned(result: Result, problem: Problem | None = None) -> Result:
    """The result; a warning where all weights are zero, or the gap is wide and the objective not below that at zero."""
    primal, gap = result.certificate.primal, result.certificate.relative_gap
    if primal is None or not primal > 0.0 or result.stop_reason == "interrupted":
        return result
    what, more = "all weights are zero", "give more passes (max_iter), or take a trainer that needs fewer, such as bcfw"
    if result.weights.any():
        if problem is not None and result.certificate.certifies and problem.surrogate.piecewise_linear:
            left = max(1.0 - problem.lam * problem.regulariser.value(result.weights) / primal, 0.0)  # no loss is negative
            if left <= 1e-3:  # of ten times it, and of a bound that does not sink
                words, share = "hardly any loss is left: at 10 C the same weights are optimal to %.3g %%", (gap or 0.0) + 9 * left
                logging.getLogger("structpred.models").info(words, 100 * share)
        if problem is None or gap is None or gap <= 0.5 or _is_below_zero(problem, primal):
            return result
        what = f"the objective, {primal:.6g}, is not below that of zero weights"
    elif gap is not None and gap <= 0.01:
        more = "none are better, as the gap shows: take a larger C, or a weaker regulariser"
    warnings.warn(f"after {result.passes} passes {what}; {more}", NoUpdateWarning, stacklevel=callers_level())
    return result


def _is_below_zero(problem: Problem, primal: float) -> bool:
    """Whether `primal` is below the objective at w = 0: well below what a few samples say settles it, else a sweep of all."""
    task, w = problem.task, np.zeros(problem.task.dim, problem.task.dtype)
    if len(task) > 4 * FEW and (take := getattr(task, "take", None)) is not None:
        rows = np.linspace(0, len(task) - 1, FEW, dtype=np.int64)
        share = problem.p[rows] / problem.p[rows].sum()
        if primal < 0.75 * dot(share, problem.surrogate.values(take(rows), w)):
            return True
    return primal < problem.primal(w)
