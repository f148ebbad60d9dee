"""The score that forbids a part."""

import numpy as np
import numpy.typing as npt

#: the score of what is forbidden: finite, so that sums stay finite, and so low that no weights make up for it
FORBIDDEN = -1e30


def forbidden_parts(fixed: npt.NDArray[np.float64] | None, n_parts: int) -> npt.NDArray[np.bool_]:
    """Which parts fixed scores forbid; None forbids none."""
    return np.zeros(n_parts, np.bool_) if fixed is None else np.asarray(fixed <= 0.5 * FORBIDDEN)
