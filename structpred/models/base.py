"""What all estimators share: running a trainer, keeping what it returns, and acting on an interruption."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from structpred.core.costs import Cost
from structpred.core.oracle import Oracle
from structpred.core.regulariser import Regulariser, group_norms
from structpred.core.result import Certificate, History, Record, Result
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.models.bundles import common, pack_run, read_own, save
from structpred.models.groups import with_pruning, zeroed
from structpred.models.nothing_learnt import warned
from structpred.models.own_components import check_own, components_of, marked
from structpred.models.partial import for_task
from structpred.models.settings import foreign_attribute, new_estimator, resolve_regulariser, resolve_surrogate, resolve_trainer
from structpred.models.signs import (
    BindingSign,
    Names,
    NameTable,
    Signs,
    SignSetting,
    binding_from,
    group_names,
    resolve_signs,
    signs_from,
    with_signs,
)
from structpred.models.sklearn_bridge import Estimator, NotFittedError
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import SET_LOSSES, SetHinge
from structpred.objectives.regularisers.signed import signed
from structpred.runtime.settings import checked_positive
from structpred.storage import schema as storage
from structpred.storage.bundles import Bundle
from structpred.task.partial_task import is_partial
from structpred.task.steps import TaskLike
from structpred.task.task_checks import checked_weights
from structpred.trainers.loop import Callback, RunSettings, train
from structpred.trainers.problem import Problem, Surrogate, Trainer
from structpred.trainers.running.checkpoints import Progress, begun


@dataclass(eq=False, repr=False)
class StructuredEstimator(Estimator, ABC):
    """The parent of the estimators: the settings that all of them have, training, and model files.

    A child is a dataclass, too (`@dataclass(eq=False, repr=False)`, which leaves scikit-learn's repr and equality alone). Its
    fields are further settings, and may replace a default; its `fit` builds a task and calls `_train` and `_keep`. It says how
    it is written and read: `_HEADER`, `_contents` and `_from_bundle`.

    Parameters
    ----------
    trainer : str or Trainer, optional
        A name (`structpred.trainers.names.trainers()` lists them, and `structpred train --help`), or a trainer object such as
        ``BCFW(gap_sampling=True)``. None: bcfw; with 1/2 |w|^2 oeg for "log"; not on shards corrective for "slack", graphs.
    C : float
        The weight of the training loss, > 0: lam = 1 / (C n).
    max_iter : int, optional
        Passes over the data. None: 50, or as many as the trainer needs at least, such as 200 of bmrm, ls_bmrm and one_slack.
    tol : float
        Stop when the gap is at most tol times the primal; 0 means never.
    loss : str or Cost
        "hamming", "extra_parts", or a part loss such as ``LabelCosts(matrix)``.
    surrogate : str or Surrogate, optional
        "margin", "slack" or "log" (a conditional random field), or an object; None: the one that belongs to the trainer.
    check_every : int
        Passes between computations of the certificate.
    patience : int, optional
        Stop after this number of passes without a better score on the `dev` data of fit.
    callbacks : callable or list of callables, optional
        Called with each row of the history; True stops.
    checkpoint : path, optional
        A file that holds the state of the run.
    resume : bool
        Continue from the checkpoint.
    random_state : int or RandomState, optional
        Seeds the order of instances; None means 0.
    regulariser : str or Regulariser, optional
        What takes the place of 1/2 |w|^2: "l1" (beside it), or an object such as ``L1(0.1)``; None: that of the trainer, which is
        1/2 |w|^2 itself for most. A trainer that cannot minimise it refuses it.
    signs : dict or array of int, optional
        Weights that must not be negative (1) or positive (-1), by name: ``{"length": 1, "word=* -> verb": -1}``; * stands for any
        text, a name without an arrow for all labels. Or a sign for each weight of the flat coef_, 0 for a free one. With any
        regulariser. docs/howto/what_i_know_about_the_signs.md says what weights are called.
    verbose : int
        0: silent. 1: a line a pass on standard error, in a notebook an output that changes in place.
    check_components : bool
        Whether components from outside the package must pass their contract checks first: see docs/howto/add_an_oracle.md.

    Attributes
    ----------
    coef_ : ndarray
        The flat weights.
    certificate_ : Certificate
        Bounds on the objective: primal, dual, gap.
    history_ : list of dict
        A row for each time that the certificate was computed.
    n_iter_ : int
        Passes done.
    stop_reason_ : str
        One of those in core/result.py: "search_bound" says that a better slack search, not more passes, would close the gap.
    converged_ : bool
        Whether the proven gap is at most tol.
    probabilistic_ : bool
        Whether it was trained with the log loss, so that exp(score) is a probability up to a constant factor.
    groups_ : ndarray
        Group k of coef_, such as the weights of one template, is coef_[groups_[k]:groups_[k+1]].
    group_names_ : list of str
        What the groups are called.
    report_ : dict
        What the trainer says besides: "group_weights" of online_mkl, for example, has a row of |w_k| / sum_k |w_k| for each pass.
    """

    loss: str | Cost = field(default="hamming", kw_only=True)  # first: StructuredPredictor takes it by position
    trainer: str | Trainer | None = None
    C: float = 1.0
    max_iter: int | None = None
    tol: float = 0.001
    _: KW_ONLY
    surrogate: str | Surrogate | None = None
    check_every: int = 10
    patience: int | None = None
    callbacks: Callback | Sequence[Callback] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    resume: bool = False
    random_state: Any = None
    regulariser: str | Regulariser | None = None
    signs: SignSetting | None = None
    verbose: int = 0
    check_components: bool = True

    coef_: Vector = field(init=False)
    certificate_: Certificate = field(init=False)
    history_: list[Record] = field(init=False)
    n_iter_: int = field(init=False)
    stop_reason_: str = field(init=False)
    converged_: bool = field(init=False)
    probabilistic_: bool = field(init=False)
    groups_: npt.NDArray[np.int64] = field(init=False)
    group_names_: list[str] = field(init=False)
    report_: dict[str, npt.NDArray[np.float64]] = field(init=False)
    reader_: dict[str, Any] = field(init=False)
    _progress: Progress | None = field(init=False)
    _online: Any = field(init=False)
    _n_total: float = field(init=False)

    #: what the header of a file must hold, and of which attributes it is made
    _HEADER: ClassVar[storage.Record]
    #: how it is trained on shards, where it can be: a `Sharding`
    _sharding: ClassVar[Any] = None
    #: what part of a training a fit is, where there are several: verbose=1 says so
    _stage = ""
    #: whether other estimators are fitted before it: a run may end before it has a checkpoint of its own
    _comes_last = False
    #: the trainer that `fit` took where none was named, on shards this one; passes where max_iter is None, if they suffice it
    _default, _own_passes = "bcfw", 50

    if not TYPE_CHECKING:  # a checker would let any name pass
        __new__, __getattr__ = new_estimator, foreign_attribute

    def _contents(self) -> Bundle:
        """What a file holds besides attributes: the fields of its header that are none, its arrays and its texts."""
        return Bundle(common(self), pack_run(self))

    @classmethod
    @abstractmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        """The fitted estimator of a header that was checked; ValueError (or a child) where the parts do not fit each other."""

    save = save

    @classmethod
    def load(cls, path: str | os.PathLike[str], oracle: Oracle | None = None) -> Self:
        """Read a model file; raises ModelFileError for anything that is not a whole, unaltered model of this class.

        oracle: of the same class as in training, where one was given then; other models have no use for it.
        """
        return read_own(path, cls, oracle)

    def without_groups(self, names: Collection[str]) -> Self:
        """The same fitted model with the weights of these groups zero, and without what only they need, such as templates.

        Its certificate holds where the weights were zero before. Where they were not, the objective is known only of the groups
        that report_["small_groups"] marks; of others its lower bound is.
        Raises ParameterError for a name that `group_names_` does not have.
        """
        self._check_fitted()
        new: Self = zeroed(self, names)
        new._drop_groups(names)
        return new

    def _drop_groups(self, names: Collection[str]) -> None:
        """Take out what only groups need whose weights are zero; nothing, unless a child knows what that is."""

    @property
    def group_norms_(self) -> npt.NDArray[np.float64]:
        """The norm of the weights of each group: the Euclidean one, or that of a function where the group is that of a kernel."""
        self._check_fitted()
        return group_norms(self.coef_.ravel(), self.groups_)

    @property
    def signs_(self) -> Signs:
        """The sign that each weight of coef_ had to have in training: 1, -1, or 0 where it was free."""
        self._check_fitted()
        return signs_from(self.report_, self.coef_.size).reshape(self.coef_.shape)

    def binding_constraints(self) -> list[BindingSign]:
        """The constraints of `signs` that bind: weights that the dual point of the certificate pulls to the other side of zero.

        The strongest pull first. Empty without signs, and where the trainer had no dual point.
        """
        self._check_fitted()
        return binding_from(self.report_, self.coef_, self._name_tables())

    def _name_tables(self) -> Sequence[NameTable]:
        """What the weights of the fitted model are called: the groups, unless a child knows more."""
        return group_names(self.groups_, self.group_names_)

    def _train(self, task: TaskLike, dev: Callable[[Vector], float] | None, names: Names | None = None) -> Result:
        """Run the trainer that the settings name. If it fails, an earlier fit stays whole.

        names: what the weights of the task are called; None: those of its groups.
        """
        lam = 1.0 / (checked_positive(self.C, "C") * (n_total := float(task.sample_weight.sum())))
        self._default = self._default_for(task)
        trainer, surrogate = for_task(task, *self._trainer_and_surrogate())
        settings = self._run_settings(dev)
        regulariser = self._regulariser_of(trainer, task, names)
        checked = check_own(components_of(task, trainer, surrogate, regulariser), self.check_components)
        problem = Problem(task, surrogate, lam, regulariser=regulariser)
        result = with_signs(problem, with_pruning(problem, train(problem, trainer, settings)))
        self._n_total = n_total
        return marked(warned(result, problem), checked)

    def _run_settings(self, dev: Callable[[Vector], float] | None) -> RunSettings:
        """How long to train, and what to do on the way. ParameterError for settings that do not fit each other."""
        if self.patience is not None and dev is None:
            raise ParameterError("patience needs held-out data: give dev=(X, y) to fit")
        return RunSettings(
            max_iter=self._passes_with(None) if self.max_iter is None else self.max_iter, tol=self.tol,
            check_every=self.check_every, seed=seed_of(self.random_state), dev=dev, patience=self.patience,
            callbacks=as_callbacks(self.callbacks), checkpoint=None if self.checkpoint is None else Path(self.checkpoint),
            resume=self.resume and (not self._comes_last or self.checkpoint is None or begun(Path(self.checkpoint))),
            keep=bool(getattr(self, "warm_start", False)), start=self._earlier_run(), verbose=self.verbose, stage=self._stage,
        )  # fmt: skip

    def _passes_with(self, trainer: str | Trainer | None) -> int:
        """How many passes there are with this trainer, None for the default one, where max_iter is None."""
        return max(self._own_passes, resolve_trainer(self._chosen_trainer() if trainer is None else trainer)[0].least_passes)

    def _regulariser_of(self, trainer: Trainer, task: TaskLike, names: Names | None) -> Regulariser:
        """What the settings name, for the weights of the task."""
        found = resolve_regulariser(self.regulariser, trainer)
        if self.signs is None:
            return found
        tables = group_names(task.groups, task.group_names) if names is None else names()
        return signed(found, resolve_signs(self.signs, tables, task.dim))

    def _earlier_run(self) -> Progress | None:
        """The run to continue, with warm_start after an earlier fit; ParameterError where its state was not kept."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "coef_"):
            return None
        if (progress := getattr(self, "_progress", None)) is None:
            raise ParameterError(
                "warm_start: this model holds weights but not the state of the run that made them (it was loaded from a file, or "
                "fitted without warm_start=True, or in pieces); fit a new one, or set warm_start=False to start from zero"
            )
        return progress

    def _chosen_trainer(self) -> str | Trainer:
        """The setting `trainer`; in place of None what `fit` took, or will take at least."""
        return self._default if self.trainer is None else self.trainer

    def _default_for(self, task: TaskLike) -> str:
        """The trainer where none is named. Corners of slack rescaling and of losses of sets are expensive: they are kept."""
        slow = isinstance(asked := self._asked_surrogate(), SetHinge) or hasattr(asked, "search")
        return "bcfw" if not self._is_plain(task) else "corrective" if slow else "oeg" if isinstance(asked, LogLoss) else "bcfw"

    def _is_plain(self, task: TaskLike) -> bool:
        """Whether all outputs are known, and the regulariser is 1/2 |w|^2."""
        return self.regulariser in (None, "l2") and self.signs is None and not is_partial(task)

    def _trainer_and_surrogate(self) -> tuple[Trainer, Surrogate]:
        """What the settings name; a surrogate of its own belongs to each trainer."""
        (trainer, own), asked = resolve_trainer(self._chosen_trainer()), self._asked_surrogate()
        return trainer, own if asked is None else asked

    def _asked_surrogate(self) -> Surrogate | None:
        """What the settings `surrogate` and `loss` name; None where that is left to the trainer."""
        chosen = SetHinge(str(self.loss)) if str(self.loss) in SET_LOSSES else self.surrogate
        return None if chosen is None else resolve_surrogate(chosen)

    def _minimises_log_loss(self) -> bool:
        return isinstance(self._trainer_and_surrogate()[1], LogLoss)

    def _check_probabilistic(self, instead: str = "") -> None:
        """Raise ParameterError, with what to do instead, where it was not the log loss: scores are then no log-probabilities."""
        if not self.probabilistic_:
            raise ParameterError(
                f"this model was trained with trainer={self._chosen_trainer()!r} and a loss that is not the log loss: its scores "
                f"are not log-probabilities; {instead}train with trainer='oeg', trainer='lbfgs' or surrogate='log'"
            )

    def _keep(self, result: Result) -> None:
        """Set the attributes that all fitted estimators have, also when training was interrupted."""
        self.coef_, self._progress, self._online = result.weights, result.progress, None
        self.report_, self.groups_, self.group_names_ = dict(result.report), result.groups, list(result.group_names)
        self.certificate_, self.probabilistic_ = result.certificate, self._minimises_log_loss()
        self.history_ = History(result.history)
        self.n_iter_, self.stop_reason_ = result.passes, result.stop_reason
        gap = result.certificate.relative_gap
        self.converged_ = bool(self.tol > 0 and result.certificate.certifies and gap is not None and gap <= self.tol)

    def _stop_if_interrupted(self) -> None:
        """Called last in fit: the estimator is usable, and the program stops as it was asked to."""
        if self.stop_reason_ == "interrupted":
            there = self.checkpoint is not None and Path(self.checkpoint).exists()  # it may be that none could be written
            kept = f"; continue with resume=True from {self.checkpoint}" if there else ""
            raise KeyboardInterrupt(
                f"training was interrupted after {self.n_iter_} passes; the model holds what was learnt{kept}"
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "coef_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(X, y) first, or load a model")

    def __sklearn_tags__(self) -> Any:
        return structured_tags(super().__sklearn_tags__())


def structured_tags(tags: Any) -> Any:
    """The scikit-learn tags of estimators of structures: X is not a matrix, and there must be a y."""
    tags.input_tags.two_d_array = False
    tags.target_tags.required = True
    tags.no_validation = True
    return tags


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
    from sklearn.utils import check_random_state

    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise ParameterError(f"random_state: expected None, a whole number or a RandomState: {error}") from None


def checked_sample_weight(sample_weight: Any, n: int) -> npt.NDArray[np.float64]:
    """One finite number >= 0 per sample, ones for None; ParameterError for anything else."""
    return checked_weights(None if sample_weight is None else as_floats(sample_weight, "sample_weight"), n)


def as_floats(values: Any, name: str) -> npt.NDArray[np.float64]:
    """An array of float64; ParameterError, naming the argument, for anything but numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{name}: expected numbers: {error}") from None
