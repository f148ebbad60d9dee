"""What explaining, inspecting and online training know of a chain labeler, which is built on top of them."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy.typing as npt

from structpred.core.costs import PartLoss
from structpred.core.regulariser import Regulariser
from structpred.core.result import Record, Result
from structpred.core.weights import Vector
from structpred.models.chain.constraints import ChainConstraints
from structpred.models.chain.inputs import Input
from structpred.models.chain.targets import LabelEncoder
from structpred.models.signs import SignSetting
from structpred.trainers.loop import RunSettings
from structpred.trainers.problem import Surrogate, Trainer
from structpred.trainers.running.checkpoints import Progress


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


class OnlineLabeler(FittedChain, Protocol):
    """A chain model that is trained in pieces: its settings, and what the last piece left."""

    loss: str | PartLoss
    trainer: str | Trainer | None
    surrogate: str | Surrogate | None
    regulariser: str | Regulariser | None
    signs: SignSetting | None
    C: float
    patience: int | None
    warm_start: bool
    check_components: bool
    missing: Any
    history_: list[Record]
    n_iter_: int
    _n_total: float
    _progress: Progress | None
    _online: Any

    def _input_for(self, X: Any) -> tuple[Input, Any]: ...
    def _trainer_and_surrogate(self) -> tuple[Trainer, Surrogate]: ...
    def _dev_scorer(self, input_: Input, encoder: LabelEncoder, X: Any, y: Any) -> Callable[[Vector], float]: ...
    def _run_settings(self, dev: Callable[[Vector], float] | None) -> RunSettings: ...
    def _keep(self, result: Result) -> None: ...
    def _stop_if_interrupted(self) -> None: ...
