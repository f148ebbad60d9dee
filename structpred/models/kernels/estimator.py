"""What labelers with a kernel share: how X is read, prediction by the support, and model files."""

import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Oracle
from structpred.core.result import Result
from structpred.core.weights import Vector
from structpred.data.sequences import PackedSequences
from structpred.errors import ParameterError
from structpred.models.bundles import OBJECT
from structpred.models.chain.inputs import Input
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.kernels.expansion import KernelExpansion
from structpred.models.kernels.functions import Kernel, Mean, Missing, resolve_kernel, restored, saved
from structpred.models.kernels.inputs import KernelInput, SupportInput
from structpred.models.settings import resolve_regulariser
from structpred.objectives.regularisers.l2 import L2
from structpred.runtime.settings import checked_positive
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, Record
from structpred.trainers.problem import Surrogate, Trainer

# a class that is listed in front of ChainLabeler; no parent of its own, so that the estimators stay two steps from their root
if TYPE_CHECKING:
    Labeler = ChainLabeler
else:
    Labeler = object


@dataclass(eq=False, repr=False)
class Kernelised(Labeler):
    """In front of ChainLabeler among the parents: X goes through a kernel first."""

    _: KW_ONLY
    kernel: str | Kernel | Callable[[Any, Any], npt.ArrayLike] = "rbf"

    _sharding = None  # type: ignore[assignment]  # a Gram matrix knows all samples
    _HEADER = Record({
        **ChainLabeler._HEADER.fields,
        "kernel": Field(OBJECT, "kernel", saved, lambda entry: entry if isinstance(entry, str) else restored(entry)),
    })  # fmt: skip

    def _choose_input(self, X: Any) -> tuple[Input, Any]:
        checked_positive(self.C, "C")
        self._trainer_and_surrogate()  # what is wrong with it is said before the Gram matrix is made
        inner, sequences = super()._choose_input(X)
        return KernelInput(inner, resolve_kernel(self.kernel)), sequences

    def _scored(self, X: Any) -> tuple[PackedSequences, Vector]:
        return self._kernel_input.scored(X, self.coef_, len(self.classes_))

    def _trainer_and_surrogate(self) -> tuple[Trainer, Surrogate]:
        trainer, surrogate = super()._trainer_and_surrogate()
        if self.signs is not None:
            raise ParameterError("signs: a kernel has functions in place of weights of features; leave signs out, or the kernel")
        self._check_regulariser(trainer)
        return trainer, surrogate

    def _check_regulariser(self, trainer: Trainer) -> None:
        if not isinstance(resolve_regulariser(self.regulariser, trainer), L2):
            raise ParameterError(
                f"regulariser: a kernel knows norms of functions, not single weights: leave it out, got {self.regulariser!r}"
            )

    def _keep(self, result: Result) -> None:
        super()._keep(result)
        self.n_features_in_ = self._kernel_input.inner.n_features or 0

    @property
    def _kernel_input(self) -> SupportInput:
        self._check_fitted()
        assert isinstance(self.input_, SupportInput)
        return self.input_

    @property
    def support_(self) -> npt.NDArray[np.int64]:
        """(n_support, 2): sample and position in it of the training positions that predictions are made of; with several kernels
        those of each, one kernel after the other.
        """
        return self._kernel_input.support

    @property
    def dual_coef_(self) -> npt.NDArray[np.float64]:
        """(n_support, n_classes): position x adds k(x, support) dual_coef_ to the scores of its labels."""
        return self._kernel_input.dual_coefficients(self.coef_, len(self.classes_))

    @classmethod
    def _input_of(cls, kind: str, part: Bundle) -> Input:
        several = isinstance(part.header, dict) and "means" in part.header
        return (KernelExpansion if several else KernelInput).from_bundle(part)

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        model = super()._from_bundle(head, bundle, oracle)
        model.n_features_in_ = model._kernel_input.inner.n_features or 0
        return model

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], oracle: Oracle | None = None, *,
        kernel: Callable[[Any, Any], npt.ArrayLike] | Sequence[Callable[[Any, Any], npt.ArrayLike]] | None = None,
    ) -> Self:  # fmt: skip
        """Read a model file. kernel: the function that the model was trained with, if it is your own: a file only names it; a
        list, where several kernels are.
        """
        model = super().load(path, oracle)
        if kernel is not None:
            first = model._kernel_input.kernels[0]
            own = first.kernels if isinstance(first, Mean) else model._kernel_input.kernels
            missing = [k for k, one in enumerate(own) if isinstance(one, Missing)]
            if not missing:
                raise ParameterError(f"{os.fspath(path)}: this model holds its kernel, {model.kernel!r}; leave kernel= out")
            given = list(kernel) if isinstance(kernel, Sequence) else [kernel]
            if len(given) != len(missing):
                raise ParameterError(f"{os.fspath(path)}: this model needs {len(missing)} kernel functions, got {len(given)}")
            for k, function in zip(missing, given, strict=True):
                own[k] = resolve_kernel(function)
                model._put_kernel(k, function)
        return model

    def _put_kernel(self, k: int, function: Any) -> None:
        """Set the setting of kernel k to the function that a file did not hold."""
        self.kernel = function
