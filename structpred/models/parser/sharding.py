"""How parsers are trained: what prunes, heads, relations. Tags, block sizes and the kind of trees are those of all data.

What only a later stage would find wrong of the settings is refused before any work.
"""

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.result import Result
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.data.arc_templates import ArcTemplate
from structpred.data.sequences import AttributedSentences, PackedSequences
from structpred.errors import DataError, ParameterError
from structpred.features.arcs import ArcCandidates, ArcFeatures, bits_of, observed_places
from structpred.io.templates.arc_featurizer import ATTRIBUTES, ArcFeaturizer, attributes_of, read_off
from structpred.io.templates.arc_template_sets import default_templates, relation_templates
from structpred.io.treebanks.treebank import Treebank
from structpred.models.base import checked_sample_weight
from structpred.models.chain.inputs import NumericInput
from structpred.models.chain.sharding import ChainPlan, ChainSharding, Sequences, labelled, labels_of
from structpred.models.chain.targets import LabelEncoder
from structpred.models.parser.arcs import (
    crossing_arcs,
    filled_heads,
    is_projective,
    not_projective,
    ruled_arcs,
    training_candidates,
)
from structpred.models.parser.relations import RelationFeatures, fitted_labeler
from structpred.models.parser.second_order import structure
from structpred.models.parser.sentences import check_columns, held_out_trees, training_trees
from structpred.models.partial import NEEDS_ALL, sums_suffice, task_of, tell_missing
from structpred.models.settings import resolve_loss
from structpred.models.sharding import Columns, Further, Sharding, refuse_classes
from structpred.models.stages import forget_stages
from structpred.runtime.settings import checked_positive, is_whole
from structpred.task.task import Task

log = logging.getLogger("structpred.models")


def checked_settings(parser: Any) -> list[ArcTemplate]:
    """The templates of a parser; ParameterError, naming the setting, for an invalid one."""
    checked_positive(parser.label_C, "label_C")
    if not is_whole(parser.max_bits) or not 1 <= parser.max_bits <= 28:
        raise ParameterError(f"max_bits: expected a whole number in 1..28, got {parser.max_bits!r}")
    if not is_whole(parser.order) or parser.order not in (1, 2):
        raise ParameterError(f"order: expected 1 (arcs) or 2 (siblings and grandparents, too), got {parser.order!r}")
    if parser.prune is not None and (not is_whole(parser.prune) or parser.prune < 1):
        raise ParameterError(f"prune: expected a number of heads per word >= 1, or None, got {parser.prune!r}")
    check_switches(projective=parser.projective)
    check_columns(parser.attributes)
    if parser.templates is None:
        return default_templates()
    found = [t if isinstance(t, ArcTemplate) else ArcTemplate.parse(t) for t in parser.templates]
    for template in found:
        if unknown := sorted(template.attributes - set(ATTRIBUTES)):
            raise ParameterError(f"arc template {str(template)!r}: the attributes are {ATTRIBUTES}, got {unknown[0]!r}")
    return found


def check_switches(**values: Any) -> None:
    """Raise ParameterError for anything but True, False or None."""
    for name, value in values.items():
        if value is not None and not isinstance(value, bool | np.bool_):
            raise ParameterError(f"{name}: expected True, False or None, got {value!r}")


@dataclass(frozen=True)
class Trees:
    """What was read: sentences with trees, and how many words have an arc that crosses another one.

    kinds: whether training is projective; both answers where that is for all shards to decide. crossing: the sentences that
    projective training leaves out. pruned: the heads that are looked at, and how many of the true ones were among them.
    known: the words of all data as codes, for each kind of trees that was asked for: every stage needs them.
    """

    treebank: Treebank
    crossing_words: int
    kinds: tuple[bool, ...]
    crossing: npt.NDArray[np.bool_]
    whole: bool
    pruned: tuple[ArcCandidates, int] | None = None
    known: dict[bool, AttributedSentences] = field(default_factory=dict)

    @classmethod
    def read(cls, X: Any, y: Any, projective: bool | None, single_root: bool, whole: bool) -> "Trees":
        """X and y as `fit` takes them, or what was read for an earlier stage."""
        if isinstance(X, Trees):
            return X
        treebank = training_trees(X, y, single_root)
        if whole and (treebank.heads < 0).all():
            raise DataError(f"{treebank.where(0)}: expected a head: a parser learns from trees; got none in the whole treebank")
        crossing = crossing_arcs(filled_heads(treebank), treebank.offsets)
        n = int(crossing.sum())
        open_ = projective is None and not whole
        kinds = (True, False) if open_ else (is_projective(projective, n, treebank.n_words),)
        left_out = not_projective(treebank, crossing, single_root) if True in kinds else np.zeros(len(treebank), np.bool_)
        return cls(treebank, n, kinds, left_out, whole)

    @cached_property
    def _kept(self) -> Treebank:
        return self.treebank.take(~self.crossing) if self.crossing.any() else self.treebank

    def of(self, projective: bool) -> Treebank:
        """The sentences that are trained on."""
        return self._kept if projective else self.treebank

    def coded(self, projective: bool, featurizer: ArcFeaturizer) -> AttributedSentences:
        """The words of these as codes."""
        found = featurizer.transform(self.of(projective), self.known.get(projective))
        if self.whole:
            self.known[projective] = found
        return found

    def weights(self, projective: bool, sample_weight: Any) -> Floats:
        """Theirs. Raises DataError where there are no sentences."""
        weights = checked_sample_weight(sample_weight, len(self.treebank))
        if projective and self.crossing.all():
            raise DataError("every sentence has crossing arcs: nothing is left for projective trees; take fewer shards")
        return weights[~self.crossing] if projective else weights


class TreeCounts(NamedTuple):
    """Sentences of some kind: how many, their words, words without a head and words with a relation; true arcs that pruning
    keeps; tags and attributes; and which features of the templates the true arcs have, a bitmap for each.
    """

    n_sentences: int
    n_words: int
    n_missing: int
    n_related: int
    kept: int
    upos: Counter[str]
    xpos: Counter[str]
    present: tuple[str, ...]
    templates: list[ArcTemplate]
    places: npt.NDArray[np.uint8]


class TreeScan(NamedTuple):
    """Some data: sentences, words, words with crossing arcs; and the counts of what training has, if it is projective and if not.

    whole: whether these are all data there will be.
    """

    n_sentences: int
    n_words: int
    crossing_words: int
    of: dict[bool, TreeCounts]
    whole: bool


class TreePlan(NamedTuple):
    """All training data: how words are read, templates and the sizes of their blocks, the kind of trees, sentences that are left
    out, the share of true arcs that pruning keeps, whether there are relations to learn, and whether heads are missing.
    """

    featurizer: ArcFeaturizer
    templates: list[ArcTemplate]
    bits: list[int]
    projective: bool
    left_out: int
    kept: float | None
    related: bool
    incomplete: bool


@dataclass(frozen=True)
class ParserSharding(Sharding):
    """How `DependencyParser` is trained: what prunes, heads, relations. Arcs are hashed: every shard has all weights.

    pruner: the model whose best arcs alone are looked at; None: all arcs. labelled: whether relations are learnt later
    by another model: what is wrong with them is then said before this one is trained.
    """

    pruner: Any = None
    labelled: bool = False

    def prepared(self, model: Any, further: Further) -> Sharding:
        """With the model for pruning, where the setting asks for one: it is a parser without relations, trained as any other."""
        checked_settings(model)
        if model.prune is None and model.order == 1:
            return self
        own = ParserSharding(labelled=bool(model.labelled))
        return ParserSharding(model._pruning_model(lambda first: further(first, own)))

    def read(self, model: Any, X: Any, y: Any, *, whole: bool) -> Trees:
        """The trees, and the heads that pruning keeps; sentences of which some heads are missing keep all: a few may not do."""
        trees, pruner = Trees.read(X, y, model.projective, model.single_root, whole), self.pruner
        if pruner is None:
            return trees
        return replace(trees, pruned=training_candidates(model, pruner, trees.of(pruner.projective_)))

    def scanned(self, model: Any, data: Trees) -> TreeScan:
        """Sizes, tags and features, for each kind of trees that training may have."""
        (first, *_, last), treebank = (*data.kinds, data.kinds[-1]), data.treebank
        of = {first: _counts(model, data, first)}
        of[last] = of[first] if data.of(last) is data.of(first) else _counts(model, data, last)
        return TreeScan(len(treebank), treebank.n_words, data.crossing_words, of, data.whole)

    def plan(self, model: Any, scans: Sequence[TreeScan], classes: Sequence[Any] | None) -> TreePlan:
        """Tags, attributes and features of all shards together; projective where less than one arc in a hundred crosses."""
        refuse_classes(model, classes)
        n_words, crossing = (sum(getattr(scan, name) for scan in scans) for name in ("n_words", "crossing_words"))
        projective = is_projective(model.projective, crossing, n_words)
        of = [scan.of[projective] for scan in scans]
        n, n_words, missing, related, hits = (sum(counts) for counts in zip(*(counts[:5] for counts in of), strict=True))
        if left_out := sum(scan.n_sentences for scan in scans) - n:
            log.info("%d of %d sentences have crossing arcs and are left out of projective training", left_out, left_out + n)
        if not n:
            raise DataError("projective=True: every sentence has crossing arcs; there is nothing to train on")
        some = (model.labelled or self.labelled) and 0 < related < n_words
        if some and not scans[0].whole and not sums_suffice(*model._trainer_and_surrogate()):
            raise DataError(f"{n_words - related:,} of {n_words:,} words have no relation: {NEEDS_ALL}, or learn heads alone")
        if missing == n_words:
            raise DataError("expected some heads: a parser learns from trees; got none in all shards")
        if missing and model.order == 2:
            raise DataError(f"order=2: expected a head for every word, got none for {missing:,} of {n_words:,}; use order=1")
        if missing:
            tell_missing(missing, 0, n_words, "heads")
        forget_stages(model)
        upos, xpos = (sum(counts, Counter[str]()) for counts in zip(*(counts[5:7] for counts in of), strict=True))
        present = {name for counts in of for name in counts.present}
        check_columns(model.attributes, present)
        featurizer = ArcFeaturizer().fit_counts(upos, xpos, present)
        templates = featurizer.usable(checked_settings(model))
        if not templates and model._stage == "pruning":
            raise ParameterError(f"prune needs tags or lemmas, and the treebank has only {featurizer.present}; leave it out")
        if not templates:
            raise ParameterError(f"none of the templates can be used: the treebank has only {featurizer.present}")
        places = np.bitwise_or.reduce([counts.places for counts in of])
        bits = bits_of(places[[template in templates for template in of[0].templates]], max_bits=model.max_bits)
        kept = None if self.pruner is None or missing else hits / n_words
        return TreePlan(featurizer, templates, bits, projective, left_out, kept, bool(model.labelled and related), missing > 0)

    def built(  # type: ignore[override]
        self, model: Any, plan: TreePlan, data: Trees, *, sample_weight: Any = None, n_jobs: int = 1
    ) -> Task:
        """The task of trees, over all weights."""
        weights, candidates = data.weights(plan.projective, sample_weight), None if data.pruned is None else data.pruned[0]
        options = {"sample_weight": weights, "n_jobs": n_jobs}
        coded = data.coded(plan.projective, plan.featurizer)
        return _task(plan, data.of(plan.projective), coded, model, model.loss, candidates, **options)

    def dev_scorer(self, model: Any, plan: TreePlan, dev: Any) -> Callable[[Vector], float]:
        """The share of right heads on a held-out treebank."""
        return model._dev_scorer(plan, self.pruner, held_out_trees(dev))

    def keep(self, model: Any, plan: TreePlan, result: Result, further: Further) -> None:
        """The fitted parser; its relations are learnt here."""
        labeler, features = None, None
        if plan.related and result.stop_reason != "interrupted":
            sharding = RelationSharding(plan.featurizer, plan.projective, model.single_root)
            if plan.incomplete:
                sharding.heads = partial(_completed, plan, model, result.weights)
            labeler = fitted_labeler(model, lambda own: further(own, sharding))
            features = sharding.features
        model._keep_stages(plan, self.pruner, result, labeler, features)


def _counts(model: Any, data: Trees, projective: bool) -> TreeCounts:
    """Of the sentences that training has. What shards look at are all templates: some attributes may be in others alone."""
    treebank, heads = data.of(projective), filled_heads(data.of(projective))
    among = read_off(model.attributes)
    present = tuple(name for name in attributes_of(treebank) if name in among)
    looks = ArcFeaturizer(present=present if data.whole else among, fine="upos" not in present)
    templates = looks.usable(checked_settings(model))
    places = observed_places(data.coded(projective, looks), templates, heads)
    related, missing = treebank.n_words - treebank.labels.count("_"), int((treebank.heads < 0).sum())
    hits = 0 if data.pruned is None else data.pruned[1]
    counts = len(treebank), treebank.n_words, missing, related, hits
    return TreeCounts(*counts, Counter(treebank.upos), Counter(treebank.xpos), present, templates, places)


def _task(
    plan: TreePlan, treebank: Treebank, coded: AttributedSentences, model: Any, loss: Any,
    candidates: ArcCandidates | None, **options: Any,
) -> Task:  # fmt: skip
    """DataError names the sample for heads that the oracle's trees exclude, InfeasibleError for one that no tree is left to."""
    arcs = ArcFeatures(coded, plan.templates, plan.bits, candidates=candidates)
    features, oracle, shapes = structure(arcs, model.order, plan.projective, model.single_root, search=False)
    gold = np.split(filled_heads(treebank), coded.offsets[1:-1])
    return task_of(features, oracle, gold, shapes, resolve_loss(loss), ruled_arcs(treebank), **options)


def _completed(plan: TreePlan, model: Any, w: Vector, treebank: Treebank) -> Integers:
    """The heads, flat; those that are missing as the best trees have them that agree with the others."""
    heads, missing = filled_heads(treebank), treebank.heads < 0
    rows = np.unique(np.repeat(np.arange(len(treebank)), treebank.lengths)[missing])
    if len(rows):
        some = treebank.take(rows)
        coded = plan.featurizer.transform(some)
        task: Any = _task(plan, some, coded, model, "hamming", None)  # these keep all arcs, pruned or not
        heads[missing] = np.concatenate(task.completed(w))[some.heads < 0]
    return heads


class Arcs(NamedTuple):
    """The trees of which relations are learnt, as codes, and their heads. packed: the features of a shard's arcs, once known."""

    trees: Trees
    data: AttributedSentences
    heads: Integers
    packed: PackedSequences | None = None


class RelationScan(NamedTuple):
    """One shard: its relations; bitmaps of the hashes that occur at least once, twice, up to min_count."""

    labels: list[str]
    seen: npt.NDArray[np.uint8]


class RelationPlan(NamedTuple):
    """All shards: which features arcs have, and the plan of the labeler over them."""

    features: RelationFeatures
    chains: ChainPlan


@dataclass
class RelationSharding(Sharding):
    """How the relations of a parser are learnt from its trees, once its heads are.

    featurizer: how words are read. projective, single_root: the kind of trees that heads were learnt from. heads: the heads of a
    treebank, of which some may be missing. features: what arcs have, known when the labeler is fitted.
    """

    featurizer: ArcFeaturizer
    projective: bool
    single_root: bool
    heads: Callable[[Treebank], Integers] = filled_heads
    features: RelationFeatures | None = None

    def read(self, model: Any, X: Any, y: Any, *, whole: bool) -> Arcs:
        """The arcs."""
        trees = Trees.read(X, y, self.projective, self.single_root, whole)
        treebank = trees.of(self.projective)
        return Arcs(trees, trees.coded(self.projective, self.featurizer), self.heads(treebank))

    def scanned(self, model: Any, data: Arcs) -> RelationScan:
        """Relations and features."""
        features = RelationFeatures(self.featurizer.usable(relation_templates()))
        counts = features.counts(data.data, data.heads)
        seen = np.stack([np.packbits(counts >= least) for least in range(1, features.min_count + 1)])
        return RelationScan(sorted(set(data.trees.of(self.projective).labels) - {model.missing}), seen)

    def plan(self, model: Any, scans: Sequence[RelationScan], classes: Sequence[Any] | None) -> RelationPlan:
        """The relations of all shards, and the features that occur often enough in all of them together."""
        features = RelationFeatures(self.featurizer.usable(relation_templates()))
        counts = np.zeros(8 * scans[0].seen.shape[1], np.int64)
        for scan in scans:  # a shard counts no further than is asked for
            counts += np.unpackbits(scan.seen, axis=1).sum(axis=0, dtype=np.min_scalar_type(len(scan.seen)))
        slots = np.flatnonzero(counts >= features.min_count).astype(np.int32)
        features = RelationFeatures(features.templates, slots, features.min_count)
        encoder, input_ = LabelEncoder.fit([scan.labels for scan in scans]), NumericInput(max(len(features.slots), 1))
        return RelationPlan(features, ChainPlan(input_, encoder))

    def own(self, plan: RelationPlan, data: Arcs) -> tuple[Arcs, Columns | None]:
        """The features that occur in a shard."""
        sequences = Sequences(plan.chains.input_, plan.features.transform(data.data, data.heads), None)
        found, columns = ChainSharding().own(plan.chains, sequences)
        return data._replace(packed=found.packed), columns

    def built(  # type: ignore[override]
        self, model: Any, plan: RelationPlan, data: Arcs, *, sample_weight: Any = None, n_jobs: int = 1
    ) -> Task:
        """The task of the relations."""
        treebank, packed = data.trees.of(self.projective), data.packed
        packed = plan.features.transform(data.data, data.heads) if packed is None else packed
        labels = [treebank.labels[a:b] for a, b in itertools.pairwise(treebank.offsets.tolist())]
        known = labels_of(labels, packed.lengths, model.missing, whole=data.trees.whole)
        weights = data.trees.weights(self.projective, sample_weight)
        return labelled(model, packed, known, plan.chains.encoder, sample_weight=weights, n_jobs=n_jobs)[0]

    def keep(self, model: Any, plan: RelationPlan, result: Result, further: Further) -> None:
        """The fitted labeler, and the features that it knows."""
        self.features = plan.features
        ChainSharding().keep(model, plan.chains, result, further)
