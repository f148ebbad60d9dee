"""Multi-label classification with pairwise label potentials."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Tags

from structpred.core.costs import PartLoss
from structpred.core.oracle import Oracle
from structpred.core.task import Task
from structpred.core.weights import Vector
from structpred.errors import DataError, ParameterError
from structpred.models.base import StructuredEstimator, about_dev, checked_sample_weight, dev_parts
from structpred.models.fields.feature_scale import FeatureScale
from structpred.models.fields.label_graphs import LabelField, checked_oracle, label_edges, label_oracle
from structpred.models.fields.label_inputs import as_indicator, as_rows, example_accuracy, labelled_rows
from structpred.models.settings import resolve_loss
from structpred.trainers.loop import Callback
from structpred.trainers.problem import Surrogate, Trainer

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class MultiLabelMRF(StructuredEstimator):
    """A Markov random field over the labels of an example: weights of each label's states, and a table for each joined pair.

        score(x, y) = sum_l <w[l, y_l], (x, bias)> + sum_{(l, m) joined} t[l, m, y_l, y_m]

    Minimises  1/2 |w|^2 + C sum_i s_i H_i(w), H_i the margin- or slack-rescaled hinge with the number of wrong labels as loss.

    Parameters
    ----------
    trainer, C, max_iter, tol, check_every, patience, callbacks, checkpoint, resume, random_state: as for ChainLabeler.
    surrogate: None or "margin", "slack", "log" (where the oracle has marginals), or a surrogate object.
    edges: the joined pairs: "complete", "tree" (a spanning tree of the strongest correlations), a number k (the k strongest
    correlations of the training labels), or pairs of label numbers; [] gives independent labels.
    oracle: the inference, an object: EnumerationMRF(), TreeMRF(), QPBO(), BranchAndBoundMRF(), RelaxedMRF() ...; None: an exact
    one, EnumerationMRF up to 16 labels, else TreeMRF where the graph has no cycle, else BranchAndBoundMRF (oracle_ says which).
    bias: the value of a constant feature, regularised as all others; 0 for none. loss: "hamming" or a part loss.

    X is an array or sparse matrix (n, d), y rows of 0 and 1, one column a label; or X is MultiLabelData (io.read_mulan) alone.
    scale: None: features are used as they are; "standard": mean 0 and variance 1; "maxabs": the largest absolute value 1, zeros
    stay zeros. Measured on the training data, kept in the model and applied by `predict`.

    After fit: coef_, certificate_, history_, n_iter_, stop_reason_, converged_; edges_, oracle_, n_labels_, label_names_,
    n_features_in_.

    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 0], [0, 1], [1, 1], [1, 1]]
    >>> MultiLabelMRF(C=10.0, max_iter=200).fit(X, Y).predict([[0.2], [2.6]]).tolist()
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
        surrogate: str | Surrogate | None = None,
        edges: str | int | npt.ArrayLike = "complete",
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
        self.surrogate = surrogate
        self.edges = edges
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
    ) -> "MultiLabelMRF":
        """Train. dev: held-out (X, y); the weights with the best score on it are kept.

        Raises DataError, naming the sample, before training starts: NaN, other values than 0 and 1, lengths that do not match.
        """
        rows, Y, names = labelled_rows(X, y)
        weights = checked_sample_weight(sample_weight, len(Y))
        edges = label_edges(self.edges, Y)
        oracle = label_oracle(Y.shape[1], edges) if self.oracle is None else checked_oracle(self.oracle)
        field = LabelField(Y.shape[1], edges, checked_bias(self.bias), oracle, scale=FeatureScale.measured(self.scale, rows))
        task = Task(field.features(rows), oracle, list(Y), [field.shape] * len(Y), resolve_loss(self.loss), sample_weight=weights)
        result = self._train(task, None if dev is None else dev_scorer(field, rows.shape[1], dev))
        self.n_features_in_, self.n_labels_, self.edges_, self.oracle_ = rows.shape[1], Y.shape[1], edges, oracle
        self.label_names_ = [str(k) for k in range(Y.shape[1])] if names is None else names
        self._field = field
        self._keep(result)
        self._stop_if_interrupted()
        return self

    def predict(self, X: Any) -> Integers:
        """The best labels of each sample: (n, n_labels) of 0 and 1."""
        self._check_fitted()
        return self._field.decode(as_rows(X, self.n_features_in_), self.coef_)

    def predict_scores(self, X: Any) -> Floats:
        """(n, n_labels): the best score with the label on less the best score with it off, the other labels free.

        Positive where `predict` says 1 (with an exact oracle). It ranks samples and labels; it is no probability.
        """
        self._check_fitted()
        return self._field.label_scores(as_rows(X, self.n_features_in_), self.coef_)

    def predict_marginals(self, X: Any) -> Floats:
        """(n, n_labels): p(label on | x) = sum of exp(score) with it over that of all outputs.

        Probabilities of the model if it was trained with surrogate="log"; for any other the same formula of its scores. Raises
        MissingCapabilityError where the oracle has no marginals.
        """
        self._check_fitted()
        return self._field.marginals(as_rows(X, self.n_features_in_), self.coef_, "predict_marginals")

    def score(self, X: Any, y: Any = None) -> float:
        """Accuracy as multi-label work counts it: the mean over samples of |right labels| / |labels of either side| (Jaccard)."""
        self._check_fitted()
        return accuracy_of(self, X, y)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one file, atomically, without pickle; an oracle of yours is named in it, not held."""
        from structpred.models.fields.files import save_multilabel

        self._check_fitted()
        save_multilabel(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], oracle: Oracle | None = None) -> "MultiLabelMRF":
        """Read a model file. oracle: of the same class as in training, where one was given then."""
        from structpred.models.files import load_estimator

        model = load_estimator(path, cls.__name__, oracle=oracle)
        assert isinstance(model, cls)
        return model

    def __sklearn_tags__(self) -> Tags:
        return label_tags(super().__sklearn_tags__())


def label_tags(tags: Tags) -> Tags:
    """What multi-label estimators tell scikit-learn."""
    tags.input_tags.two_d_array = True
    tags.input_tags.sparse = True
    tags.target_tags.required = True
    tags.target_tags.two_d_labels = True
    tags.target_tags.one_d_labels = False
    return tags


def checked_bias(bias: Any) -> float:
    """The bias as a float; ParameterError for what is no finite number >= 0."""
    if isinstance(bias, bool) or not isinstance(bias, int | float | np.number) or not (np.isfinite(bias) and bias >= 0):
        raise ParameterError(f"bias must be a number >= 0, the value of a constant feature, got {bias!r}")
    return float(bias)


def accuracy_of(model: Any, X: Any, y: Any) -> float:
    """The mean Jaccard accuracy of what a fitted model predicts for X."""
    rows, gold, _ = labelled_rows(X, y)
    if gold.shape[1] != model.n_labels_:
        raise DataError(f"y: expected {model.n_labels_} label columns, got {gold.shape[1]}")
    return float(example_accuracy(gold, model.predict(rows)).mean())


def dev_scorer(field: LabelField, n_features: int, dev: Any) -> Callable[[Vector], float]:
    """The accuracy on held-out data as a function of the weights."""
    with about_dev():
        X, y = dev_parts(dev, "X, y")
        rows = as_rows(X, n_features)
        gold = as_indicator(y, rows.shape[0], field.n_labels)
        if not len(gold):
            raise DataError("X: expected at least one sample, got none")
    return lambda w: float(example_accuracy(gold, field.decode(rows, w)).mean())
