"""Names of the arrays that signatures speak of: numbers in double precision, whole numbers, truth values, and any."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]
#: what `np.asarray` takes
ArrayLike = npt.ArrayLike
