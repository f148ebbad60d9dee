"""The generic estimator: any oracle, one feature row a part, any trainer."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.costs import PartLoss
from structpred.core.features import PartFeatures
from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.packing import argmax_batch
from structpred.core.task import Task
from structpred.core.weights import Vector
from structpred.errors import DataError, ParameterError
from structpred.models.base import StructuredEstimator, about_dev, checked_sample_weight, dev_parts
from structpred.models.files import load_estimator, save_structured
from structpred.models.settings import resolve_loss
from structpred.trainers.loop import Callback
from structpred.trainers.problem import Surrogate, Trainer


class StructuredPredictor(StructuredEstimator):
    """Outputs of any structure that an oracle describes, scored part by part: theta_p = <w, features of part p>.

    Parameters
    ----------
    oracle: an Oracle; check yours once with check_oracle. loss: "hamming" or a part loss of your own.
    trainer, C, max_iter, tol, check_every, patience, surrogate, callbacks, checkpoint, resume, random_state: as for
    ChainLabeler; with the log loss the oracle needs `marginals`.

    X[i] is an array or sparse matrix (n_parts, d), one feature row a part. y[i] are the labels as the oracle returns
    them. shapes[i] is the shape of instance i, a tuple of ints.

    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> X = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])]
    >>> model = StructuredPredictor(MulticlassOracle()).fit(X, [[0], [1]], [(2,), (2,)])
    >>> [labels.tolist() for labels in model.predict(X, [(2,), (2,)])]
    [[0], [1]]
    """

    def __init__(
        self,
        oracle: Oracle,
        loss: str | PartLoss = "hamming",
        trainer: str | Trainer = "bcfw",
        C: float = 1.0,
        *,
        max_iter: int = 50,
        tol: float = 0.001,
        check_every: int = 10,
        patience: int | None = None,
        surrogate: str | Surrogate | None = None,
        callbacks: Callback | Sequence[Callback] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        random_state: Any = None,
    ) -> None:
        self.oracle = oracle
        self.loss = loss
        self.trainer = trainer
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.check_every = check_every
        self.patience = patience
        self.surrogate = surrogate
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.resume = resume
        self.random_state = random_state

    n_features_in_: int

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[npt.ArrayLike],
        shapes: Sequence[Shape],
        *,
        sample_weight: npt.ArrayLike | None = None,
        dev: tuple[Sequence[Any], Sequence[npt.ArrayLike], Sequence[Shape]] | None = None,
    ) -> "StructuredPredictor":
        """Train. dev: held-out (X, y, shapes); the weights that do best on it are kept.

        Raises DataError, naming the sample, before training starts; OracleError where the oracle returns what it may not.
        """
        if not isinstance(self.oracle, Oracle):
            raise ParameterError(f"oracle: expected an instance of a subclass of structpred.Oracle, got {self.oracle!r}")
        loss = resolve_loss(self.loss)
        features = PartFeatures(_as_list(X, "X"))
        weights = checked_sample_weight(sample_weight, len(features))
        task = Task(features, self.oracle, _as_labels(y), _as_shapes(shapes), loss, sample_weight=weights)
        scorer = None if dev is None else self._dev_scorer(features.dim, *dev_parts(dev, "X, y, shapes"))
        result = self._train(task, scorer)
        self.n_features_in_ = features.dim
        self._keep(result)
        self._stop_if_interrupted()
        return self

    def predict(self, X: Sequence[Any], shapes: Sequence[Shape]) -> list[Labels]:
        """The best labels of each instance."""
        self._check_fitted()
        listed = _as_list(X, "X")
        if not listed:
            return []
        return self._decode(PartFeatures(listed, n_columns=self.n_features_in_), _as_shapes(shapes), self.coef_)

    def score(self, X: Sequence[Any], y: Sequence[npt.ArrayLike], shapes: Sequence[Shape]) -> float:
        """The share of labels that are right, over all instances."""
        return _label_accuracy(y, self.predict(X, shapes))

    def _decode(self, features: PartFeatures, shapes: list[Shape], w: Vector) -> list[Labels]:
        if len(features) != len(shapes):
            raise DataError(f"X has {len(features)} samples but there are {len(shapes)} shapes")
        for i, shape in enumerate(shapes):
            if self.oracle.n_parts(shape) != features.n_parts(i):
                raise DataError(
                    f"sample {i}: shape {shape} has {self.oracle.n_parts(shape)} parts, but x has {features.n_parts(i)} rows"
                )
        scores = np.concatenate([features.scores(w, i) for i in range(len(features))])
        labels, offsets = argmax_batch(self.oracle, scores, features.offsets, shapes)
        return np.split(labels, offsets[1:-1])

    def _dev_scorer(
        self, dim: int, X: Sequence[Any], y: Sequence[npt.ArrayLike], shapes: Sequence[Shape]
    ) -> Callable[[Vector], float]:
        with about_dev():
            features = PartFeatures(_as_list(X, "X"), n_columns=dim)
            gold, listed = _as_labels(y), _as_shapes(shapes)
            if len(gold) != len(features):
                raise DataError(f"X has {len(features)} samples but y has {len(gold)}")
        return lambda w: _label_accuracy(gold, self._decode(features, listed, w))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one file, atomically, without pickle; it names its oracle but does not hold it."""
        self._check_fitted()
        save_structured(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], oracle: Oracle) -> "StructuredPredictor":
        """Read a model file; `oracle` must be of the class that the model was trained with."""
        model = load_estimator(path, cls.__name__, oracle=oracle)
        assert isinstance(model, cls)
        return model


def _as_list(values: Any, name: str) -> list[Any]:
    """The samples as a list; DataError for what is no list of samples, such as one sparse matrix."""
    if isinstance(values, str | bytes | Mapping) or hasattr(values, "tocsr") or not isinstance(values, Iterable):
        raise DataError(
            f"{name}: expected a list with one entry a sample, got {type(values).__name__}; "
            "did you pass one sample instead of a list of samples?"
        )
    return list(values)


def _as_labels(y: Any) -> list[npt.NDArray[np.int64]]:
    listed = []
    for i, labels in enumerate(_as_list(y, "y")):
        array = np.asarray(labels)
        if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
            raise DataError(f"sample {i}: expected labels as a 1-d array of whole numbers, got {array.ndim}-d {array.dtype}")
        listed.append(array.astype(np.int64))
    return listed


def _as_shapes(shapes: Any) -> list[Shape]:
    listed = []
    for i, shape in enumerate(_as_list(shapes, "shapes")):
        if not isinstance(shape, tuple | list) or not all(isinstance(k, int | np.integer) for k in shape):
            raise DataError(f"shapes, sample {i}: expected a tuple of ints, got {shape!r}")
        listed.append(tuple(int(k) for k in shape))
    return listed


def _label_accuracy(y: Sequence[npt.ArrayLike], predicted: Sequence[Labels]) -> float:
    truths = _as_labels(y)
    if len(truths) != len(predicted):
        raise DataError(f"X has {len(predicted)} samples but y has {len(truths)}")
    right = total = 0
    for i, (truth, labels) in enumerate(zip(truths, predicted, strict=True)):
        if truth.shape != labels.shape:
            raise DataError(f"sample {i}: y has {truth.size} labels, but the oracle gives {labels.size}")
        right += int((truth == labels).sum())
        total += len(labels)
    return right / max(total, 1)
