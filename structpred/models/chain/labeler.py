"""Sequence labelling with a first-order chain: features, Viterbi decoding, a part loss and any trainer."""

from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from structpred.core.result import Result
from structpred.core.weights import Vector, padded
from structpred.data.sequences import PackedSequences
from structpred.data.tag_schemes import TABLE
from structpred.errors import DataError, ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.models.base import StructuredEstimator, checked_sample_weight
from structpred.models.bundles import CLASSES, COMMON, restore_weights, restored
from structpred.models.chain import inputs
from structpred.models.chain.constraints import RULES, ChainConstraints, fixed_scores, rules_inside
from structpred.models.chain.decoding import ChainScores, decode_chains, n_weights, table_width
from structpred.models.chain.inputs import INPUT, INPUTS, Input, NumericInput, RowInput, around_empty, choose_input, n_columns
from structpred.models.chain.targets import LabelEncoder, as_label_lists, comparable, token_accuracy, where_known
from structpred.models.constrained import Constraints
from structpred.models.settings import about_dev, dev_parts
from structpred.models.signs import NameTable
from structpred.runtime.lazy_names import Later, later
from structpred.runtime.threads import checked_jobs
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, Flag, ListOf, OneOf, Record, maybe
from structpred.trainers.loop import RunSettings

if TYPE_CHECKING:
    from structpred.io.templates.templates import Template
    from structpred.models.chain.inspection import Inspection
    from structpred.models.chain.online import Source
    from structpred.models.explanations import Explanation

_groups = later("structpred.models.groups")
_inspection = later("structpred.models.chain.inspection")
_online = later("structpred.models.chain.online")
_stages = later("structpred.models.chain.stages")
_templates = later("structpred.io.templates.featurizer")
#: from the weights of training: sequences, the number of labels, and weights of their features
Scored = Callable[[Vector], tuple[PackedSequences, int, Vector]]


@dataclass(eq=False, repr=False)
class ChainLabeler(StructuredEstimator, ChainScores):
    """A label for each token of a sequence, decoded jointly with transition, start and stop scores.

    Minimises  1/2 |w|^2 + C sum_i s_i max_y [loss(y_i, y) + <w, phi(x_i, y) - phi(x_i, y_i)>]  (the structural SVM); with the log
    loss it is a conditional random field.

    X is a list of sequences: 2-d arrays, sparse matrices, lists of feature dicts (1-d arrays in them are standardised) or feature
    strings, or, with a template, of rows; or a packed or read corpus. y is a list of label sequences, strings or whole numbers.

    Parameters
    ----------
    trainer, C, max_iter, tol, loss, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state, regulariser
        As for every estimator: see `StructuredEstimator`; C=0.3, max_iter=10 and tol=0 unless given.
    template : str or list of Template, optional
        Feature templates for rows of columns: "chunking", "crfsuite", "ner", "pos", a CRF++ template file, or Template objects.
    min_count : int
        Features seen less often are left out.
    n_bits : int, optional
        Hash feature strings into 2**n_bits ids instead.
    dev_metric : callable, optional
        The score on the `dev` data of fit, a function (gold, predicted) -> float; None: token accuracy.
    constraints : str or ChainConstraints, optional
        Hard rules on label sequences, at fit and predict: "iob1", "iob2", "iobes", "places", or a ChainConstraints.
    coding : str, optional
        The scheme of phrases inside: "iob1", "iob2", "iobes", or "auto", which folds of the training data choose by F1. Labels
        are read as conlleval reads them, broken ones too; answers are phrases in the scheme of y (coding_ has both).
    stages : int
        2, for rows with a template: a second labeler also sees what a first one says of the token, its neighbours and the same
        word in the document: of a `ColumnCorpus`, in prediction, too, with -DOCSTART- lines, or from_rows(rows, groups=...); else
        each sequence is one. It takes half of the passes, labelers of halves of the documents a fifth; all if a pass is one step.
    fit_intercept : bool
        For arrays, sparse matrices and OCR words: a constant feature 1 at every token, the last one, regularised as the others
        are. Feature dicts and strings, templates, packed sequences and kernels are taken as they are: no intercept.
    n_jobs : int, optional
        Threads for prediction and for passes over all data; the result is the same for any number. None means 1.
    warm_start : bool
        A second fit on the same data with a larger max_iter, which counts all passes, continues; other data are an error.
    missing : str or int, optional
        A label in y that means, as None does, that the label is not known: -1 in scikit-learn's convention. Without it, and
        without sets of labels in y, None raises a MissingLabelsWarning.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; with a coding those inside, which weights, marginals and explanations are over.
    n_features_in_ : int
        The number of features; the intercept is not counted.
    coef_ : ndarray
        The flat weights: `structpred.features.sequences.weight_table` shows them as a row for each feature (the columns of X,
        then the intercept where there is one), for start and stop, and for each label before another, with a column for each
        label. `emissions_`, `intercept_` and `transitions_` are parts of it.
    first_stage_ : ChainLabeler or None
        With two stages the first one; weights, certificate_ and all else are those of the second one.
    certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for every estimator.

    Examples
    --------
    >>> X = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "dog"}]]
    >>> model = ChainLabeler(max_iter=20).fit(X, [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> [labels.tolist() for labels in model.predict([[{"w": "the"}, {"w": "dog"}]])]
    [['DET', 'NOUN']]
    """

    C: float = 0.3  # chosen as docs/benchmarks.md says, "Defaults of ChainLabeler"; the shell has the same ones
    max_iter: int | None = None
    tol: float = 0.0
    _: KW_ONLY
    template: "str | Sequence[Template] | None" = None
    min_count: int = 1
    n_bits: int | None = None
    dev_metric: Callable[[Sequence[Any], Sequence[Any]], float] | None = None
    constraints: str | ChainConstraints | None = None
    fit_intercept: bool = True
    n_jobs: int | None = None
    warm_start: bool = False
    missing: Any = None
    coding: str | None = None
    stages: int = 1

    input_: Input = field(init=False)
    classes_: npt.NDArray[Any] = field(init=False)
    coding_: tuple[str, str] | None = field(init=False)
    first_stage_: Any = field(init=False)
    n_features_in_: int = field(init=False)
    _encoder: LabelEncoder = field(init=False)

    _own_passes = 10
    _several: ClassVar[Any] = False  # whether there are kernels that need all positions at once
    _sharding = Later(later("structpred.models.chain.sharding"), "ChainSharding")
    _HEADER = Record({
        **COMMON,
        "input": INPUT,
        "classes": Field(CLASSES, "classes_", np.ndarray.tolist),
        "constraints": RULES,
        "coding": Field(maybe(ListOf(OneOf(tuple(TABLE)), 2, 2)), "coding_", list, default=None, sparse=True),
        "fit_intercept": Field(Flag(), "fit_intercept", bool),
    })  # fmt: skip

    def _contents(self) -> Bundle:
        part, found = self.input_.to_bundle(), super()._contents()
        found.header["input"] = {"kind": self.input_.kind, "header": part.header}
        found.add("input", part)
        return found

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        saved = head["input"]
        input_ = cls._input_of(saved["kind"], bundle.part("input", saved["header"]))
        model = cls._with_input(input_, head, bundle.arrays)
        if isinstance(reader := getattr(input_, "inner", input_), RowInput):  # that inside one with a kernel
            model.template = reader.templates
        if (rules := rules_inside(model.constraints, model.coding_)) is not None:
            rules.tables(head["classes"])  # a scheme must know the labels
        return model

    @classmethod
    def _input_of(cls, kind: str, part: Bundle) -> Input:
        """The input that a file holds."""
        return INPUTS[kind].from_bundle(part) if kind in INPUTS else _stages().StagedInput.of_bundle(part, cls)

    @classmethod
    def _with_input(cls, input_: Input, head: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """A fitted labeler of the input, the header and the weights."""
        model = restored(cls, head)
        encoder = LabelEncoder(head["classes"], head.get("coding"))  # relations have none
        model.input_, model.n_features_in_, model._encoder, model.classes_ = input_, n_columns(input_), encoder, encoder.classes
        model.stages, model.first_stage_ = 1 + hasattr(input_, "first"), getattr(input_, "first", None)
        model.coding_, model.coding = encoder.coding, encoder.coding and encoder.coding[0]
        restore_weights(model, arrays, n_weights(input_, len(model.classes_)))
        return model

    def fit(
        self, X: Any, y: Any, *, sample_weight: npt.ArrayLike | None = None,
        token_weight: Sequence[npt.ArrayLike] | None = None, dev: tuple[Any, Any] | None = None,
        allowed: Sequence[Any] | None = None,
    ) -> Self:  # fmt: skip
        """Train. sample_weight: one number per sequence. token_weight: one list per sequence, nested like y, weighing the loss.

        Labels of y may be missing: None, or a set of the labels that the token may have. The log loss is then that of what is
        known; with other surrogates CCCP completes the labels, max_iter passes in all (docs/howto/labels_are_missing.md).

        allowed: nested like y, for each token None or the labels it may have (a tag dictionary, say): all others are
        ruled out while training. The true labels must satisfy it, and `constraints`.

        Raises DataError, naming the sample, for anything wrong in X, y or dev, before training starts. When interrupted
        (Ctrl-C, SIGTERM) it keeps the weights so far and raises KeyboardInterrupt.
        """
        options = {"sample_weight": sample_weight, "token_weight": token_weight, "allowed": allowed}
        self._comes_last = self.stages != 1
        if self._comes_last:
            X, self._stage = _stages().prepared(self, X, y, dev, options), "second stage"
        # that of this class, so that labellers with a kernel, which shards do not take, are trained in this way, too
        sharding: Any = ChainLabeler._sharding
        sharding.fit(self, X, y, dev=dev, n_jobs=checked_jobs(self.n_jobs), **options)
        return self

    def _run_settings(self, dev: Callable[[Vector], float] | None) -> RunSettings:
        found = super()._run_settings(dev)
        half = self._comes_last and not self._trainer_and_surrogate()[0].bulk
        return replace(found, max_iter=-(-found.max_iter // 2)) if half else found

    def _keep_plan(self, input_: Input, encoder: LabelEncoder, result: Result) -> None:
        """Set how sequences are read, their labels, and what training gave."""
        self.input_, self._encoder, self.classes_, self.n_features_in_ = input_, encoder, encoder.classes, n_columns(input_)
        self.coding_, self.first_stage_ = encoder.coding, getattr(input_, "first", None)
        self._keep(result)

    def _name_tables(self) -> list[NameTable]:
        return _inspection().chain_names(self.input_, self.classes_)

    def _drop_groups(self, names: Collection[str]) -> None:
        """Take out the templates of these groups; features that are hashed, and arrays, stay."""
        input_ = self.input_
        if not isinstance(input_, RowInput) or not isinstance(input_.features, _templates().TemplateFeaturizer):
            return
        dropped, first = [name for name in input_.features.group_names if name in names], sum(input_.arrays.widths)
        featurizer, left = input_.features.without(dropped)
        table: npt.NDArray[Any] = self.coef_.reshape(-1, padded(len(self.classes_)))
        self.coef_ = np.concatenate((table[:first], table[first + left], table[input_.n_features :])).ravel()
        self.input_ = copy(input_)
        self.input_.features = featurizer
        self.n_features_in_, self.template = self.input_.n_features, self.input_.templates
        _groups().keep_groups(self, np.array([name not in dropped for name in self.group_names_]))

    def _choose_input(self, X: Any) -> tuple[Input, Any]:
        """The input that fits X, without an intercept, and X as it reads it."""
        return choose_input(X, self.template, self.min_count, self.n_bits)

    def _input_for(self, X: Any) -> tuple[Input, Any]:
        """The input that fits X, and X as it reads it. Whoever packs features has chosen all of them: no intercept is added."""
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ParameterError(f"fit_intercept: expected True or False, got {self.fit_intercept!r}")
        input_, sequences = self._choose_input(X)
        if self.fit_intercept and isinstance(input_, NumericInput) and not isinstance(sequences, PackedSequences):
            return NumericInput(intercept=True), sequences
        return input_, sequences

    def partial_fit(
        self, X: Any, y: Any, classes: Sequence[Any] | None = None, *, sample_weight: npt.ArrayLike | None = None,
        token_weight: Sequence[npt.ArrayLike] | None = None, allowed: Sequence[Any] | None = None, n_total: float | None = None,
    ) -> Self:  # fmt: skip
        """One pass of an online trainer (perceptron, mira, sgd, pa, arow) over a batch, in the order given; then the next batch.

        classes: all labels there will be; None: those of the first batch. A dictionary of features, too, is that of the first
        batch: hash them (n_bits) where later batches bring new ones. n_total: the number of sequences to be expected in all,
        which sgd needs: lam = 1 / (C n_total). Passes over shards are not a fit on all data, whose passes see it in random
        order; and there is no certificate. Where labels are missing a step goes towards their best completion at the present
        weights, or along the gradient of their likelihood. After fit with warm_start=True it continues from there.

        Raises DataError, naming the sample, before anything is trained; ParameterError where there is nothing to continue from.
        """
        options = {"sample_weight": sample_weight, "token_weight": token_weight, "allowed": allowed}
        _online().partial_fit(self, X, y, classes, n_total, **options)
        return self

    def fit_stream(
        self, source: "Source", classes: Sequence[Any], n_passes: int = 1, batch_size: int = 1024, *,
        n_total: float | None = None, dev: tuple[Any, Any] | None = None,
    ) -> Self:  # fmt: skip
        """Train an online trainer in memory bounded by a batch. source(): a new iterable of (sequence, labels) for each pass.

        Sequences are used in the order in which they come (so shuffle them in the source); the batch size has no part in the
        result, unless the first batch makes the dictionary of features. classes, n_total: as in partial_fit. History, `dev`,
        patience, callbacks, checkpoint, resume and Ctrl-C work as in fit; a resumed run skips what was done.

        Raises DataError with the running number of the sequence; a checkpoint, if there is one, holds what was learnt until then.
        """
        _online().fit_stream(self, source, classes, n_passes, batch_size, n_total, dev)
        return self

    def predict(
        self, X: Any, *, allowed: Sequence[Any] | None = None, fixed: Sequence[Any] | None = None,
        constraints: Constraints = None,
    ) -> list[npt.NDArray[Any]]:  # fmt: skip
        """One array of labels per sequence, the best that satisfies the constraints; of an empty sequence an empty one.

        allowed, fixed: nested like y; for each token None, or the labels it may have, or the label it has. constraints: see
        `Constraint`; labels are those of classes_. InfeasibleError names the sample that no labels of satisfy all of them.
        """
        self._check_fitted()
        empty = inputs.empty_places(X, constraints)
        return around_empty(lambda *full: self._decoded(*self._read(*full), constraints, empty), X, allowed, fixed)

    def _decoded(
        self, data: PackedSequences, w: Vector, scores: FixedScores | None, constraints: Constraints, empty: Sequence[int]
    ) -> list[Any]:
        classes = self.classes_.tolist()
        codes = decode_chains(data, len(classes), w, scores, checked_jobs(self.n_jobs), constraints, classes, empty)
        return self._encoder.decode(codes, data.offsets)

    def _read(
        self, X: Any, allowed: Sequence[Any] | None, fixed: Sequence[Any] | None
    ) -> tuple[PackedSequences, Vector, FixedScores | None]:
        """The packed sequences, the weights of their features, and the constraints on them."""
        self._check_fitted()
        data, w = self._scored(X)
        rules, inside = rules_inside(self.constraints, self.coding_), self._encoder.inside
        return data, w, fixed_scores(self.classes_.tolist(), data.offsets, rules, inside(allowed), inside(fixed))

    def _scored(self, X: Any) -> tuple[PackedSequences, Vector]:
        """Features for prediction, and their weights."""
        return self.input_.transform(X), self.coef_

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of tokens with the right label, of those whose label is known; each weighs as its sequence does."""
        predicted: Sequence[npt.NDArray[Any]] = self.predict(X)
        lists: Sequence[Sequence[Any]] = as_label_lists(y, np.array([len(labels) for labels in predicted]))
        lists, predicted = where_known(lists, predicted, self.missing)
        right = np.array([(p == np.array(g)).sum() for p, g in zip(predicted, lists, strict=True)], dtype=np.float64)
        weights, lengths = checked_sample_weight(sample_weight, len(lists)), np.array([len(labels) for labels in lists])
        return float((weights @ right) / (weights @ lengths))

    def _dev_scorer(self, plan: tuple[Input, LabelEncoder], dev: Any) -> Callable[[Vector], float]:
        (input_, encoder), (X, y) = plan, dev_parts(dev, "X, y")
        with about_dev():
            data, scored = self._held_out(input_, X, len(encoder.classes))
            lists = as_label_lists(y, data.lengths)
            if not lists:
                raise DataError("no sequences at all; expected at least one")
            fixed = fixed_scores(encoder.classes.tolist(), data.offsets, rules_inside(self.constraints, encoder.coding))

        def score(w: Vector) -> float:
            codes = decode_chains(*scored(w), fixed, checked_jobs(self.n_jobs))
            return (self.dev_metric or token_accuracy)(*comparable(lists, encoder.decode(codes, data.offsets), self.missing))

        return score

    def _held_out(self, input_: Input, X: Any, n_labels: int) -> tuple[PackedSequences, Scored]:
        """Held-out sequences, and a function that gives what `decode_chains` takes for the weights of training."""
        data = input_.transform(X)
        return data, lambda w: (data, n_labels, w)

    def explain(self, x: Any, labels: Sequence[Any] | None = None, *, against: Any = None) -> "Explanation":
        """Why one sequence gets its labels: what each feature, transition, start and stop adds to the score.

        x: one sequence in the form of fit's X, or a corpus of one. labels: what to explain; None: what is predicted.
        against: another label sequence, or "runner-up" (the best other one): only what differs, as differences.
        """
        self._check_fitted()
        return _inspection().explain(self, x, labels, against)

    def top_features(self, n: int = 20, *, label: Any = None) -> "Inspection":
        """The n strongest positive and negative weights of each label (or of one), with the transitions."""
        return _inspection().inspect_weights(self, n, label)

    @property
    def transitions_(self) -> npt.NDArray[np.float64]:
        """Transition weights (label before, label after)."""
        table, first = self._table(), (self.input_.n_features or 0) + 2
        return np.asarray(table[first : first + len(self.classes_)], dtype=np.float64)

    @property
    def emissions_(self) -> npt.NDArray[np.float64]:
        """Emission weights (feature, label), without the intercept."""
        return np.asarray(self._table()[: n_columns(self.input_)], dtype=np.float64)

    @property
    def intercept_(self) -> npt.NDArray[np.float64]:
        """What every token adds to the score of each label, (label); zeros where there is no intercept."""
        return np.asarray(self._table()[n_columns(self.input_) : self.input_.n_features].sum(axis=0), dtype=np.float64)

    def _table(self) -> npt.NDArray[Any]:
        """A row for each feature, start, stop, transitions, and theirs for each of their features; a column for each label."""
        self._check_fitted()
        return self.coef_.reshape(-1, table_width(self.input_, len(self.classes_)))[:, : len(self.classes_)]
