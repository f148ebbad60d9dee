"""Explanations of parses add up to the difference of two trees, and name the features that the templates see."""

import itertools
from typing import Any

import numpy as np
import pytest
from parser_cases import as_bank, corpus, is_tree

from structpred.errors import DataError, ParameterError
from structpred.io import Tree
from structpred.models import DependencyParser
from structpred.models.parser.explain import ArcNames
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle

X, Y = corpus(30, moved=0.4)
CAT = [{"form": form, "upos": upos} for form, upos in (("the", "DET"), ("cat", "NOUN"), ("sees", "VERB"), ("birds", "NOUN"))]


@pytest.fixture(scope="module", params=[True, False], ids=["projective", "crossing"])
def parser(request: pytest.FixtureRequest) -> DependencyParser:
    """A parser with relations, of either kind of tree."""
    return DependencyParser(max_iter=3, projective=request.param, templates=None).fit(X, Y)


def random_tree(rng: np.random.Generator, n: int, parser: DependencyParser) -> Tree:
    """A tree of the parser's kind, with any relations."""
    oracle = ProjectiveOracle() if parser.projective_ else ArborescenceOracle()
    heads = oracle.argmax(rng.normal(size=n * (n + 1)), (n,))
    assert parser.relations_ is not None
    return Tree(heads, rng.choice(parser.relations_.classes_, n).tolist())


def score_of(parser: DependencyParser, x: Any, tree: Tree) -> tuple[float, float]:
    """What arcs and relations of a tree score: from the part scores of the features, and from the tables of the labeller."""
    data = parser.featurizer_.transform(as_bank([x], [[(0, "_")] * len(x)]))
    theta = parser._features(data).scores(parser.coef_, 0).reshape(len(x), len(x) + 1)
    labeler, features = parser.relations_, parser.relation_features_
    assert labeler is not None
    assert features is not None
    packed = features.transform(data, tree.heads)
    codes = [labeler.classes_.tolist().index(label) for label in tree.labels or ()]
    weights, ends = labeler.emissions_, np.asarray(labeler._table(), np.float64)[-len(labeler.classes_) - 2 :]
    total = ends[0, codes[0]] + ends[1, codes[-1]] + sum(labeler.transitions_[a, b] for a, b in itertools.pairwise(codes))
    for m, code in enumerate(codes):
        total += weights[packed.indices[packed.indptr[m] : packed.indptr[m + 1]], code].sum()
    return float(theta[np.arange(len(x)), tree.heads].sum()), float(total)


def test_contributions_add_up_to_the_difference_of_two_trees(parser: DependencyParser) -> None:
    """For 30 pairs of random trees: to 1e-9 the arcs' addends give the difference of arc scores, all that with relations."""
    rng = np.random.default_rng(3)
    for k in range(30):
        x = X[k % len(X)]
        one, other = (random_tree(rng, len(x), parser) for _ in range(2))
        why = parser.explain(x, tree=one, against=other)
        (arcs, labels), (their_arcs, their_labels) = score_of(parser, x, one), score_of(parser, x, other)
        of_arcs = sum(c.score for c in why.contributions if c.kind == "arc")
        assert of_arcs == pytest.approx(arcs - their_arcs, abs=1e-9)
        assert why.by_kind()["arc"] == pytest.approx(of_arcs, abs=1e-9)
        assert sum(why.by_kind().values()) == pytest.approx(why.score, abs=1e-9)
        assert why.score == pytest.approx(arcs + labels - their_arcs - their_labels, abs=1e-9)
        shown = why.strongest(10)
        assert sum(c.score for c in [*shown, *why.strongest()[10:]]) == pytest.approx(why.score, abs=1e-9)


def test_one_tree_adds_up_to_its_score(parser: DependencyParser) -> None:
    """Without an alternative it is the predicted tree, and the arcs' part is the score that the k best report."""
    for x in X[:5]:
        why, (tree, score) = parser.explain(x), parser.predict_kbest([x], 1)[0][0]
        assert (why.output.heads.tolist(), why.output.labels) == (tree.heads.tolist(), tree.labels)
        assert sum(c.score for c in why.contributions if c.kind == "arc") == pytest.approx(score, abs=1e-9)
        assert why.score == pytest.approx(sum(score_of(parser, x, tree)), abs=1e-9)


def test_a_word_against_another_head(parser: DependencyParser) -> None:
    """The alternative is the best tree with that head, or with any other one: never better, and equal to what predict gives."""
    for x in X[:2]:
        best = parser.predict([x])[0]
        for word in range(1, len(x) + 1):
            head = next(h for h in range(len(x), -1, -1) if h not in (word, best.heads[word - 1]))
            try:
                expected = parser.predict([x], fixed=[{word: head}])[0]
            except ValueError:
                continue
            why = parser.explain(x, word, against=head)
            assert why.against.heads.tolist() == expected.heads.tolist()
            assert sum(c.score for c in why.contributions if c.kind == "arc") >= -1e-9
            free = parser.explain(x, word)
            assert free.against.heads[word - 1] != best.heads[word - 1]
            gaps = [sum(c.score for c in w.contributions if c.kind == "arc") for w in (free, why)]
            assert gaps[0] <= gaps[1] + 1e-9


def test_only_what_differs_is_listed(parser: DependencyParser) -> None:
    """In a contrast the arcs of words with the same head do not occur, and nothing adds zero on both sides."""
    why = parser.explain(X[0], against="runner-up")
    differ = {m for m, (a, b) in enumerate(zip(why.output.heads, why.against.heads, strict=True), 1) if a != b}
    assert differ
    assert {c.position for c in why.contributions if c.kind == "arc"} <= differ
    keys = [(c.kind, c.position, c.label, c.feature) for c in why.contributions]
    assert len(set(keys)) == len(keys)


def test_names_are_those_of_the_weights(parser: DependencyParser) -> None:
    """Features with the same name have the same weight, in all sentences; and few names share one."""
    places: dict[tuple[int, str], int] = {}
    for x in X[:6]:
        bank = as_bank([x], [[(0, "_")] * len(x)])
        data = parser.featurizer_.transform(bank)
        features, names, n = parser._features(data), ArcNames(parser.featurizer_, bank.sentence(0), data), len(x)
        for m, h in itertools.product(range(1, n + 1), range(n + 1)):
            if h != m:
                found = features.adjoint(0, np.array([(m - 1) * (n + 1) + h]), np.ones(1))
                groups = np.searchsorted(features.groups, found.indices, side="right") - 1
                assert groups.tolist()[: len(features.templates)] == list(range(len(features.templates)))
                for place, g in zip(found.indices.tolist(), groups.tolist(), strict=True):
                    own = g < len(features.templates)
                    name = names.template(features.templates[g], h, m) if own else names.between(place - features.between)
                    assert places.setdefault((g, name), place) == place
    assert len(places) > 2000
    assert len(set(places.values())) > len(places) / 2


def test_what_a_name_says() -> None:
    """Values of the ends and their neighbours, the root, the ends of the sentence, side, distance and what is between."""
    templates = ["h.form m.upos-1 | distance", "h.upos+1 m.form", "h.upos m.upos | between"]
    parser = DependencyParser(templates=templates, labelled=False).fit([CAT], [[2, 3, 0, 3]])
    of = {(c.position, c.feature) for c in parser.explain(CAT).contributions}
    assert (1, "h.form=cat m.upos-1=(start) | head after, distance 1") in of
    assert (3, "h.upos+1=(beside the root) m.form=sees") in of
    assert (3, "h.upos=(root) m.upos=VERB | head before, 0 verbs, 0 punctuation, 0 conjunctions between") in of
    assert (3, "h.tag=(root) m.tag=VERB | head before, NOUN between") in of
    against = parser.explain(CAT, 1, against=4)
    assert "cat -> the" in str(against)
    assert "birds -> the" in str(against)


def test_pruned_and_unlabelled_parsers_explain_too() -> None:
    """Pruning changes what is searched, not what an arc scores; without relations the relations of a given tree do not count."""
    parser = DependencyParser(max_iter=2, prune=2, labelled=False).fit(X, Y)
    tree = [head for head, _ in Y[1]]
    assert is_tree(tree)
    assert parser.explain(X[1], tree=Y[1], against="runner-up").score == pytest.approx(
        parser.explain(X[1], tree=tree, against="runner-up").score
    )
    assert {c.kind for c in parser.explain(X[1]).contributions} == {"arc"}


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"word": 9}, ParameterError, "word: expected a number from 1 to 4, got 9"),
        ({"against": 2}, ParameterError, "of which word"),
        ({"word": 1, "against": [2, 3, 0, 3]}, ParameterError, "leave word out"),
        ({"against": "best"}, ParameterError, "expected 'runner-up' or the number of a head"),
        ({"tree": [2, 1, 0, 3]}, DataError, "tree: .*cycle"),
        ({"against": [2, 3]}, DataError, "against: .*4 words"),
        ({"word": 1, "against": 7}, ParameterError, "expected 0 or another word up to 4"),
        ({"word": 1, "against": 1}, ParameterError, "another word"),
        ({"tree": [(2, "no such"), (3, "a"), (0, "b"), (3, "c")]}, DataError, "tree: .*no such"),
    ],
)
def test_bad_requests(options: dict[str, Any], error: type[Exception], message: str) -> None:
    """What cannot be explained is refused with the name of the argument."""
    parser = DependencyParser(max_iter=1).fit(X, Y)
    with pytest.raises(error, match=message):
        parser.explain(CAT, **options)
    with pytest.raises(DataError, match="expected one, got a treebank of 30"):
        parser.explain(as_bank(X, Y))
