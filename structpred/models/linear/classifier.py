"""Linear support vector machines: two classes, many, any number of labels for each row, or classes on an ordered scale."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError, ParameterError
from structpred.features.label_rows import LabelRows
from structpred.models.bundles import CLASS, COMMON
from structpred.models.linear.estimator import HEADER, LinearEstimator
from structpred.models.settings import about_dev, dev_parts, resolve_loss
from structpred.models.sklearn_bridge import refusals
from structpred.objectives.scalar.classes import Softmax
from structpred.objectives.scalar.margins import Logistic
from structpred.oracles.multiclass import MulticlassOracle
from structpred.rows.linear_task import LinearTask
from structpred.runtime.settings import checked_positive
from structpred.storage.schema import Field, Flag, ListOf, OneOf, Record, Text, maybe
from structpred.task.steps import TaskLike
from structpred.task.task import Task

_GIVE_AGAIN = "a table (that model files do not hold; give it again)"


def classes_of(head: dict[str, Any]) -> npt.NDArray[Any]:
    """The classes of a header; ValueError unless they are different ones."""
    classes = np.array(head["classes"], dtype={"str": None}.get(head["class_kind"], head["class_kind"]))
    if classes.ndim != 1 or len(set(head["classes"])) != len(classes):
        raise ValueError("classes: expected different ones")
    return classes


@dataclass(eq=False, repr=False)
class OfClasses(ClassifierMixin):  # type: ignore[misc]
    """Beside LinearEstimator: `class_weight`, and the classes in a file."""

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None

    _HEADER: ClassVar[Record] = Record({
        **COMMON,
        "classes": ListOf(CLASS, 2),
        "class_kind": OneOf(("bool", "int", "float", "str", "object")),
        "class_weight": Field(maybe(Text()), "class_weight"),
        **HEADER,
        "multi_label": Field(Flag(), default=False),
    })  # fmt: skip

    def _weights_of(self: Any, codes: Integers, classes: npt.NDArray[Any], sample_weight: Any, rows: Any) -> Floats:
        """sample_weight times class_weight, one number per row."""
        found: Floats = self._sample_weights(sample_weight, rows)
        if self.class_weight is None:
            return found
        with refusals(ParameterError):
            found *= compute_class_weight(self.class_weight, classes=classes, y=classes[codes])[codes]
        return found

    def _refuse_loss(self: Any) -> None:
        if self.loss != "hamming":
            raise ParameterError(f"loss: a choice of two has no other loss than 'hamming', got {self.loss!r}; use class_weight")

    def _contents(self: Any) -> Any:
        found = super()._contents()
        kind = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str"}.get(self.classes_.dtype.kind, "object")
        weight = _GIVE_AGAIN if isinstance(self.class_weight, dict) else self.class_weight
        several = {"multi_label": self.multi_label_} if hasattr(self, "multi_label_") else {}
        found.header |= {"classes": self.classes_.tolist(), "class_kind": kind, "class_weight": weight, **several}
        return found


@dataclass(eq=False, repr=False)
class LinearClassifier(OfClasses, LinearEstimator):
    """A linear support vector machine with a proven gap, in scikit-learn's calls; sparse rows stay sparse.

    It minimises 1/2 |w|^2 + C sum_i s_i H_i(w), s_i the sample's weight times its class's, and H_i

    - for two classes max(0, 1 - y_i (<w, x_i> + b)), or a scalar loss: surrogate="logistic", SmoothedHinge(0.1);
    - for more max_l (l != y_i) + <w_l - w_y, x_i> + b_l - b_y (Crammer and Singer 2001), or with the costs of `loss`; or another
      loss of all scores: surrogate="softmax", TopK(3);
    - for a table of 0 and 1 the sum of a two-class problem for each column (binary relevance).

    Intercepts are weights of a constant feature, and regularised as all others; those of trainer="pragam_b" are free.

    Parameters
    ----------
    trainer, C, max_iter, tol, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state, regulariser
        As for every estimator: see `StructuredEstimator`. "sdca" is the fastest; any trainer of margins will do.
    loss : str or Cost
        What a wrong class costs, where there are more than two: "hamming", 1, or ``LabelCosts(matrix)``.
    fit_intercept : bool
        Whether there is a constant feature.
    intercept_scaling : float
        Its value, > 0: the larger, the less the intercept is regularised.
    class_weight : dict or "balanced", optional
        A factor for the weights of each class's samples; "balanced": n / (n_classes * n_samples of the class). Not for tables.

    Attributes
    ----------
    coef_, intercept_ : ndarray (n_outputs, n_features), (n_outputs,)
        One row for two classes, else a row for each class or label.
    classes_ : ndarray
        The classes in ascending order; the numbers of the columns where y is a table.
    multi_label_ : bool
        Whether y was a table.
    certificate_ : Certificate
        Bounds on the objective divided by C sum_i s_i; for a table those of the sum over its columns.
    history_, n_iter_, stop_reason_, converged_
        As for every estimator; of a table the rows of all columns with "output", the column, and the most passes of any.

    Raises
    ------
    DataError
        For X or y that cannot be used, such as NaN or a single class.
    ParameterError
        For settings out of range.

    Examples
    --------
    >>> model = LinearClassifier(tol=1e-8).fit([[0.0], [1.0], [3.0]], ["no", "no", "yes"])
    >>> model.predict([[0.5], [2.5]]).tolist(), model.converged_
    (['no', 'yes'], True)
    """

    _: KW_ONLY
    fit_intercept: bool = True

    multi_label_: bool = field(init=False)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, dev: tuple[Any, Any] | None = None) -> Self:
        """Train. y: (n,) classes, or (n, k) of 0 and 1, k >= 2. dev: held-out (X, y); the weights best on it are kept."""
        constant = checked_positive(self.intercept_scaling, "intercept_scaling") if self.fit_intercept else 0.0
        rows, y = self._read(X, y)
        multi_label, classes, codes = _read_targets(y)
        n_outputs = len(classes) if multi_label or len(classes) > 2 else 1
        if multi_label and self.class_weight is not None:
            raise ParameterError("class_weight: expected None where y is a table of labels; use sample_weight")
        weights = self._weights_of(codes if not multi_label else codes[:, 0], classes, sample_weight, rows)
        if n_outputs == 1 or multi_label:
            self._refuse_loss()
            columns = codes.reshape(len(weights), -1)
            makers: list[Callable[[], TaskLike]] = [
                partial(LinearTask, rows, 2.0 * columns[:, k] - 1.0, sample_weight=weights, intercept=constant)
                for k in range(n_outputs)
            ]
        else:
            makers = [partial(self._one_of_many, rows, codes, weights, constant, n_outputs)]
        scorer = None if dev is None else self._dev_scorer(dev, classes, multi_label, constant)
        results = self._results(makers, scorer, outputs=classes.tolist() if n_outputs > 1 else ())
        self.multi_label_ = multi_label
        self._keep_results(results, classes, n_outputs, constant, one_run=not multi_label)
        return self

    def _one_of_many(self, rows: Any, codes: Integers, weights: Floats, constant: float, n_classes: int) -> Task:
        """The training set of more than two classes."""
        features = LabelRows(with_constant(rows, constant), n_classes, dtype=np.float64)
        return Task(
            features, MulticlassOracle(), list(codes[:, None]), features.shapes, resolve_loss(self.loss), sample_weight=weights
        )

    def _dev_scorer(
        self, dev: Any, classes: npt.NDArray[Any], multi_label: bool, constant: float
    ) -> Callable[[int], Callable[[Vector], float]]:
        """For each run the share of held-out rows that its weights decide rightly."""
        with about_dev():
            X, y = dev_parts(dev, "X, y")
            rows = with_constant(self._rows(X), constant)
            truth = np.asarray(y)
            if len(truth) != rows.shape[0] or truth.ndim != 1 + multi_label:
                raise DataError(f"expected labels of {rows.shape[0]} rows as in training, got shape {truth.shape}")

        def scorer(k: int) -> Callable[[Vector], float]:
            right = truth[:, k] if multi_label else truth
            of = np.array([0, 1]) if multi_label else classes
            return lambda w: float(np.mean(of[_decided(rows @ w.reshape(rows.shape[1], -1))] == right))

        return scorer

    def decision_function(self, X: Any) -> Floats:
        """(n,) for two classes, positive for the second; else (n, n_outputs)."""
        scores = self._scores(X) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The classes (n,), or a table (n, n_labels) of 0 and 1."""
        scores = self._scores(X) + self.intercept_
        if self.multi_label_:
            return (scores > 0.0).astype(np.int64)
        return self.classes_[_decided(scores)]

    @available_if(lambda model: isinstance(model._trainer_and_surrogate()[1], Logistic | Softmax))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """With surrogate="logistic": (n, 2), the probabilities of both classes; of a table (n, n_labels), those of a 1.

        With surrogate="softmax": (n, n_classes).
        """
        scores = self._scores(X) + self.intercept_
        if scores.shape[1] > 1 and not self.multi_label_:
            return np.asarray(softmax(scores, axis=1), dtype=np.float64)
        ones = expit(scores)
        return ones if self.multi_label_ else np.hstack([1.0 - ones, ones])

    def _check_outputs(self, head: dict[str, Any]) -> None:
        self.classes_, self.multi_label_, n = classes_of(head), head["multi_label"], len(head["classes"])
        if head["outputs"] != (n if self.multi_label_ or n > 2 else 1) or head["offsets"] != 1:
            raise ValueError(f"{head['outputs']} rows of weights with {head['offsets']} intercepts do not fit {n} classes")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def with_constant(rows: Any, constant: float) -> Any:
    """The rows as CSR, with a column of this constant after the others unless it is 0."""
    thin: Any = sparse.csr_matrix(rows)
    column: Any = np.full((thin.shape[0], 1), constant)
    return sparse.hstack([thin, column], format="csr") if constant else thin


def _decided(scores: Floats) -> npt.NDArray[np.intp]:
    """The numbers of the classes, from scores of one output or one for each."""
    return (scores[:, 0] > 0.0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)


def _read_targets(y: npt.NDArray[Any]) -> tuple[bool, npt.NDArray[Any], Integers]:
    """(whether y is a table, the classes, their numbers for each row)."""
    try:
        check_classification_targets(y)
        if type_of_target(y) == "multilabel-indicator":
            return True, np.arange(y.shape[1]), y.astype(np.int64)
        classes, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    except (TypeError, ValueError) as error:
        raise DataError(str(error)) from error
    if len(classes) < 2:
        raise DataError(f"y: expected at least two classes, got one class only: {classes.tolist()}")
    return False, classes, codes.astype(np.int64)


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
        scaling = checked_positive(self.intercept_scaling, "intercept_scaling")
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
        return self

    def predict_scores(self, X: Any) -> Floats:
        """<x, w> of each row, (n,): the place on the scale of the thresholds."""
        return self._scores(X)[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The classes (n,): as many thresholds as lie below the score."""
        above = self.predict_scores(X)[:, None] > self.thresholds_
        return self.classes_[above.sum(axis=1)]

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
