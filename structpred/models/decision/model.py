"""The decision model: features -> costs -> decision, trained for the decision's true cost."""

import json
import os
from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from structpred.core.instances import checked_shape
from structpred.core.oracle import Labels, Oracle
from structpred.core.packing import argmax_batch, has_points
from structpred.core.result import Certificate, History, Record, Result
from structpred.core.types import Floats
from structpred.errors import DataError, LossError, OracleError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.layers.expected_cost import ExpectedCost
from structpred.layers.loss import Layer, Loss
from structpred.layers.names import losses
from structpred.layers.record import Scores
from structpred.models import bundles
from structpred.models.base import as_callbacks, seed_of, structured_tags
from structpred.models.constrained import Constraints, constrained
from structpred.models.decision.adam import Adam, Truth
from structpred.models.decision.inputs import Design, read
from structpred.models.decision.surrogates import surrogate_of
from structpred.models.nothing_learnt import warned
from structpred.models.own_components import check_own, components_of_scores, marked
from structpred.models.settings import checked_oracle, resolve_trainer, settings_of, settings_restored
from structpred.models.sklearn_bridge import Estimator, NotFittedError
from structpred.objectives.part_losses import Regret
from structpred.runtime.ranges import ends_of
from structpred.runtime.settings import checked_positive
from structpred.runtime.threads import checked_jobs
from structpred.storage import schema as storage
from structpred.storage.bundles import Bundle
from structpred.task.inference import Inference
from structpred.task.regret import Numbers, PartScores, Regrets, regrets, true_scores
from structpred.task.task import Task
from structpred.text.suggestions import named
from structpred.trainers.loop import Callback, RunSettings, train
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.running.progress import display_of

_SHARED = ("estimator", "trainer", "loss", "certificate", "run", "history", "reader", "versions")
_SETTINGS = ("C", "max_iter", "tol", "check_every", "fit_intercept", "random_state", "check_components")


def _written(shape: Any) -> str | None:
    """A shape of numbers, texts and tuples as JSON; None for another one, which must be given again."""
    try:
        text = json.dumps(shape, allow_nan=False)
        return text if checked_shape(json.loads(text), 0) == checked_shape(shape, 0) else None
    except (TypeError, ValueError, DataError):
        return None


def _trainer(saved: Any) -> Any:
    if isinstance(saved, dict) and saved["class"] == Adam.__name__:
        return Adam(**saved["settings"])
    return settings_restored(saved)


HEADER = storage.Record({
    **{name: bundles.COMMON[name] for name in _SHARED},
    "trainer": storage.Field(bundles.OBJECT, "trainer", settings_of, _trainer),
    "oracle": storage.Text(),
    "settings": bundles.settings_record(dict.fromkeys(_SETTINGS, storage.Plain())),
    "shape": storage.Field(storage.maybe(storage.Text()), "shape", _written, lambda text: checked_shape(json.loads(text), 0)),
    "n_features": storage.Field(storage.Whole(1), "n_features_in_"),
    "n_outputs": storage.Field(storage.Whole(1), "n_outputs_"),
    "per_part": storage.Field(storage.Flag(), "per_part_"),
    "maximises": storage.Field(storage.Flag(), "maximises_"),
})  # fmt: skip


@dataclass(eq=False, repr=False)
class DecisionModel(Estimator):
    """Predict the costs of parts by a linear map, such that the decisions at the predicted costs have a small true cost.

    Minimises  1/2 |W|^2 + C sum_i loss_i(W),  with theta_i = W' x_i the predicted scores: minus costs, or values. The intercept
    is the weight of a constant feature, and regularised as all others. Certificates are of this divided by C n.

    X is an array (n, d), one row of features an instance: each part has its own weights, and all instances have equally many
    parts. Or a list of arrays (n_parts_i, d), one row of features a part: all parts share the weights, and instances may differ
    in size. Or a list of Instance(features, shape), which model selection can split with the shapes.
    costs (n, parts), or a list of arrays, are minimised; values are maximised: give one of them.

    Parameters
    ----------
    oracle : Oracle
        Finds the best decision: `ShortestPathOracle`, `KnapsackOracle`, or your own.
    shape : hashable, optional
        The shape of all instances; None: that of an oracle with one alone, or `fit` and the others are given shapes=.
    loss : str, Loss or Layer
        The name of a loss of `structpred.layers` ("spo+", "perturbed", "pg", ...), or an object with its settings, such as
        ``PerturbedLoss(oracle, samples=20)``. A layer is trained on the true cost of the decision that it softens.
    trainer : str, Adam or Trainer
        "adam", or ``Adam(learning_rate=0.1)``: any loss, no certificate. With loss="spo+" or "hinge" also "bcfw", "one_slack",
        "n_slack" and all other trainers of structural support vector machines: SPO+ is the margin-rescaled hinge of the regret,
        and they prove how far from the optimum the weights are. With smooth losses ("perturbed", "sparsemap", "crf", ...) also
        "lbfgs", "sgd" and all other trainers of smooth objectives. They start at zero weights, Adam at least squares.
    C : float
        The weight of the training loss, > 0: lam = 1 / (C n).
    max_iter : int, optional
        Passes over the instances. None: 50, or as many as the trainer needs at least, as for every estimator.
    tol, check_every
        As for every estimator with a certificate; Adam does not use them.
    fit_intercept : bool
        Whether there is a constant feature.
    callbacks, random_state
        As for every estimator.
    regressor : regressor of scikit-learn, optional
        Learns the costs themselves, whatever the decisions: the two-stage baseline. loss, trainer and C are then not used, and
        the model cannot be saved.
    verbose : int
        0: silent. 1: a line a pass on standard error, in a notebook an output that changes in place.
    n_jobs : int, optional
        Threads that call the oracle where it has `argmax_batch`, -1 for all processors. Results do not depend on it.
    check_components : bool
        Whether an oracle, a loss or a trainer from outside the package must pass its contract check: see StructuredEstimator.

    Attributes
    ----------
    coef_ : ndarray (n_outputs, d)
        Weights of predicted costs (or values, if values were given); n_outputs is 1 for rows of parts.
    intercept_ : ndarray (n_outputs,)
        The constants.
    regressor_ : regressor
        The fitted one, where one was given.
    certificate_, history_, n_iter_, stop_reason_, converged_
        As for every estimator. Adam's history has the mean loss of each pass.
    n_features_in_ : int
        d.

    Raises
    ------
    DataError
        For X, costs or shapes that do not fit, naming the sample.
    ParameterError
        For settings out of range, and for a trainer that cannot minimise the loss.

    References
    ----------
    Elmachtoub and Grigas (2022), Smart "predict, then optimize", Management Science 68.

    Examples
    --------
    >>> from structpred.data.decisions import shortest_path_data
    >>> from structpred.oracles.shortest_path import ShortestPathOracle
    >>> data = shortest_path_data(200, degree=6, noise=0.5)
    >>> model = DecisionModel(ShortestPathOracle(), shape=data.shape, max_iter=10).fit(data.features, data.costs)
    >>> model.score(data.features, data.costs) > 0.85
    True
    """

    oracle: Oracle
    _: KW_ONLY
    shape: Hashable = None
    loss: str | Loss | Layer = "spo+"
    trainer: str | Adam | Trainer = "adam"
    C: float = 1.0
    max_iter: int | None = None
    tol: float = 0.001
    check_every: int = 10
    fit_intercept: bool = True
    callbacks: Callback | Sequence[Callback] | None = None
    random_state: Any = None
    regressor: Any = None
    verbose: int = 0
    n_jobs: int | None = None
    check_components: bool = True

    certificate_: Certificate = field(init=False)
    history_: list[Record] = field(init=False)
    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)
    reader_: dict[str, Any] = field(init=False)

    def fit(
        self, X: Any, costs: Numbers | None = None, *, values: Numbers | None = None, shapes: Sequence[Hashable] | None = None
    ) -> Self:
        """Train. costs: what each part truly costs; or values=, what it is truly worth. shapes: of the instances."""
        design = read(X, shapes, self.shape, checked_oracle(self.oracle), bool(self.fit_intercept))
        truth = true_scores(self.oracle, design.shapes, costs, values)
        sign = 1.0 if costs is None else -1.0
        if self.regressor is not None:
            self.regressor_ = _fitted(self.regressor, design, self.fit_intercept, sign * truth.scores)
            self._keep(design, sign, Result(np.empty(0), Certificate(), stop_reason="regressor"))
            return self
        result = self._trained(design, truth)
        self._keep(design, sign, result)
        table = sign * result.weights.astype(np.float64).reshape(design.rows.shape[1], design.n_outputs).T
        self.coef_ = table[:, : self.n_features_in_].copy()
        self.intercept_ = table[:, -1].copy() if self.fit_intercept else np.zeros(len(table))
        if self.stop_reason_ == "interrupted":
            raise KeyboardInterrupt(f"training was interrupted after {self.n_iter_} passes; the model holds what was learnt")
        return self

    def _trained(self, design: Design, truth: PartScores) -> Result:
        lam = 1.0 / (checked_positive(self.C, "C") * len(design.shapes))
        loss, trainer = self._resolved_loss(), Adam() if self.trainer == "adam" else self.trainer
        components = components_of_scores(loss, trainer, design.shapes, np.diff(truth.offsets))
        checked = check_own(components, self.check_components)
        least = 1 if isinstance(trainer, Adam) else resolve_trainer(trainer)[0].least_passes
        run = RunSettings(
            max_iter=max(50, least) if self.max_iter is None else self.max_iter, tol=self.tol, check_every=self.check_every,
            seed=seed_of(self.random_state), callbacks=as_callbacks(self.callbacks), verbose=self.verbose,
        )  # fmt: skip
        batch = self._batch(truth, loss.oracle)
        best = batch.best(truth.scores)
        if isinstance(trainer, Adam):
            with display_of(run.verbose, "Adam", run.max_iter, "") as display:
                known, jobs = Truth(truth.scores, batch.counts(best), truth.offsets), batch.n_jobs
                result = trainer.minimise(loss, design, known, lam, run.max_iter, run.seed, tuple(run.callbacks), display, jobs)
                return marked(result, checked)
        resolved = resolve_trainer(trainer)[0]
        if has_points(self.oracle):
            raise ParameterError(
                f"trainer={self.trainer!r} needs outputs that are sets of parts, and those of {type(self.oracle).__name__} are "
                "points with amounts: set trainer='adam'"
            )
        scale, surrogate = surrogate_of(loss, resolved)
        try:
            regret, gold = Regret(truth.split(), best.gaps), list(best.outputs)
            task = Task(design.features(scale), loss.oracle, gold, design.shapes, regret, n_jobs=batch.n_jobs)
            problem = Problem(task, surrogate, lam)
            return marked(warned(train(problem, resolved, run), problem), checked)
        except LossError as error:  # the regret of what the oracle itself gave as the best decision
            raise OracleError(
                f"{str(error).partition(', less')[0]} against the decision that {type(loss.oracle).__name__}.argmax gave as the "
                "best one at the true costs: does it minimise (scores taken for costs), or miss the best? A solver that stops at "
                "a gap declares tolerance = its gap, or exact = False with argmax_bound; run check_oracle on it"
            ) from error

    def _resolved_loss(self) -> Loss | Layer:
        if isinstance(self.loss, Loss | Layer):
            self.loss.set_state({})  # so that equal fits have equal bits, whatever the object was used for
            return self.loss
        kind = named("loss", self.loss, losses(), " or an object, a Loss or a Layer")
        if kind is ExpectedCost:
            raise ParameterError("loss: 'expected_cost' needs the cost of an output: give an object, ExpectedCost(oracle, cost)")
        return kind(self.oracle)

    def _keep(self, design: Design, sign: float, result: Result) -> None:
        """Set what a fitted model has; sign: of the scores in what the user gave."""
        n_columns = design.rows.shape[1]
        self.n_features_in_ = n_columns - bool(self.fit_intercept)
        self.n_outputs_, self.per_part_, self.maximises_ = design.n_outputs, design.per_part, sign > 0.0
        self.certificate_, self.history_, self.reader_ = result.certificate, History(result.history), {}
        self.n_iter_, self.stop_reason_ = result.passes, result.stop_reason
        gap = result.certificate.relative_gap
        self.converged_ = bool(self.tol > 0 and result.certificate.certifies and gap is not None and gap <= self.tol)

    def _scores(self, X: Any, shapes: Sequence[Hashable] | None) -> PartScores:
        """The predicted scores of the instances."""
        self._check_fitted()
        design = read(X, shapes, self.shape, self.oracle, False)
        if (
            design.rows.shape[1] != self.n_features_in_
            or design.per_part != self.per_part_
            or design.n_outputs != self.n_outputs_
        ):
            kinds = [f"rows of {'parts' if kind else 'instances'}" for kind in (self.per_part_, design.per_part)]
            raise DataError(
                f"X: the model was trained with {self.n_features_in_} features in {kinds[0]} and {self.n_outputs_} outputs each, "
                f"got {design.rows.shape[1]} features in {kinds[1]} and {design.n_outputs} outputs"
            )
        sign = 1.0 if self.maximises_ else -1.0
        if hasattr(self, "regressor_"):
            found = sign * np.asarray(self.regressor_.predict(design.rows), dtype=np.float64).ravel()
        else:
            found = sign * (design.rows @ self.coef_.T + self.intercept_).ravel()
        sizes = np.diff(design.places) * design.n_outputs
        return PartScores(self.oracle, design.shapes, ends_of(sizes), found)

    def predict(self, X: Any, shapes: Sequence[Hashable] | None = None, *, constraints: Constraints = None) -> list[Labels]:
        """The decision for each instance: the labels of the oracle's best output at the predicted costs or values, of those that
        keep the constraints (`Constraint`); InfeasibleError where none does.
        """
        found, jobs = self._scores(X, shapes), checked_jobs(self.n_jobs)
        if constraints:
            plain = Inference(PartFeatures([own[:, None] for own in found.split()]), self.oracle, found.shapes, n_jobs=jobs)
            return constrained(plain, constraints, lambda part: part).outputs(np.ones(1))
        labels, ends = argmax_batch(self.oracle, found.scores, found.offsets, found.shapes, jobs)
        return np.split(labels, ends[1:-1])

    def predict_points(self, X: Any, shapes: Sequence[Hashable] | None = None) -> list[Floats]:
        """The decision for each instance as part counts: 0 and 1, or, where outputs are points, the amounts of all parts."""
        found = self._scores(X, shapes)
        batch = self._batch(found, self.oracle)
        return batch.split(batch.counts(batch.best(found.scores)))

    def _batch(self, given: PartScores, oracle: Oracle) -> Scores:
        return Scores(oracle, given.shapes, given.offsets, None, checked_jobs(self.n_jobs))

    def predict_costs(self, X: Any, shapes: Sequence[Hashable] | None = None) -> Any:
        """The predicted costs of the parts, (n, parts), or a list of arrays for rows of parts; minus the predicted values."""
        found = self.predict_values(X, shapes)
        return [-own for own in found] if self.per_part_ else -found

    def predict_values(self, X: Any, shapes: Sequence[Hashable] | None = None) -> Any:
        """The predicted values of the parts, (n, parts), or a list of arrays for rows of parts; minus the predicted costs."""
        found = self._scores(X, shapes)
        return found.split() if self.per_part_ else found.scores.reshape(len(found.shapes), -1)

    def regrets(
        self, X: Any, costs: Numbers | None = None, *, values: Numbers | None = None, shapes: Sequence[Hashable] | None = None
    ) -> Regrets:
        """What each decision loses against the best one at the true costs or values."""
        found = self._scores(X, shapes)
        return regrets(true_scores(self.oracle, found.shapes, costs, values), found.best())

    def score(
        self, X: Any, costs: Numbers | None = None, *, values: Numbers | None = None, shapes: Sequence[Hashable] | None = None
    ) -> float:
        """1 - the normalised regret: 1 where every decision is the best one."""
        return 1.0 - self.regrets(X, costs, values=values, shapes=shapes).normalised

    save = bundles.save
    _HEADER = HEADER

    @classmethod
    def load(cls, path: str | os.PathLike[str], oracle: Oracle | None = None) -> Self:
        """Read a model file; `oracle` must be of the class that the model was trained with."""
        return bundles.read_own(path, cls, oracle)

    def _contents(self) -> Bundle:
        if hasattr(self, "regressor_"):
            raise DataError("a model with a regressor cannot be saved: model files hold linear maps; save the regressor itself")
        head = {**bundles.computed(self), "oracle": type(self.oracle).__qualname__}
        return Bundle(head, bundles.pack_weights(np.column_stack((self.coef_, self.intercept_)).ravel()))

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        model = bundles.restored(cls, head, oracle=oracle)
        outputs, features = model.n_outputs_, model.n_features_in_
        table = bundles.unpack_weights(bundle.arrays, outputs * (features + 1)).astype(np.float64).reshape(outputs, -1)
        model.coef_, model.intercept_ = table[:, :-1].copy(), table[:, -1].copy()
        return model

    def _check_fitted(self) -> None:
        if not hasattr(self, "certificate_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(X, costs) first, or load a model")

    def __sklearn_tags__(self) -> Any:
        tags = structured_tags(super().__sklearn_tags__())
        tags.target_tags.required = False
        return tags


def _fitted(regressor: Any, design: Design, constant: bool, targets: Floats) -> Any:
    """A copy of the regressor, fitted to the targets; one for each part where it has a single output."""
    from sklearn.base import clone
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.utils import get_tags

    if not hasattr(regressor, "fit") or not hasattr(regressor, "predict"):
        raise ParameterError(f"regressor: expected a regressor of scikit-learn, with fit and predict, got {regressor!r}")
    rows = design.rows[:, :-1] if constant else design.rows
    model = clone(regressor)
    if design.n_outputs > 1 and not get_tags(model).target_tags.multi_output:
        model = MultiOutputRegressor(model)
    return model.fit(rows, targets if design.per_part else targets.reshape(len(rows), -1).squeeze())
