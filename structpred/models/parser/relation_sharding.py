"""The relations of parsers on shards: the second stage, whose features are those that arcs of all shards have."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.result import Result
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.io.templates.arc_template_sets import relation_templates
from structpred.io.treebanks.treebank import Treebank
from structpred.models.base import checked_sample_weight
from structpred.models.chain.inputs import NumericInput
from structpred.models.chain.sharding import ChainPlan, ChainSharding
from structpred.models.chain.targets import LabelEncoder
from structpred.models.parser.partial import choose_kind, filled_heads
from structpred.models.parser.relations import RelationFeatures
from structpred.models.parser.sentences import training_trees
from structpred.models.sharding import Columns, Further
from structpred.task.task import Task


class RelationScan(NamedTuple):
    """One shard: its relations and words; bitmaps of the hashes that occur at least once, twice, up to min_count."""

    labels: list[str]
    n_words: int
    seen: npt.NDArray[np.uint8]


class RelationPlan(NamedTuple):
    """All shards: which features arcs have, and the plan of the labeler over them."""

    features: RelationFeatures
    chains: ChainPlan


@dataclass
class RelationSharding:
    """How the relations of a parser are learnt on the shards of its trees, once its heads are.

    featurizer: how words are read. projective, single_root: the kind of trees that heads were learnt from. heads: the heads of a
    treebank, of which some may be missing. features: what arcs have, known when the labeler is fitted.
    """

    featurizer: ArcFeaturizer
    projective: bool
    single_root: bool
    heads: Callable[[Treebank], Integers] = filled_heads
    features: RelationFeatures | None = None

    def scan(self, model: Any, X: Any, y: Any) -> RelationScan:
        """Relations and features of a shard."""
        treebank, _ = trees_of(X, y, None, self.projective, self.single_root)
        features = RelationFeatures(self.featurizer.usable(relation_templates()))
        counts = features.counts(self.featurizer.transform(treebank), self.heads(treebank))
        seen = np.stack([np.packbits(counts >= least) for least in range(1, features.min_count + 1)])
        return RelationScan(sorted(set(treebank.labels) - {model.missing}), treebank.n_words, seen)

    def plan(self, model: Any, scans: Sequence[RelationScan], classes: Sequence[Any] | None) -> RelationPlan:
        """The relations of all shards, and the features that occur often enough in all of them together."""
        features = RelationFeatures(self.featurizer.usable(relation_templates()))
        counts = np.zeros(8 * scans[0].seen.shape[1], np.int64)
        for scan in scans:  # a shard counts no further than is asked for
            counts += np.unpackbits(scan.seen, axis=1).sum(axis=0, dtype=np.int64)
        features = features.known_from(counts)
        encoder, input_ = LabelEncoder.fit([scan.labels for scan in scans]), NumericInput(max(len(features.slots), 1))
        return RelationPlan(features, ChainPlan(input_, encoder, sum(scan.n_words for scan in scans)))

    def task(
        self, model: Any, plan: RelationPlan, X: Any, y: Any, sample_weight: Any = None, token_weight: Any = None
    ) -> tuple[Task, Columns]:
        """The task over the features that occur in the shard. token_weight: the heads, which come first, have refused it."""
        treebank, weights = trees_of(X, y, sample_weight, self.projective, self.single_root)
        data, heads = self.featurizer.transform(treebank), self.heads(treebank)
        labels = [treebank.labels[a:b] for a, b in itertools.pairwise(treebank.offsets.tolist())]
        return ChainSharding().task(model, plan.chains, plan.features.transform(data, heads), labels, weights)

    def dev_scorer(self, model: Any, plan: RelationPlan, dev: tuple[Any, Any]) -> Callable[[Vector], float]:
        """Held-out data decide about heads alone, as in `fit`."""
        raise NotImplementedError

    def keep(self, model: Any, plan: RelationPlan, result: Result, whole: Columns, further: Further) -> None:
        """The fitted labeler, and the features that it knows."""
        self.features = plan.features
        ChainSharding().keep(model, plan.chains, result, whole, further)


def trees_of(X: Any, y: Any, sample_weight: Any, projective: bool, single_root: bool) -> tuple[Treebank, Floats]:
    """The trees of a shard that are trained on, and their weights: not those with crossing arcs, where trees are projective."""
    treebank = training_trees(X, y, single_root)
    weights = checked_sample_weight(sample_weight, len(treebank))
    if not projective:
        return treebank, weights
    kept = ~choose_kind(True, treebank, single_root)[1]
    if not kept.any():
        raise DataError("every sentence has crossing arcs: nothing is left for projective trees; take fewer shards")
    return treebank.take(kept), weights[kept]
