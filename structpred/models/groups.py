"""Groups of weights of a fitted model, such as those of one template: how large they are, and the model without some of them."""

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.suggestions import did_you_mean
from structpred.core.weights import Vector
from structpred.errors import ParameterError

Floats = npt.NDArray[np.float64]


def group_norms(w: Vector, groups: npt.NDArray[np.int64]) -> Floats:
    """|w_k| of each group groups[k]:groups[k+1]."""
    return np.array([np.linalg.norm(w[a:b].astype(np.float64)) for a, b in pairwise(groups.tolist())])


def check_names(names: Collection[str], known: Sequence[str]) -> None:
    """Raise ParameterError for names of groups that a model does not have."""
    for name in names:
        if name not in known:
            listed = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
            raise ParameterError(f"no group of weights is called {name!r}{did_you_mean(name, known)}; there are {listed}")


def zeroed(model: Any, names: Collection[str]) -> Any:
    """A copy of a model with the weights of these groups zero; where they were not, nobody knows its objective."""
    check_names(names, model.group_names_)
    gone = np.repeat([name in names for name in model.group_names_], np.diff(model.groups_))
    new = copy(model)
    if model.coef_[gone].any():
        new.certificate_, new.converged_ = replace(model.certificate_, primal=None), False
    new.coef_ = np.where(gone, 0, model.coef_).astype(model.coef_.dtype)
    new._progress = new._online = None
    return new


def keep_groups(model: Any, kept: npt.NDArray[np.bool_]) -> None:
    """What is known of the groups of a model, for those that are left after the weights of the others were taken out."""
    sizes = np.diff(model.groups_)[kept]
    model.groups_ = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    by_group = {name: array[:, kept] for name, array in model.report_.items() if array.shape[1:] == kept.shape}
    model.report_ = model.report_ | by_group
    model.group_names_ = [name for name, left in zip(model.group_names_, kept.tolist(), strict=True) if left]
