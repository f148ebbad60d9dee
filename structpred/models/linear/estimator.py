"""What linear models share: how X, y and weights are read, the constant feature, the table of weights, and the file."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, validate_data

from structpred.core.regulariser import Regulariser
from structpred.core.result import Certificate, Result
from structpred.core.types import AnyArray, Floats
from structpred.errors import DataError, ParameterError
from structpred.models.base import StructuredEstimator
from structpred.models.bundles import COMMON, common, pack_reports, pack_weights, restore_weights, restored
from structpred.models.signs import BindingSign, Names, NameTable, Signs, SignSetting, binding_from, resolve_signs, signs_from
from structpred.models.sklearn_bridge import refusals
from structpred.objectives.regularisers.l2 import FreeIntercept, checked_signs
from structpred.storage.bundles import Bundle
from structpred.storage.schema import LARGEST, Field, Flag, Number, Record, Spec, Whole
from structpred.task.steps import TaskLike
from structpred.trainers.problem import Trainer


def linear_signs(signs: SignSetting, names: NameTable, n_features: int) -> Signs:
    """The signs of the table of weights. Arrays are (n_features,) or, as coef_, (n_outputs, n_features); offsets are then free.

    >>> linear_signs([1, -1], NameTable(["a", "b", "intercept"], ["x", "y"], row_step=2, column_step=1), 2).tolist()
    [[1, 1], [-1, -1], [0, 0]]
    """
    shape = len(names.rows), max(len(names.columns), 1)
    if isinstance(signs, Mapping | str):
        return resolve_signs(signs, [names], shape[0] * shape[1]).reshape(shape)
    try:
        given = np.atleast_2d(np.array(signs))
    except ValueError as error:
        raise ParameterError(f"signs: expected an array of -1, 0 and 1: {error}") from None
    if given.shape not in ((1, n_features), (shape[1], n_features)):
        raise ParameterError(
            f"signs: expected one for each of {n_features} features, or an array ({shape[1]}, {n_features}) as coef_, got shape "
            f"{np.shape(signs)}"
        )
    table = np.zeros(shape, np.int8)
    table[:n_features] = checked_signs(given.ravel()).reshape(given.shape).T
    return table


HEADER: dict[str, Spec] = {
    **COMMON,
    "outputs": Field(Whole(1), "_n_outputs"),
    "n_features": Field(Whole(1), "n_features_in_"),
    "offsets": Whole(),
    "intercept_scaling": Field(Number(0.0, LARGEST), "intercept_scaling", float),
    "fit_intercept": Field(Flag(), "fit_intercept", default=True),
}


@dataclass(eq=False, repr=False)
class LinearEstimator(StructuredEstimator):
    """The parent of the linear models; each makes its training sets in `fit`."""

    trainer: str | Trainer = "sdca"
    max_iter: int = 1000
    tol: float = 1e-4
    _: KW_ONLY
    intercept_scaling: float = 1.0

    classes_: AnyArray = field(init=False)
    intercept_: Floats = field(init=False)
    n_features_in_: int = field(init=False)
    _n_outputs: int = field(init=False)

    _HEADER: ClassVar[Record] = Record(HEADER)

    def _read(self, X: Any, y: Any, **how: bool) -> tuple[Any, AnyArray]:
        """X, dense or CSR, of float64, and y; DataError, as scikit-learn words it, for anything else. how: of `validate_data`."""
        y = y.toarray() if hasattr(y, "toarray") else y
        with refusals():
            rows, targets = validate_data(self, X, y, **(how or {"multi_output": True}), accept_sparse="csr", dtype=np.float64)
        return rows, np.asarray(targets)

    def _rows(self, X: Any) -> Any:
        """X as in training."""
        with refusals():
            return validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)

    def _sample_weights(self, sample_weight: Any, rows: Any) -> Floats:
        """One number per row."""
        with refusals(ParameterError):
            return np.array(_check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True))

    def _results(
        self, makers: Sequence[Callable[[], TaskLike]], dev: Any = None, *, outputs: Sequence[Any] = (),
        offsets: Sequence[str] | None = None,
    ) -> list[Result]:  # fmt: skip
        """One run per training set; a checkpoint each where there are several: FILE, FILE.1, FILE.2 and so on.

        outputs, offsets: the names of several outputs, and of the weights after those of features; None: of the intercept.
        """
        found: list[Result] = []
        signs = None if self.signs is None else linear_signs(self.signs, self._names(outputs, offsets), self.n_features_in_)
        for k, make in enumerate(makers):
            run = copy(self)
            if len(makers) > 1:
                run._stage = str(outputs[k]) if len(outputs) else f"output {k + 1} of {len(makers)}"
            if signs is not None:
                run.signs = signs.ravel() if len(makers) == 1 else signs[:, k]
            if k and self.checkpoint is not None:
                run.checkpoint = f"{self.checkpoint}.{k}"
                run.resume = self.resume and Path(run.checkpoint).exists()
            found.append(run._train(make(), None if dev is None else dev(k)))
            if found[-1].stop_reason == "interrupted":
                break
        if signs is None:
            return found
        # reports are about the whole table of weights
        n = signs.shape[1] if len(found) > 1 else 1
        binding = [result.report.get("binding", np.empty((2, 0))) for result in found]
        ends = np.flatnonzero(np.append(np.diff(signs.ravel()) != 0, True))
        facts = {
            "signs": np.array([ends + 1, signs.ravel()[ends]], np.float64),
            "binding": np.hstack([np.array([n * at + k, pull]) for k, (at, pull) in enumerate(binding)]),
        }
        return [replace(result, report={**result.report, **facts}) for result in found]

    def _names(self, outputs: Sequence[Any], offsets: Sequence[str] | None = None) -> NameTable:
        """The table of weights, a row for each feature and each offset (intercept or threshold) and a column for each output.

        "FEATURE -> OUTPUT", or "FEATURE" where there is one output.
        """
        features = map(str, getattr(self, "feature_names_in_", range(self.n_features_in_)))
        constant = ["intercept"] if getattr(self, "fit_intercept", False) else []
        rows, columns = [*features, *(constant if offsets is None else offsets)], list(map(str, outputs))
        return NameTable(rows, columns, row_step=max(len(columns), 1), column_step=1 if columns else 0)

    def _offset_names(self) -> list[str] | None:
        """What the weights after those of features are called; None: there is an intercept, or nothing."""
        return None

    @property
    def signs_(self) -> Signs:
        """The sign that each weight of coef_ had to have in training: 1, -1, or 0 where it was free."""
        self._check_fitted()
        n_rows, n_outputs = len(self._names((), self._offset_names()).rows), self._n_outputs
        table = signs_from(self.report_, n_outputs * n_rows).reshape(n_rows, n_outputs)
        return np.ascontiguousarray(table.T[:, : self.n_features_in_])

    def binding_constraints(self) -> list[BindingSign]:
        """The constraints of `signs` that bind, the strongest pull first."""
        self._check_fitted()
        names = self._names(self.classes_.tolist() if self._n_outputs > 1 else (), self._offset_names())
        weights = np.hstack([self.coef_, self._offsets()])[:, : len(names.rows)]
        return binding_from(self.report_, weights.T.ravel(), [names])

    def _regulariser_of(self, trainer: Trainer, task: TaskLike, names: Names | None) -> Regulariser:
        """As the parent's; a trainer of a free intercept gets the regulariser that leaves it free."""
        if self.regulariser is None and self.signs is None and "free" in trainer.regulariser_requires:
            return FreeIntercept()
        return super()._regulariser_of(trainer, task, names)

    def _keep_results(
        self, results: list[Result], classes: AnyArray | None, n_outputs: int, constant: float, *, one_run: bool
    ) -> None:
        """Set the fitted attributes. one_run: for all outputs, its weights a table with a row per feature; else a run each.

        classes: None for numbers.
        """
        weights = [result.weights.astype(np.float64, copy=False) for result in results]
        self._keep(results[0] if one_run else _joined(results, n_outputs))
        if one_run:
            table = weights[0].reshape(-1, n_outputs).T
        else:
            table = np.array(weights + [np.zeros_like(weights[0])] * (n_outputs - len(weights)))  # zeros: not begun
        if classes is not None:
            self.classes_ = classes
        d = self.n_features_in_
        self._set_table(np.hstack([table[:, :d], constant * table[:, d:]]))
        self._stop_if_interrupted()

    def _set_table(self, table: Floats) -> None:
        """Set coef_ and what stands after it from rows of weights, one per output."""
        d = self.n_features_in_
        self._n_outputs, self.coef_ = len(table), np.ascontiguousarray(table[:, :d])
        self.groups_, self.group_names_ = np.array([0, self.coef_.size]), ["features"]
        self._set_offsets(np.ascontiguousarray(table[:, d:]))

    def _set_offsets(self, offsets: Floats) -> None:
        """Set intercepts from the columns after the features; others than intercepts are for a child to set."""
        self.intercept_ = offsets[:, 0] if offsets.shape[1] else np.zeros(len(offsets))

    def _offsets(self) -> Floats:
        """The inverse of `_set_offsets`."""
        return self.intercept_[:, None]

    def _scores(self, X: Any) -> Floats:
        """(n, outputs): <x, w> of each output."""
        self._check_fitted()
        rows = self._rows(X)
        shape = (self._n_outputs, self.n_features_in_)
        if self.coef_.shape != shape or self.coef_.dtype.kind != "f":
            raise DataError(f"coef_: expected {shape[0]} rows of {shape[1]} floats, got {self.coef_.dtype} {self.coef_.shape}")
        return np.asarray(rows @ self.coef_.T, dtype=np.float64)

    def _contents(self) -> Bundle:
        offsets, names = self._offsets(), getattr(self, "feature_names_in_", None)
        table: Floats = np.hstack([self.coef_, offsets])
        texts = {} if names is None else {"feature_names": list(names)}
        head = {**common(self), "groups": [], "offsets": offsets.shape[1]}
        return Bundle(head, pack_weights(table.ravel()) | pack_reports(self), texts)

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        model = restored(cls, head)
        outputs, width = head["outputs"], head["n_features"] + head["offsets"]
        restore_weights(model, bundle.arrays, outputs * width)
        names = bundle.texts.get("feature_names")
        if names is not None:
            if len(names) != head["n_features"]:
                raise ValueError(f"{head['n_features']} features do not fit {len(names)} names")
            model.feature_names_in_ = np.array(names, dtype=object)  # type: ignore[attr-defined]
        model._check_outputs(head)
        model._set_table(model.coef_.astype(np.float64, copy=False).reshape(outputs, width))
        return model

    @abstractmethod
    def _check_outputs(self, head: dict[str, Any]) -> None:
        """ValueError where the numbers of classes, outputs and offsets in a header do not fit."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.sparse, tags.no_validation = True, True, False
        return tags


def _joined(results: list[Result], n_outputs: int) -> Result:
    """Several runs as one: the sums of the bounds, the rows of the histories with the number of their output."""
    every = [result.certificate for result in results]
    primal, dual = ([getattr(certificate, name) for certificate in every] for name in ("primal", "dual"))
    whole = Certificate()
    if len(results) == n_outputs and None not in primal:
        checked = min((certificate.checked for certificate in every if certificate.checked is not None), default=None)
        proven = all(certificate.proven for certificate in every)
        whole = Certificate(sum(primal), None if None in dual else sum(dual), proven, checked=checked)
    return replace(
        results[-1],
        certificate=whole,
        history=[{**row, "output": k} for k, result in enumerate(results) for row in result.history],
        stop_reason=next((result.stop_reason for result in results if result.stop_reason != "tol"), "tol"),
        passes=max(result.passes for result in results),
        progress=None,
    )
