"""A parser with siblings and grandparents: what arcs alone cannot learn, files, constraints, explanations, refusals."""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.io import read_treebank
from structpred.models import Constraint, DependencyParser
from structpred.oracles import Budget


def coordinated(n_sentences: int = 30, seed: int = 0) -> tuple[list, list]:
    """Sentences v n*: a verb takes at most one noun, the first; each further noun depends on the one before it."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n_sentences):
        n = int(rng.integers(1, 5))
        X.append([{"form": "v", "upos": "V"}, *[{"form": "n", "upos": "N"}] * n])
        y.append([(0, "root"), (1, "obj"), *[(k, "conj") for k in range(2, n + 1)]])
    return X, y


def alternating(n_sentences: int = 30, seed: int = 0) -> tuple[list, list]:
    """Sentences of a verb and words x that all look alike: every second one depends on the verb, the others on the one before."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n_sentences):
        n = int(rng.integers(2, 7))
        X.append([{"form": "v", "upos": "V"}, *[{"form": "x", "upos": "X"}] * n])
        y.append([0, *[1 if k % 2 == 0 else k + 1 for k in range(n)]])
    return X, y


@pytest.fixture(scope="module")
def fitted() -> DependencyParser:
    """A parser of the alternating sentences."""
    return DependencyParser(order=2, max_iter=8, templates=["h.upos m.upos | direction"], labelled=False).fit(*alternating())


def test_grandparents_and_siblings_tell_what_arcs_do_not(fitted: DependencyParser) -> None:
    """Arcs x -> x and v -> x alike by themselves: the first order misses heads, the second finds all."""
    X, y = alternating(seed=1)
    first = DependencyParser(max_iter=8, templates=["h.upos m.upos | direction"], labelled=False).fit(*alternating())
    assert first.score(X, y) < 0.9
    assert fitted.score(X, y) == 1.0
    assert fitted.kept_ == 1.0


def test_prediction_says_what_is_proven(fitted: DependencyParser, caplog: pytest.LogCaptureFixture) -> None:
    """How many trees are the best among the candidates, and how many true arcs these held."""
    X, _ = alternating(5, seed=2)
    with caplog.at_level(logging.INFO, "structpred.models"):
        fitted.predict(X)
    assert "5 of 5 trees are proven best among the candidate arcs, which held 100.00 % of the true arcs" in caplog.text


def test_constraints_hold(fitted: DependencyParser) -> None:
    """A fixed head and a forbidden arc are kept, of which the candidates know nothing."""
    X, _ = alternating(3, seed=3)
    found = fitted.predict(X, fixed=[{2: 0}, None, None], forbidden=[None, [(1, 2)], None])
    assert found[0].heads[1] == 0
    assert found[1].heads[1] != 1
    assert found[2].heads.tolist() == fitted.predict(X[2:])[0].heads.tolist()


def test_rules_that_no_tree_keeps_are_named_for_long_sentences(fitted: DependencyParser) -> None:
    """Arcs alone tell, where a search over siblings and grandparents would not end."""
    X = [[{"form": "v", "upos": "V"}, *[{"form": "x", "upos": "X"}] * 24]]
    for rule, part in ((Budget(at_least=2), (0, None)), (Budget(at_most=0), (None, 3))):
        with pytest.raises(InfeasibleError, match=r"sample 0: no tree satisfies constraints\[1\], Budget"):
            fitted.predict(X, constraints=[Constraint(Budget(at_most=20), [(1, None)]), Constraint(rule, [part])])
    with pytest.raises(DataError, match="expected a list of Constraint, got Constraint"):
        fitted.predict(X, constraints=Constraint(Budget(at_most=1), [(0, None)]))


def test_a_file_gives_the_same_bits(fitted: DependencyParser, tmp_path) -> None:
    """Saved and loaded, weights and predictions are those of the fitted parser, and so is the file that is saved again."""
    X, _ = alternating(4, seed=4)
    fitted.save(tmp_path / "a.spz")
    again = DependencyParser.load(tmp_path / "a.spz")
    assert again.order == 2
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    assert [t.heads.tolist() for t in again.predict(X)] == [t.heads.tolist() for t in fitted.predict(X)]
    again.save(tmp_path / "b.spz")
    assert (tmp_path / "a.spz").read_bytes() == (tmp_path / "b.spz").read_bytes()


def test_an_explanation_adds_up(fitted: DependencyParser) -> None:
    """Arcs, siblings and grandparents are named and sum up to the difference of two trees; so do the template's norms."""
    X, _ = alternating(1, seed=5)
    why = fitted.explain(X[0], 2, against=0)
    assert {"arc", "sibling", "grandparent"} == {c.kind for c in why.contributions}
    assert why.score == pytest.approx(sum(c.score for c in why.contributions))
    names = [t.name for t in fitted.top_features().templates]
    assert "sibling PPP" in names
    assert len(names) == 2 + 24
    assert sum(t.share for t in fitted.top_features().templates) == pytest.approx(1.0)


@pytest.mark.parametrize("projective", [True, False])
def test_relations_and_several_roots(projective: bool) -> None:
    """Relations are learnt as of any parser, trees may cross and have several roots."""
    X, y = coordinated()
    parser = DependencyParser(order=2, max_iter=5, projective=projective, single_root=False, prune=3).fit(X, y)
    assert parser.score(X, y) == 1.0


def test_bcfw_is_certified_from_below() -> None:
    """The search-free oracle bounds each sentence, so that the dual value stays below the primal."""
    X, y = alternating(8)
    parser = DependencyParser("bcfw", order=2, C=0.1, max_iter=10, labelled=False, check_every=5).fit(X, y)
    assert parser.certificate_.dual <= parser.certificate_.primal
    assert parser.score(X, y) == 1.0


def second_best(parser: DependencyParser, X: list, first: Any) -> float:
    """The score of the best tree in which one arc of the first is forbidden: predicted, and the head of a list."""
    scores = []
    for m, h in enumerate(first.heads.tolist(), 1):
        with suppress(InfeasibleError):
            [found] = parser.predict(X, forbidden=[[(h, m)]])
            [[(tree, score)]] = parser.predict_kbest(X, 1, forbidden=[[(h, m)]])
            assert tree.heads.tolist() == found.heads.tolist()
            scores.append(score)
    return max(scores)


def test_k_best_trees(fitted: DependencyParser) -> None:
    """The first tree is the one predicted, the second the best that lacks one of its arcs; explanations set them apart."""
    X, _ = alternating(4, seed=6)
    for x, found, best in zip(X, fitted.predict_kbest(X, 4), fitted.predict(X), strict=True):
        assert found[0][0].heads.tolist() == best.heads.tolist()
        assert found[1][1] == pytest.approx(second_best(fitted, [x], best), abs=1e-9)
        assert len({tuple(tree.heads.tolist()) for tree, _ in found}) == len(found)
        assert sorted((score for _, score in found), reverse=True) == [score for _, score in found]
        why = fitted.explain(x, against="runner-up")
        assert sum(c.score for c in why.contributions) == pytest.approx(found[0][1] - found[1][1])


def test_what_it_does_not_do(fitted: DependencyParser) -> None:
    """Another order and missing heads are refused."""
    X, y = alternating(3)
    with pytest.raises(ParameterError, match="order: expected 1"):
        DependencyParser(order=3).fit(X, y)
    with pytest.raises(DataError, match="order=2: expected a head for every word"):
        DependencyParser(order=2).fit(X, [[None, *heads[1:]] for heads in y])


@pytest.mark.slow
def test_latin_gains_four_points(data_dir: Path) -> None:
    """On crossing trees the second order finds 4 % more heads than the first; benchmarks/parsing.py has other treebanks."""
    folder = data_dir / "ud_latin_perseus"
    train, test = (read_treebank(folder / f"la_perseus-ud-{part}.conllu.gz") for part in ("train", "test"))
    parser = DependencyParser(order=2, max_iter=10, projective=False, labelled=False).fit(train)
    found = np.concatenate([tree.heads for tree in parser.predict(test)])
    assert (found == test.heads).mean() >= 0.73
