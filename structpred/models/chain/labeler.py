"""Sequence labelling with a first-order chain: features, Viterbi decoding, a part loss and any trainer."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.costs import PartLoss
from structpred.core.weights import Vector
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.io.templates.templates import Template
from structpred.models.base import StructuredEstimator, about_dev, checked_sample_weight, dev_parts
from structpred.models.chain import online
from structpred.models.chain.constraints import ChainConstraints, fixed_scores, resolve_constraints
from structpred.models.chain.decoding import chain_kbest, chain_marginals, chain_score_gaps, checked_k, decode_chains
from structpred.models.chain.explain import Explanation, explain
from structpred.models.chain.inputs import Input, choose_input
from structpred.models.chain.inspection import Inspection, inspect_weights
from structpred.models.chain.targets import LabelEncoder, as_label_lists
from structpred.models.chain.tasks import chain_task
from structpred.models.files import load_estimator, save_chain
from structpred.models.settings import resolve_loss
from structpred.objectives.log_loss import LogLoss
from structpred.runtime.threads import checked_jobs
from structpred.trainers.loop import Callback
from structpred.trainers.problem import Surrogate, Trainer


class ChainLabeler(StructuredEstimator):
    """A label for each token of a sequence, decoded jointly with transition, start and stop scores.

    Minimises  1/2 |w|^2 + C sum_i s_i max_y [loss(y_i, y) + <w, phi(x_i, y) - phi(x_i, y_i)>]  (the structural SVM).

    Parameters
    ----------
    trainer: "bcfw", "sgd", "mira", "perceptron" (which ignores C): max-margin; "oeg", "lbfgs": conditional random
    fields; or a trainer object such as BCFW(gap_sampling=True).
    C: the weight of the training loss; lam = 1 / (C n).
    max_iter: passes over the data. tol: stop when the gap is at most tol times the primal; 0 means never.
    loss: "hamming", or a part loss such as LabelCosts(matrix).
    template: feature templates for rows of columns: "chunking", "ner", "pos", a CRF++ template file, or Template objects.
    min_count: features seen less often are left out. n_bits: hash feature strings into 2**n_bits ids instead.
    check_every: passes between computations of the certificate. patience: stop after so many passes without a better
    score on the `dev` data of fit. dev_metric: that score, a function (gold, predicted) -> float; default: token accuracy.
    surrogate: "margin", "slack" or "log" (a conditional random field); None: the one that belongs to the trainer.
    constraints: hard rules on label sequences, at fit and predict: "iob2", "iobes", or a ChainConstraints.
    n_jobs: threads for prediction and for passes over all data; the result is the same for any number. None means 1.
    callbacks: called with each row of the history; True stops. checkpoint, resume: a file to go on from.
    random_state: seeds the order of visits; None means 0. warm_start: a second fit, on the same data with a larger max_iter
    (which counts all passes), goes on from the trainer's state; with other data or settings it is an error.

    X is a list of sequences: 2-d arrays or sparse matrices, lists of feature dicts or of feature strings, or, with a
    template, lists of rows; or a packed or read corpus. y is a list of label sequences, all strings or all whole numbers.

    After fit: classes_, n_features_in_, coef_, certificate_, history_, n_iter_, stop_reason_, converged_.

    >>> X = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "dog"}]]
    >>> model = ChainLabeler(max_iter=20).fit(X, [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> [labels.tolist() for labels in model.predict([[{"w": "the"}, {"w": "dog"}]])]
    [['DET', 'NOUN']]
    """

    def __init__(
        self,
        trainer: str | Trainer = "bcfw",
        C: float = 1.0,
        max_iter: int = 10,
        tol: float = 0.0,
        *,
        loss: str | PartLoss = "hamming",
        template: str | Sequence[Template] | None = None,
        min_count: int = 1,
        n_bits: int | None = None,
        check_every: int = 10,
        patience: int | None = None,
        dev_metric: Callable[[Sequence[Any], Sequence[Any]], float] | None = None,
        surrogate: str | Surrogate | None = None,
        constraints: str | ChainConstraints | None = None,
        n_jobs: int | None = None,
        callbacks: Callback | Sequence[Callback] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.trainer = trainer
        self.C = C
        self.max_iter = max_iter
        self.tol = tol
        self.loss = loss
        self.template = template
        self.min_count = min_count
        self.n_bits = n_bits
        self.check_every = check_every
        self.patience = patience
        self.dev_metric = dev_metric
        self.surrogate = surrogate
        self.constraints = constraints
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.resume = resume
        self.random_state = random_state
        self.warm_start = warm_start

    input_: Input
    _n_total: float
    classes_: npt.NDArray[Any]
    n_features_in_: int
    probabilistic_: bool

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: npt.ArrayLike | None = None,
        token_weight: Sequence[npt.ArrayLike] | None = None,
        dev: tuple[Any, Any] | None = None,
        allowed: Sequence[Any] | None = None,
    ) -> "ChainLabeler":
        """Train. sample_weight: one number a sequence. token_weight: one list a sequence, nested like y, weighing the loss.

        allowed: nested like y, for each token None or the labels it may have (a tag dictionary, say): all others are
        ruled out while training. The true labels must keep to it, and to `constraints`.

        Raises DataError, naming the sample, for anything wrong in X, y or dev, before training starts. When interrupted
        (Ctrl-C, SIGTERM) it keeps the weights so far and raises KeyboardInterrupt.
        """
        loss = resolve_loss(self.loss)
        input_, sequences = choose_input(X, self.template, self.min_count, self.n_bits)
        data = input_.fit_transform(sequences)
        lists = as_label_lists(y, data.lengths)
        encoder = LabelEncoder.fit(lists)
        rules, jobs = resolve_constraints(self.constraints), checked_jobs(self.n_jobs)
        task = chain_task(
            data, lists, encoder, loss, rules,
            sample_weight=sample_weight, token_weight=token_weight, allowed=allowed, n_jobs=jobs,
        )  # fmt: skip
        scorer = None if dev is None else self._dev_scorer(input_, encoder, *dev_parts(dev, "X, y"))
        result = self._train(task, scorer)
        self.input_, self._encoder, self.classes_, self.n_features_in_ = input_, encoder, encoder.classes, data.n_features
        self.probabilistic_ = isinstance(self._trainer_and_surrogate()[1], LogLoss)
        self._n_total = float(task.sample_weight.sum())
        self._keep(result)
        self._stop_if_interrupted()
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Sequence[Any] | None = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        token_weight: Sequence[npt.ArrayLike] | None = None,
        allowed: Sequence[Any] | None = None,
        n_total: float | None = None,
    ) -> "ChainLabeler":
        """One pass of an online trainer (perceptron, mira, sgd, pa, arow) over a batch, in the order given; then the next batch.

        classes: all labels there will be; None: those of the first batch. A dictionary of features, too, is that of the first
        batch: hash them (n_bits) where later batches bring new ones. n_total: the number of sequences to be expected in all,
        which sgd needs: lam = 1 / (C n_total). Passes over shards are not a fit on all data, whose passes visit it in random
        order; and there is no certificate. After fit with warm_start=True it goes on from there.

        Raises DataError, naming the sample, before anything is trained; ParameterError where there is nothing to go on from.
        """
        online.partial_fit(self, X, y, classes, sample_weight, token_weight, allowed, n_total)
        return self

    def fit_stream(
        self,
        source: online.Source,
        classes: Sequence[Any],
        n_passes: int = 1,
        batch_size: int = 1024,
        *,
        n_total: float | None = None,
        dev: tuple[Any, Any] | None = None,
    ) -> "ChainLabeler":
        """Train an online trainer in memory bounded by a batch. source(): a new iterable of (sequence, labels) for each pass.

        Sequences are visited in the order in which they come (so shuffle them in the source); the batch size has no part in the
        result, unless the first batch makes the dictionary of features. classes, n_total: as in partial_fit. History, `dev`,
        patience, callbacks, checkpoint, resume and Ctrl-C work as in fit; a resumed run passes over what was done.

        Raises DataError with the running number of the sequence; a checkpoint, if there is one, holds what was learnt until then.
        """
        online.fit_stream(self, source, classes, n_passes, batch_size, n_total, dev)
        return self

    def predict(
        self, X: Any, *, allowed: Sequence[Any] | None = None, fixed: Sequence[Any] | None = None
    ) -> list[npt.NDArray[Any]]:
        """One array of labels a sequence, the best that keeps to the constraints.

        allowed, fixed: nested like y; for each token None, or the labels it may have, or the label it has.
        Raises InfeasibleError, naming the sample, where nothing keeps to all of them.
        """
        data, scores = self._read(X, allowed, fixed)
        codes = decode_chains(data, len(self.classes_), self.coef_, scores, checked_jobs(self.n_jobs))
        return self._encoder.decode(codes, data.offsets)

    def predict_marginals(
        self, X: Any, *, allowed: Sequence[Any] | None = None, fixed: Sequence[Any] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """One array (T, n_classes) a sequence: the probability of each label at each position, in the order of classes_.

        Only for models trained with the log loss (trainer "oeg" or "lbfgs", or surrogate "log"): scores learnt with a margin
        are no log-probabilities, and ParameterError says so; predict_score_gaps tells how clear their decisions are.
        """
        data, scores = self._read(X, allowed, fixed)
        if not self.probabilistic_:
            raise ParameterError(
                f"this model was trained with trainer={self.trainer!r} and a margin, so its scores are no log-probabilities; "
                "use predict_score_gaps, or train with trainer='oeg', trainer='lbfgs' or surrogate='log'"
            )
        return chain_marginals(data, len(self.classes_), self.coef_, scores)

    def predict_kbest(
        self, X: Any, k: int, *, allowed: Sequence[Any] | None = None, fixed: Sequence[Any] | None = None
    ) -> list[list[tuple[npt.NDArray[Any], float]]]:
        """For each sequence its k best (labels, score), best first; fewer where there are fewer."""
        data, scores = self._read(X, allowed, fixed)
        found = chain_kbest(data, len(self.classes_), self.coef_, scores, checked_k(k))
        return [[(self.classes_[codes], score) for codes, score in best] for best in found]

    def predict_score_gaps(
        self, X: Any, *, allowed: Sequence[Any] | None = None, fixed: Sequence[Any] | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """One array (T,) a sequence: the score of the prediction less that of the best one with another label there.

        In the units of scores, >= 0, inf where no other label is possible. It is no probability.
        """
        data, scores = self._read(X, allowed, fixed)
        return chain_score_gaps(data, len(self.classes_), self.coef_, scores)

    def _read(
        self, X: Any, allowed: Sequence[Any] | None, fixed: Sequence[Any] | None
    ) -> tuple[PackedSequences, FixedScores | None]:
        """The packed sequences, and the constraints on them."""
        self._check_fitted()
        data = self.input_.transform(X)
        rules = resolve_constraints(self.constraints)
        return data, fixed_scores(self.classes_.tolist(), data.offsets, rules, allowed, fixed)

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of tokens with the right label; each token weighs as its sequence does."""
        predicted = self.predict(X)
        lists = as_label_lists(y, np.array([len(labels) for labels in predicted]))
        right = np.array([(p == np.array(g)).sum() for p, g in zip(predicted, lists, strict=True)], dtype=np.float64)
        lengths = np.array([len(labels) for labels in lists])
        weights = checked_sample_weight(sample_weight, len(lists))
        return float((weights @ right) / (weights @ lengths))

    def _dev_scorer(self, input_: Input, encoder: LabelEncoder, X: Any, y: Any) -> Callable[[Vector], float]:
        with about_dev():
            data = input_.transform(X)
            lists = as_label_lists(y, data.lengths)
            if not lists:
                raise DataError("no sequences at all; expected at least one")
            fixed = fixed_scores(encoder.classes.tolist(), data.offsets, resolve_constraints(self.constraints))
        metric = self.dev_metric or token_accuracy

        def score(w: Vector) -> float:
            codes = decode_chains(data, len(encoder.classes), w, fixed, checked_jobs(self.n_jobs))
            return metric(lists, encoder.decode(codes, data.offsets))

        return score

    def explain(self, x: Any, labels: Sequence[Any] | None = None, *, against: Any = None) -> Explanation:
        """Why one sequence gets its labels: what each feature, transition, start and stop adds to the score.

        x: one sequence in the form of fit's X, or a corpus of one. labels: what to explain; None: what is predicted.
        against: another label sequence, or "runner-up" (the best other one): only what differs, as differences.
        """
        self._check_fitted()
        return explain(self, x, labels, against)

    def top_features(self, n: int = 20, *, label: Any = None) -> Inspection:
        """The n strongest positive and negative weights of each label (or of one), with the transitions."""
        return inspect_weights(self, n, label)

    @property
    def transitions_(self) -> npt.NDArray[np.float64]:
        """Transition weights (label before, label after)."""
        self._check_fitted()
        n = len(self.classes_)
        return np.asarray(self._table()[-n:, :n], dtype=np.float64)

    @property
    def emissions_(self) -> npt.NDArray[np.float64]:
        """Emission weights (feature, label)."""
        self._check_fitted()
        return np.asarray(self._table()[: self.n_features_in_, : len(self.classes_)], dtype=np.float64)

    def _table(self) -> npt.NDArray[Any]:
        width = -(-len(self.classes_) // 8) * 8
        return self.coef_.reshape(-1, width)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one file, atomically, without pickle: see docs/formats.md."""
        self._check_fitted()
        save_chain(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "ChainLabeler":
        """Read a model file; raises ModelFileError for anything that is not a whole, unaltered chain model."""
        model = load_estimator(path, cls.__name__)
        assert isinstance(model, cls)
        return model


def token_accuracy(gold: Sequence[Any], predicted: Sequence[Any]) -> float:
    """The share of tokens with the right label."""
    right = sum(int((np.asarray(p) == np.asarray(g)).sum()) for p, g in zip(predicted, gold, strict=True))
    return right / max(sum(len(g) for g in gold), 1)
