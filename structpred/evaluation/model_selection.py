"""Cross-validated predictions of sequences; scikit-learn's function of that name fails where lengths differ."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from structpred.core.types import Integers
from structpred.errors import DataError, ParameterError


def cross_val_predict(
    estimator: Any,
    X: Sequence[Any],
    y: Sequence[Any],
    *,
    groups: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    method: str = "predict",
    params: Mapping[str, Any] | None = None,
) -> list[Any]:
    """For each sequence what a model says that was trained on the other folds: one entry per sequence, in the order of X.

    X, y: lists of sequences. cv: the number of folds (None: 5), a splitter such as KFold(5, shuffle=True), or pairs of index
    arrays, whose test parts hold every sequence exactly once. method: "predict", "predict_marginals" or any that gives one
    entry per sequence. params: more arguments of fit; those with one entry per sequence, such as sample_weight, are split along.
    n_jobs: folds at a time, in processes of their own. The estimator is cloned, never changed.

    Raises DataError where X and y do not fit each other, ParameterError for folds that are not a partition.
    """
    from joblib import Parallel, delayed

    n = _length(X, y)
    if not hasattr(estimator, method):
        raise ParameterError(f"method: {type(estimator).__name__} has no {method!r}")
    folds = _folds(cv, y, groups, n)
    jobs = (delayed(_fold)(estimator, X, y, train, test, method, dict(params or {})) for train, test in folds)
    found: list[Any] = [None] * n
    for (_, test), predictions in zip(folds, Parallel(n_jobs=n_jobs)(jobs), strict=True):
        for i, prediction in zip(test.tolist(), predictions, strict=True):
            found[i] = prediction
    return found


def _length(X: Any, y: Any) -> int:
    """The number of sequences; DataError for what cannot be picked from."""
    for name, values in (("X", X), ("y", y)):
        if isinstance(values, str | Mapping) or not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
            raise DataError(f"{name}: expected a list of sequences, got {type(values).__name__}; folds pick from it by number")
    if len(X) != len(y):
        raise DataError(f"X has {len(X)} sequences but y has {len(y)}")
    return len(X)


def _folds(cv: Any, y: Any, groups: Any, n: int) -> list[tuple[Integers, Integers]]:
    from sklearn.model_selection import check_cv

    numbers = np.arange(n)  # splitters look at y: whole sequences would be mistaken for many labels
    try:
        pairs = list(check_cv(cv, numbers, classifier=False).split(numbers, numbers, groups))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"cv: {error}") from None
    folds = [(_numbers(train, n), _numbers(test, n)) for train, test in pairs]
    tested = np.sort(np.concatenate([test for _, test in folds])) if folds else np.empty(0)
    if not np.array_equal(tested, numbers):
        raise ParameterError("cv: the test parts must hold every sequence exactly once")
    return folds


def _numbers(chosen: Any, n: int) -> Integers:
    array = np.asarray(chosen)
    return np.flatnonzero(array) if array.dtype == bool and len(array) == n else array.astype(np.int64)


def _fold(estimator: Any, X: Any, y: Any, train: Integers, test: Integers, method: str, params: dict[str, Any]) -> list[Any]:
    from sklearn.base import clone

    n = len(X)
    more = {
        name: _picked(value, train) if isinstance(value, list | np.ndarray) and len(value) == n else value
        for name, value in params.items()
    }
    model = clone(estimator).fit(_picked(X, train), _picked(y, train), **more)
    return list(getattr(model, method)(_picked(X, test)))


def _picked(values: Any, numbers: Iterable[int]) -> Any:
    if isinstance(values, np.ndarray):
        return values[np.asarray(numbers)]
    return [values[int(i)] for i in numbers]
