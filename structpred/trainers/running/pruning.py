"""Weights without some of their groups, and the certificate that they still have."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from structpred.core.result import Certificate
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.trainers.problem import Problem


def pruned(problem: Problem, weights: Vector, certificate: Certificate, kept: npt.ArrayLike) -> tuple[Vector, Certificate]:
    """A copy of the weights with all groups but the kept ones at zero, and its certificate: a new primal, the same dual value.

    A dual value bounds the optimum over all weights, so the gap says how much the groups that went could matter at most. It
    costs one call of the oracle a sample.

    Parameters
    ----------
    problem : Problem
        The one that the weights were trained on.
    weights, certificate
        What training gave.
    kept : array of bool
        One for each group of weights (`problem.task.groups`).

    Raises
    ------
    ParameterError
        For another number of groups.

    Examples
    --------
    >>> from structpred.rows.linear_task import LinearTask
    >>> from structpred.objectives.margin import MarginRescaling
    >>> problem = Problem(LinearTask([[2.0], [4.0]], [1, -1], intercept=1.0), MarginRescaling(), 0.1)
    >>> pruned(problem, np.array([-0.5, 2.0]), Certificate(dual=0.3), [True, False])[0]
    array([-0.5,  0. ])
    """
    groups, keep = problem.task.groups, np.asarray(kept)
    if keep.dtype != np.bool_ or keep.shape != (len(groups) - 1,):
        raise ParameterError(
            f"kept: expected one bool per group of weights, {len(groups) - 1} in all, got {keep.dtype} of shape {keep.shape}"
        )
    out: Vector = weights.copy()
    for k in np.flatnonzero(~keep):
        out[groups[k] : groups[k + 1]] = 0.0
    return out, replace(certificate, primal=problem.primal(out))
