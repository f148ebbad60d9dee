"""The generic estimator: any oracle, any feature map, any trainer."""

import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from structpred.core.costs import Cost
from structpred.core.oracle import Labels, Oracle
from structpred.core.requirements import require
from structpred.core.weights import Vector
from structpred.models.base import StructuredEstimator
from structpred.models.bundles import COMMON, restore_weights, restored
from structpred.models.constrained import Constraints, constrained
from structpred.models.explanations import Explanation, WeightInspection, explain_parts, top_weights
from structpred.models.output_scores import OutputScores, Scoring, checked_scoring
from structpred.models.part_inputs import PartInput, PartSharding, Shaped, as_labels, split_instances
from structpred.models.settings import about_dev, dev_parts, resolve_loss
from structpred.models.signs import NameTable
from structpred.runtime.settings import checked_whole
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, Record, Text, Whole, maybe
from structpred.task.inference import Inference


def _name_of(scoring: Any) -> str | None:
    """A name as it is; a function as a text that no setting accepts."""
    if scoring is None or isinstance(scoring, str):
        return scoring
    return f"{getattr(scoring, '__name__', type(scoring).__name__)} (a function that model files do not hold; give it again)"


@dataclass(eq=False, repr=False)
class _OracleFirst:
    """Named last among the parents, so that its field is the first: StructuredPredictor(oracle, loss, trainer, C)."""

    oracle: Oracle


@dataclass(eq=False, repr=False)
class StructuredPredictor(StructuredEstimator, _OracleFirst):
    """Outputs of any structure that an oracle describes, scored part by part: theta_p = <w, features of part p>.

    Minimises  1/2 |w|^2 + C sum_i s_i H_i(w), H_i the surrogate (the margin-rescaled hinge, the log loss) of instance i, s_i its
    sample weight. Certificates are of this divided by C sum_i s_i: lam/2 |w|^2 + the mean of the H_i, lam = 1 / (C n).

    X is a list of Instance(features, shape); or a list of features with shapes=, which model selection splits only where
    scikit-learn's metadata routing is enabled (without it, score is not given shapes, and scores are NaN).
    The features of an instance are an array or sparse matrix (n_parts, d), one row per part, or a list with a dict per part
    ({"word": "cat", "length": 3.0}; names not seen in training are left out). X may also be a FeatureMap, such as LabelRows;
    its attribute `shapes`, if it has one, gives the shapes.
    y[i] are the labels as the oracle returns them, 1-d whole numbers. shapes[i] is any hashable value that the oracle knows.

    Parameters
    ----------
    oracle : Oracle
        The inference; check yours once with check_oracle.
    loss : str or Cost
        "hamming" or your own part loss.
    trainer, C, max_iter, tol, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state, regulariser
        As for every estimator: see `StructuredEstimator`; with the log loss the oracle needs `marginals`.
    scoring : str or callable, optional
        What score() and held-out data are measured by, larger is better. None: 1 - (sum of the losses) / (sum of the sizes of
        the true outputs), which with the Hamming loss is the share of labels (or, without a label grid, of true parts) that are
        right. "labels": the share of labels that are right. "parts": F1 of predicted parts. "exact": the share of outputs that
        are right in all parts. "loss": minus the mean loss. Or a function of the true and the predicted labels (two lists).
    warm_start : bool
        As for ChainLabeler.

    Attributes
    ----------
    n_features_in_ : int
        The number of features of a part.
    feature_names_ : list of str or None
        Their names; None where features have no names.
    coef_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for every estimator.

    Examples
    --------
    >>> from structpred import Instance
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> X = [Instance([[1.0, 0.0], [0.0, 1.0]], (2,)), Instance([[0.0, 1.0], [1.0, 0.0]], (2,))]
    >>> model = StructuredPredictor(MulticlassOracle()).fit(X, [[0], [1]])
    >>> [labels.tolist() for labels in model.predict(X)], model.score(X, [[0], [1]])
    ([[0], [1]], 1.0)
    """

    loss: str | Cost = "hamming"
    _: KW_ONLY
    max_iter: int | None = None
    tol: float = 0.001
    scoring: Scoring = None
    warm_start: bool = False

    n_features_in_: int = field(init=False)
    feature_names_: list[str] | None = field(init=False)
    _input: PartInput = field(init=False)

    # scikit-learn splits shapes like X and hands them on, where metadata routing is enabled
    __metadata_request__fit = __metadata_request__predict = __metadata_request__score = {"shapes": True}  # noqa: RUF012
    _sharding = PartSharding()
    _HEADER = Record({
        **COMMON,
        "oracle": Text(),  # its class: the file does not hold it
        "n_weights": Whole(0, 2**40),
        "scoring": Field(maybe(Text()), "scoring", _name_of),
    })  # fmt: skip

    def _contents(self) -> Bundle:
        found, oracle = super()._contents(), type(self.oracle).__qualname__
        found.header |= {"oracle": oracle, "n_weights": len(self.coef_)}
        found.texts = {} if self.feature_names_ is None else {"feature_names": self.feature_names_}
        return found

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        model = restored(cls, head, oracle=oracle)
        restore_weights(model, bundle.arrays, head["n_weights"])
        names, n = bundle.texts.get("feature_names"), len(model.coef_)
        if names is not None and not len(set(names)) == len(names) == n:
            raise ValueError(f"{n} weights do not fit {len(names)} feature names, {len(set(names))} of them different")
        model._keep_input(PartInput(names, n))
        return model

    def fit(
        self, X: Any, y: Sequence[npt.ArrayLike], shapes: Sequence[Any] | None = None, *,
        sample_weight: npt.ArrayLike | None = None, token_weight: Sequence[npt.ArrayLike] | None = None,
        dev: tuple[Any, ...] | None = None,
    ) -> Self:  # fmt: skip
        """Train. dev: held-out (X, y) or (X, y, shapes); the weights that do best on it are kept. token_weight: one array a
        sample, the factor of the loss at each position; the oracle must have a label grid.

        y[i] may be known in part: None (nothing is known), None or -1 or a set of labels at some positions of an oracle with a
        label grid, or, for any oracle, an array of bool with False for each part that the output cannot have: latent variables
        are parts of which nothing is ruled out. The log loss is then that of what is known; with other surrogates CCCP
        completes the outputs, max_iter passes in all.

        Raises DataError, naming the sample, before training starts; OracleError where the oracle returns something invalid.
        """
        resolve_loss(self.loss)
        checked_scoring(self.scoring)
        given = Shaped(*split_instances(X, shapes))
        self._sharding.fit(self, given, y, dev=dev, sample_weight=sample_weight, token_weight=token_weight)
        return self

    def _name_tables(self) -> list[NameTable]:
        return self._input.weight_names()

    def _keep_input(self, input_: PartInput) -> None:
        """Set how X is read: after training, and when a model file has been read."""
        self._input, self.feature_names_ = input_, input_.names
        self.n_features_in_ = int(input_.n_columns or 0)

    def predict(self, X: Any, shapes: Sequence[Any] | None = None, *, constraints: Constraints = None) -> list[Labels]:
        """The best labels of each instance that keep the constraints (`Constraint`); InfeasibleError where no labels do."""
        return constrained(self._read(X, shapes), constraints, lambda entry: entry).outputs(self.coef_)

    def predict_marginals(self, X: Any, shapes: Sequence[Any] | None = None) -> list[npt.NDArray[np.float64]]:
        """One array (n_parts,) per instance: the expected count of each part, its probability where it counts at most once.

        Only for models trained with the log loss (trainer "oeg", "lbfgs" or "owlqn", or surrogate "log"): scores learnt with a
        margin are not log-probabilities, and ParameterError says so. MissingCapabilityError where the oracle has no `marginals`.
        """
        self._check_fitted()
        require(("marginals",), self.oracle, "predict_marginals")
        self._check_probabilistic()
        return list(self._read(X, shapes).marginals(self.coef_))

    def predict_kbest(self, X: Any, k: int, shapes: Sequence[Any] | None = None) -> list[list[tuple[Labels, float]]]:
        """For each instance its k best (labels, score), best first; fewer where there are fewer.

        MissingCapabilityError where the oracle has no `kbest`.
        """
        self._check_fitted()
        require(("kbest",), self.oracle, "predict_kbest")
        return list(self._read(X, shapes).kbest(self.coef_, checked_whole(k, "k")))

    def _read(self, X: Any, shapes: Sequence[Any] | None) -> Inference:
        """Inference over the instances, features and shapes checked against each other."""
        self._check_fitted()
        return _read(self._input, self.oracle, X, shapes)

    def explain(self, x: Any, labels: Any = None, *, against: Any = None, shape: Any = None) -> Explanation:
        """Why an instance gets its labels: what each feature of each part adds to the score.

        x: an Instance, or the features of one with its shape=. labels: what to explain; None: what is predicted. against: other
        labels, or "runner-up" (the best other ones, for which the oracle needs `kbest`): only what differs, as differences.
        Positions are the numbers of parts. Raises DataError for labels that the oracle does not know.

        >>> from structpred import Instance
        >>> from structpred.models import StructuredPredictor
        >>> from structpred.oracles.multiclass import MulticlassOracle
        >>> X = [Instance([{"rank": 1.0}, {"rank": 2.0}], (2,)), Instance([{"rank": 2.0}, {"rank": 1.0}], (2,))]
        >>> why = StructuredPredictor(MulticlassOracle()).fit(X, [[0], [1]]).explain(X[0], against=[1])
        >>> [(c.position, c.feature, c.value) for c in why.contributions]
        [(0, 'rank', 1.0), (1, 'rank', -2.0)]
        """
        inference = self._read([x], None if shape is None else [shape])
        return explain_parts(inference, self.coef_, self._name_tables(), labels, against)

    def top_features(self, n: int = 20) -> WeightInspection:
        """The n strongest positive and negative weights by name."""
        return top_weights(self, n)

    def score(self, X: Any, y: Sequence[npt.ArrayLike], shapes: Sequence[Any] | None = None) -> float:
        """How well predictions agree with y, by `scoring`; larger is better."""
        inference = self._read(X, shapes)
        # one of the user's own, which a loaded model does not hold, is asked for only where the score is made of it
        loss = resolve_loss(self.loss if self.scoring in (None, "loss") else "hamming")
        scores = OutputScores(inference.oracle, loss, self.scoring, as_labels(y), inference.shapes)
        return scores(inference.outputs(self.coef_))

    def _dev_scorer(self, input_: PartInput, dev: Any) -> Callable[[Vector], float]:
        loss, scoring = resolve_loss(self.loss), checked_scoring(self.scoring)
        names = "X, y, shapes" if isinstance(dev, tuple | list) and len(dev) == 3 else "X, y"
        X, y, *shapes = dev_parts(dev, names)
        with about_dev():
            inference = _read(input_, self.oracle, X, shapes[0] if shapes else None)
            scores = OutputScores(inference.oracle, loss, scoring, as_labels(y), inference.shapes)
        return lambda w: scores(inference.outputs(w))

    @classmethod
    def load(cls, path: str | os.PathLike[str], oracle: Oracle | None = None, *, loss: str | Cost | None = None) -> Self:
        """Read a model file; `oracle` must be of the class that the model was trained with.

        loss: the loss, if it is your own: a file names it but does not hold it, and score() and fit() need it.
        """
        model = super().load(path, oracle)
        if loss is not None:
            model.loss = loss if isinstance(loss, str) else resolve_loss(loss)
        return model


def _read(input_: PartInput, oracle: Oracle, X: Any, shapes: Any) -> Inference:
    given, listed = split_instances(X, shapes)
    inference = Inference(input_.transform(given), oracle, listed)
    inference.check_shapes()
    return inference
