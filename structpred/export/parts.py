"""What a light program knows of a model."""

from typing import Any, NamedTuple

import numpy.typing as npt


class Parts(NamedTuple):
    """settings: plain data. arrays, texts (lists of strings): by name, as `structpred.export.light` reads them."""

    settings: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]
    texts: dict[str, list[str]]
