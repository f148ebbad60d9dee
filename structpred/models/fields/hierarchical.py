"""Multi-label classification under a hierarchy of labels: outputs are closed, a label that is on has its parents on."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Tags

from structpred.core.costs import PartLoss
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Oracle
from structpred.core.task import Task
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.io.multilabel.data import MultiLabelData
from structpred.models.base import StructuredEstimator, about_dev, as_floats, checked_sample_weight
from structpred.models.fields.feature_scale import FeatureScale
from structpred.models.fields.label_graphs import LabelField, checked_oracle, hierarchy_oracle
from structpred.models.fields.label_inputs import as_rows, labelled_rows
from structpred.models.fields.multilabel import accuracy_of, checked_bias, dev_scorer, label_tags
from structpred.models.settings import resolve_loss
from structpred.oracles.mrf import graph_shape
from structpred.trainers.loop import Callback
from structpred.trainers.problem import Surrogate, Trainer

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: label_weights="depth": what a label counts less than its parent (Vens et al. 2008)
DECAY = 0.75


class HierarchicalMultiLabel(StructuredEstimator):
    """A Markov random field along a hierarchy of labels, whose outputs are all closed under ancestors.

    As MultiLabelMRF, with the edges of the hierarchy; the pair (parent off, child on) is forbidden, in training and prediction.

    Parameters
    ----------
    trainer, C, max_iter, tol, surrogate, bias, loss, scale, check_every, patience, callbacks, checkpoint, resume, random_state:
    as for MultiLabelMRF.
    hierarchy: a LabelHierarchy (a forest or a directed acyclic graph), or the parent of each label (-1: none), or edges (parent,
    child); None: that of the data, where fit gets MultiLabelData (io.read_clus).
    label_weights: what a wrong label costs: "uniform" (1), "depth" (0.75 to the power of its depth; Vens et al. 2008), "sibling"
    (1 at the roots, shared out among the children of a label; Cesa-Bianchi et al. 2006), or one number >= 0 a label.
    oracle: None: TreeMRF for trees, else EnumerationMRF up to 16 labels, else CpSatMRF; all exact. Or an object of yours.

    y: rows of 0 and 1, closed (LabelHierarchy.closed makes them so). After fit as MultiLabelMRF, and hierarchy_, label_weights_.

    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 0], [1, 0], [1, 1], [1, 1]]
    >>> HierarchicalMultiLabel(C=10.0, hierarchy=[-1, 0], max_iter=200).fit(X, Y).predict([[-0.5], [2.9]]).tolist()
    [[0, 0], [1, 1]]
    """

    n_features_in_: int
    n_labels_: int

    def __init__(
        self,
        trainer: str | Trainer = "bcfw",
        C: float = 1.0,
        max_iter: int = 50,
        tol: float = 0.001,
        *,
        hierarchy: LabelHierarchy | npt.ArrayLike | None = None,
        label_weights: str | npt.ArrayLike = "uniform",
        surrogate: str | Surrogate | None = None,
        oracle: Oracle | None = None,
        bias: float = 1.0,
        loss: str | PartLoss = "hamming",
        scale: str | None = None,
        check_every: int = 10,
        patience: int | None = None,
        callbacks: Callback | Sequence[Callback] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        random_state: Any = None,
    ) -> None:
        self.trainer = trainer
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.hierarchy = hierarchy
        self.label_weights = label_weights
        self.surrogate = surrogate
        self.oracle = oracle
        self.bias = bias
        self.loss = loss
        self.scale = scale
        self.check_every = check_every
        self.patience = patience
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.resume = resume
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: npt.ArrayLike | None = None, dev: tuple[Any, Any] | None = None
    ) -> "HierarchicalMultiLabel":
        """Train. dev: held-out (X, y); the weights with the best score on it are kept.

        Raises DataError, naming the sample, before training starts: as MultiLabelMRF, and for rows that are not closed, a
        hierarchy with a cycle or of another number of labels.
        """
        rows, Y, names = labelled_rows(X, y)
        hierarchy = self._hierarchy_of(X, Y.shape[1], names)
        _check_closed(hierarchy, Y)
        costs = label_costs(self.label_weights, hierarchy)
        weights = checked_sample_weight(sample_weight, len(Y))
        scale = FeatureScale.measured(self.scale, rows)
        field = hierarchy_field(hierarchy, checked_bias(self.bias), self.oracle, scale)
        task = Task(
            field.features(rows), field.oracle, list(Y), [field.shape] * len(Y), resolve_loss(self.loss),
            token_weights=None if (costs == 1.0).all() else [costs] * len(Y), sample_weight=weights,
        )  # fmt: skip
        scorer = None if dev is None else dev_scorer(field, rows.shape[1], dev)
        if dev is not None:
            with about_dev():
                _check_closed(hierarchy, labelled_rows(*dev)[1])
        result = self._train(task, scorer)
        self.n_features_in_, self.n_labels_, self.edges_, self.oracle_ = rows.shape[1], Y.shape[1], field.edges, field.oracle
        self.hierarchy_, self.label_weights_ = hierarchy, costs
        self.label_names_ = list(hierarchy.names)
        self._field = field
        self._keep(result)
        self._stop_if_interrupted()
        return self

    def _hierarchy_of(self, X: Any, n_labels: int, names: list[str] | None) -> LabelHierarchy:
        """The hierarchy of the setting, or else of the data."""
        given = self.hierarchy
        if given is None:
            if isinstance(X, MultiLabelData) and X.hierarchy is not None:
                return X.hierarchy
            raise ParameterError("hierarchy: give one (parents, edges or a LabelHierarchy), or data that have one")
        if not isinstance(given, LabelHierarchy):
            array = np.asarray(given)
            given = (
                LabelHierarchy.from_parents(array, names)
                if array.ndim == 1 and array.size
                else LabelHierarchy(n_labels, array, names)
            )
        if given.n != n_labels:
            raise DataError(f"the hierarchy has {given.n} labels, but y has {n_labels} columns")
        return given

    def predict(self, X: Any) -> Integers:
        """The best closed set of labels of each sample: (n, n_labels) of 0 and 1."""
        self._check_fitted()
        return self._field.decode(as_rows(X, self.n_features_in_), self.coef_)

    def predict_scores(self, X: Any) -> Floats:
        """(n, n_labels): the best score with the label on (and its ancestors) less the best with it off (and its descendants)."""
        self._check_fitted()
        return self._field.label_scores(as_rows(X, self.n_features_in_), self.coef_)

    def predict_marginals(self, X: Any) -> Floats:
        """(n, n_labels): p(label on | x) over closed outputs; never larger for a child than for its parent.

        Raises MissingCapabilityError where the oracle has no marginals.
        """
        self._check_fitted()
        return self._field.marginals(as_rows(X, self.n_features_in_), self.coef_, "predict_marginals")

    def score(self, X: Any, y: Any = None) -> float:
        """The mean over samples of |right labels| / |labels of either side| (Jaccard), ancestors counted."""
        self._check_fitted()
        return accuracy_of(self, X, y)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one file, atomically, without pickle; an oracle of yours is named in it, not held."""
        from structpred.models.fields.files import save_hierarchical

        self._check_fitted()
        save_hierarchical(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], oracle: Oracle | None = None) -> "HierarchicalMultiLabel":
        """Read a model file. oracle: of the same class as in training, where one was given then."""
        from structpred.models.files import load_estimator

        model = load_estimator(path, cls.__name__, oracle=oracle)
        assert isinstance(model, cls)
        return model

    def __sklearn_tags__(self) -> Tags:
        return label_tags(super().__sklearn_tags__())


def hierarchy_field(
    hierarchy: LabelHierarchy, bias: float, oracle: Oracle | None, scale: FeatureScale | None = None
) -> LabelField:
    """The field along a hierarchy: (parent off, child on) is forbidden on every edge."""
    n = hierarchy.n
    edges = np.array(graph_shape(n, 2, hierarchy.edges)[2:], dtype=np.int64).reshape(-1, 2)
    fixed = np.zeros(2 * n + 4 * len(edges))
    parent_first = hierarchy.edges[:, 0] < hierarchy.edges[:, 1]
    fixed[2 * n + 4 * np.arange(len(edges)) + np.where(parent_first, 1, 2)] = FORBIDDEN
    chosen = hierarchy_oracle(n, edges) if oracle is None else checked_oracle(oracle)
    return LabelField(n, edges, bias, chosen, fixed, scale)


def label_costs(label_weights: Any, hierarchy: LabelHierarchy) -> Floats:
    """What a wrong label costs, one number a label, as the setting says; ParameterError for anything else."""
    if isinstance(label_weights, str):
        if label_weights == "uniform":
            return np.ones(hierarchy.n)
        if label_weights == "depth":
            return np.asarray(DECAY ** hierarchy.depths.astype(np.float64), dtype=np.float64)
        if label_weights == "sibling":
            costs = np.ones(hierarchy.n)
            for k in hierarchy.order:
                shares = [costs[p] / len(hierarchy.children[p]) for p in hierarchy.parents[k]]
                costs[k] = max(shares, default=1.0)
            return costs
        raise ParameterError(f"label_weights: expected 'uniform', 'depth', 'sibling' or numbers, got {label_weights!r}")
    costs = as_floats(label_weights, "label_weights")
    if costs.shape != (hierarchy.n,) or not np.isfinite(costs).all() or (costs < 0).any() or not costs.any():
        raise ParameterError(f"label_weights: expected {hierarchy.n} finite numbers >= 0, not all zero, got shape {costs.shape}")
    return costs


def _check_closed(hierarchy: LabelHierarchy, Y: Integers) -> None:
    if (found := hierarchy.broken(Y)) is not None:
        i, parent, child = found
        raise DataError(
            f"sample {i}: label {hierarchy.names[child]!r} is on without its parent {hierarchy.names[parent]!r}; "
            "close the rows first: y = hierarchy.closed(y)"
        )
