"""The setting `signs` of linear models: a sign for each feature, the same for all outputs or one for each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.result import Result
from structpred.errors import ParameterError
from structpred.models.signs import NameTable, Signs, SignSetting, resolve_signs, signs_from
from structpred.objectives.regularisers.sign_constraints import checked_signs


def linear_names(features: Sequence[str], offsets: Sequence[str], outputs: Sequence[str]) -> NameTable:
    """The table of weights, a row for each feature and each offset (intercept or threshold) and a column for each output.

    "FEATURE -> OUTPUT", or "FEATURE" where there is one output.
    """
    return NameTable([*features, *offsets], outputs, row_step=max(len(outputs), 1), column_step=1 if outputs else 0)


def linear_signs(signs: SignSetting, names: NameTable, n_features: int) -> Signs:
    """The signs of the table of weights. Arrays are (n_features,) or, as coef_, (n_outputs, n_features); offsets are then free.

    >>> linear_signs([1, -1], linear_names(["a", "b"], ["intercept"], ["x", "y"]), 2).tolist()
    [[1, 1], [-1, -1], [0, 0]]
    """
    shape = len(names.rows), max(len(names.columns), 1)
    if isinstance(signs, Mapping | str):
        return resolve_signs(signs, [names], shape[0] * shape[1]).reshape(shape)
    try:
        given = np.atleast_2d(np.array(signs))
    except ValueError as error:
        raise ParameterError(f"signs: expected an array of -1, 0 and 1: {error}") from None
    if given.shape not in ((1, n_features), (shape[1], n_features)):
        raise ParameterError(
            f"signs: expected one for each of {n_features} features, or an array ({shape[1]}, {n_features}) as coef_, got shape "
            f"{np.shape(signs)}"
        )
    table = np.zeros(shape, np.int8)
    table[:n_features] = checked_signs(given.ravel()).reshape(given.shape).T
    return table


def with_table_signs(results: Sequence[Result], signs: Signs) -> list[Result]:
    """The results of the runs, one for all outputs or one for each, whose reports are about the whole table of weights."""
    n = signs.shape[1] if len(results) > 1 else 1
    found = [result.report.get("binding", np.empty((2, 0))) for result in results]
    ends = np.flatnonzero(np.append(np.diff(signs.ravel()) != 0, True))
    told = {
        "signs": np.array([ends + 1, signs.ravel()[ends]], np.float64),
        "binding": np.hstack([np.array([n * at + k, pull]) for k, (at, pull) in enumerate(found)]),
    }
    return [replace(result, report={**result.report, **told}) for result in results]


def table_signs(report: Any, n_outputs: int, n_features: int, n_offsets: int) -> Signs:
    """The signs of a fitted model's features, in the shape of coef_."""
    flat = signs_from(report, n_outputs * (n_features + n_offsets))
    found: npt.NDArray[np.int8] = np.ascontiguousarray(flat.reshape(-1, n_outputs).T[:, :n_features])
    return found
