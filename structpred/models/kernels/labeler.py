"""Sequence labelling with a kernel between positions: with a maximum margin, and by Gaussian processes."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from structpred.core.regulariser import Regulariser
from structpred.core.result import Result
from structpred.core.types import ArrayLike, Floats
from structpred.core.weights import Vector
from structpred.data.sequences import PackedSequences
from structpred.errors import ParameterError
from structpred.features.positions import PositionFeatures
from structpred.models.base import seed_of
from structpred.models.bundles import OBJECT
from structpred.models.chain.inputs import Input, NumericInput
from structpred.models.chain.labeler import ChainLabeler, Scored
from structpred.models.kernels.estimator import Kernelised
from structpred.models.kernels.expansion import KernelExpansion
from structpred.models.kernels.functions import Kernel, Mean, Precomputed, listed_kernels, resolve_kernel, restored, saved
from structpred.models.signs import Names
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.regularisers.mkl import MKL
from structpred.runtime.settings import checked_whole
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, ListOf, OneOf, Record, Whole, maybe
from structpred.task.steps import TaskLike
from structpred.trainers.corrective import Corrective
from structpred.trainers.function_corrective import FunctionCorrective
from structpred.trainers.online.grouped_weights import FunctionNorms
from structpred.trainers.problem import Surrogate, Trainer
from structpred.trainers.proximal import OnlineProximal

#: one of `kernels`: a name, (name, parameter), a kernel object or a function
Listed = str | tuple[str, float] | Kernel | Callable[[Any, Any], ArrayLike]
COMBINE = ("mkl", "average")


@dataclass(eq=False, repr=False)
class KernelChainLabeler(Kernelised, ChainLabeler):
    """A label for each position of a sequence: kernelised emissions, linear transitions, start and stop.

    Minimises  1/2 |w|^2 + C sum_i s_i max_y [loss(y_i, y) + <w, phi(x_i, y) - phi(x_i, y_i)>]  for feature maps with

        <phi(x, y), phi(x', y')> = sum_{t, t'} [y_t = y'_t'] k(x_t, x'_t') + transitions of y and y' in common + start + stop,

    a maximum-margin Markov network (Taskar, Guestrin and Koller 2003). Its dual is over the marginals of cliques: with shares
    alpha_i of outputs, w = C sum_i s_i (phi(x_i, y_i) - E_alpha phi(x_i, y)). With the log loss it is a kernel conditional
    random field.

    The Gram matrix of the N distinct training positions is taken apart exactly, K = Phi Phi' (O(N r^2) once, r <= N its rank,
    8 N^2 bytes; DataError before anything is allocated that does not fit). Training is that of ChainLabeler on the rows of Phi:
    every trainer works, and the certificate is that of the problem with the kernel, up to 1e-10 of the largest k(x, x).
    Prediction takes k(x, support): the r training positions that span all others.

    **Several kernels**, `kernels=`, are combined while training (Martins et al. 2011): with combine="mkl" each has a function of
    its own, and  1/2 (sum_k |w_k|)^2  in place of 1/2 |w|^2 leaves few of them; start and stop, and transitions, are two groups
    more. With combine="average" their mean is one kernel. Training is online, or with trainer="corrective" to a certified gap of
    the same objective, in kernel form: a Gram matrix of 4 N^2 bytes for each kernel (float32; that of "b1spline" holds its
    non-zero entries only), and a wrong label adds two rows of each. With n_components=m kernels are taken apart by m landmarks
    instead (Nystroem), for training sets that outgrow the Gram matrix: 16 N m bytes for each kernel, and any trainer. Both need
    all training positions at once: `partial_fit` and `fit_stream` raise ParameterError.

    X and y are as for ChainLabeler. For a precomputed kernel each sequence is an array (its length, n) of kernel values with all
    n training positions, in the order of training; at fit its rows together are the Gram matrix. With kernels=["precomputed"]
    PositionSequences hold a matrix for each kernel, checked before: its parts (`gather`, and folds of `cross_val_predict`) share
    them, so that no fit makes them again.

    Parameters
    ----------
    trainer, C, max_iter, tol, loss, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state
        As for every estimator: see `StructuredEstimator`; the trainer is bcfw, max_iter=50 and tol=0.001 unless given.
    kernel : str, Kernel or callable
        "linear", "polynomial", "rbf" or "precomputed"; an object such as ``RBF(0.1)`` or ``Polynomial(3)`` from
        `structpred.models.kernels.functions`; or a function (A, B) -> array (rows of A, rows of B) of two CSR matrices.
    kernels : list, optional
        Several kernels, in place of `kernel`: names ("linear", "quadratic", "rbf", "b1spline"), tuples of a name and its
        parameter (("polynomial", 3), ("rbf", sigma^2), ("b1spline", share of entries that are not zero)), all of these with
        k(x, x) = 1; kernel objects and functions, taken as they are; or all of them "precomputed". "features", and
        ``Linear(explicit=True)``, are the linear kernel as explicit features: a group behind those of the other kernels.
    combine : str
        "mkl": learn which kernels matter. "average": the same weight for each.
    n_components : int, optional
        This many landmarks, drawn by random_state from the distinct training positions.
    regulariser : str or Regulariser, optional
        Only 1/2 |w|^2 is a function of one kernel. With kernels= any that depends on the norms of groups, such as "l2" or "mkl";
        ParameterError for others.
    template, min_count, n_bits, dev_metric, constraints, n_jobs, warm_start
        As for ChainLabeler.

    Attributes
    ----------
    support_ : ndarray (r, 2)
        Sample and position of the support in the training set; with kernels=, of each kernel in turn: positions that have a
        coefficient in a kernel whose group is not zero. Sample -1 stands for explicit features, each with its number.
    dual_coef_ : ndarray (r, n_classes)
        What each support position adds: the scores of position x are k(x, support) dual_coef_.
    coef_ : ndarray
        The weights in the coordinates of Phi, whose norm is that of the function; with kernels= dual_coef_ itself. Then start,
        stop and transitions.
    group_weights_ : ndarray
        With kernels=: |w_k| / sum_k |w_k| of the groups in group_names_: the kernels, "start and stop" and "transitions".
    classes_, n_features_in_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for ChainLabeler.

    Raises
    ------
    DataError
        For a kernel that is not symmetric, positive semidefinite and finite, and a Gram matrix that does not fit into memory.

    References
    ----------
    Taskar, Guestrin and Koller (2003), Max-margin Markov networks. Martins et al. (2011), Online Multiple Kernel Learning for
    Structured Prediction, section 3.4 and algorithm 3.

    Examples
    --------
    >>> import numpy as np
    >>> X = [np.array([[0.0], [1.0]]), np.array([[1.1], [0.1]])]
    >>> model = KernelChainLabeler(kernel="rbf").fit(X, [["low", "high"], ["high", "low"]])
    >>> [labels.tolist() for labels in model.predict([np.array([[0.05], [0.9], [1.0]])])]
    [['low', 'high', 'high']]
    >>> several = KernelChainLabeler(kernels=["linear", ("rbf", 0.5)], C=10.0).fit(X, [["low", "high"], ["high", "low"]])
    >>> several.group_names_
    ['linear', 'rbf', 'start and stop', 'transitions']
    """

    C: float = 1.0
    max_iter: int | None = None
    tol: float = 0.001
    _: KW_ONLY
    kernels: Sequence[Listed] | None = None
    combine: str = "mkl"
    n_components: int | None = None

    group_weights_: Floats = field(init=False)

    _HEADER = Record({
        **Kernelised._HEADER.fields,
        "kernels": Field(
            maybe(ListOf(OBJECT, 1)), "kernels", lambda given: [saved(one) for one in listed_kernels(given)],
            lambda entries: [restored(one) for one in entries], None, sparse=True,
        ),
        "combine": Field(OneOf(COMBINE), "combine"),
        "n_components": Field(maybe(Whole(1)), "n_components", default=None, sparse=True),
    })  # fmt: skip

    @property
    def _several(self) -> bool:
        return self.kernels is not None or self.n_components is not None

    def _chosen_trainer(self) -> str | Trainer:
        if self.trainer is not None or self.kernels is None:
            return super()._chosen_trainer()
        return "online_mkl" if self.combine == "mkl" else "proximal"

    def _trainer_and_surrogate(self) -> tuple[Trainer, Surrogate]:
        trainer, surrogate = super()._trainer_and_surrogate()
        if self.kernels is not None and self.n_components is None and type(trainer) is Corrective:
            trainer = FunctionCorrective(corners=trainer.corners, cached_passes=trainer.cached_passes)
        return trainer, surrogate

    def _check_regulariser(self, trainer: Trainer) -> None:
        if not self._several:
            super()._check_regulariser(trainer)
        elif self.n_components is None and not isinstance(trainer, OnlineProximal | Corrective):
            raise ParameterError(
                "trainer: kernels= is trained in kernel form by 'online_mkl', 'proximal' and 'corrective', got "
                f"{self.trainer!r}; any other trainer takes coordinates by landmarks: give n_components=..."
            )

    def _listed(self) -> list[Kernel]:
        """The kernels of the groups; ParameterError for settings that make none."""
        if self.combine not in COMBINE:
            raise ParameterError(f"combine: expected 'mkl' or 'average', got {self.combine!r}")
        m = self.n_components if self.n_components is None else checked_whole(self.n_components, "n_components")
        found = [resolve_kernel(self.kernel)] if self.kernels is None else listed_kernels(self.kernels)
        if isinstance(found[0], Precomputed) and (m is not None or self.combine == "average"):
            raise ParameterError(
                "kernels: 'precomputed' goes with combine='mkl' and without n_components: take means, or choose landmarks, "
                "beforehand"
            )
        explicit = [kernel.explicit for kernel in found]
        if any(explicit) and (m is not None or self.combine == "average" or explicit[-2:] != [False, True]):
            raise ParameterError(
                "kernels: explicit features are one group beside at least one kernel, with combine='mkl' and without n_components"
            )
        return found if self.combine == "mkl" else [Mean(found)]

    def _choose_input(self, X: Any) -> tuple[Input, Any]:
        if not self._several:
            return super()._choose_input(X)
        listed = self._listed()
        if isinstance(listed[0], Precomputed):
            self._trainer_and_surrogate()
            return KernelExpansion(NumericInput(), listed), X
        inner, sequences = super()._choose_input(X)
        return KernelExpansion(inner.inner, listed, self.n_components, seed_of(self.random_state)), sequences  # type: ignore[attr-defined]

    def _regulariser_of(self, trainer: Trainer, task: TaskLike, names: Names | None) -> Regulariser:
        found, features = super()._regulariser_of(trainer, task, names), getattr(task, "features", None)
        if not isinstance(features, PositionFeatures):
            return found
        learnt = self.regulariser is None and self.combine == "mkl"
        return FunctionNorms(MKL() if learnt else found, features.space)

    def _keep(self, result: Result) -> None:
        super()._keep(result)
        if isinstance(self.input_, KernelExpansion):
            n_labels = len(self.classes_)
            self.report_ = self.report_ | {"group_norms": self.input_.norms(result.weights, n_labels)}
            self.input_, self.coef_ = self.input_.settled(result.weights, n_labels)
            self.groups_ = self.input_.groups(n_labels)
            if len(self.report_.get("group_weights", ())):  # a run that was stopped before its first pass has none
                self.group_weights_ = self.report_["group_weights"][-1].copy()

    @property
    def group_norms_(self) -> Floats:
        """As for every estimator; with kernels= the norms that the functions had in training, 0 where a kernel was taken out."""
        own = super().group_norms_
        return np.where(own > 0.0, self.report_["group_norms"], 0.0) if "group_norms" in self.report_ else own

    def _held_out(self, input_: Input, X: Any, n_labels: int) -> tuple[PackedSequences, Scored]:
        if not isinstance(input_, KernelExpansion):
            return super()._held_out(input_, X, n_labels)

        def scored(w: Vector) -> tuple[PackedSequences, int, Vector]:
            settled, duals = input_.settled(w, n_labels)
            data, table = settled.scored(X, duals, n_labels)
            return data, n_labels, table

        return input_.positions(X), scored

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        model = super()._from_bundle(head, bundle, oracle)
        if isinstance(model.input_, KernelExpansion) and "group_weights" in model.report_:
            model.group_weights_ = model.report_["group_weights"][-1].copy()
        return model

    def _put_kernel(self, k: int, function: Any) -> None:
        if self.kernels is None:
            super()._put_kernel(k, function)
        else:
            self.kernels = [*self.kernels[:k], function, *self.kernels[k + 1 :]]


@dataclass(eq=False, repr=False)
class GaussianProcessLabeler(Kernelised, ChainLabeler):
    """The most probable scores under a Gaussian process, given label sequences; predictions come with probabilities.

    p(y | x) is proportional to exp f(x, y), and f = <w, phi(x, y)> has a Gaussian prior whose covariance is the kernel of
    KernelChainLabeler. With f = K alpha the mode minimises (times 2C: Altun et al. 2004; C = 1/2 gives their objective)

        1/(2C) alpha' K alpha + sum_i s_i [log sum_y exp f(x_i, y) - f(x_i, y_i)].

    With constraints="places" and labels "0-a", "1-b", ... that name their positions, sequences are compared position by position:
    both the kernel and transitions have the factor [t = t'] (Saha, Zhang and Vishwanathan 2009, appendix E.2).
    C K is the prior covariance: a larger C expects larger scores. In the coordinates of K = Phi Phi' this is a kernel conditional
    random field, and its gradient there is the direction alpha / C - (gold - E) in terms of alpha, E the expected counts by
    forward-backward: no step is ever multiplied by K, however badly conditioned it is. At the mode alpha = C (gold - E).

    The gap of the certificate is C/2 times the squared norm, in the metric of K, of that direction: how far alpha is
    from C (gold - E). Memory, time, X, y and precomputed kernels are as for KernelChainLabeler.

    Parameters
    ----------
    trainer : str or Trainer
        "lbfgs", or any that minimises the log loss, such as "oeg".
    C : float
        The scale of the prior covariance, C K, > 0.
    kernel : str, Kernel or callable
        As for KernelChainLabeler.
    max_iter, tol, loss, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state
        As for every estimator: see `StructuredEstimator`; max_iter=200, tol=0.001 and surrogate="log" unless given.
    template, min_count, n_bits, dev_metric, constraints, n_jobs, warm_start
        As for ChainLabeler.

    Attributes
    ----------
    support_, dual_coef_, coef_
        As for KernelChainLabeler; dual_coef_ is alpha, summed up for each position and label.
    classes_, n_features_in_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for ChainLabeler.

    Raises
    ------
    DataError
        For a kernel that is not symmetric, positive semidefinite and finite, and a Gram matrix that does not fit into memory.
    ParameterError
        For a loss other than the log loss.

    References
    ----------
    Altun, Hofmann and Smola (2004), Gaussian process classification for segmenting and annotating sequences.

    Examples
    --------
    >>> import numpy as np
    >>> X = [np.array([[0.0], [1.0]]), np.array([[1.1], [0.1]])]
    >>> model = GaussianProcessLabeler(C=10.0).fit(X, [["low", "high"], ["high", "low"]])
    >>> model.predict_marginals([np.array([[0.05], [0.9]])])[0].round(1).tolist()
    [[0.1, 0.9], [0.9, 0.1]]
    """

    trainer: str | Trainer = "lbfgs"
    C: float = 0.5
    max_iter: int = 200
    tol: float = 0.001
    _: KW_ONLY
    surrogate: str | Surrogate | None = "log"

    def _trainer_and_surrogate(self) -> tuple[Trainer, Surrogate]:
        trainer, surrogate = super()._trainer_and_surrogate()
        if not isinstance(surrogate, LogLoss):
            raise ParameterError(
                f"surrogate: a Gaussian process has the log loss, got {self.surrogate!r}; see KernelChainLabeler"
            )
        return trainer, surrogate
