"""Linear regression with a proven gap: squared, absolute and Huber losses."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.models.linear.estimator import LinearEstimator
from structpred.models.settings import resolve_trainer
from structpred.objectives.names import scalar_losses
from structpred.rows.linear_task import RegressionTask
from structpred.rows.scalar_loss import ScalarLoss
from structpred.runtime.settings import checked_positive
from structpred.text.suggestions import named
from structpred.trainers.problem import Surrogate, Trainer


@dataclass(eq=False, repr=False)
class LinearRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """Linear regression with a proven gap, in scikit-learn's calls; sparse rows stay sparse.

    It minimises 1/2 |w|^2 + C sum_i s_i phi(<w, x_i> + b; y_i), s_i the sample's weight. The intercept b is the weight of a
    constant feature, and regularised as all others: centre targets that are far from zero, or set intercept_scaling.

    Parameters
    ----------
    loss : str or ScalarLoss
        phi: "squared" (ridge regression), "absolute" (median regression), "huber", or an object such as ``Huber(0.5)``.
    trainer, C, max_iter, tol, check_every, callbacks, checkpoint, resume, random_state, regulariser
        As for every estimator: see `StructuredEstimator`. "sdca" takes any loss; "lbfgs" those that are smooth.
    surrogate : None
        The loss is the surrogate.
    fit_intercept : bool
        Whether there is a constant feature.
    intercept_scaling : float
        Its value, > 0: the larger, the less the intercept is regularised.

    Attributes
    ----------
    coef_ : ndarray (1, n_features)
        The weights.
    intercept_ : ndarray (1,)
        The intercept.
    certificate_, history_, n_iter_, stop_reason_, converged_
        As for every estimator; bounds are those of the objective divided by C sum_i s_i.

    Raises
    ------
    DataError
        For X or y that cannot be used, such as NaN.
    ParameterError
        For settings out of range.

    Examples
    --------
    >>> model = LinearRegressor("absolute", C=10.0, tol=1e-8).fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 90.0])
    >>> model.predict([[4.0]]).round(6).tolist(), model.converged_
    ([9.0], True)
    """

    loss: str | ScalarLoss = "squared"  # type: ignore[assignment]
    _: KW_ONLY
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train. y: (n,) numbers."""
        constant = checked_positive(self.intercept_scaling, "intercept_scaling") if self.fit_intercept else 0.0
        if self.surrogate is not None:
            raise ParameterError(f"surrogate: a regressor's is its loss, got {self.surrogate!r}; set loss")
        rows, y = self._read(X, y, y_numeric=True)
        weights = self._sample_weights(sample_weight, rows)
        results = self._results([lambda: RegressionTask(rows, y, sample_weight=weights, intercept=constant)])
        self._keep_results(results, None, 1, constant, one_run=True)
        return self

    def predict(self, X: Any) -> Floats:
        """(n,) numbers."""
        return self._scores(X)[:, 0] + self.intercept_[0]

    def _trainer_and_surrogate(self) -> tuple[Trainer, Surrogate]:
        loss, trainer = self.loss, resolve_trainer(self._chosen_trainer())[0]
        if isinstance(loss, str):
            known = {name: kind for name, kind in scalar_losses().items() if not kind.signs}
            return trainer, named("loss", loss, known, " or a scalar loss")()
        if not isinstance(loss, ScalarLoss):
            raise ParameterError(f"loss: expected a name or an instance of a ScalarLoss such as Huber(0.5), got {loss!r}")
        return trainer, loss

    def _check_outputs(self, head: dict[str, Any]) -> None:
        if head["outputs"] != 1 or head["offsets"] != 1:
            raise ValueError(f"{head['outputs']} rows of weights with {head['offsets']} intercepts are no regressor's")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
