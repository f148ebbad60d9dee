"""The estimator over random fields: training, prediction and scores once, for label sets, hierarchies and graphs.

They differ in a field, which is made by `fit` and kept: how X and y are read, and what an output looks like.
"""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Oracle
from structpred.core.requirements import require
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.models.base import StructuredEstimator
from structpred.models.signs import NameTable
from structpred.storage.bundles import Bundle
from structpred.storage.schema import LARGEST, Flag, Number, Record, Text
from structpred.task.inference import Inference
from structpred.task.steps import TaskLike
from structpred.trainers.marginal_bcfw import MarginalBCFW

#: what `predict` returns, and what `predict_marginals` does
Outputs = TypeVar("Outputs")
Tables = TypeVar("Tables", covariant=True)

#: the class of the oracle, and whether the user gave it: one that was chosen for the user is chosen again
ORACLE = Record({"class": Text(), "given": Flag()})
BIAS = Number(0.0, LARGEST)


class FieldNames(NamedTuple):
    """What is called what. nodes: None for their numbers. states: of a node. features, edge_features: with the constant one."""

    unit: str
    nodes: list[str] | None
    states: list[str]
    features: list[str]
    edge_features: list[str]

    def node(self, v: int) -> str:
        """A node in the name of a feature or a label."""
        return f"node {v}" if self.nodes is None else self.nodes[v]

    def state(self, v: int, state: int) -> str:
        """A state of a node, as a label."""
        return self.states[state] if self.nodes is None else f"{self.nodes[v]} {self.states[state]}"


class Field(Protocol[Outputs, Tables]):
    """How samples of one kind are read and decoded. Read samples go from method to method as `data`."""

    @property
    def bias(self) -> float:
        """The value of a constant feature."""

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes of the estimator that are the field's."""

    def read(self, X: Any) -> Any:
        """X, checked against what the field was made for; DataError names the sample."""

    def truth(self, X: Any, y: Any, data: Any) -> Outputs:
        """The true outputs in the form that `outputs` gives; DataError, naming the sample, and where there are no samples."""

    def codes(self, truth: Outputs) -> list[npt.NDArray[np.int64]]:
        """True outputs as labels of a task; DataError, naming the sample, for an invalid output."""

    def inference(self, data: Any) -> Inference:
        """Inference over at least one sample."""

    def outputs(self, data: Any, w: Vector) -> Outputs:
        """The best outputs of any number of samples."""

    def marginals(self, data: Any, w: Vector) -> Tables:
        """The probabilities of the labels of each node."""

    def weight_names(self) -> list[NameTable]:
        """What the weights are called."""

    def agreement(self, truth: Outputs, found: Outputs) -> float:
        """How well outputs agree with the true ones, in [0, 1]."""

    def part_names(self) -> FieldNames:
        """The names of nodes, states and features."""

    def one(self, x: Any) -> Any:
        """The data that hold this sample alone."""

    def given(self, labels: Any, data: Any) -> npt.NDArray[np.int64]:
        """The output of the user's as codes; DataError for an invalid one."""

    def shown(self, codes: npt.NDArray[np.int64]) -> list[Any]:
        """An output for people."""


@dataclass(eq=False, repr=False)
class FieldEstimator(StructuredEstimator, Generic[Outputs, Tables]):
    """The parent of the estimators over random fields; each makes its field in `fit`."""

    _: KW_ONLY
    oracle: Oracle | None = None
    bias: float = 1.0

    n_features_in_: int = field(init=False)
    oracle_: Oracle = field(init=False)
    _field: Field[Outputs, Tables] = field(init=False)

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
        return self._field.weight_names()

    def _keep_field(self, made: Field[Outputs, Tables], oracle: Oracle) -> None:
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
        return self._field.outputs(self._field.read(X), self.coef_)

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
        return self._field.marginals(data, self.coef_)

    def score(self, X: Any, y: Any = None) -> float:
        """How well predictions agree with y. Of label sets the mean of |right labels| / |labels of either side| (Jaccard);
        of graphs the share of nodes whose label is right."""
        self._check_fitted()
        data = self._field.read(X)
        truth = self._field.truth(X, y, data)
        return self._field.agreement(truth, self._field.outputs(data, self.coef_))


def checked_bias(bias: Any) -> float:
    """The bias as a float; ParameterError unless it is a finite number >= 0."""
    if isinstance(bias, bool) or not isinstance(bias, int | float | np.number) or not (np.isfinite(bias) and bias >= 0):
        raise ParameterError(f"bias must be a number >= 0, the value of a constant feature, got {bias!r}")
    return float(bias)
