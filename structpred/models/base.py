"""What all estimators share: running a trainer, keeping what it returns, and acting on an interruption."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils import Tags, check_random_state

from structpred.core.result import Certificate, Record, Result
from structpred.core.steps import TaskLike
from structpred.core.task_checks import checked_weights
from structpred.core.weights import Vector
from structpred.errors import DataError, ParameterError, StructpredError
from structpred.models.settings import resolve_surrogate, resolve_trainer
from structpred.trainers.checkpoints import Progress
from structpred.trainers.loop import Callback, RunSettings, train
from structpred.trainers.problem import Problem, Surrogate, Trainer


class NotFittedError(StructpredError, SklearnNotFittedError):  # type: ignore[misc]
    """The estimator has not been fitted yet."""


class StructuredEstimator(BaseEstimator):  # type: ignore[misc]
    """The parent of the estimators; its children store their settings and build a task.

    After fit: coef_ (flat weights), certificate_, history_, n_iter_ (passes), stop_reason_, converged_. stop_reason_ is one of
    those that core/result.py lists: "search_bound" says that a better slack search, not more passes, would close the gap.
    """

    coef_: Vector
    certificate_: Certificate
    history_: list[Record]
    n_iter_: int
    stop_reason_: str
    converged_: bool
    _progress: Progress | None
    _online: Any

    def _train(self, task: TaskLike, dev: Callable[[Vector], float] | None) -> Result:
        """Run the trainer that the settings name. Changes nothing in the estimator: if it fails, an earlier fit stays whole."""
        C = checked_C(self.C)
        trainer, surrogate = self._trainer_and_surrogate()
        if self.patience is not None and dev is None:
            raise ParameterError("patience needs held-out data: give dev=(X, y) to fit")
        settings = RunSettings(
            max_iter=self.max_iter,
            tol=self.tol,
            check_every=self.check_every,
            seed=seed_of(self.random_state),
            dev=dev,
            patience=self.patience,
            callbacks=as_callbacks(self.callbacks),
            checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
            resume=self.resume,
            keep=bool(getattr(self, "warm_start", False)),
            start=self._earlier_run(),
        )
        lam = 1.0 / (C * float(task.sample_weight.sum()))
        return train(Problem(task, surrogate, lam), trainer, settings)

    def _earlier_run(self) -> Progress | None:
        """The run to go on from, with warm_start after an earlier fit; ParameterError where its state was not kept."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "coef_"):
            return None
        if (progress := getattr(self, "_progress", None)) is None:
            raise ParameterError(
                "warm_start: this model holds weights but not the state of the run that made them (it was loaded from a file, or "
                "fitted without warm_start=True, or in pieces); fit a new one, or set warm_start=False to start anew"
            )
        kept: Progress = progress
        return kept

    def _trainer_and_surrogate(self) -> tuple[Trainer, Surrogate]:
        """What the settings name; a surrogate of its own belongs to each trainer."""
        trainer, surrogate = resolve_trainer(self.trainer)
        given = getattr(self, "surrogate", None)
        return trainer, surrogate if given is None else resolve_surrogate(given)

    def _keep(self, result: Result) -> None:
        """Set the attributes that all fitted estimators have, also when training was interrupted."""
        self.coef_ = result.weights
        self._progress, self._online = result.progress, None
        self.certificate_ = result.certificate
        self.history_ = list(result.history)
        self.n_iter_ = result.passes
        self.stop_reason_ = result.stop_reason
        gap = result.certificate.relative_gap
        self.converged_ = bool(self.tol > 0 and result.certificate.proven and gap is not None and gap <= self.tol)

    def _stop_if_interrupted(self) -> None:
        """Called last in fit: the estimator is usable, and the program stops as it was asked to."""
        if self.stop_reason_ == "interrupted":
            there = self.checkpoint is not None and Path(self.checkpoint).exists()  # it may be that none could be written
            kept = f"; go on with resume=True from {self.checkpoint}" if there else ""
            raise KeyboardInterrupt(
                f"training was interrupted after {self.n_iter_} passes; the model holds what was learnt{kept}"
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(X, y) first, or load a model")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags


def checked_C(C: Any, name: str = "C") -> float:
    """C as a float; ParameterError, naming the setting, unless it is a positive number."""
    if isinstance(C, bool) or not isinstance(C, int | float | np.number) or not (np.isfinite(C) and C > 0):
        raise ParameterError(f"{name} must be a positive number, got {C!r}")
    return float(C)


def as_callbacks(callbacks: Callback | Sequence[Callback] | None) -> tuple[Callback, ...]:
    """One callback, several or none, as a tuple; ParameterError for anything that cannot be called."""
    if callbacks is None:
        return ()
    listed = (callbacks,) if callable(callbacks) or not isinstance(callbacks, Sequence) else tuple(callbacks)
    for callback in listed:
        if not callable(callback):
            raise ParameterError(f"callbacks: expected a function of a row of the history, or a list of such, got {callback!r}")
    return listed


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn calls random_state; None means 0: the same data give the same model."""
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ParameterError(f"random_state must be >= 0, got {random_state}")
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise ParameterError(f"random_state: expected None, a whole number or a RandomState: {error}") from None


def checked_sample_weight(sample_weight: Any, n: int) -> npt.NDArray[np.float64]:
    """One finite number >= 0 a sample, ones for None; ParameterError for anything else."""
    return checked_weights(None if sample_weight is None else as_floats(sample_weight, "sample_weight"), n)


def as_floats(values: Any, name: str) -> npt.NDArray[np.float64]:
    """An array of float64; ParameterError, naming the argument, for what holds no numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name}: expected numbers: {error}") from None


def dev_parts(dev: Any, names: str) -> tuple[Any, ...]:
    """The held-out data as a tuple of as many parts as there are names; ParameterError for anything else."""
    if not isinstance(dev, tuple | list) or len(dev) != len(names.split(",")):
        came = f"{len(dev)} of them" if isinstance(dev, tuple | list) else type(dev).__name__
        raise ParameterError(f"dev: expected a tuple ({names}), got {came}")
    return tuple(dev)


@contextmanager
def about_dev() -> Iterator[None]:
    """Errors in the held-out data say that they are in the held-out data."""
    try:
        yield
    except DataError as error:
        raise DataError(f"dev: {error}") from error
