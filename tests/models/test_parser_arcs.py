"""What a parser does with arcs: which trees cross, marginals, the k best, and which heads pruning keeps."""

import itertools
from typing import Any

import numpy as np
import pytest
from parser_cases import corpus, is_tree, plain, random_corpus

from structpred.io.templates.arc_template_sets import pruning_templates
from structpred.models.parser.arcs import crossing_arcs, is_projective, tree_oracle
from structpred.models.parser.parser import DependencyParser
from structpred.models.parser.sentences import as_treebank
from structpred.task.inference import part_scores

X, Y = corpus(60, 0, 0.3)
X_TEST, Y_TEST = corpus(40, 1, 0.3)
STRAIGHT = corpus(40, 2)


def scores_of(model: DependencyParser, X: Any) -> list[np.ndarray]:
    """The arc scores of each sentence, (n, n + 1)."""
    features = model._features(model.featurizer_.transform(as_treebank(X)))
    return [part_scores(features, model.coef_, i).reshape(n, n + 1) for i, n in enumerate(features.data.lengths.tolist())]


def crossing_by_definition(heads: list[int]) -> list[bool]:
    """For each word whether the arc to it crosses another: their ends alternate."""
    arcs = [(min(m, h), max(m, h)) for m, h in enumerate(heads, 1)]
    return [any(a < c < b < d or c < a < d < b for c, d in arcs) for a, b in arcs]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_crossing_arcs_are_all_found(n: int) -> None:
    """Every array of heads up to five words, trees or not: exactly the arcs whose ends alternate with those of another."""
    from structpred.oracles.trees._tree_kernels import mark_crossing

    everything = [h for h in itertools.product(range(n + 1), repeat=n) if all(m != head for m, head in enumerate(h, 1))]
    heads = np.array(everything, dtype=np.int64).ravel()
    marks = np.zeros(len(heads), np.uint8)
    mark_crossing(heads, n * np.arange(len(everything) + 1), marks)
    expected = [crossing_by_definition(list(h)) for h in everything]
    np.testing.assert_array_equal(marks.reshape(-1, n).astype(bool), expected)


def test_fewer_than_one_crossing_arc_in_a_hundred_is_projective() -> None:
    """None decides by the share of arcs that cross another one; True and False are what they say."""
    crossed, straight = [3, 4, 0, 3], [0, 1, 2, 3]  # 2 <- 4 crosses 1 <- 3 and 0 -> 3
    assert crossing_by_definition(crossed) == [True, True, True, False]
    for n_straight, expected in ((74, False), (75, True)):  # 3 of 300, 3 of 304
        heads = np.array(crossed + straight * n_straight)
        offsets = 4 * np.arange(n_straight + 2)
        crossing = crossing_arcs(heads, offsets)
        assert crossing.tolist() == [1, 1, 1, 0] + [0] * 4 * n_straight
        for asked, answer in ((None, expected), (True, True), (False, False)):
            assert is_projective(asked, int(crossing.sum()), len(heads)) is answer


@pytest.mark.parametrize("projective", [False, True])
def test_marginals_are_the_gradient_of_the_log_partition_function(projective: bool) -> None:
    """Rows sum to one, no word heads itself, and log Z at moved weights changes as the marginals say."""
    model = DependencyParser("oeg", 1.0, projective=projective, labelled=False).fit(X, Y)
    marginals = model.predict_marginals(X_TEST)
    data = model.featurizer_.transform(as_treebank(X_TEST))
    features, rng = model._features(data), np.random.default_rng(0)
    oracle = tree_oracle(projective, True)
    for i, mu in enumerate(marginals):
        n = len(X_TEST[i])
        assert mu.shape == (n, n + 1)
        assert np.isfinite(mu).all()
        assert mu.min() >= -1e-12
        np.testing.assert_allclose(mu.sum(axis=1), 1.0, atol=1e-9)
        assert not mu[np.arange(n), np.arange(1, n + 1)].any()
        assert mu[:, 0].sum() == pytest.approx(1.0, abs=1e-9)  # one root
    w, along = model.coef_.astype(np.float64), rng.normal(size=len(model.coef_))
    for i in range(8):
        shape, change = (len(X_TEST[i]),), features.scores(along, i)
        above, below = (oracle.marginals(features.scores(w + step * along, i), shape)[0] for step in (1e-5, -1e-5))
        assert (above - below) / 2e-5 == pytest.approx(float(marginals[i].ravel() @ change), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("projective", [False, True])
def test_the_k_best_are_the_first_of_all_trees(projective: bool) -> None:
    """Distinct, descending, the first is what predict gives; for short sentences they are the best of all trees, listed."""
    model = DependencyParser(projective=projective).fit(*STRAIGHT)
    random, _ = random_corpus([2, 3, 4, 5], 1)
    found, predicted = model.predict_kbest(random, 40), model.predict(random)
    for tokens, best, first, theta in zip(random, found, predicted, scores_of(model, random), strict=True):
        n = len(tokens)
        listed = [h for h in np.ndindex(*[n + 1] * n) if is_tree(list(h), projective=projective)]
        totals = sorted((float(theta[np.arange(n), list(h)].sum()) for h in listed), reverse=True)
        assert len(best) == min(40, len(listed))
        np.testing.assert_allclose([score for _, score in best], totals[:40], atol=1e-9)
        assert len({tuple(tree.heads.tolist()) for tree, _ in best}) == len(best)
        assert plain([best[0][0]]) == plain([first])
        for tree, score in best:
            assert is_tree(tree.heads.tolist(), projective=projective)
            assert tree.labels is not None
            assert len(tree.labels) == n
            assert score == pytest.approx(float(theta[np.arange(n), tree.heads].sum()), abs=1e-9)
    long = model.predict_kbest(X_TEST, 7)
    assert [plain([best[0][0]]) for best in long] == [plain([tree]) for tree in model.predict(X_TEST)]
    assert all(np.diff([score for _, score in best]).max(initial=-1.0) <= 1e-9 for best in long)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_pruning_says_exactly_what_it_loses(k: int) -> None:
    """kept_ is the share of true arcs among the k best heads of the first model and the left neighbour, counted again here."""
    random, trees = random_corpus([3, 9, 8, 1, 12, 7] * 6, 2)
    model = DependencyParser(prune=k).fit(random, trees)
    assert model.pruner_ is not None
    assert len(model.pruner_.templates_) <= len(pruning_templates())
    kept = total = 0
    for theta, heads in zip(scores_of(model.pruner_, random), trees, strict=True):
        for m, head in enumerate(heads, 1):
            row = theta[m - 1].copy()
            row[m] = -np.inf
            kept += head in {*np.argsort(-row, kind="stable")[:k].tolist(), m - 1}
            total += 1
    assert model.kept_ == kept / total
    assert model.kept_ < 1.0


def test_pruned_predictions_use_kept_arcs_only() -> None:
    """Every head that a pruned model predicts is among the first model's two best or the left neighbour; trees stay trees."""
    model = DependencyParser(prune=2).fit(X, Y)
    for tree, theta in zip(model.predict(X_TEST), scores_of(model.pruner_, X_TEST), strict=True):  # type: ignore[arg-type]
        assert is_tree(tree.heads.tolist())
        for m, head in enumerate(tree.heads.tolist(), 1):
            row = theta[m - 1].copy()
            row[m] = -np.inf
            assert head in {*np.argsort(-row, kind="stable")[:2].tolist(), m - 1}
    field = DependencyParser("oeg", 1.0, prune=2, labelled=False).fit(X, Y)
    for mu, best in zip(field.predict_marginals(X_TEST), field.predict_kbest(X_TEST, 3), strict=True):
        assert np.count_nonzero(mu > 0, axis=1).max() <= 3
        assert all(mu[np.arange(len(tree.heads)), tree.heads].min() > 0 for tree, _ in best)


def test_keeping_all_heads_is_no_pruning() -> None:
    """With more candidates than words, weights and heads are those of the unpruned model, to the last bit."""
    whole, pruned = DependencyParser().fit(X, Y), DependencyParser(prune=50).fit(X, Y)
    assert pruned.kept_ == 1.0
    assert whole.kept_ is None
    assert pruned.coef_.tobytes() == whole.coef_.tobytes()
    assert plain(pruned.predict(X_TEST)) == plain(whole.predict(X_TEST))


def test_training_with_pruning_keeps_the_true_arcs() -> None:
    """Even where the first model would drop many true arcs, training sees whole true trees and learns them."""
    random, trees = random_corpus([6] * 12, 3)
    model = DependencyParser("bcfw", 10.0, 60, prune=1, labelled=False).fit(random, trees)
    assert model.kept_ is not None
    assert model.kept_ < 0.9
    assert np.isfinite(model.certificate_.gap)
    assert model.certificate_.primal < 3.0  # on average fewer than three of six heads are worth a loss
