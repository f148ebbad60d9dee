"""Label sequences on shards: hashed features, or names that are counted in every shard and merged."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.result import Result
from structpred.core.weights import Vector, padded
from structpred.data.sequences import PackedSequences
from structpred.data.vocabulary import FeatureDictionary
from structpred.errors import DataError
from structpred.features.sequences import chain_groups
from structpred.io.crfsuite import AttributeCorpus
from structpred.io.templates.featurizer import CountedTemplates, TemplateFeaturizer, merged_templates
from structpred.models.chain.inputs import Input, NumericInput, RowInput, TokenInput, choose_input, n_columns
from structpred.models.chain.online import encoder_of
from structpred.models.chain.partial import partial_labels
from structpred.models.chain.targets import LabelEncoder, about_labels, as_label_lists
from structpred.models.chain.tasks import labelled
from structpred.models.settings import dev_parts
from structpred.models.sharding import Columns, Further, placed
from structpred.task.task import Task

log = logging.getLogger("structpred.models")
#: templates are hashed into 2**DEFAULT_BITS ids where n_bits and min_count are left as they are
DEFAULT_BITS = 20


class ChainScan(NamedTuple):
    """One shard: its labels, how many tokens it has, the form of its features, and what there is to merge of them.

    learnt: how often each name occurs; the templates fitted to the shard, and the counts of their features; the input of numbered
    columns; or None where features are hashed.
    """

    labels: list[Any]
    n_tokens: int
    kind: str
    learnt: Any


class ChainPlan(NamedTuple):
    """All shards: how features are made, the labels, and how many tokens there are."""

    input_: Input
    encoder: LabelEncoder
    n_tokens: int


class ChainSharding:
    """How `ChainLabeler` is trained on shards.

    Features of templates are hashed into 2**20 ids unless n_bits says otherwise; with min_count above 1 they have names. Feature
    dicts and strings have names unless n_bits is given. Names are counted in every shard, added up, and numbered in sorted order.
    """

    def scan(self, model: Any, X: Any, y: Any) -> ChainScan:
        """Labels, sizes and counts of a shard."""
        input_, sequences = _input_for(model, X)
        with placed(X):
            learnt, lengths = _learnt(input_, sequences)
            lists = as_label_lists(y, lengths)
            known = partial_labels(lists, model.missing, whole=False)
            labels = LabelEncoder.fit(lists if known is None else known.known()).classes.tolist()
        return ChainScan(labels, int(lengths.sum()), input_.kind, learnt)

    def plan(self, model: Any, scans: Sequence[ChainScan], classes: Sequence[Any] | None) -> ChainPlan:
        """Labels: `classes`, or all that occur. Features: counts added up, names sorted."""
        kinds = {scan.kind for scan in scans}
        if len(kinds) != 1:
            raise DataError(f"the shards must hold features of one form, got {' and '.join(sorted(kinds))}")
        seen = encoder_of_shards([scan.labels for scan in scans], classes)
        merged = _merged(kinds.pop(), [scan.learnt for scan in scans], model)
        return ChainPlan(merged, seen, sum(scan.n_tokens for scan in scans))

    def task(
        self, model: Any, plan: ChainPlan, X: Any, y: Any, sample_weight: Any = None, token_weight: Any = None
    ) -> tuple[Task, Columns]:
        """The task over the features that occur in the shard."""
        with placed(X), about_labels("in `classes`"):  # without them, all labels of all shards are known
            input_, sequences = _input_for(model, X)
            if input_.kind != plan.input_.kind:
                raise DataError(f"the shards must hold features of one form, got {input_.kind} after {plan.input_.kind}")
            data = plan.input_.transform(sequences)
            rows, small = data.compact()
            task, _ = labelled(model, small, y, plan.encoder, sample_weight=sample_weight, token_weight=token_weight)
        return task, _columns(data, rows, len(plan.encoder.classes))

    def dev_scorer(self, model: Any, plan: ChainPlan, dev: tuple[Any, Any]) -> Callable[[Vector], float]:
        """The score on held-out data of weights of the model; errors in these data say so."""
        score: Callable[[Vector], float] = model._dev_scorer(plan.input_, plan.encoder, *dev_parts(dev, "X, y"))
        return score

    def keep(self, model: Any, plan: ChainPlan, result: Result, whole: Columns, further: Further) -> None:
        """The fitted labeler."""
        model.input_, model._encoder, model.classes_ = plan.input_, plan.encoder, plan.encoder.classes
        model.n_features_in_ = n_columns(plan.input_)
        model._keep(whole.spread_result(result))
        model._stop_if_interrupted()


def encoder_of_shards(labels: Sequence[Sequence[Any]], classes: Sequence[Any] | None) -> LabelEncoder:
    """The labels `classes`, or all that occur in some shard. Raises DataError where there are none, and where kinds are mixed."""
    try:
        seen = LabelEncoder.fit(labels) if classes is None else encoder_of(classes)
    except DataError as error:
        raise DataError(str(error).replace("sample", "shard", 1)) from None
    if not len(seen.classes):
        raise DataError("y: expected some labels, but all are missing")
    return seen


def _columns(data: PackedSequences, rows: npt.NDArray[np.int64], n_labels: int) -> Columns:
    groups, names = chain_groups(data, n_labels)
    width = padded(n_labels)
    return Columns(rows, data.n_features, width, (2 + n_labels) * width, groups, tuple(names))


def _input_for(model: Any, X: Any) -> tuple[Input, Any]:
    if model.template is not None and model.n_bits is None and model.min_count == 1:
        return choose_input(X, model.template, 1, DEFAULT_BITS)
    found: tuple[Input, Any] = model._input_for(X)
    return found


def _learnt(input_: Input, sequences: Any) -> tuple[Any, npt.NDArray[np.int64]]:
    """What there is to merge, and the lengths of the sequences."""
    if isinstance(input_, TokenInput) and isinstance(input_.features, FeatureDictionary):
        if isinstance(sequences, AttributeCorpus):
            counts = np.bincount(sequences.codes, minlength=len(sequences.attributes)).tolist()
            return dict(zip(sequences.attributes, counts, strict=True)), sequences.lengths
        return FeatureDictionary.counted(sequences), _lengths(sequences)
    if isinstance(input_, RowInput) and isinstance(input_.featurizer, TemplateFeaturizer):
        return CountedTemplates.of(input_.featurizer.templates, sequences)
    if isinstance(input_, NumericInput):
        packed = input_.fit_transform(sequences)
        return input_, packed.lengths
    return None, _lengths(sequences)


def _lengths(sequences: Any) -> npt.NDArray[np.int64]:
    found = getattr(sequences, "lengths", None)
    return np.array([len(x) for x in sequences], dtype=np.int64) if found is None else found


def _merged(kind: str, learnt: Sequence[Any], model: Any) -> Input:
    """How the features of all shards are made."""
    first = learnt[0]
    if kind == NumericInput.kind:
        for k, own in enumerate(learnt):
            if own.n_columns != first.n_columns:
                raise DataError(f"shard {k}: expected {first.n_columns} feature columns as in shard 0, got {own.n_columns}")
        assert isinstance(first, NumericInput)
        return first
    if first is None:  # they are hashed
        return _input_for(model, [])[0]
    if kind == RowInput.kind:
        return RowInput(merged_templates(learnt, model.min_count))
    counts: Counter[str] = Counter()
    for own in learnt:
        counts.update(own)
    names = sorted(name for name, count in counts.items() if count >= model.min_count)
    return TokenInput(FeatureDictionary.from_names(names, model.min_count))
