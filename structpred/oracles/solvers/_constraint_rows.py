"""Linear constraints A mu <= b as they come from a caller: checked once, the same way by every oracle over a solver."""

import numpy as np

from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError, ParameterError


def checked_rows(A: ArrayLike, b: ArrayLike, n_parts: int) -> tuple[Floats, Floats] | None:
    """A as (rows, n_parts) and b as (rows,) without the rows that hold anyway; None where a limit of -inf rules out everything.

    Raises ParameterError for sizes that do not fit, DataError for NaN and for infinite coefficients.

    >>> rows, limits = checked_rows([[1.0, 2.0], [0.0, 1.0]], [3.0, float("inf")], 2)
    >>> rows.tolist(), limits.tolist()
    ([[1.0, 2.0]], [3.0])
    """
    rows, limits = np.atleast_2d(np.asarray(A, dtype=np.float64)), np.atleast_1d(np.asarray(b, dtype=np.float64))
    if rows.size == limits.size == 0:
        return np.zeros((0, n_parts)), np.zeros(0)
    if limits.ndim != 1 or rows.shape != (len(limits), n_parts):
        raise ParameterError(f"A must have shape ({limits.size}, {n_parts}) to fit b and the parts, got {rows.shape}")
    if not np.isfinite(rows).all() or np.isnan(limits).any():
        raise DataError("the coefficients A must be finite and the limits b must not be NaN: check the constraints' rows")
    if (limits == -np.inf).any():
        return None
    used = limits < np.inf
    return rows[used], limits[used]


def keeps(A: Floats, b: Floats, parts: Integers) -> bool:
    """Whether an output with these parts (ascending) has A mu <= b, as float64 adds the coefficients of its parts in turn.

    Each row is added in the same way, so that a row and its negative have sums that are negatives to the last bit.
    """
    return bool((np.take(A, parts, axis=1).sum(axis=1) <= b).all())
