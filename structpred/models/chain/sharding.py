"""How label sequences are trained: the task of some sequences; names that are counted in every shard and merged, or hashed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.result import Result
from structpred.core.weights import padded
from structpred.data.sequences import PackedSequences
from structpred.data.tag_schemes import SCHEMES
from structpred.data.vocabulary import FeatureDictionary
from structpred.errors import DataError, ParameterError
from structpred.features.positions import PositionSequences
from structpred.features.sequences import chain_groups
from structpred.io.crfsuite import AttributeCorpus
from structpred.io.templates.featurizer import CountedTemplates, TemplateFeaturizer, merged_templates
from structpred.io.templates.templates import Template, load_templates
from structpred.models.base import as_floats, checked_sample_weight
from structpred.models.chain import targets
from structpred.models.chain.constraints import check_gold, fixed_scores, rules_inside
from structpred.models.chain.decoding import chain_problem
from structpred.models.chain.inputs import Input, NumericInput, RowInput, TokenInput, choose_input, refuse_transitions
from structpred.models.chain.inspection import chain_names
from structpred.models.chain.token_arrays import TokenArrays
from structpred.models.fields.feature_scale import Spread
from structpred.models.partial import warn_of_minus_one
from structpred.models.settings import resolve_loss
from structpred.models.sharding import Columns, Further, Sharding
from structpred.models.signs import Names
from structpred.task.instance_subset import take_features
from structpred.task.partial_task import PartialTask
from structpred.task.task import Task

#: settings that decide what is learnt from features that are there
_LEARNING = ("trainer", "C", "max_iter", "tol", "loss", "surrogate", "regulariser", "random_state", "constraints", "n_jobs")
#: templates are hashed into 2**DEFAULT_BITS ids where n_bits and min_count are left as they are
DEFAULT_BITS = 20


class Sequences(NamedTuple):
    """What was read, for `fit` in place of X: the input, the sequences as it takes them, labels. packed: features, once known."""

    input_: Input
    sequences: Any
    y: Any
    packed: PackedSequences | None = None


class ChainScan(NamedTuple):
    """Some data: their labels, the form of their features, and what there is to merge of them.

    learnt: how often each name occurs; or the templates fitted to the data, and the counts of their features; or what hashes.
    spreads: those of arrays beside strings; None: learnt is the input, of numbered features or of all data there will be.
    coding: the schemes of the labels and of users; None: they are the same.
    """

    labels: list[Any]
    kind: str
    learnt: Any
    spreads: dict[str, Spread] | None
    coding: tuple[str, str] | None = None


class ChainPlan(NamedTuple):
    """All shards: how features are made, and the labels."""

    input_: Input
    encoder: targets.LabelEncoder


class ChainSharding(Sharding):
    """How `ChainLabeler` is trained. In `fit` features have names, numbered in the order of appearance.

    On shards those of templates are hashed into 2**20 ids unless n_bits says otherwise; with min_count above 1 they have names.
    Feature dicts and strings have names unless n_bits is given. Names are counted in every shard, added up, and numbered in
    sorted order. Arrays beside strings have the mean and deviation of all shards.

    templates: those of the model, with the vectors that they name; None: as its setting says.
    """

    weighs_tokens = True

    def __init__(self, templates: Sequence[Template] | None = None) -> None:
        self.templates = templates

    def shared(self, model: Any) -> Sharding:
        """With the vectors of words, which are read once, for all shards."""
        input_ = _input_for(model, (), None)[0]
        return ChainSharding(input_.templates) if isinstance(input_, RowInput) and input_.arrays.names else self

    def read(self, model: Any, X: Any, y: Any, *, whole: bool) -> Sequences:
        """The input, and all features where the data are whole."""
        if not whole:
            return Sequences(*_input_for(model, X, self.templates), y)
        resolve_loss(model.loss)  # what is wrong with it is said before features are made
        if isinstance(X, Sequences):
            return X
        input_, sequences = model._input_for(X)
        packed = input_.fit_transform(sequences)
        labels = labels_of(y, packed.lengths, model.missing, whole=True)
        coding = chosen_coding(model, packed, labels) if model.coding == "auto" else None
        return Sequences(input_, sequences, labels._replace(coding=coding), packed)

    def scanned(self, model: Any, data: Sequences) -> ChainScan:
        """Labels and counts."""
        input_, packed = data.input_, data.packed
        learnt, lengths, spreads = _learnt(input_, data.sequences) if packed is None else (input_, packed.lengths, None)
        labels = labels_of(data.y, lengths, model.missing)
        seen = labels.seen(labels.coding or model.coding)
        return ChainScan(seen.classes.tolist(), input_.kind, learnt, spreads, seen.coding)

    def plan(self, model: Any, scans: Sequence[ChainScan], classes: Sequence[Any] | None) -> ChainPlan:
        """Labels: `classes`, or all that occur. Features: counts added up, names sorted."""
        kinds = {scan.kind for scan in scans}
        if len(kinds) != 1:
            raise DataError(f"the shards must hold features of one form, got {' and '.join(sorted(kinds))}")
        coding = Counter(scan.coding for scan in scans).most_common(1)[0][0]
        seen = encoder_of_shards([scan.labels for scan in scans], classes, coding)
        warn_of_minus_one(seen.classes, model.missing)
        return ChainPlan(_merged(scans, model, self.templates), seen)

    def own(self, plan: ChainPlan, data: Sequences) -> tuple[Sequences, Columns]:
        """The features that occur in a shard."""
        if data.input_.kind != plan.input_.kind:
            raise DataError(f"the shards must hold features of one form, got {data.input_.kind} after {plan.input_.kind}")
        packed, n_labels = plan.input_.transform(data.sequences), len(plan.encoder.classes)
        rows, small = packed.compact()
        groups, names = chain_groups(packed, n_labels)
        width = padded(n_labels)
        return data._replace(packed=small), Columns(rows, packed.n_features, width, (2 + n_labels) * width, groups, tuple(names))

    def built(self, model: Any, plan: ChainPlan, data: Sequences, **given: Any) -> Task:
        """The task of labelling the sequences."""
        assert data.packed is not None
        with targets.about_labels("in `classes`"):  # without them, all labels of all shards are known
            return labelled(model, data.packed, data.y, plan.encoder, **given)[0]

    def names(self, plan: ChainPlan) -> Names:
        """Those of features, start, stop and transitions."""
        return partial(chain_names, plan.input_, plan.encoder.classes)

    def keep(self, model: Any, plan: ChainPlan, result: Result, further: Further) -> None:
        """The fitted labeler."""
        model._keep_plan(*plan, result)
        model._stop_if_interrupted()


def encoder_of_shards(labels: Sequence[Sequence[Any]], classes: Sequence[Any] | None, coding: Any = None) -> targets.LabelEncoder:
    """The labels `classes`, or all that occur in some shard. Raises DataError where there are none, and where kinds are mixed."""
    try:
        seen = targets.LabelEncoder.fit(labels) if classes is None else targets.encoder_of(classes, coding and coding[0])
    except DataError as error:
        raise DataError(str(error).replace("sample", "shard", 1)) from None
    if not len(seen.classes):
        raise DataError("y: expected some labels, but all are missing")
    return targets.LabelEncoder(seen.classes.tolist(), coding)


def _input_for(model: Any, X: Any, templates: Sequence[Template] | None) -> tuple[Any, Any]:
    if templates is not None:
        (model := copy(model)).template = templates
    refuse_transitions([] if model.template is None else load_templates(model.template), "shards")
    hashes = model.template is not None and model.n_bits is None and model.min_count == 1
    return choose_input(X, model.template, 1, DEFAULT_BITS) if hashes else tuple(model._input_for(X))


def _learnt(input_: Input, sequences: Any) -> tuple[Any, npt.NDArray[np.int64], dict[str, Spread] | None]:
    """What there is to merge, the lengths of the sequences, and the spreads of arrays."""
    if not isinstance(input_, TokenInput | RowInput):
        return input_, input_.fit_transform(sequences).lengths, None
    strings, parts = input_.arrays.split(sequences)
    features, spreads = input_.features, input_.arrays.spreads(parts)
    if isinstance(features, TemplateFeaturizer):
        return *CountedTemplates.of(features.templates, strings), spreads
    if not isinstance(features, FeatureDictionary):
        return features, _lengths(strings), spreads
    if not isinstance(strings, AttributeCorpus):
        return FeatureDictionary.counted(strings), _lengths(strings), spreads
    counts = np.bincount(strings.codes, minlength=len(strings.attributes)).tolist()
    return dict(zip(strings.attributes, counts, strict=True)), strings.lengths, spreads


def _lengths(sequences: Any) -> npt.NDArray[np.int64]:
    found = getattr(sequences, "lengths", None)
    return np.array([len(x) for x in sequences], dtype=np.int64) if found is None else found


def _merged(scans: Sequence[ChainScan], model: Any, templates: Sequence[Template] | None) -> Input:
    """How the features of all shards are made."""
    learnt, spreads = [scan.learnt for scan in scans], [scan.spreads for scan in scans if scan.spreads is not None]
    first, rows = learnt[0], scans[0].kind == RowInput.kind
    if not spreads:
        for k, own in enumerate(learnt):
            if isinstance(first, NumericInput) and own.n_columns != first.n_columns:
                raise DataError(f"shard {k}: expected {first.n_columns} feature columns as in shard 0, got {own.n_columns}")
        return first
    arrays = _input_for(model, (), templates)[0].arrays if rows else TokenArrays(list(spreads[0]))
    arrays.learn(spreads)
    if isinstance(first, CountedTemplates):
        first = merged_templates(learnt, model.min_count)
    elif isinstance(first, dict):
        counts: Counter[str] = Counter()
        for own in learnt:
            counts.update(own)
        names = sorted(name for name, count in counts.items() if count >= model.min_count)
        first = FeatureDictionary.from_names(names, model.min_count)
    return RowInput(first, arrays) if rows else TokenInput(first, arrays)


def chosen_coding(model: Any, packed: PackedSequences, labels: "Labels") -> str:
    """The scheme with the best F1 of phrases over 3 folds, of the sequences whose labels are all known; nothing has weights."""
    if hasattr(model, "kernel"):
        raise ParameterError(f"coding: 'auto' is not for kernels; name one of {', '.join(SCHEMES)}")
    rows = np.setdiff1d(np.arange(len(packed)), () if labels.partial is None else labels.partial.rows)
    scores: dict[str, float] = {}
    for scheme in SCHEMES:
        found: dict[int, npt.NDArray[Any]] = {}
        for held in (rows[k::3] for k in range(3)):
            kept = np.setdiff1d(rows, held)
            fold = type(model)(coding=scheme, **{name: getattr(model, name) for name in _LEARNING})
            fold.fit(packed.gather(kept), [labels.lists[i] for i in kept.tolist()])
            found |= zip(held.tolist(), fold.predict(packed.gather(held)), strict=True)
        scores[scheme] = targets.phrase_f1([labels.lists[i] for i in found], [*found.values()])
    return max(scores, key=lambda name: scores[name])


class Labels(NamedTuple):
    """Checked label sequences, what is known of them where some labels are missing, and the scheme that was chosen for them."""

    lists: Sequence[Sequence[Any]]
    partial: targets.PartialLabels | None
    coding: str | None = None

    def seen(self, coding: str | None = None) -> targets.LabelEncoder:
        """Those that occur. coding: the scheme of those inside."""
        partial = self.partial
        encoder = targets.LabelEncoder.fit(self.lists if partial is None else partial.known())
        if coding is None:
            return encoder
        rows, known = (self.lists, self.lists) if partial is None else (partial.choices, partial.filled(None))
        return targets.LabelEncoder.of_phrases(rows, known, coding)


def labels_of(y: Any, lengths: npt.NDArray[np.int64], missing: Any, *, whole: bool = False) -> Labels:
    """y for sequences of these lengths. whole: whether these are all data there will be."""
    if isinstance(y, Labels):
        return y
    lists = targets.as_label_lists(y, lengths)
    return Labels(lists, targets.partial_labels(lists, missing, whole=whole))


def labelled(
    labeler: Any, data: PackedSequences | PositionSequences, y: Any, encoder: targets.LabelEncoder | None = None, *,
    sample_weight: npt.ArrayLike | None = None, token_weight: Sequence[npt.ArrayLike] | None = None,
    allowed: Sequence[Any] | None = None, n_jobs: int = 1,
) -> tuple[Task, targets.LabelEncoder]:  # fmt: skip
    """The task of labelling `data` as y says, by the settings of a labeler; and the encoder, where there is none that of y.

    Raises DataError or ParameterError, naming the sample.
    """
    labels = labels_of(y, data.lengths, labeler.missing)
    encoder = labels.seen(labeler.coding) if encoder is None else encoder
    partial, loss = labels.partial, resolve_loss(labeler.loss)
    constraints, allowed = rules_inside(labeler.constraints, encoder.coding, training=True), encoder.inside(allowed)
    lists = encoder.inside(labels.lists if partial is None else [])
    if partial is not None:
        partial = partial._replace(choices=encoder.inside(partial.choices))
        encoder.numbered(partial.known())  # refuses labels that are not known
        lists = partial.filled(encoder.classes[0].item())
    codes, classes = encoder.numbered(lists), encoder.classes.tolist()
    fixed = fixed_scores(classes, data.offsets, constraints, allowed)
    if fixed is not None:
        check_gold(fixed, codes, data.offsets, classes, () if partial is None else partial.rows)
    features, oracle, shapes = chain_problem(data, len(classes), fixed)
    gold = np.split(codes, data.offsets[1:-1])
    weights = None if token_weight is None else checked_token_weights(token_weight, data.lengths)
    importance = checked_sample_weight(sample_weight, len(data))
    of_all = {"token_weights": weights, "sample_weight": importance, "n_jobs": n_jobs}
    if partial is None:
        return Task(features, oracle, gold, shapes, loss, **of_all), encoder  # type: ignore[arg-type]
    narrow = fixed_scores(classes, data.offsets, constraints, allowed, known=partial.choices)
    assert narrow is not None
    targets.check_left(narrow, data.offsets, partial.rows)
    left = take_features(chain_problem(data, len(classes), narrow)[0], partial.rows)
    known = {"allowed": left, "rows": partial.rows}
    return PartialTask(features, oracle, gold, shapes, loss, **known, **of_all), encoder  # type: ignore[arg-type]


def checked_token_weights(weights: Any, lengths: npt.NDArray[np.int64]) -> list[npt.NDArray[np.float64]]:
    """One array per sequence of finite numbers >= 0, one per token; ParameterError, naming the sample, for anything else."""
    if not isinstance(weights, Iterable):
        raise ParameterError(f"token_weight: expected one list per sequence, nested like y, got {type(weights).__name__}")
    arrays = [as_floats(w, f"token_weight, sample {i}") for i, w in enumerate(weights)]
    if len(arrays) != len(lengths):
        raise ParameterError(f"token_weight: expected one list per sequence, {len(lengths)}, got {len(arrays)}")
    for i, (w, length) in enumerate(zip(arrays, lengths.tolist(), strict=True)):
        if w.shape != (length,) or not np.isfinite(w).all() or (w < 0).any():
            raise ParameterError(
                f"token_weight, sample {i}: expected {length} finite numbers >= 0, got {np.array2string(w, threshold=5)}"
            )
    return arrays
