"""Constraints at prediction: fixed and forbidden arcs, one root, projective trees, held by every output of the parser."""

from typing import Any

import numpy as np
import pytest
from parser_cases import corpus, is_tree, plain, random_corpus, random_words

from structpred.errors import InfeasibleError
from structpred.models.parser.parser import DependencyParser
from structpred.models.parser.sentences import as_treebank
from structpred.task.inference import part_scores

X, Y = corpus(40, 0, 0.3)
RANDOM = random_words([1, 2, 3, 4, 5, 5, 4, 3], np.random.default_rng(8))
MODELS: dict[str, DependencyParser] = {}


def model(name: str) -> DependencyParser:
    """A parser trained once: "plain", "projective", or "pruned" to one head a word."""
    if name not in MODELS:
        settings: dict[str, Any] = {"plain": {}, "projective": {"projective": True}, "pruned": {"prune": 1}}[name]
        MODELS[name] = DependencyParser("oeg", 1.0, **settings).fit(X, Y)
    return MODELS[name]


def random_rules(seed: int) -> tuple[list[Any], list[Any]]:
    """Some heads fixed and some arcs forbidden in most of the random sentences; not always with a tree left."""
    rng = np.random.default_rng(seed)
    fixed: list[Any] = []
    forbidden: list[Any] = []
    for tokens in RANDOM:
        n = len(tokens)
        arcs = [(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m]
        chosen = [arcs[k] for k in rng.permutation(len(arcs))]
        fixed.append({m: h for h, m in chosen[: rng.integers(0, 3)]} or None)
        forbidden.append(chosen[2 : 2 + rng.integers(0, 3 * n)] or None)
    return fixed, forbidden


def allowed_trees(n: int, fixed: Any, forbidden: Any, **kind: bool) -> list[tuple[int, ...]]:
    """All trees that keep to the rules, by listing."""
    barred = set(forbidden or ())
    return [
        heads
        for heads in np.ndindex(*[n + 1] * n)
        if is_tree(list(heads), **kind)
        and all(heads[m - 1] == h for m, h in (fixed or {}).items())
        and not any((h, m) in barred for m, h in enumerate(heads, 1))
    ]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", ["plain", "projective", "pruned"])
@pytest.mark.parametrize(
    "kind", [{}, {"projective": True}, {"projective": False}, {"single_root": False}, {"projective": True, "single_root": False}]
)
def test_every_output_keeps_to_all_rules(name: str, kind: dict[str, bool]) -> None:
    """Best tree, k best and marginals are those of the trees that are left, listed; sentences with none are named."""
    parser = model(name)
    unpruned = parser._features(parser.featurizer_.transform(as_treebank(RANDOM)))
    thetas = [part_scores(unpruned, parser.coef_, i).reshape(n, n + 1) for i, n in enumerate(unpruned.data.lengths.tolist())]
    left = {"single_root": True, "projective": name == "projective"} | kind
    seen = infeasible = 0
    for seed in range(4):
        fixed, forbidden = random_rules(seed)
        for i, tokens in enumerate(RANDOM):
            if name == "pruned" and not fixed[i] and not forbidden[i]:
                continue  # without rules of its own a sentence is pruned
            n, rules = len(tokens), {"fixed": [fixed[i]], "forbidden": [forbidden[i]], **kind}
            trees = allowed_trees(n, fixed[i], forbidden[i], **left)
            if not trees:
                infeasible += 1
                for call in (parser.predict, parser.predict_marginals, lambda X, **r: parser.predict_kbest(X, 2, **r)):
                    with pytest.raises(InfeasibleError, match=r"^sample 0: "):
                        call([tokens], **rules)
                continue
            seen += 1
            totals = np.array([thetas[i][np.arange(n), list(heads)].sum() for heads in trees])
            order = np.argsort(-totals)
            [found], [best] = parser.predict([tokens], **rules), parser.predict_kbest([tokens], 5, **rules)
            assert tuple(found.heads.tolist()) in trees
            assert thetas[i][np.arange(n), found.heads].sum() == pytest.approx(totals.max(), abs=1e-9)
            assert len(best) == min(5, len(trees))
            np.testing.assert_allclose([score for _, score in best], totals[order[:5]], atol=1e-9)
            assert {tuple(tree.heads.tolist()) for tree, _ in best} <= set(trees)
            probabilities = np.exp(totals - totals.max())
            expected = np.zeros((n, n + 1))
            for p, heads in zip(probabilities / probabilities.sum(), trees, strict=True):
                expected[np.arange(n), list(heads)] += p
            np.testing.assert_allclose(parser.predict_marginals([tokens], **rules)[0], expected, atol=1e-9)
    assert seen > 10
    assert infeasible > 1


def test_rules_of_one_sentence_leave_the_others_alone() -> None:
    """All sentences at once, on threads: those with rules as alone, those without as without any rules, pruned ones included."""
    for name in ("plain", "pruned"):
        parser = model(name)
        free = plain(parser.predict(RANDOM))
        fixed: list[Any] = [None] * len(RANDOM)
        forbidden: list[Any] = [None] * len(RANDOM)
        fixed[4], forbidden[6] = {2: 0}, [(0, 1), (2, 1)]
        alone = {
            4: plain(parser.predict([RANDOM[4]], fixed=[fixed[4]]))[0],
            6: plain(parser.predict([RANDOM[6]], forbidden=[forbidden[6]]))[0],
        }
        for parser.n_jobs in (1, 4):
            together = plain(parser.predict(RANDOM, fixed=fixed, forbidden=forbidden))
            assert together == [alone.get(i, free[i]) for i in range(len(RANDOM))]
        assert together[4][0][1] == 0
        assert together[6][0][0] not in (0, 2)


def test_a_whole_tree_can_be_fixed() -> None:
    """With all heads given, any tree is returned as it is, with relations and probability one, pruned or not."""
    trees = random_corpus([len(tokens) for tokens in RANDOM], 9)[1]
    for name in ("plain", "pruned"):
        fixed = [dict(enumerate(heads, 1)) for heads in trees]
        found = model(name).predict(RANDOM, fixed=fixed)
        assert [tree.heads.tolist() for tree in found] == trees
        assert all(tree.labels is not None and len(tree.labels) == len(tree.heads) for tree in found)
        for mu, best, heads in zip(
            model(name).predict_marginals(RANDOM, fixed=fixed),
            model(name).predict_kbest(RANDOM, 3, fixed=fixed),
            trees,
            strict=True,
        ):
            np.testing.assert_allclose(mu[np.arange(len(heads)), heads], 1.0, atol=1e-9)
            assert len(best) == 1


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        ({"fixed": {1: 2, 2: 1}}, {}),
        ({"fixed": {1: 0, 2: 0}}, {}),
        ({"forbidden": [(h, 3) for h in (0, 1, 2, 4)]}, {}),
        ({"forbidden": [(0, m) for m in range(1, 5)]}, {"single_root": False}),
        ({"fixed": {1: 3}, "forbidden": [(3, 1)]}, {"single_root": False}),
        ({"fixed": {1: 3, 2: 4}}, {"projective": True}),
    ],
)
@pytest.mark.parametrize("n_jobs", [1, 4])
def test_impossible_rules_name_the_sample(rules: dict[str, Any], kind: dict[str, bool], n_jobs: int) -> None:
    """A cycle, two roots, no head left, no root left, contradictions and crossings: InfeasibleError with the sample's number."""
    sentence = [{"form": "w", "upos": "NOUN"}] * 4
    listed = {name: [None, None, None, rule, None] for name, rule in rules.items()}
    parser = model("plain")
    parser.n_jobs = n_jobs
    for call in (parser.predict, parser.predict_marginals, lambda X, **r: parser.predict_kbest(X, 2, **r)):
        with pytest.raises(InfeasibleError, match=r"^sample 3: "):
            call([sentence] * 5, **listed, **kind)


def test_two_roots_are_possible_where_they_are_allowed() -> None:
    """What single_root forbids as trained can be asked for at prediction, and the other way round."""
    rules: dict[str, Any] = {"fixed": [{1: 0, 2: 0}]}
    sentence = [[{"form": "w", "upos": "NOUN"}] * 3]
    assert model("plain").predict(sentence, **rules, single_root=False)[0].heads[:2].tolist() == [0, 0]
    loose = DependencyParser(single_root=False, max_iter=1).fit([["a", "b"]] * 3, [[0, 0]] * 3)
    assert loose.predict([["a", "b"]])[0].heads.tolist() == [0, 0]
    assert loose.predict([["a", "b"]], single_root=True)[0].heads.tolist().count(0) == 1
    with pytest.raises(InfeasibleError, match="sample 0"):
        loose.predict([["a", "b"]], fixed=[{1: 0, 2: 0}], single_root=True)


def test_numpy_numbers_and_empty_rules_will_do() -> None:
    """Words and heads as numpy integers; an empty rule is none."""
    parser = model("plain")
    expected = plain(parser.predict(RANDOM[4:5], fixed=[{1: 3}], forbidden=[[(0, 2)]]))
    assert plain(parser.predict(RANDOM[4:5], fixed=[{np.int64(1): np.int32(3)}], forbidden=[((np.int64(0), 2),)])) == expected
    assert plain(parser.predict(RANDOM[4:5], fixed=[{}], forbidden=[[]])) == plain(parser.predict(RANDOM[4:5]))
