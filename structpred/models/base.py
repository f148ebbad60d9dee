"""What all estimators share: running a trainer, keeping what it returns, and acting on an interruption."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils import Tags, check_random_state

from structpred.core.result import Certificate, Record, Result
from structpred.core.task import TaskLike
from structpred.core.weights import Vector
from structpred.errors import ParameterError, StructpredError
from structpred.models.settings import resolve_trainer
from structpred.trainers.loop import Callback, RunSettings, train
from structpred.trainers.problem import Problem


class NotFittedError(StructpredError, SklearnNotFittedError):  # type: ignore[misc]
    """The estimator has not been fitted yet."""


class StructuredEstimator(BaseEstimator):  # type: ignore[misc]
    """The parent of the estimators; its children store their settings and build a task.

    After fit: coef_ (flat weights), certificate_, history_, n_iter_ (passes), stop_reason_, converged_.
    """

    coef_: Vector
    certificate_: Certificate
    history_: list[Record]
    n_iter_: int
    stop_reason_: str
    converged_: bool

    def _train(self, task: TaskLike, dev: Callable[[Vector], float] | None) -> Result:
        """Run the trainer that the settings name; sets the fitted attributes, also when it was interrupted."""
        if (
            isinstance(self.C, bool)
            or not isinstance(self.C, int | float | np.number)
            or not (np.isfinite(self.C) and self.C > 0)
        ):
            raise ParameterError(f"C must be a positive number, got {self.C!r}")
        trainer, surrogate = resolve_trainer(self.trainer)
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
        )
        lam = 1.0 / (float(self.C) * float(task.sample_weight.sum()))
        result = train(Problem(task, surrogate, lam), trainer, settings)
        self._keep(result)
        return result

    def _keep(self, result: Result) -> None:
        self.coef_ = result.weights
        self.certificate_ = result.certificate
        self.history_ = list(result.history)
        self.n_iter_ = result.passes
        self.stop_reason_ = result.stop_reason
        gap = result.certificate.relative_gap
        self.converged_ = bool(self.tol > 0 and result.certificate.proven and gap is not None and gap <= self.tol)

    def _stop_if_interrupted(self) -> None:
        """Called last in fit: the estimator is usable, and the program stops as it was asked to."""
        if self.stop_reason_ == "interrupted":
            kept = f"; go on with resume=True from {self.checkpoint}" if self.checkpoint is not None else ""
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


def as_callbacks(callbacks: Callback | Sequence[Callback] | None) -> tuple[Callback, ...]:
    """One callback, several or none, as a tuple."""
    if callbacks is None:
        return ()
    return (callbacks,) if callable(callbacks) else tuple(callbacks)


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn calls random_state; None means 0: the same data give the same model."""
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ParameterError(f"random_state must be >= 0, got {random_state}")
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))
