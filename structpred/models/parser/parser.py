"""Dependency parsing: the best tree by arc scores, then the relation of each arc; any trainer for both."""

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from structpred.core.result import Result
from structpred.core.types import AnyArray, ArrayLike, Floats, Integers
from structpred.core.weights import Vector
from structpred.data.arc_templates import ArcTemplate
from structpred.data.sequences import AttributedSentences
from structpred.errors import DataError, InfeasibleError
from structpred.features.arcs import ArcFeatures
from structpred.features.second_order import SIZE
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.io.templates.arc_template_sets import pruning_templates
from structpred.io.treebanks.treebank import Tree, Treebank
from structpred.models.base import StructuredEstimator
from structpred.models.bundles import restore_weights, restored, to_bundle
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.constrained import Constraints, constrained
from structpred.models.parser.arcs import fixed_arcs, kept_heads
from structpred.models.parser.bundles import (
    PARSER,
    drop_templates,
    relations_from_bundle,
    relations_to_bundle,
    template_header,
    usable_templates,
)  # fmt: skip
from structpred.models.parser.explain import ExplainedTrees
from structpred.models.parser.relations import RelationFeatures
from structpred.models.parser.second_order import CANDIDATES, proven_trees, structure
from structpred.models.parser.sentences import as_treebank, held_out_trees, warn_of_untagged
from structpred.models.parser.sharding import ParserSharding, TreePlan, check_switches, checked_settings
from structpred.models.settings import about_dev, resolve_loss
from structpred.runtime.settings import checked_positive, checked_whole
from structpred.runtime.threads import checked_jobs
from structpred.storage.bundles import Bundle, under
from structpred.task.inference import Inference
from structpred.trainers.problem import Trainer

logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class DependencyParser(ExplainedTrees, StructuredEstimator):
    """The head of each word, all decoded together as the best tree, and then the relation of each word to its head.

    Minimises  1/2 |w|^2 + C sum_i s_i H_i(w)  over arc weights, H_i the margin-rescaled hinge (or the log loss) of trees with the
    number of wrong heads as loss; the relations are a chain labeller of their own, over the features of the arcs (relations_).
    With the log loss it is a conditional random field over trees, by the matrix-tree theorem.

    X is a Treebank (io.read_treebank), or a list of sentences: Sentence objects or lists of token dicts. y: the trees, where X
    has none: Tree objects, lists of heads, or lists of (head, relation). In training some may be missing: -1 or None as a head,
    "_" or None as a relation.

    Parameters
    ----------
    trainer, C, max_iter, tol, loss, surrogate, check_every, patience, callbacks, checkpoint, resume, random_state, regulariser
        As for every estimator: see `StructuredEstimator`; trainer="mira", C=0.01, max_iter=10 and tol=0 unless given. Callbacks
        get the rows of both stages, those of relations with "stage": 2. Both stages have the same trainer, surrogate and
        regulariser, each for its own weights; the loss is that of heads.
    projective : bool, optional
        Only trees without crossing arcs; None: where less than one arc in a hundred of the training data crosses another.
        Sentences whose trees cross are then left out of training.
    single_root : bool
        Exactly one word depends on the root.
    order : int
        1: a tree is scored by its arcs. 2: also by each word's consecutive modifiers and by its head's head (Koo et al. 2010).
    templates : list of ArcTemplate or str, optional
        Arc templates; None: the default set, as far as the treebank has the attributes.
    attributes : list of str, optional
        What templates may look at: some of "form", "lemma", "upos", "xpos" and "feats"; templates of others are left out, and
        the words that are parsed later need no others. ["form"] for a parser of bare words. None: all that the treebank has.
    max_bits : int
        The largest block of a template has 2**max_bits weights.
    prune : int, optional
        Keep only this number of heads per word, those that a cheap first model scores highest; with order=2 at most this
        number, those in the likeliest trees of a first-order parser. None: all, with order=2 ten.
    labelled : bool
        Whether to learn relations.
    label_C : float
        Their C.
    n_jobs : int, optional
        Threads for prediction. None means 1.

    Attributes
    ----------
    bits_ : list of int
        The sizes of the templates' blocks: 2**bits weights each.
    relations_ : ChainLabeler or None
        The second stage.
    kept_ : float or None
        The share of true arcs that pruning kept; None without pruning.
    projective_ : bool
        Whether only projective trees are predicted.
    left_out_ : int
        The number of sentences that were left out of training.
    coef_, certificate_, history_, n_iter_, stop_reason_, converged_, probabilistic_
        As for every estimator, of the first stage.

    Examples
    --------
    >>> X = [[{"form": "cats", "upos": "NOUN"}, {"form": "sleep", "upos": "VERB"}]]
    >>> parser = DependencyParser().fit(X, [[(2, "nsubj"), (0, "root")]])
    >>> parser.predict(X)[0].heads.tolist(), parser.predict(X)[0].labels
    ([2, 0], ['nsubj', 'root'])
    """

    trainer: str | Trainer = "mira"
    C: float = 0.01
    max_iter: int | None = None
    tol: float = 0.0
    _: KW_ONLY
    projective: bool | None = None
    single_root: bool = True
    order: int = 1
    templates: Sequence[ArcTemplate | str] | None = None
    attributes: Sequence[str] | None = None
    max_bits: int = 18
    prune: int | None = None
    labelled: bool = True
    label_C: float = 0.02
    n_jobs: int | None = None

    featurizer_: ArcFeaturizer = field(init=False)
    templates_: list[ArcTemplate] = field(init=False)
    bits_: list[int] = field(init=False)
    relations_: ChainLabeler | None = field(init=False)
    relation_features_: RelationFeatures | None = field(init=False)
    pruner_: "DependencyParser | None" = field(init=False)
    kept_: float | None = field(init=False)
    projective_: bool = field(init=False)
    left_out_: int = field(init=False)

    _HEADER = PARSER
    _sharding = ParserSharding()
    _drop_groups = drop_templates
    _stage = "arcs"
    _own_passes = 10
    #: the attributes of words that it finds itself
    _brings: ClassVar[tuple[str, ...]] = ()

    def _contents(self) -> Bundle:
        parts = {} if self.pruner_ is None else {"pruner": to_bundle(self.pruner_)}
        if self.relations_ is not None and self.relation_features_ is not None:
            parts["relations"] = relations_to_bundle(self.relations_, self.relation_features_)
        found = super()._contents()
        found.header |= {**template_header(self), "pruner": None, "relations": None}
        for name, part in parts.items():
            found.header[name] = part.header
            found.add(name, part)
        return found

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        model = cls._alone(head, bundle.arrays)
        if head["pruner"] is not None:
            if model.prune is None and model.order == 1:
                raise ValueError("a model for pruning, but prune is None")
            model.pruner_ = DependencyParser._alone(head["pruner"], under("pruner.", bundle.arrays))
            # the model for pruning reads the sentences that the parser's featurizer has coded
            if (theirs := model.pruner_.featurizer_.to_bundle()) != (own := model.featurizer_.to_bundle()):
                raise ValueError(f"the model for pruning has the word attributes {theirs}, the parser has {own}")
        if head["relations"] is not None:
            part = bundle.part("relations", head["relations"])
            model.relations_, model.relation_features_ = relations_from_bundle(part, model.featurizer_)
        return model

    @classmethod
    def _alone(cls, head: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """A parser without what its pruning model and its relations add."""
        model = restored(cls, head)
        model.templates_ = usable_templates(head["templates"], model.featurizer_, head["seeds"])
        vars(model).update(head["given"])
        if len(model.bits_) != len(model.templates_):
            raise ValueError(f"{len(model.templates_)} templates, but bits for {len(model.bits_)}")
        n_weights = sum(1 << b for b in model.bits_) + 2 * model.featurizer_.n_tags**3
        restore_weights(model, arrays, n_weights + (SIZE if model.order == 2 else 0))
        model.pruner_, model.relations_, model.relation_features_ = None, None, None
        return model

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None, dev: Treebank | tuple[Any, Any] | None = None
    ) -> Self:
        """Train. sample_weight: one number per sentence. dev: a held-out treebank (or (X, y)); its UAS decides with `patience`.

        Raises DataError, naming the file and line or the sample, for errors in X, y or dev, before training starts. When
        interrupted (Ctrl-C, SIGTERM) it keeps the weights so far and raises KeyboardInterrupt.
        """
        options = {"sample_weight": sample_weight, "n_jobs": checked_jobs(self.n_jobs)}
        # that of this class, so that a pipeline, which shards do not take, trains its parser in this way, too
        DependencyParser._sharding.fit(self, X, y, dev=self._checked(dev), **options)
        return self

    def _checked(self, dev: Any) -> Treebank | None:
        """The held-out treebank; what is wrong with it, or with the settings, is said before anything is trained."""
        checked_positive(self.C, "C")
        checked_settings(self)
        resolve_loss(self.loss)
        return None if dev is None else held_out_trees(dev)

    def _words(self, X: Any) -> Treebank:
        """The sentences to parse, with what the parser looks at."""
        return as_treebank(X)

    def _pruning_model(self, fit: Callable[["DependencyParser"], Any]) -> "DependencyParser":
        """The model that says which heads are looked at, fitted: a cheap one, or that of all arcs before one of second order."""
        first = DependencyParser(
            self.trainer, self.C, 3, projective=self.projective, single_root=self.single_root, labelled=False,
            templates=pruning_templates() if self.order == 1 else self.templates, surrogate=self.surrogate,
            regulariser=self.regulariser, random_state=self.random_state, verbose=self.verbose, attributes=self.attributes,
        )  # fmt: skip
        first._stage = "pruning"
        try:
            fit(first)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("training was interrupted while the model for pruning was trained; nothing is kept") from None
        return first

    def _keep_stages(
        self, plan: TreePlan, pruner: "DependencyParser | None", result: Result, labeler: ChainLabeler | None,
        features: RelationFeatures | None,
    ) -> None:  # fmt: skip
        """Leave the parser fitted."""
        self.featurizer_, self.templates_, self.bits_ = plan.featurizer, plan.templates, plan.bits
        self.projective_, self.left_out_, self.kept_ = plan.projective, plan.left_out, plan.kept
        self.pruner_, self.relations_, self.relation_features_ = pruner, labeler, features
        self._keep(result)
        if labeler is not None and labeler.stop_reason_ == "interrupted":
            self.stop_reason_ = "interrupted"
        self._stop_if_interrupted()

    @property
    def _n_candidates(self) -> int | None:
        """How many heads a word are looked at; None: all."""
        return CANDIDATES if self.order == 2 and self.prune is None else self.prune

    def _features(self, data: AttributedSentences, **options: Any) -> ArcFeatures:
        return ArcFeatures(data, self.templates_, self.bits_, dtype=self.coef_.dtype, **options)

    def _dev_scorer(self, plan: TreePlan, pruner: "DependencyParser | None", treebank: Treebank) -> Callable[[Vector], float]:
        data = plan.featurizer.transform(treebank)
        warn_of_untagged(treebank, plan.featurizer, plan.templates)
        with about_dev():
            arcs = ArcFeatures(data, plan.templates, plan.bits, candidates=kept_heads(self, pruner, data))
            arcs.new_scratch(int(data.lengths.max()))  # what cannot be parsed is refused before training
        inference = Inference(*structure(arcs, self.order, plan.projective, self.single_root), n_jobs=checked_jobs(self.n_jobs))
        return lambda w: float((inference.decode(w)[0] == treebank.heads).mean())

    def _ready(
        self, X: Any, fixed: Any, forbidden: Any, projective: bool | None, single_root: bool | None, pruned: bool = True
    ) -> tuple[AttributedSentences, Inference]:
        """What prediction works on: the coded sentences, and inference over their features with constraints."""
        self._check_fitted()
        treebank = self._words(X)
        warn_of_untagged(treebank, self.featurizer_, self.templates_)
        data = self.featurizer_.transform(treebank)
        rules = fixed_arcs(data.lengths.tolist(), fixed, forbidden)
        check_switches(projective=projective, single_root=single_root)
        projective = self.projective_ if projective is None else projective
        single_root = self.single_root if single_root is None else single_root
        candidates = kept_heads(self, self.pruner_ if pruned else None, data, rules)
        arcs = self._features(data, candidates=candidates, fixed=rules)
        return data, Inference(*structure(arcs, self.order, projective, single_root), n_jobs=checked_jobs(self.n_jobs))

    def predict(
        self, X: Any, *, fixed: Sequence[Mapping[int, int] | None] | None = None,
        forbidden: Sequence[Sequence[tuple[int, int]] | None] | None = None, projective: bool | None = None,
        single_root: bool | None = None, constraints: Constraints = None,
    ) -> list[Tree]:  # fmt: skip
        """The best tree of each sentence that satisfies the constraints, with relations where they were learnt.

        fixed: for each sentence None or {word: its head}; forbidden: None or pairs (head, word); words count from 1, head 0 is
        the root. projective, single_root: None means as trained. constraints: see `Constraint`. Sentences with fixed or
        forbidden arcs are not pruned; with constraints none is. InfeasibleError names the sample for which there is no tree.
        """
        data, inference = self._ready(X, fixed, forbidden, projective, single_root, not constraints)
        if self.order == 1 or constraints:
            kept = constrained(inference, constraints, lambda arc: (None if arc[1] is None else arc[1] - 1, arc[0]))
            return self._with_relations(data, kept.decode(self.coef_)[0])
        heads, proven = proven_trees(inference, self.coef_)
        held = "" if self.kept_ is None else f", which held {100 * self.kept_:.2f} % of the true arcs in training"
        logger.info("%d of %d trees are proven best among the candidate arcs%s", proven, len(data), held)
        return self._with_relations(data, heads)

    def _with_relations(self, data: AttributedSentences, heads: Integers) -> list[Tree]:
        split = np.split(heads, data.offsets[1:-1]) if len(data) else []
        if self.relations_ is None or self.relation_features_ is None or not len(data):
            return [Tree(h, None) for h in split]
        labels = self.relation_features_.labels(self.relations_, data, heads, checked_jobs(self.n_jobs))
        return [Tree(h, labels[a:b]) for h, (a, b) in zip(split, itertools.pairwise(data.offsets.tolist()), strict=True)]

    def predict_marginals(
        self, X: Any, *, fixed: Any = None, forbidden: Any = None, projective: bool | None = None, single_root: bool | None = None
    ) -> list[Floats]:
        """p(head of word m is h | x) of each sentence, an array (n, n + 1): row m - 1, column h, column 0 the root.

        By the matrix-tree theorem (Koo et al. 2007), or inside-outside where trees are projective. Only for models trained with
        the log loss (trainer "oeg" or "lbfgs", or surrogate "log"): scores learnt with a margin are not log-probabilities, and
        ParameterError says so; predict_kbest shows by how much the best tree is preferred.
        """
        _, inference = self._ready(X, fixed, forbidden, projective, single_root)
        self._check_probabilistic("use predict_kbest, or ")
        return [mu.reshape(n, n + 1) for mu, (n,) in zip(inference.marginals(self.coef_), inference.shapes, strict=True)]

    def predict_kbest(
        self, X: Any, k: int, *, fixed: Any = None, forbidden: Any = None, projective: bool | None = None,
        single_root: bool | None = None,
    ) -> list[list[tuple[Tree, float]]]:  # fmt: skip
        """The k best trees of each sentence and their scores, best first; fewer where there are fewer. With order=2 they are the
        best over the candidate arcs, some hundred words a second.
        """
        checked_whole(k, "k")
        data, inference = self._ready(X, fixed, forbidden, projective, single_root)
        found = list(inference.kbest(self.coef_, k))
        result = []
        for i, trees in enumerate(found):
            if not trees:
                raise InfeasibleError(f"sample {i}: no tree satisfies the constraints")
            labelled = self._with_relations(data.take([i] * len(trees)), np.concatenate([heads for heads, _ in trees]))
            result.append([(tree, score) for tree, (_, score) in zip(labelled, trees, strict=True)])
        return result

    def score(self, X: Any, y: Any = None) -> float:
        """The share of words with the right head, and the right relation if relations were learnt (LAS, else UAS), punctuation
        included. Raises DataError where there are no words, or no relations to compare with."""
        treebank = as_treebank(X, y, trees=True)
        self._check_fitted()
        if not treebank.n_words:
            raise DataError("X: expected at least one sentence to score, got none")
        if self.relations_ is not None and all(label == "_" for label in treebank.labels):
            raise DataError("y: the parser has learnt relations, but these trees have none to compare them with")
        found = self.predict(treebank)
        right = np.concatenate([tree.heads for tree in found]) == treebank.heads
        if self.relations_ is not None:
            right &= np.array([label for tree in found for label in tree.labels or ()]) == np.array(treebank.labels)
        return float(right.mean())
