"""Rows of features and rows of labels, as multi-label estimators take them; errors name the sample."""

from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.errors import DataError
from structpred.features.rows import csr_of, stack_rows
from structpred.io.multilabel.data import MultiLabelData
from structpred.models.partial import tell_missing

Labels = npt.NDArray[np.int64]


def as_rows(X: Any, n_features: int | None = None) -> Any:
    """The features as a CSR array (n, d) of float64: an array, a sparse matrix, a data frame or MultiLabelData.

    n_features: how many columns are expected, None for any number. DataError, naming the sample, for values that are not finite.
    """
    from scipy import sparse

    given = X.X if isinstance(X, MultiLabelData) else X
    if not sparse.issparse(given):
        try:
            given = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"X: expected a 2-d array of numbers (n_samples, n_features) or a sparse matrix: {error}") from None
        if given.ndim != 2:
            raise DataError(f"X: expected a 2-d array (n_samples, n_features), got {given.ndim}-d of shape {given.shape}")
    rows = stack_rows(given)
    n = len(rows.counts)
    if n_features is not None and rows.n_columns != n_features:
        raise DataError(f"X has {rows.n_columns} features, but the model was fitted with {n_features}")
    if not rows.n_columns:
        raise DataError("X: expected at least one feature column, got none")
    return sparse.csr_array((rows.values, rows.indices, rows.indptr), shape=(n, rows.n_columns))


def as_indicator(y: Any, n: int, n_labels: int | None = None, *, missing: bool = False) -> Labels:
    """The labels as int64 (n, n_labels), 0 and 1, and with missing=True -1 for one that is not known.

    missing: whether -1, None and the set {0, 1} may stand for such a label. Raises DataError, naming the sample, for other
    shapes and values.
    """
    from scipy import sparse

    if y is None:
        raise DataError("y: expected rows of 0 and 1, one column per label, got None")
    dense = csr_of(y, None, "y").toarray() if sparse.issparse(y) else y
    try:
        given = np.asarray(dense)
    except ValueError as error:
        raise DataError(f"y: expected rows of 0 and 1, one column per label: {error}") from None
    if missing and given.ndim == 2 and given.dtype == object:
        given = _marked(given)
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise DataError(
            f"y: expected rows of 0 and 1, one column per label, got {given.ndim}-d {given.dtype}; sets of labels become such "
            "rows with sklearn.preprocessing.MultiLabelBinarizer"
        )
    if len(given) != n:
        raise DataError(f"X has {n} samples but y has {len(given)}")
    if not given.shape[1] or (n_labels is not None and given.shape[1] != n_labels):
        raise DataError(f"y: expected {n_labels or 'at least one'} label columns, got {given.shape[1]}")
    bad = (given != 0) & (given != 1) & ~(missing & (given == -1))
    if bad.any():
        i, k = np.argwhere(bad)[0].tolist()
        hint = "" if given[i, k] != -1 else " (missing; only training takes that)"
        raise DataError(f"sample {i}: y must be 0 or 1, got {given[i, k]} for label {k}{hint}")
    return given.astype(np.int64)


def _marked(given: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Entries of any kind with -1 in the place of None and of sets of both states; a set of one state is that state."""
    found = given.copy()
    for place, entry in np.ndenumerate(given):
        if entry is None:
            found[place] = -1
        elif isinstance(entry, set | frozenset):
            if not entry or not entry <= {0, 1}:
                raise DataError(f"sample {place[0]}: expected 0, 1 or both in the set of label {place[1]}, got {entry!r}")
            found[place] = -1 if len(entry) == 2 else next(iter(entry))
    try:
        return np.array(found.tolist())
    except ValueError:
        return given


def labels_of(X: Any, y: Any, n: int, n_labels: int | None = None, *, missing: bool = False) -> Labels:
    """The labels of n samples: y, or those of MultiLabelData as X with y left out."""
    return as_indicator(X.Y if isinstance(X, MultiLabelData) and y is None else y, n, n_labels, missing=missing)


def example_accuracy(gold: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """For each row |gold and predicted| / |gold or predicted| (Jaccard); 1 where both are empty.

    >>> example_accuracy(np.array([[1, 1, 0], [0, 0, 0]]), np.array([[1, 0, 0], [0, 0, 0]])).tolist()
    [0.5, 1.0]
    """
    both = ((gold != 0) & (predicted != 0)).sum(axis=1)
    either = ((gold != 0) | (predicted != 0)).sum(axis=1)
    return np.where(either == 0, 1.0, both / np.maximum(either, 1))


def label_choices(Y: Labels) -> dict[int, list[tuple[int, ...] | None]]:
    """For each row with missing labels (-1) the states that each label may have, None for both; says how many are missing."""
    rows = np.flatnonzero((Y < 0).any(axis=1))
    if len(rows):
        if (Y < 0).all():
            raise DataError("y: expected some labels, but all are missing")
        tell_missing(int((Y < 0).sum()), 0, Y.size)
    return {i: [None if state < 0 else (state,) for state in Y[i].tolist()] for i in rows.tolist()}
