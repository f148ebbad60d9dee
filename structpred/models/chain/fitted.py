"""What explaining and inspecting know of a chain labeler, which is built on top of them."""

from typing import Any, Protocol

import numpy.typing as npt

from structpred.core.weights import Vector
from structpred.models.chain.constraints import ChainConstraints
from structpred.models.chain.inputs import Input
from structpred.models.chain.targets import LabelEncoder


class FittedChain(Protocol):
    """A chain model: how it reads sequences, its labels and its weights."""

    constraints: str | ChainConstraints | None
    input_: Input
    classes_: npt.NDArray[Any]
    n_features_in_: int
    coef_: Vector
    _encoder: LabelEncoder

    def _check_fitted(self) -> None: ...
    def _table(self) -> npt.NDArray[Any]: ...
