"""sklearn_crfsuite.CRF by its own names: parameters, methods and attributes, trained and decoded by structpred."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from structpred.compat.crf_settings import CRFSettings, TrainingLog, log, zero_pairs
from structpred.errors import ParameterError
from structpred.models.base import structured_tags
from structpred.models.chain.inputs import TokenInput, around_empty, choose_input
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.chain.targets import LabelEncoder, as_label_lists
from structpred.models.sklearn_bridge import Estimator, NotFittedError


@dataclass(eq=False, repr=False)
class CRF(Estimator):
    """A chain model with CRFsuite's parameters: change one import of a program written for sklearn-crfsuite.

    None means CRFsuite's default; docs/compat.md has a table of all parameters.

    Parameters
    ----------
    algorithm : str, optional
        "lbfgs" (None): the conditional random field with c1 |w|_1 + c2 |w|^2 on the same weights as CRFsuite, so the same
        optimum. "l2sgd": with c2 |w|^2, by exponentiated gradient. "ap", "pa", "arow": online learners, without probabilities.
    all_possible_states, all_possible_transitions, min_freq
        Which pairs get a weight, as in CRFsuite for "lbfgs". The other algorithms give a weight to every pair, and min_freq
        leaves out rare attributes.
    verbose : bool
        Log the progress of training to the logger structpred.compat.
    model_filename : path, optional
        fit writes the model there, in structpred's format; a CRF that is not fitted reads it.
    keep_tempfiles : bool
        Accepted and ignored: there are no temporary files.

    Attributes
    ----------
    classes_ : list of str
        The labels in order of appearance.
    attributes_, num_attributes_, state_features_, transition_features_, size_, training_log_
        As in sklearn-crfsuite.
    labeler_ : ChainLabeler
        The model that does the work; certificate_, history_, n_iter_ and stop_reason_ are its.

    Raises
    ------
    ParameterError
        For a parameter of another algorithm.

    Examples
    --------
    >>> X = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "dog"}]]
    >>> crf = CRF(c2=0.01).fit(X, [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> crf.predict([[{"w": "the"}, {"w": "dog"}]]), crf.predict_marginals(X)[0][0]["DET"] > 0.9
    ([['DET', 'NOUN']], True)
    """

    algorithm: str | None = None
    min_freq: float | None = None
    all_possible_states: bool | None = None
    all_possible_transitions: bool | None = None
    c1: float | None = None
    c2: float | None = None
    max_iterations: int | None = None
    num_memories: int | None = None
    epsilon: float | None = None
    period: int | None = None
    delta: float | None = None
    linesearch: str | None = None
    max_linesearch: int | None = None
    calibration_eta: float | None = None
    calibration_rate: float | None = None
    calibration_samples: int | None = None
    calibration_candidates: int | None = None
    calibration_max_trials: int | None = None
    pa_type: int | None = None
    c: float | None = None
    error_sensitive: bool | None = None
    averaging: bool | None = None
    variance: float | None = None
    gamma: float | None = None
    verbose: bool = False
    model_filename: str | os.PathLike[str] | None = None
    keep_tempfiles: bool = False
    trainer_cls: Any = None
    labeler_: ChainLabeler = field(init=False)
    training_log_: TrainingLog = field(init=False)
    classes_: list[Any] = field(init=False)

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> "CRF":
        """Train. X: lists of feature dicts, of feature strings, or any input of ChainLabeler; y: lists of labels.

        X_dev and y_dev take no part in training, as in CRFsuite: training_log_ says how many of their tokens are right.
        Raises DataError, naming the sample, for anything wrong in X or y, ParameterError for settings.
        """
        from threadpoolctl import threadpool_limits

        if (X_dev is None) != (y_dev is None):
            raise ParameterError("give both X_dev and y_dev, or neither")
        settings = CRFSettings.check(self.get_params(deep=False))
        input_, sequences = choose_input(X, None, settings.min_count, None)
        data = input_.fit_transform(sequences)
        lists = as_label_lists(y, data.lengths)
        encoder = LabelEncoder.fit(lists)
        codes, names = encoder.encode(lists), input_.feature_names()
        zeros = zero_pairs(sequences, codes, names) if isinstance(input_, TokenInput) and isinstance(sequences, list) else set()
        chosen = settings.labeler_settings(data, codes, len(encoder.classes), zeros)
        with threadpool_limits(limits=1, user_api="blas"):  # vectors of this size only make more threads wait for each other
            labeler = ChainLabeler(random_state=0, **chosen).fit(data, lists)
        labeler.callbacks, labeler.input_ = None, input_
        dev = None if X_dev is None else float(labeler.score(X_dev, y_dev))
        self._adopt(labeler, list(dict.fromkeys(chain.from_iterable(lists))))
        self.training_log_ = TrainingLog.of(labeler.history_, len(data), dev)
        if self.verbose:
            for row in self.training_log_.iterations:
                log.info("iteration %(num)d: loss %(loss)s, %(time).3f s", row)
        if self.model_filename is not None:
            labeler.save(self.model_filename)
        return self

    def _adopt(self, labeler: ChainLabeler, classes: list[Any]) -> None:
        self.labeler_, self.classes_, self.n_features_in_ = labeler, classes, labeler.n_features_in_
        self.coef_, self.certificate_, self.history_ = labeler.coef_, labeler.certificate_, labeler.history_
        self.n_iter_, self.stop_reason_, self.converged_ = labeler.n_iter_, labeler.stop_reason_, labeler.converged_

    def predict(self, X: Any) -> list[list[Any]]:
        """The best labels of each sequence; an empty sequence has none."""
        labeler = self._fitted()
        return around_empty(lambda full: [labels.tolist() for labels in labeler.predict(full)], X, nothing=[])

    def predict_single(self, xseq: Sequence[Any]) -> list[Any]:
        """The best labels of one sequence."""
        return self.predict([xseq])[0]

    def predict_marginals(self, X: Any) -> list[list[dict[Any, float]]]:
        """For each position of each sequence the probability of each label; with algorithm "lbfgs" or "l2sgd" only."""
        labeler = self._fitted()
        if not labeler.probabilistic_:
            raise ParameterError(
                f"algorithm={self.algorithm!r} learns scores that are not log-probabilities; train with 'lbfgs' or 'l2sgd'"
            )
        order = labeler.classes_.tolist()

        def marginals(full: Any) -> list[list[dict[Any, float]]]:
            tables = labeler.predict_marginals(full)
            return [[dict(zip(order, row, strict=True)) for row in table.tolist()] for table in tables]

        return around_empty(marginals, X, nothing=[])

    def predict_marginals_single(self, xseq: Sequence[Any]) -> list[dict[Any, float]]:
        """For each position of one sequence the probability of each label."""
        return self.predict_marginals([xseq])[0]

    def score(self, X: Any, y: Any) -> float:
        """The share of tokens with the right label."""
        return self._fitted().score(X, y)

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """(attribute, label) -> weight, for all weights that are not zero."""
        labeler = self._fitted()
        table = labeler.emissions_
        names, labels = labeler.input_.feature_names(), labeler.classes_.tolist()
        rows, columns = np.nonzero(table)
        found = zip(rows.tolist(), columns.tolist(), table[rows, columns].tolist(), strict=True)
        return {(names[i], labels[k]): weight for i, k, weight in found}

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """(label before, label after) -> weight, for all weights that are not zero."""
        labels = self._fitted().classes_.tolist()
        table = self._fitted().transitions_
        return {(labels[i], labels[k]): float(table[i, k]) for i, k in np.argwhere(table).tolist()}

    @property
    def attributes_(self) -> list[str]:
        """The attributes that have a weight other than zero."""
        labeler = self._fitted()
        used = np.flatnonzero(labeler.emissions_.any(axis=1))
        names = labeler.input_.feature_names()
        return [names[i] for i in used.tolist()]

    @property
    def num_attributes_(self) -> int:
        """The number of attributes that have a weight other than zero."""
        return int(self._fitted().emissions_.any(axis=1).sum())

    @property
    def size_(self) -> int:
        """The size of the model in bytes: names, and a number and a value for each weight that is not zero."""
        names = sum(len(name.encode()) + 1 for name in chain(self.attributes_, map(str, self.classes_)))
        return int(names + (4 + self.coef_.itemsize) * np.count_nonzero(self.coef_))

    def __sklearn_tags__(self) -> Any:
        return structured_tags(super().__sklearn_tags__())

    def _fitted(self) -> ChainLabeler:
        """The labeler; read from model_filename where nothing was fitted and the file is there."""
        if not hasattr(self, "labeler_"):
            if self.model_filename is None or not Path(self.model_filename).exists():
                raise NotFittedError("this CRF is not fitted yet; call fit(X, y) first")
            labeler = ChainLabeler.load(self.model_filename)
            self._adopt(labeler, labeler.classes_.tolist())
        return self.labeler_
