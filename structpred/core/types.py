"""Names of the arrays that signatures speak of: numbers in double precision, and whole numbers."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
