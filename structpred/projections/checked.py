"""Points and sizes as a caller gives them, checked once for all projections."""

import numpy as np

from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError


def checked_point(point: ArrayLike) -> Floats:
    """The point as float64. Raises DataError for one that is empty, not 1-d or not finite.

    >>> checked_point([1, 2])
    array([1., 2.])
    """
    found = np.asarray(point, dtype=np.float64)
    if found.ndim != 1 or not found.size or not np.isfinite(found).all():
        raise DataError(f"expected a 1-d point with finite coordinates, at least one, got shape {found.shape}")
    return found


def checked_ends(ends: ArrayLike, n: int) -> Integers:
    """The ends of groups of n entries, group g being ends[g]:ends[g + 1]; a group may be empty. Raises DataError for others.

    >>> checked_ends([0, 2, 2, 5], 5)
    array([0, 2, 2, 5])
    """
    cuts = np.asarray(ends)
    fine = cuts.ndim == 1 and len(cuts) > 1 and cuts.dtype.kind in "iu"
    if not fine or cuts[0] != 0 or cuts[-1] != n or (np.diff(cuts.astype(np.int64)) < 0).any():
        raise DataError(
            f"expected ascending ends of groups from 0 to {n}, got {cuts.ravel()[:5]}; groups that overlap have no such ends"
        )
    return cuts.astype(np.int64)
