"""What a parser has learnt, and why it prefers one tree to another: the scores of arcs and relations by what features add."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.result import Certificate, Record
from structpred.core.types import Integers
from structpred.core.weights import Vector
from structpred.data.arc_templates import TAGS_BETWEEN, ArcTemplate, Atom
from structpred.data.sequences import AttributedSentences
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.features.arcs import ArcFeatures
from structpred.features.second_order import BITS, SECOND_ORDER, SIZE, SecondOrderFeatures
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.io.treebanks.treebank import Sentence, Tree, Treebank
from structpred.models.chain.inspection import ends_and_transition, inspect_weights, transition_lines
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.explanations import (
    Contribution,
    Explanation,
    WeightGroup,
    contrast,
    given_as,
    group_lines,
    wants_runner_up,
    weight_group,
)
from structpred.models.parser.relations import RelationFeatures
from structpred.models.parser.second_order import second_order
from structpred.models.parser.sentences import as_treebank
from structpred.oracles.second_order_tree import SecondOrderTree
from structpred.text.markup import Shown
from structpred.text.tables import cut

ROOT = "(root)"
_DISTANCES = ("1", "2", "3", "4", "5-6", "7-10", "11-20", "over 20")
_STARTS = np.array([1, 2, 3, 4, 5, 7, 11, 21])
_COUNTED = ("verbs", "punctuation", "conjunctions")


@dataclass(frozen=True)
class TemplateWeights(WeightGroup):
    """The block of one template. share: its part of the squared norm of all arc weights, in [0, 1]."""

    share: float


@dataclass(frozen=True)
class RelationWeights:
    """What is learnt of one relation. n_nonzero, norm: of its weights of features; start, stop: for the first and last word."""

    relation: str
    n_nonzero: int
    norm: float
    start: float
    stop: float


@dataclass(frozen=True)
class ParserInspection(Shown):
    """The weights of a parser, made readable.

    templates: one entry per template, the largest norm first: which templates matter. relations: one entry per relation, by
    name. groups: the relations' weights by part. positive_transitions, negative_transitions: (relation of a word, that of the
    next, weight), the strongest first. The last four are empty for a parser without relations.
    """

    templates: list[TemplateWeights]
    relations: list[RelationWeights]
    groups: list[WeightGroup]
    positive_transitions: list[tuple[str, str, float]]
    negative_transitions: list[tuple[str, str, float]]

    def table(self, top: int = 20) -> str:
        """The norms of the `top` largest templates, then those of the relations, and the transitions."""
        lines = [f"{'templates of arcs, by norm':<44} {'weights':>9} {'not zero':>9} {'norm':>9} {'share':>7}"]
        for t in self.templates[:top]:
            lines.append(f"{cut(t.name, 44):<44} {t.n_weights:>9} {t.n_nonzero:>9} {t.norm:>9.4g} {100 * t.share:>5.1f} %")
        if rest := self.templates[top:]:
            sums = (sum(t.n_weights for t in rest), sum(t.n_nonzero for t in rest), sum(t.norm**2 for t in rest) ** 0.5)
            share = 100 * sum(t.share for t in rest)
            lines.append(f"{f'the {len(rest)} others':<44} {sums[0]:>9} {sums[1]:>9} {sums[2]:>9.4g} {share:>5.1f} %")
        return "\n".join([*lines, *(["", *self._of_relations()] if self.relations else [])])

    def _of_relations(self) -> list[str]:
        lines = group_lines("weights of relations", self.groups)
        for r in self.relations:
            lines.append(f"{cut('  ' + r.relation, 32):<32} {'':>10} {r.n_nonzero:>10} {r.norm:>10.4g}")
        transitions = transition_lines(self.positive_transitions, self.negative_transitions)
        return [*lines, "", "relations of neighbouring words", *transitions]


def inspect_parser(model: Any, top: int = 20) -> ParserInspection:
    """How large the weights of each template and of each relation are, and the `top` strongest transitions of either sign.

    Features are hashed: a weight belongs to a template, but the words it stands for are not kept. Raises ParameterError for
    top < 1.

    >>> from structpred.models import DependencyParser
    >>> parser = DependencyParser(templates=["h.upos m.upos | direction", "m.upos | distance"], labelled=False)
    >>> _ = parser.fit([[{"form": "cats", "upos": "NOUN"}, {"form": "sleep", "upos": "VERB"}]], [[2, 0]])
    >>> sorted(t.name for t in inspect_parser(parser).templates)
    ['h.tag m.tag | each tag between', 'h.upos m.upos | direction', 'm.upos | distance']
    """
    model._check_fitted()
    ends = np.cumsum([1 << b for b in model.bits_]).tolist()
    names = [*map(str, model.templates_), TAGS_BETWEEN]
    if model.order == 2:
        ends += (len(model.coef_) - SIZE + (np.arange(len(SECOND_ORDER)) << BITS)).tolist()
        names += SECOND_ORDER
    blocks = [weight_group(name, part) for name, part in zip(names, np.split(model.coef_, ends), strict=True)]
    whole = sum(block.norm**2 for block in blocks) or 1.0
    templates = [TemplateWeights(b.name, b.n_weights, b.n_nonzero, b.norm, b.norm**2 / whole) for b in blocks]
    templates.sort(key=lambda block: -block.norm)
    if model.relations_ is None:
        return ParserInspection(templates, [], [], [], [])
    labeler = model.relations_
    found = inspect_weights(labeler, top)
    norms = np.linalg.norm(labeler.emissions_.astype(np.float64), axis=0).tolist()
    relations = [
        RelationWeights(str(entry.label), entry.n_nonzero, norm, entry.start, entry.stop)
        for entry, norm in zip(found.labels, norms, strict=True)
    ]
    return ParserInspection(templates, relations, found.groups, found.positive_transitions, found.negative_transitions)


class ArcNames:
    """Names for one sentence. Two arcs with a feature of the same name share its weight."""

    def __init__(self, featurizer: ArcFeaturizer, sentence: Sentence, data: AttributedSentences) -> None:
        self.values = {name: featurizer.values(name, sentence) for name in featurizer.present}
        self.tags = [ROOT, "(unknown)", *featurizer.tags]
        self.own, self.classes, self.forms = data.tags, data.classes, sentence.forms

    def word(self, p: int) -> str:
        """The form of a word, which counts from 1."""
        return self.forms[p - 1] if p else ROOT

    def arc(self, head: int, modifier: int) -> str:
        """The arc as its two words."""
        return f"{self.word(head)} -> {self.word(modifier)}"

    def template(self, template: ArcTemplate, head: int, modifier: int) -> str:
        """The feature that a template gives the arc, such as "h.upos=VERB m.form=cat | head after, distance 2"."""
        values = [self._atom("h", atom, head) for atom in template.head] + [
            self._atom("m", a, modifier) for a in template.modifier
        ]
        of_arc = self._property(template.arc, head, modifier)
        return " ".join(values) + (f" | {of_arc}" if of_arc else "")

    def between(self, place: int) -> str:
        """The feature with this place in the block of tags between the ends: [direction, tag of m, tag between, tag of h]."""
        n = len(self.tags)
        right, modifier, tag, head = np.unravel_index(place, (2, n, n, n))
        side = "after" if right else "before"
        return f"h.tag={self.tags[head]} m.tag={self.tags[modifier]} | head {side}, {self.tags[tag]} between"

    def _atom(self, end: str, atom: Atom, p: int) -> str:
        q, n = p + atom.offset, len(self.forms)
        if p == 0:  # the root, and what would be beside it
            value = ROOT if atom.offset == 0 else "(beside the root)"
        else:
            value = "(start)" if q < 1 else "(end)" if q > n else self.values[atom.attribute][q - 1]
        return f"{end}.{atom.attribute}{f'{atom.offset:+d}' if atom.offset else ''}={value}"

    def _property(self, arc: str, head: int, modifier: int) -> str:
        if not arc:
            return ""
        side = f"head {'after' if head > modifier else 'before'}"
        if arc == "direction":
            return side
        if arc == "distance":
            return f"{side}, distance {_DISTANCES[int(np.searchsorted(_STARTS, abs(head - modifier), side='right')) - 1]}"
        inside = self.classes[min(head, modifier) : max(head, modifier) - 1]
        counted = [_counted(inside, bit, name) for bit, name in enumerate(_COUNTED)]
        return f"{side}, {', '.join(counted if arc == 'between' else [counted[_COUNTED.index(arc)]])} between"


def _counted(classes: npt.NDArray[np.uint8], bit: int, name: str) -> str:
    """How many words of a class there are, as far as features tell: up to two, of conjunctions up to one."""
    most = 1 if name == "conjunctions" else 2
    n = int(((classes >> bit) & 1).sum())
    return f"{n if n < most else f'{most} or more'} {name}"


#: what `against` may be
_FORM = "the number of a head, or a tree"


class _Parsed(NamedTuple):
    """One sentence as the parser sees it."""

    treebank: Treebank
    data: AttributedSentences
    names: ArcNames


def _given(parser: Any, parsed: _Parsed, tree: Any, name: str) -> Tree:
    """A tree of the user's, with the relations that the parser gives it where it brings none."""
    with given_as(name):
        found = as_treebank(parsed.treebank, [tree], trees=True).tree(0)
    if parser.relations_ is None:
        return Tree(found.heads, None)
    if found.labels is None:
        trees: list[Tree] = parser._with_relations(parsed.data, found.heads)
        return trees[0]
    with given_as(name):
        parser.relations_._encoder.encode([found.labels])
    return found


def _alternative(parser: Any, parsed: _Parsed, chosen: Tree, word: int | None, against: Any) -> Tree | None:
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
        found: list[Tree] = parser.predict(treebank, **rules)
    except InfeasibleError:
        raise DataError(f"no tree gives word {word} {'another head' if runner_up else f'the head {against}'}") from None
    return found[0]


def _runner_up(parser: Any, treebank: Treebank, chosen: Tree) -> Tree:
    """The best tree with other heads."""
    best: list[tuple[Tree, float]] = parser.predict_kbest(treebank, 2)[0]
    for tree, _ in best:
        if (tree.heads != chosen.heads).any():
            return tree
    raise DataError("there is no other tree to compare with this one")


def _contributions(parser: Any, parsed: _Parsed, tree: Tree) -> list[Contribution]:
    """What each feature adds to the score of a tree: to its arcs, then to its relations."""
    arcs = parser._features(parsed.data)
    found = list(_of_arcs(arcs, parser.coef_, parsed.names, tree.heads))
    if parser.order == 2:
        found += _of_triples(second_order(arcs), parser.coef_, parsed.names, tree.heads)
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


def _of_triples(features: SecondOrderFeatures, w: Vector, names: ArcNames, heads: Integers) -> Iterator[Contribution]:
    """What siblings and grandparents add, beside their last word, of a last sibling its head."""
    n, first = len(heads), features.arcs.n_parts(0)
    words, forms = features.triples(0).words, [*(names.word(p) for p in range(n + 1)), "(start)", "(end)"]
    for part in SecondOrderTree(single_root=False).parts(heads, features.shapes[0])[n:].tolist():
        vector, own = features.adjoint(0, np.array([part]), np.ones(1)), words[:, part - first].tolist()
        groups = np.searchsorted(features.groups, vector.indices, side="right") - 1
        for k, value, g in zip(vector.indices.tolist(), vector.values.tolist(), groups.tolist(), strict=True):
            kind, at = features.group_names[g].split()[0], own[2] if own[2] <= n else own[0]
            yield Contribution(kind, at, " ".join(forms[p] for p in own), features.group_names[g], value, float(w[k]))


def _of_relations(
    labeler: ChainLabeler, features: RelationFeatures, parsed: _Parsed, heads: Integers, labels: Sequence[str]
) -> Iterator[Contribution]:
    table, classes = labeler._table(), labeler.classes_.tolist()
    first, codes = labeler.input_.n_features or 0, labeler._encoder.encode([labels])
    templates, rows = features.rows(parsed.data, heads)
    for m, (h, label) in enumerate(zip(heads.tolist(), codes.tolist(), strict=True), start=1):
        for template, row in zip(templates, rows[m - 1].tolist(), strict=True):
            if row >= 0:
                name = parsed.names.template(template, h, m)
                yield Contribution("relation", m, classes[label], name, 1.0, float(table[row, label]))
        for c in ends_and_transition(table[first:], classes, m - 1, codes):
            yield replace(c, position=m)


class ExplainedTrees:
    """What a parser says of its weights, its decisions and its second stage: methods of DependencyParser."""

    def explain(self: Any, sentence: Any, word: int | None = None, *, tree: Any = None, against: Any = None) -> Explanation:
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
        treebank = self._words(sentence if isinstance(sentence, Treebank) else [sentence])
        if len(treebank) != 1:
            raise DataError(f"sentence: expected one, got a treebank of {len(treebank)}; take one of them first")
        data = self.featurizer_.transform(treebank)
        parsed = _Parsed(treebank, data, ArcNames(self.featurizer_, treebank.sentence(0), data))
        chosen = self.predict(treebank)[0] if tree is None else _given(self, parsed, tree, "tree")
        other = _alternative(self, parsed, chosen, word, against)
        found = _contributions(self, parsed, chosen)
        if other is not None:
            found = contrast(found, _contributions(self, parsed, other))
        return Explanation.of(chosen, other, found, "word")

    def top_features(self, n: int = 20) -> ParserInspection:
        """How large the weights of each template and of each relation are, and the n strongest transitions of either sign."""
        return inspect_parser(self, n)

    @property
    def label_certificate_(self: Any) -> Certificate | None:
        """The certificate of the relations' training; None where there are none."""
        self._check_fitted()
        return None if self.relations_ is None else self.relations_.certificate_

    @property
    def label_history_(self: Any) -> list[Record]:
        """The history of the relations' training."""
        self._check_fitted()
        return [] if self.relations_ is None else self.relations_.history_
