"""Projection onto the vectors with given signs."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import DataError
from structpred.projections.checked import checked_point


def project_onto_sign_cone(point: npt.ArrayLike, signs: npt.ArrayLike) -> Floats:
    """min_x |point - x|^2  subject to  signs_i x_i >= 0 for each i.

    point: (n,). signs: (n,) or one, of -1, 0 and 1; 0 leaves an entry free. What has the wrong sign becomes 0. O(n). Raises
    DataError for a point that is empty, not 1-d or not finite, and for other signs.

    >>> project_onto_sign_cone([3.0, -2.0, -1.0], [1, 1, 0]).tolist()
    [3.0, 0.0, -1.0]
    """
    found, wanted = checked_point(point), np.asarray(signs)
    if wanted.shape not in ((), found.shape) or not np.isin(wanted, (-1, 0, 1)).all():
        raise DataError(
            f"expected signs -1, 0 or 1, one or {len(found)} of them, got {wanted.ravel()[:5]} of shape {wanted.shape}"
        )
    return np.where(wanted * np.sign(found) < 0, 0.0, found)
