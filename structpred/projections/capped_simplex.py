"""Projection onto the simplex whose entries have a cap."""

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats
from structpred.errors import InfeasibleError
from structpred.projections.box import project_onto_box
from structpred.projections.checked import checked_point, checked_size


def project_onto_capped_simplex(point: npt.ArrayLike, cap: float, total: float = 1.0) -> Floats:
    """min_x |point - x|^2  subject to  0 <= x <= cap, sum x = total.

    point: (n,). With cap 1/k and total 1 it is the dual set of the top-k hinge loss as a maximum over k labels. A box with one
    equality: O(n), by `nearest_in_box`. Raises DataError for a point that is empty, not 1-d or not finite, ParameterError for a
    cap or total that is not above 0, InfeasibleError where n caps are less than the total.

    >>> project_onto_capped_simplex([3.0, 1.0, 0.0], 0.5).tolist()
    [0.5, 0.5, 0.0]
    """
    found = checked_point(point)
    cap, total = checked_size(cap, "cap"), checked_size(total, "total")
    if len(found) * cap < total * (1.0 - 1e-12):
        raise InfeasibleError(f"{len(found)} entries of at most {cap:g} cannot have the sum {total:g}")
    if len(found) * cap <= total:
        return np.full(len(found), cap)
    return project_onto_box(found, 0.0, cap, 1.0, total)
