"""Treebanks on shards: tags, block sizes and the kind of trees are those of all of them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.costs import Cost
from structpred.core.result import Result
from structpred.core.weights import Vector
from structpred.data.arc_templates import ArcTemplate
from structpred.errors import DataError
from structpred.features.arcs import ArcCandidates, ArcFeatures, bits_of, observed_places
from structpred.io.templates.arc_featurizer import ATTRIBUTES, MOST_TAGS, ArcFeaturizer, has_attribute
from structpred.io.treebanks.treebank import Treebank
from structpred.models.parser.arcs import crossing_arcs, tree_oracle, tree_task
from structpred.models.parser.partial import choose_kind, completed_heads, filled_heads, ruled_arcs, training_candidates
from structpred.models.parser.relation_sharding import RelationSharding, trees_of
from structpred.models.parser.relations import fitted_labeler, forget_second_stage
from structpred.models.parser.sentences import held_out_trees, training_trees
from structpred.models.parser.settings import checked_settings, used_templates
from structpred.models.partial import NEEDS_ALL, sums_suffice, tell_missing
from structpred.models.settings import resolve_loss
from structpred.models.sharding import Columns, Further, Sharding, refuse_classes, refuse_token_weight
from structpred.task.task import Task


class TreeScan(NamedTuple):
    """One shard: words, words without a head, words with a relation, words with crossing arcs, sentences that
    projective training leaves out, true arcs that pruning keeps by itself, and of how many; tags and attributes; and which
    features its true arcs have, a bitmap for each template.
    """

    n_words: int
    n_missing: int
    n_related: int
    crossing_words: int
    crossing: int
    kept: tuple[int, int]
    upos: dict[str, int]
    xpos: dict[str, int]
    present: tuple[str, ...]
    places: npt.NDArray[np.uint8]


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
class ParserSharding:
    """How `DependencyParser` is trained on shards: what prunes, heads, relations. Arcs are hashed: every shard has all weights.

    pruner: the model whose best arcs alone are looked at; None: all arcs. labelled: whether relations are learnt later
    by another model: what is wrong with them is then said before this one is trained.
    """

    pruner: Any = None
    labelled: bool = False

    def prepared(self, model: Any, further: Further) -> Sharding:
        """With the model for pruning, where the setting asks for one: it is a parser without relations, trained as any other."""
        checked_settings(model)
        if model.prune is None:
            return self
        own = ParserSharding(labelled=bool(model.labelled))
        return ParserSharding(model._pruning_model(model.projective, lambda first: further(first, own)))

    def scan(self, model: Any, X: Any, y: Any) -> TreeScan:
        """Sizes, tags and features of a shard."""
        templates = checked_settings(model)
        treebank = training_trees(X, y, model.single_root)
        n_words, related = treebank.n_words, treebank.n_words - treebank.labels.count("_")
        crosses = crossing_arcs(filled_heads(treebank), treebank.offsets)
        counts = n_words, int((treebank.heads < 0).sum()), related, int(crosses.sum())
        crossing = choose_kind(True, treebank, model.single_root)[1]
        kept = 0, 0
        if self.pruner is not None:
            trained, _ = trees_of(treebank, None, None, self.pruner.projective_, model.single_root)
            kept = training_candidates(self.pruner, trained, model.prune, ruled_arcs(trained))[1], trained.n_words
        if model.projective:  # where that is not settled, tags and features of all sentences are counted
            treebank, _ = trees_of(treebank, None, None, True, model.single_root)
        heads = filled_heads(treebank)
        everything = ArcFeaturizer(present=ATTRIBUTES, fine=all(tag == "_" for tag in treebank.upos)).transform(treebank)
        places = observed_places(everything, templates, heads)
        present = tuple(name for name in ATTRIBUTES if has_attribute(name, treebank))
        return TreeScan(*counts, int(crossing.sum()), kept, Counter(treebank.upos), Counter(treebank.xpos), present, places)

    def plan(self, model: Any, scans: Sequence[TreeScan], classes: Sequence[Any] | None) -> TreePlan:
        """Tags, attributes and features of all shards together; projective where less than one arc in a hundred crosses."""
        refuse_classes(model, classes)
        related, n_words = sum(scan.n_related for scan in scans), sum(scan.n_words for scan in scans)
        if (model.labelled or self.labelled) and 0 < related < n_words and not sums_suffice(*model._trainer_and_surrogate()):
            raise DataError(f"{n_words - related:,} of {n_words:,} words have no relation: {NEEDS_ALL}, or learn heads alone")
        if (missing := sum(scan.n_missing for scan in scans)) == n_words:
            raise DataError("expected some heads: a parser learns from trees; got none in all shards")
        if missing:
            tell_missing(missing, 0, n_words, "heads")
        forget_second_stage(model.checkpoint, model.resume)
        upos = sum((Counter(scan.upos) for scan in scans), Counter[str]())
        xpos = sum((Counter(scan.xpos) for scan in scans), Counter[str]())
        fine = set(upos) <= {"_"}
        ranked = sorted((xpos if fine else upos).items(), key=lambda item: (-item[1], item[0]))
        tags = sorted(tag for tag, _ in ranked[:MOST_TAGS])
        featurizer = ArcFeaturizer(tags, {name for scan in scans for name in scan.present}, fine=fine)
        given = checked_settings(model)
        usable = used_templates(featurizer, given, model._stage)
        places = np.bitwise_or.reduce([scan.places for scan in scans])
        bits = bits_of(places[[given.index(template) for template in usable]], max_bits=model.max_bits)
        share = sum(scan.crossing_words for scan in scans) / n_words
        projective = share < 0.01 if model.projective is None else bool(model.projective)
        left_out = sum(scan.crossing for scan in scans) if projective else 0
        hits, words = np.sum([scan.kept for scan in scans], axis=0).tolist()
        kept = None if self.pruner is None or missing else hits / words
        return TreePlan(featurizer, usable, bits, projective, left_out, kept, bool(model.labelled and related), missing > 0)

    def task(
        self, model: Any, plan: TreePlan, X: Any, y: Any, sample_weight: Any = None, token_weight: Any = None
    ) -> tuple[Task, Columns]:
        """The task of a shard, over all weights."""
        refuse_token_weight(model, token_weight)
        treebank, weights = trees_of(X, y, sample_weight, plan.projective, model.single_root)
        candidates, _ = training_candidates(self.pruner, treebank, model.prune, ruled_arcs(treebank))
        task = _task(plan, treebank, model.single_root, resolve_loss(model.loss), weights, candidates)
        return task, Columns(None, task.dim, 1, 0, np.asarray(task.groups, dtype=np.int64), tuple(task.group_names))

    def dev_scorer(self, model: Any, plan: TreePlan, dev: Any) -> Callable[[Vector], float]:
        """The share of right heads on a held-out treebank."""
        score: Callable[[Vector], float] = model._dev_scorer(plan, self.pruner, held_out_trees(dev))
        return score

    def keep(self, model: Any, plan: TreePlan, result: Result, whole: Columns, further: Further) -> None:
        """The fitted parser; its relations are learnt here."""
        labeler, features = None, None
        if plan.related and result.stop_reason != "interrupted":
            sharding = RelationSharding(plan.featurizer, plan.projective, model.single_root)
            if plan.incomplete:
                sharding.heads = partial(_completed, plan, model.single_root, whole.spread(result.weights))
            labeler = fitted_labeler(model, lambda own: further(own, sharding))
            features = sharding.features
        model._keep_stages(plan, self.pruner, whole.spread_result(result), labeler, features)


def _completed(plan: TreePlan, single_root: bool, w: Vector, treebank: Treebank) -> npt.NDArray[np.int64]:
    """The heads, flat; those that are missing as the best trees have them that agree with the others."""
    heads, missing = filled_heads(treebank), treebank.heads < 0
    rows = np.unique(np.repeat(np.arange(len(treebank)), treebank.lengths)[missing])
    if len(rows):
        some = treebank.take(rows)
        task = _task(plan, some, single_root, resolve_loss("hamming"), None, None)  # these keep all arcs, pruned or not
        heads[missing] = completed_heads(task, w, filled_heads(some))[some.heads < 0]
    return heads


def _task(
    plan: TreePlan, treebank: Treebank, single_root: bool, loss: Cost, weights: Any, candidates: ArcCandidates | None
) -> Task:
    features = ArcFeatures(plan.featurizer.transform(treebank), plan.templates, plan.bits, candidates=candidates)
    oracle = tree_oracle(plan.projective, single_root)
    return tree_task(features, filled_heads(treebank), oracle, loss, sample_weight=weights, ruled=ruled_arcs(treebank))
