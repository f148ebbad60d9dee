"""Names of the arrays that signatures speak of: numbers of either precision, whole numbers, truth values, and any."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Floats32 = npt.NDArray[np.float32]
Integers32 = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]
#: what `np.asarray` takes, and `np.dtype`
ArrayLike = npt.ArrayLike
DTypeLike = npt.DTypeLike
