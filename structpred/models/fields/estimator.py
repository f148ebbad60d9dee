"""The estimator over random fields: training, prediction and scores once, for label sets, hierarchies and graphs.

They differ in a field, which is made by `fit` and kept: how X and y are read, and what an output looks like.
"""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from structpred.core.oracle import Oracle
from structpred.core.requirements import require
from structpred.errors import ParameterError
from structpred.models.base import StructuredEstimator
from structpred.models.fields.graph_field import GraphField
from structpred.models.fields.label_field import LabelField
from structpred.models.signs import NameTable
from structpred.storage import schema as storage
from structpred.storage.bundles import Bundle
from structpred.storage.schema import LARGEST, Flag, Number, Record, Text
from structpred.task.steps import TaskLike
from structpred.trainers.marginal_bcfw import MarginalBCFW

#: what `predict` returns, and what `predict_marginals` does
Outputs = TypeVar("Outputs")
Tables = TypeVar("Tables")

#: the class of the oracle, and whether the user gave it: one that was chosen for the user is chosen again
ORACLE = Record({"class": Text(), "given": Flag()})
BIAS = storage.Field(Number(0.0, LARGEST), "bias", float, float)


#: how samples of one kind are read and decoded; read samples go from method to method as `data`
Field = LabelField | GraphField


@dataclass(eq=False, repr=False)
class FieldEstimator(StructuredEstimator, Generic[Outputs, Tables]):
    """The parent of the estimators over random fields; each makes its field in `fit`."""

    _: KW_ONLY
    oracle: Oracle | None = None
    bias: float = 1.0

    n_features_in_: int = field(init=False)
    oracle_: Oracle = field(init=False)
    _field: Any = field(init=False)  # a Field, made by `fit`

    #: what to use in place of probabilities, which a model of a margin does not have
    _INSTEAD: ClassVar = "use predict_scores, or "

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Any:
        """Train on samples X with true outputs y."""

    def _default_for(self, task: TaskLike) -> str:
        """marginal_bcfw where it applies to task and settings, else that of every estimator."""
        fits = self.surrogate in (None, "margin") and self._is_plain(task) and MarginalBCFW.applies(task)
        return MarginalBCFW.name if fits else super()._default_for(task)

    def _name_tables(self) -> list[NameTable]:
        found: list[NameTable] = self._field.weight_names()
        return found

    def _keep_field(self, made: Field, oracle: Oracle) -> None:
        """Set the attributes of the field: after training, and when a model file has been read."""
        self._field, self.oracle_ = made, oracle
        for name, value in made.attributes().items():
            setattr(self, name, value)

    def _contents(self) -> Bundle:
        oracle, found = {"class": type(self.oracle_).__qualname__, "given": self.oracle is not None}, super()._contents()
        found.header |= {"oracle": oracle, "bias": self._field.bias}
        return found

    def predict(self, X: Any) -> Outputs:
        """The best output of each sample: label sets as an array (n, n_labels) of 0 and 1, graphs as an array of labels each."""
        self._check_fitted()
        found: Outputs = self._field.outputs(self._field.read(X), self.coef_)
        return found

    def predict_marginals(self, X: Any) -> Tables:
        """p(label | x): of label sets an array (n, n_labels), of graphs an array (n_nodes, n_classes) each.

        A sum of exp(score) over that of all outputs. Only for models trained with the log loss (surrogate="log", or a trainer
        such as "oeg"): scores learnt with a margin are not log-probabilities, and ParameterError says so.
        MissingCapabilityError where the oracle has no `marginals`.
        """
        self._check_fitted()
        data = self._field.read(X)
        require(("marginals",), self.oracle_, "predict_marginals")
        self._check_probabilistic(self._INSTEAD)
        found: Tables = self._field.marginals(data, self.coef_)
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """How well predictions agree with y. Of label sets the mean of |right labels| / |labels of either side| (Jaccard);
        of graphs the share of nodes whose label is right."""
        self._check_fitted()
        data = self._field.read(X)
        truth = self._field.truth(X, y, data)
        return float(self._field.agreement(truth, self._field.outputs(data, self.coef_)))


def checked_bias(bias: Any) -> float:
    """The bias as a float; ParameterError unless it is a finite number >= 0."""
    if isinstance(bias, bool) or not isinstance(bias, int | float | np.number) or not (np.isfinite(bias) and bias >= 0):
        raise ParameterError(f"bias must be a number >= 0, the value of a constant feature, got {bias!r}")
    return float(bias)
