"""Projections onto cones: the vectors with given signs, the vectors that do not fall.

Both raise DataError for a point that is empty, not 1-d or not finite.
"""

import numpy as np

from structpred.core.types import ArrayLike, Floats
from structpred.errors import DataError
from structpred.projections.checked import checked_point


def project_onto_sign_cone(point: ArrayLike, signs: ArrayLike) -> Floats:
    """min_x |point - x|^2  subject to  signs_i x_i >= 0 for each i.

    point: (n,). signs: (n,) or one, of -1, 0 and 1; 0 leaves an entry free. What has the wrong sign becomes 0. O(n).
    DataError also for other signs.

    >>> project_onto_sign_cone([3.0, -2.0, -1.0], [1, 1, 0]).tolist()
    [3.0, 0.0, -1.0]
    """
    found, wanted = checked_point(point), np.asarray(signs)
    if wanted.shape not in ((), found.shape) or not np.isin(wanted, (-1, 0, 1)).all():
        raise DataError(
            f"expected signs -1, 0 or 1, one or {len(found)} of them, got {wanted.ravel()[:5]} of shape {wanted.shape}"
        )
    return np.where(wanted * np.sign(found) < 0, 0.0, found)


def project_onto_monotone_cone(point: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """min_x sum_i weights_i (point_i - x_i)^2  subject to  x_1 <= x_2 <= ... <= x_n.

    point: (n,). weights: (n,), above 0; None: all 1. SciPy's isotonic_regression, which pools neighbours that violate the order,
    O(n). For x that do not rise, project -point. DataError also for other weights.

    >>> project_onto_monotone_cone([1.0, 3.0, 2.0, 4.0]).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    from scipy.optimize import isotonic_regression

    found = checked_point(point)
    given = None if weights is None else np.asarray(weights, dtype=np.float64)
    if given is not None and not (given.shape == found.shape and np.isfinite(given).all() and (given > 0).all()):
        raise DataError(
            f"expected {len(found)} weights that are finite and above 0, got {given.ravel()[:5]} of shape {given.shape}"
        )
    return np.asarray(isotonic_regression(found, weights=given).x, dtype=np.float64)
