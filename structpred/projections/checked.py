"""Points and sizes as a caller gives them, checked once for all projections."""

import numpy as np
import numpy.typing as npt

from structpred.errors import DataError, ParameterError

Floats = npt.NDArray[np.float64]


def checked_point(point: npt.ArrayLike) -> Floats:
    """The point as float64. Raises DataError for one that is empty, not 1-d or not finite.

    >>> checked_point([1, 2])
    array([1., 2.])
    """
    found = np.asarray(point, dtype=np.float64)
    if found.ndim != 1 or not found.size or not np.isfinite(found).all():
        raise DataError(f"expected a 1-d point with finite coordinates, at least one, got shape {found.shape}")
    return found


def checked_size(size: float, name: str) -> float:
    """A radius, a cap or a total: finite and above 0, else ParameterError.

    >>> checked_size(2, "the radius")
    2.0
    """
    if not (np.isfinite(size) and size > 0):
        raise ParameterError(f"expected {name} to be finite and above 0, got {size!r}")
    return float(size)
