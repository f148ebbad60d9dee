"""Why a parser prefers one tree to another: the scores of arcs and relations taken apart into what each feature adds."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from structpred.core.result import Certificate, Record
from structpred.core.types import Integers
from structpred.core.weights import Vector
from structpred.data.sentences import AttributedSentences
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.features.arcs import ArcFeatures
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.io.treebanks.treebank import Tree, Treebank
from structpred.models.chain.explain import addend, ends_and_transition
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.explanations import Contribution, Explanation, contrast, wants_runner_up
from structpred.models.parser.arc_names import ArcNames
from structpred.models.parser.inspection import InspectedParser, ParserInspection, inspect_parser
from structpred.models.parser.relations import RelationFeatures
from structpred.models.parser.sentences import as_treebank

_FORM = "the number of a head, or a tree"


class FittedParser(InspectedParser, Protocol):
    """What explaining needs of a parser."""

    featurizer_: ArcFeaturizer
    relation_features_: RelationFeatures | None

    def _features(self, data: AttributedSentences, **options: Any) -> ArcFeatures: ...
    def _with_relations(self, data: AttributedSentences, heads: Integers) -> list[Tree]: ...
    def predict(self, X: Any, *, fixed: Any = None, forbidden: Any = None) -> list[Tree]:
        """The best tree of each sentence."""

    def predict_kbest(self, X: Any, k: int) -> list[list[tuple[Tree, float]]]:
        """The k best."""


class _Parsed(NamedTuple):
    """One sentence as the parser sees it."""

    treebank: Treebank
    data: AttributedSentences
    names: ArcNames


def _given(parser: FittedParser, parsed: _Parsed, tree: Any, name: str) -> Tree:
    """A tree of the user's, with the relations that the parser gives it where it brings none."""
    try:
        found = as_treebank(parsed.treebank, [tree], trees=True).tree(0)
    except DataError as error:
        raise DataError(f"{name}: {str(error).removeprefix('sample 0: ')}") from None
    if parser.relations_ is None:
        return Tree(found.heads, None)
    if found.labels is None:
        return parser._with_relations(parsed.data, found.heads)[0]
    try:
        parser.relations_._encoder.encode([found.labels])
    except DataError as error:
        raise DataError(f"{name}: {str(error).removeprefix('sample 0: ')}") from None
    return found


def _alternative(parser: FittedParser, parsed: _Parsed, chosen: Tree, word: int | None, against: Any) -> Tree | None:
    """The tree to compare with: one that was given, or the best one in which the word has that head, or another one."""
    treebank = parsed.treebank
    runner_up = wants_runner_up(against, _FORM) if against is not None else word is not None
    if word is None:
        if runner_up:
            return _runner_up(parser, treebank, chosen)
        if isinstance(against, int | np.integer):
            raise ParameterError(f"against: the head {against} of which word? give word=, too")
        return None if against is None else _given(parser, parsed, against, "against")
    if isinstance(word, bool) or not isinstance(word, int | np.integer) or not 1 <= word <= treebank.n_words:
        raise ParameterError(f"word: expected a number from 1 to {treebank.n_words}, got {word!r}")
    head = int(chosen.heads[word - 1])
    if not runner_up and (isinstance(against, bool) or not isinstance(against, int | np.integer)):
        raise ParameterError(f"against: with word= expected the number of a head, got {against!r}; leave word out for two trees")
    n = len(chosen.heads)
    if not runner_up and (against == word or not 0 <= against <= n):
        raise ParameterError(f"against: expected 0 or another word up to {n} as the head of word {word}, got {against}")
    rules: dict[str, Any] = {"forbidden": [[(head, word)]]} if runner_up else {"fixed": [{word: int(against)}]}
    try:
        return parser.predict(treebank, **rules)[0]
    except InfeasibleError:
        raise DataError(f"no tree gives word {word} {'another head' if runner_up else f'the head {against}'}") from None


def _runner_up(parser: FittedParser, treebank: Treebank, chosen: Tree) -> Tree:
    """The best tree with other heads."""
    for tree, _ in parser.predict_kbest(treebank, 2)[0]:
        if (tree.heads != chosen.heads).any():
            return tree
    raise DataError("there is no other tree to compare with this one")


def _contributions(parser: FittedParser, parsed: _Parsed, tree: Tree) -> list[Contribution]:
    """What each feature adds to the score of a tree: to its arcs, then to its relations."""
    found = list(_of_arcs(parser._features(parsed.data), parser.coef_, parsed.names, tree.heads))
    if parser.relations_ is not None and parser.relation_features_ is not None and tree.labels is not None:
        found += _of_relations(parser.relations_, parser.relation_features_, parsed, tree.heads, tree.labels)
    return found


def _of_arcs(features: ArcFeatures, w: Vector, names: ArcNames, heads: Integers) -> Iterator[Contribution]:
    n, ends = len(heads), features.groups
    for m, h in enumerate(heads.tolist(), start=1):
        part = (m - 1) * (n + 1) + h
        vector = features.adjoint(0, np.array([part], dtype=np.int64), np.ones(1))
        groups = np.searchsorted(ends, vector.indices, side="right") - 1
        for k, value, g in zip(vector.indices.tolist(), vector.values.tolist(), groups.tolist(), strict=True):
            own = g < len(features.templates)
            name = names.template(features.templates[g], h, m) if own else names.between(k - features.between)
            yield Contribution("arc", m, names.arc(h, m), name, value, float(w[k]))


def _of_relations(
    labeler: ChainLabeler, features: RelationFeatures, parsed: _Parsed, heads: Integers, labels: Sequence[str]
) -> Iterator[Contribution]:
    table, classes = labeler._table(), labeler.classes_.tolist()
    first, codes = labeler.input_.n_features or 0, labeler._encoder.encode([labels])
    templates, rows = features.rows(parsed.data, heads)
    for m, (h, label) in enumerate(zip(heads.tolist(), codes.tolist(), strict=True), start=1):
        for template, row in zip(templates, rows[m - 1].tolist(), strict=True):
            if row >= 0:
                yield addend(table[row], classes, label, None, "relation", m, parsed.names.template(template, h, m))
        for c in ends_and_transition(table[first:], classes, m - 1, codes, None):
            yield Contribution(c.kind, m, c.label, c.feature, c.value, c.weight)


class ExplainedTrees:
    """What a parser says of its weights, its decisions and its second stage: methods of DependencyParser."""

    def explain(
        self: FittedParser, sentence: Any, word: int | None = None, *, tree: Any = None, against: Any = None
    ) -> Explanation:
        """Why a sentence gets its tree: what each feature of each arc, and of each relation, adds to the score.

        sentence: one, in the form of fit's X, or a treebank of one. tree: what to explain; None: what is predicted.
        against: another tree, or "runner-up" (the best one with other heads): only what differs, as differences. They add up to
        the score of the tree less that of the other one.
        word: why does this word, counted from 1, have its head? The other tree is then the best one in which it has the head
        `against`, or any other head (None, "runner-up"); where that arc cannot go with the rest of the tree, arcs of other
        words differ, too.

        Heads are decided by the arcs alone (`by_kind` of the explanation), relations afterwards: their part may speak for the
        other tree. Relations that a tree does not bring are those that the parser predicts for its heads. Features are hashed;
        their names are read off the sentence by the parser's templates. Raises DataError for trees that are not valid, and
        where there is no other tree, ParameterError for a word that the sentence does not have.

        >>> from structpred.models import DependencyParser
        >>> parser = DependencyParser(templates=["h.upos m.upos | direction"], labelled=False)
        >>> cats = [{"form": "cats", "upos": "NOUN"}, {"form": "sleep", "upos": "VERB"}]
        >>> why = parser.fit([cats], [[2, 0]]).explain(cats, 1, against=0)
        >>> why.output.heads.tolist(), why.against.heads.tolist(), [c.feature for c in why.contributions if c.position == 1][0]
        ([2, 0], [0, 1], 'h.upos=VERB m.upos=NOUN | head after')
        """
        self._check_fitted()
        treebank = as_treebank(sentence if isinstance(sentence, Treebank) else [sentence])
        if len(treebank) != 1:
            raise DataError(f"sentence: expected one, got a treebank of {len(treebank)}; take one of them first")
        data = self.featurizer_.transform(treebank)
        parsed = _Parsed(treebank, data, ArcNames(self.featurizer_, treebank.sentence(0), data))
        chosen = self.predict(treebank)[0] if tree is None else _given(self, parsed, tree, "tree")
        other = _alternative(self, parsed, chosen, word, against)
        found = _contributions(self, parsed, chosen)
        if other is not None:
            found = contrast(found, _contributions(self, parsed, other))
        return Explanation.of(chosen, other, found, treebank.n_words + 1, "word")

    def top_features(self, n: int = 20) -> ParserInspection:
        """How large the weights of each template and of each relation are, and the n strongest transitions of either sign."""
        return inspect_parser(self, n)  # type: ignore[arg-type]

    @property
    def label_certificate_(self: FittedParser) -> Certificate | None:
        """The certificate of the relations' training; None where there are none."""
        self._check_fitted()
        return None if self.relations_ is None else self.relations_.certificate_

    @property
    def label_history_(self: FittedParser) -> list[Record]:
        """The history of the relations' training."""
        self._check_fitted()
        return [] if self.relations_ is None else self.relations_.history_
