"""Classes on an ordered scale: one direction, and a threshold between each two neighbours."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import Tags

from structpred.core.types import Floats
from structpred.models.linear.classifier import OfClasses, _read_targets, classes_of
from structpred.models.linear.estimator import LinearEstimator
from structpred.rows.linear_task import LinearTask


@dataclass(eq=False, repr=False)
class LinearOrdinal(OfClasses, LinearEstimator):
    """Ordinal regression with all thresholds (Shashua and Levin 2003; Rennie and Srebro 2005).

    It minimises 1/2 |w|^2 + C sum_i s_i sum_k max(0, 1 - s_ik (<w, x_i> - b_k)), s_ik = 1 where the class of row i is above
    threshold k, else -1. Each wrong side costs, so a prediction costs more the further it is off, and the best thresholds ascend.

    Parameters
    ----------
    trainer, C, max_iter, tol, surrogate, check_every, callbacks, checkpoint, resume, random_state, regulariser
        As for every estimator: see `StructuredEstimator`.
    intercept_scaling : float
        Thresholds are regularised as weights of constant features of this value, > 0.
    class_weight : dict or "balanced", optional
        As for LinearClassifier.

    Attributes
    ----------
    coef_ : ndarray (1, n_features)
        The direction.
    thresholds_ : ndarray (n_classes - 1,)
        Ascending, one between each two neighbouring classes.
    classes_ : ndarray
        In ascending order, which is their scale.
    certificate_, history_, n_iter_, stop_reason_, converged_
        As for every estimator; bounds are those of the objective divided by C (n_classes - 1) sum_i s_i.

    Raises
    ------
    DataError, ParameterError
        As LinearClassifier.

    Examples
    --------
    >>> model = LinearOrdinal(C=10.0, tol=1e-8).fit([[0.0], [2.0], [4.0], [6.0]], [1, 2, 2, 3])
    >>> model.predict([[0.4], [3.0], [9.0]]).tolist()
    [1, 2, 3]
    """

    thresholds_: Floats = field(init=False)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train. y: (n,) classes that can be sorted; their order is the scale."""
        scaling = self._checked_scaling()
        self._refuse_loss()
        rows, y = self._read(X, y)
        _, classes, codes = _read_targets(y)
        weights = self._weights_of(codes, classes, sample_weight, rows)
        n, n_thresholds = len(weights), len(classes) - 1
        every: Any = sparse.hstack(
            [
                sparse.vstack([sparse.csr_matrix(rows)] * n_thresholds),
                sparse.kron(sparse.identity(n_thresholds), np.full((n, 1), -scaling)),
            ],
            format="csr",
        )
        signs = np.concatenate([np.where(codes > k, 1.0, -1.0) for k in range(n_thresholds)])
        make = partial(LinearTask, every, signs, sample_weight=np.tile(weights, n_thresholds))
        results = self._results([make], offsets=_threshold_names(n_thresholds))
        self._keep_results(results, classes, 1, scaling, one_run=True)
        self._stop_if_interrupted()
        return self

    def predict_scores(self, X: Any) -> Floats:
        """<x, w> of each row, (n,): the place on the scale of the thresholds."""
        return self._scores(X)[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The classes (n,): as many thresholds as lie below the score."""
        above = self.predict_scores(X)[:, None] > self.thresholds_
        found: npt.NDArray[Any] = self.classes_[above.sum(axis=1)]
        return found

    def _offset_names(self) -> list[str]:
        return _threshold_names(len(self.thresholds_))

    def _set_offsets(self, offsets: Floats) -> None:
        self.thresholds_ = offsets[0]

    def _offsets(self) -> Floats:
        return self.thresholds_[None]

    def _check_outputs(self, head: dict[str, Any]) -> None:
        self.classes_ = classes_of(head)
        if head["outputs"] != 1 or head["offsets"] != len(head["classes"]) - 1:
            raise ValueError(f"{head['offsets']} thresholds do not fit {len(head['classes'])} classes")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on classes that have no order
        return tags


def _threshold_names(n: int) -> list[str]:
    return [f"threshold {k}" for k in range(n)]
