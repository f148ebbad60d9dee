"""Groups of weights of a fitted model, such as those of one template: how large they are, and the model without some of them."""

from collections.abc import Collection
from copy import copy
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from structpred.core.regulariser import capabilities, group_norms, shares
from structpred.core.result import Result
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.task.function_space import space_of
from structpred.text.suggestions import did_you_mean
from structpred.trainers.problem import Problem

#: groups with at most this share of the norms are those that a run also looks at its weights without
SMALL = 1e-3
#: what a run reports of all its weights without those groups
_OF_ALL = ("small_groups", "bounds_without")
#: what has a column for each group
_BY_GROUP = ("small_groups", "group_weights", "group_norms")


def zeroed(model: Any, names: Collection[str]) -> Any:
    """A copy of a model with the weights of these groups zero; where they were not, nobody knows its objective.

    Raises ParameterError for names of groups that it does not have.
    """
    known = model.group_names_
    for name in names:
        if name not in known:
            listed = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
            raise ParameterError(f"no group of weights is called {name!r}{did_you_mean(name, known)}; there are {listed}")
    groups = np.array([name in names for name in known])
    gone = np.repeat(groups, np.diff(model.groups_)).reshape(model.coef_.shape)
    new = copy(model)
    if model.coef_[gone].any():
        small, zero = model.report_.get("small_groups", np.zeros(0)), group_norms(model.coef_.ravel(), model.groups_) == 0.0
        same = small.shape == groups.shape and np.array_equal(groups | zero, (small > 0.0) | zero)
        primal = float(model.report_["bounds_without"][0]) if same else None
        new.certificate_, new.converged_ = replace(model.certificate_, primal=primal), False
        new.report_ = {name: array for name, array in model.report_.items() if name not in _OF_ALL}  # it is of other weights
    new.coef_ = np.where(gone, 0, model.coef_).astype(model.coef_.dtype)
    new._progress = new._online = None
    return new


def with_pruning(problem: Problem, result: Result) -> Result:
    """The result of a run, where the regulariser selects groups and there is a certificate with one more: that of the weights
    without the groups whose share of the norms is at most SMALL. It takes one call of the oracle a sample.

    report["small_groups"]: 1 for each such group; report["bounds_without"]: primal and dual. A dual value bounds the optimum over
    all weights, so the gap says how much the groups that went could matter at most.
    """
    known = result.certificate.primal is not None and result.certificate.dual is not None and result.stop_reason != "interrupted"
    if not known or "group_prox" not in capabilities(getattr(problem.regulariser, "of", problem.regulariser)):
        return result
    space = space_of(problem.task)
    norms = group_norms(result.weights, result.groups) if space is None else space.norms(result.weights)
    small = shares(norms) <= SMALL
    gone = np.repeat(small, np.diff(problem.task.groups))
    primal = problem.primal(cast(Vector, np.where(gone, 0, result.weights).astype(result.weights.dtype)))
    facts = {"small_groups": small.astype(np.float64), "bounds_without": np.array([primal, result.certificate.dual])}
    return replace(result, report={**result.report, **facts})


def keep_groups(model: Any, kept: npt.NDArray[np.bool_]) -> None:
    """What is known of the groups of a model, for those that are left after the weights of the others were taken out."""
    sizes = np.diff(model.groups_)[kept]
    model.groups_ = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    by_group = {name: array[..., kept] for name, array in model.report_.items() if name in _BY_GROUP}
    model.report_ = model.report_ | by_group
    model.group_names_ = [name for name, left in zip(model.group_names_, kept.tolist(), strict=True) if left]
