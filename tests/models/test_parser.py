"""DependencyParser: what it learns, its second stage, forms of input, held-out data, weights, its place in scikit-learn."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from parser_cases import as_bank, corpus, gold_heads, heads_of, is_tree, plain, random_corpus
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils import estimator_html_repr

from structpred.errors import DataError, ParameterError
from structpred.io import Sentence, Tree
from structpred.models.parser.parser import DependencyParser
from structpred.trainers.bcfw import BCFW
from structpred.trainers.mira import MIRA

X, Y = corpus(60, 0, 0.3)
X_TEST, Y_TEST = corpus(40, 1, 0.3)
STRAIGHT = corpus(40, 2)
TRAINERS = {"perceptron": 1.0, "mira": 0.01, "sgd": 1.0, "bcfw": 0.1, "pa": 1.0, "arow": 1.0, "oeg": 1.0, "lbfgs": 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("projective", [False, True])
def test_every_trainer_learns_the_language(trainer: str, projective: bool) -> None:
    """On new sentences nearly all heads and relations are right; what is found are trees, projective ones if asked."""
    C = TRAINERS[trainer]
    model = DependencyParser(trainer, C, label_C=C, projective=projective).fit(X, Y)
    found = model.predict(X_TEST)
    assert all(is_tree(heads, projective=projective) for heads in heads_of(found))
    assert model.score(X_TEST, Y_TEST) > (0.9 if projective else 0.97)
    passes = 100 if trainer == "lbfgs" else 10
    assert model.n_iter_ == len(model.history_) == passes
    assert model.stop_reason_ == "max_iter"
    assert len(model.label_history_) == passes


def test_the_score_is_the_share_of_right_words() -> None:
    """LAS where relations were learnt, UAS where not, over words and not over sentences."""
    model, bare = DependencyParser().fit(X, Y), DependencyParser(labelled=False).fit(X, Y)
    gold = [list(arcs) for arcs in Y_TEST]
    gold[0] = [(head, "wrong") for head, _ in gold[0]]
    gold[1] = [(len(gold[1]) if m == 1 else head, name) for m, (head, name) in enumerate(gold[1], 1)]
    right = head_right = total = 0
    for tree, arcs in zip(model.predict(X_TEST), gold, strict=True):
        assert tree.labels is not None
        for head, label, arc in zip(tree.heads.tolist(), tree.labels, arcs, strict=True):
            head_right, right, total = head_right + (head == arc[0]), right + ((head, label) == arc), total + 1
    assert right < head_right < total
    assert model.score(X_TEST, gold) == pytest.approx(right / total)
    assert bare.score(X_TEST, gold) == pytest.approx(head_right / total)
    assert bare.score(X_TEST, gold_heads(gold)) == bare.score(X_TEST, gold)


@pytest.mark.slow
def test_all_forms_of_input_are_one() -> None:
    """Token dicts, Sentence objects and a Treebank; pairs, Tree objects and a Treebank's own trees: the same model and trees."""
    sentences = [
        Sentence(*([token.get(key, "_") for token in tokens] for key in ("form", "lemma", "upos", "xpos", "feats")))
        for tokens in X
    ]
    trees = [Tree(np.array([head for head, _ in arcs]), [label for _, label in arcs]) for arcs in Y]
    models = [
        DependencyParser(max_iter=3).fit(*data)
        for data in ((X, Y), (tuple(X), tuple(Y)), (sentences, trees), (sentences, Y), (as_bank(X, Y),), (as_bank(X, Y), trees))
    ]
    expected = plain(models[0].predict(X_TEST))
    for model in models:
        assert model.coef_.tobytes() == models[0].coef_.tobytes()
        assert plain(model.predict(X_TEST)) == expected
        assert plain(model.predict(as_bank(X_TEST, Y_TEST))) == expected
    mixed = [sentences[0], X[1], X[2]]
    assert plain(models[0].predict(mixed)) == plain(models[0].predict(X[:3]))


def test_forms_alone_will_do() -> None:
    """Sentences as lists of words, without any tag."""
    words = [[token["form"] for token in tokens] for tokens in X]
    model = DependencyParser().fit(words, Y)
    assert model.featurizer_.present == ("form", "suffix")
    assert model.score(words, Y) > 0.95
    assert model.predict([["the", "dog", "sees", "."]])[0].heads.tolist() == [2, 3, 0, 3]
    with pytest.raises(ParameterError, match="prune needs tags or lemmas"):
        DependencyParser(prune=3).fit(words, Y)


@pytest.mark.parametrize("how", ["heads", "setting", "no labels"])
def test_trees_without_relations(how: str) -> None:
    """Unlabelled trees, or labelled=False: no second stage, no relations, the same arcs."""
    trees: Any = {"heads": gold_heads(Y), "setting": Y, "no labels": [Tree(np.array(h), None) for h in gold_heads(Y)]}[how]
    model = DependencyParser(labelled=how != "setting").fit(X, trees)
    assert model.relations_ is None
    assert (model.label_certificate_, model.label_history_) == (None, [])
    assert all(tree.labels is None for tree in model.predict(X_TEST))
    assert model.coef_.tobytes() == DependencyParser().fit(X, Y).coef_.tobytes()


@pytest.mark.slow
def test_predictions_do_not_depend_on_threads_or_company() -> None:
    """The same trees, relations and weights on 1, 2, 8 and all threads, in any order, and one sentence at a time."""
    models = [DependencyParser("bcfw", 0.1, 4, check_every=2, n_jobs=n_jobs).fit(X, Y) for n_jobs in (None, 2, 8, -1)]
    expected = plain(models[0].predict(X_TEST))
    for model in models:
        assert model.coef_.tobytes() == models[0].coef_.tobytes()
        assert [row["primal"] for row in model.history_] == [row["primal"] for row in models[0].history_]
        assert plain(model.predict(X_TEST)) == expected
        assert plain(model.predict(X_TEST[::-1])) == expected[::-1]
    assert [plain(models[0].predict([tokens]))[0] for tokens in X_TEST] == expected


def test_threads_of_the_program_may_predict_at_once() -> None:
    """Eight threads that share one fresh model find what one finds."""
    model = DependencyParser(max_iter=3).fit(X, Y)
    expected = plain(model.predict(X_TEST))
    for _ in range(5):
        shared = pickle.loads(pickle.dumps(model))
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda _: plain(shared.predict(X_TEST)), range(8))) == [expected] * 8  # noqa: B023


def test_what_was_not_seen_in_training_is_parsed() -> None:
    """New words, new tags, no tags in some sentences: always a tree with known relations."""
    model = DependencyParser().fit(X, Y)
    known = set(model.relations_.classes_)  # type: ignore[union-attr]
    odd = [[{"form": "ZZZ", "upos": "NEW", "feats": "Case=Odd"}] * n for n in (1, 2, 7)] + [
        ["\u4f60\u597d", "!"],
        [" ", "e\u0301"],
    ]
    for tree in model.predict(odd):
        assert is_tree(tree.heads.tolist())
        assert tree.labels is not None
        assert set(tree.labels) <= known
    assert model.predict([[{"form": "dog", "upos": "NOUN"}]])[0].heads.tolist() == [0]


def test_nothing_to_predict_is_nothing() -> None:
    """An empty list gives an empty list from every method, on any number of threads."""
    for jobs in (1, 2):
        model = DependencyParser("oeg", 1.0, 1, n_jobs=jobs, prune=2).fit(X, Y)
        assert model.predict([]) == model.predict_marginals([]) == model.predict_kbest([], 3) == []
        assert model.predict([], fixed=[], forbidden=[]) == []


def test_a_sentence_of_one_word() -> None:
    """Its only tree, probability one, and no second best; training on such sentences alone works."""
    with pytest.warns(UserWarning, match="first pass over the data changed nothing"):
        model = DependencyParser(labelled=False).fit([["yes"], ["no"]], [[0], [0]])
    assert heads_of(model.predict([["maybe"]])) == [[0]]
    field = DependencyParser("oeg", labelled=False).fit([["yes"], ["no"]], [[0], [0]])
    np.testing.assert_allclose(field.predict_marginals([["maybe"]])[0], [[1.0, 0.0]])
    assert len(model.predict_kbest([["maybe"]], 5)[0]) == 1


@pytest.mark.slow
def test_sentences_that_cross_are_left_out_of_projective_training() -> None:
    """They are counted, and the weights are those of training without them; None decides by how many arcs cross."""
    crossing = [not is_tree(heads, projective=True) for heads in gold_heads(Y)]
    rest = [i for i, crosses in enumerate(crossing) if not crosses]
    weights = np.linspace(0.5, 2.0, len(X))
    model = DependencyParser(projective=True, prune=4).fit(X, Y, sample_weight=weights)
    alone = DependencyParser(projective=True, prune=4).fit(
        [X[i] for i in rest], [Y[i] for i in rest], sample_weight=weights[rest]
    )
    assert model.left_out_ == sum(crossing) > 5
    assert alone.left_out_ == 0
    assert model.coef_.tobytes() == alone.coef_.tobytes()
    assert plain(model.predict(X_TEST)) == plain(alone.predict(X_TEST))
    assert (DependencyParser().fit(X, Y).projective_, DependencyParser().fit(*STRAIGHT).projective_) == (False, True)
    assert DependencyParser(projective=False).fit(X, Y).left_out_ == 0
    bad = [i for i, crosses in enumerate(crossing) if crosses]
    with pytest.raises(DataError, match="every sentence has crossing arcs"):
        DependencyParser(projective=True).fit([X[i] for i in bad], [Y[i] for i in bad])


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0, 2])
@pytest.mark.parametrize(("trainer", "C"), [(BCFW(averaged=False), 0.001), ("lbfgs", 0.05)], ids=["bcfw", "lbfgs"])
def test_a_sample_weight_is_a_number_of_copies(weight: int, trainer: Any, C: float) -> None:
    """At the optimum a sentence with the weight 2 counts as if it stood there twice, with 0 as if it were not there."""
    random, trees = random_corpus([3, 4, 2, 5, 3, 4, 4, 3], 5)
    weights = np.ones(8)
    weights[:3] = weight
    settings: dict[str, Any] = {"trainer": trainer, "C": C, "tol": 1e-9, "max_iter": 1000, "check_every": 50, "labelled": False}
    weighted = DependencyParser(**settings, max_bits=6).fit(random, trees, sample_weight=weights)
    repeated = DependencyParser(**settings, max_bits=6).fit(weight * random[:3] + random[3:], weight * trees[:3] + trees[3:])
    usual = DependencyParser(**settings, max_bits=6).fit(random, trees)
    bounds = [model.certificate_ for model in (weighted, repeated)]
    assert bounds[0].dual <= bounds[1].primal + 1e-12  # both intervals hold the one optimum, up to rounding
    assert bounds[1].dual <= bounds[0].primal + 1e-12
    assert max(bound.relative_gap for bound in bounds) < 1e-5
    # strongly convex, so the gaps say how far from the optimum the weights can be
    apart = sum(np.sqrt(2 * bound.gap * C * weights.sum()) for bound in bounds)
    assert np.linalg.norm(weighted.coef_ - repeated.coef_) <= apart + 1e-6
    assert np.linalg.norm(weighted.coef_ - usual.coef_) > 10 * apart


def test_held_out_data_choose_the_weights() -> None:
    """The arcs of the best pass are kept, by the share of right heads; patience ends training; a Treebank or (X, y) will do."""
    dev = corpus(30, 7, 0.3)
    settings: dict[str, Any] = {"trainer": MIRA(), "C": 1.0, "max_iter": 30, "patience": 3}
    model = DependencyParser(**settings).fit(X[:10], Y[:10], dev=dev)
    scores = [row["dev_score"] for row in model.history_]
    right = np.concatenate(heads_of(model.predict(dev[0]))) == np.concatenate(gold_heads(dev[1]))
    assert float(right.mean()) == max(scores)
    assert model.stop_reason_ == "dev"
    assert scores.index(max(scores)) == len(scores) - 4
    assert model.n_iter_ == len(scores) < 30
    other = DependencyParser(**settings).fit(X[:10], Y[:10], dev=as_bank(*dev))
    assert other.coef_.tobytes() == model.coef_.tobytes()
    pruned = DependencyParser(**settings, prune=3).fit(X[:10], Y[:10], dev=dev)
    found = np.concatenate(heads_of(pruned.predict(dev[0]))) == np.concatenate(gold_heads(dev[1]))
    assert float(found.mean()) == max(row["dev_score"] for row in pruned.history_)


def test_patience_without_relations_of_its_own() -> None:
    """With patience but without held-out data fit refuses; with them the second stage trains all its passes."""
    with pytest.raises(ParameterError, match="patience needs held-out data"):
        DependencyParser(patience=2).fit(X, Y)
    model = DependencyParser(patience=1, max_iter=8).fit(X, Y, dev=(X, Y))
    assert model.n_iter_ < 8
    assert len(model.label_history_) == 8


def test_both_stages_have_a_certificate() -> None:
    """Block-coordinate Frank-Wolfe bounds the arcs and the relations; the gap is never negative."""
    model = DependencyParser("bcfw", 0.1, 30, label_C=0.1, check_every=3).fit(X, Y)
    for history, certificate in ((model.history_, model.certificate_), (model.label_history_, model.label_certificate_)):
        gaps = [row["gap"] for row in history if row["gap"] is not None]
        assert len(gaps) == 10
        assert min(gaps) >= 0
        assert gaps[-1] < 0.5 * gaps[0]
        assert certificate is not None
        assert certificate.proven


@pytest.mark.slow
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("C", [1e-12, 1e12])
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
@pytest.mark.filterwarnings("ignore:lbfgs. the line search failed")  # steps of 1e-12 are out of its reach
def test_numbers_stay_finite_at_any_C(trainer: str, C: float) -> None:
    """Weights, histories, marginals and scores are finite, marginals sum to one, and trees are trees, however large C is."""
    model = DependencyParser(trainer, C, 3, label_C=C, check_every=1).fit(X[:20], Y[:20])
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.relations_.coef_).all()  # type: ignore[union-attr]
    for row in model.history_ + model.label_history_:
        assert all(value is None or np.isfinite(value) for value in row.values())
    assert all(is_tree(heads) for heads in heads_of(model.predict(X_TEST)))
    for mu in model.predict_marginals(X_TEST) if model.probabilistic_ else []:
        np.testing.assert_allclose(mu.sum(axis=1), 1.0, atol=1e-6)
    for best in model.predict_kbest(X_TEST, 2):
        assert all(np.isfinite(score) for _, score in best)


def test_the_same_data_give_the_same_model() -> None:
    """Twice the same bits; another seed is another order; callbacks see the rows of both stages."""
    rows: list[Any] = []
    models = [DependencyParser(random_state=s, max_iter=3).fit(X, Y) for s in (None, 0, 1)]
    again = DependencyParser(max_iter=3, callbacks=rows.append).fit(X, Y)
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes() == again.coef_.tobytes() != models[2].coef_.tobytes()
    assert models[0].relations_.coef_.tobytes() == again.relations_.coef_.tobytes()  # type: ignore[union-attr]
    assert [(row["passes"], row.get("stage")) for row in rows] == [(1, None), (2, None), (3, None), (1, 2), (2, 2), (3, 2)]


def test_templates_are_data() -> None:
    """Templates as text; those whose attributes the treebank lacks are left out; unknown attributes are refused."""
    few = DependencyParser(templates=["h.upos m.upos | distance", "h.xpos m.xpos", "m.form | direction"]).fit(X, Y)
    assert [str(t) for t in few.templates_] == ["h.upos m.upos | distance", "m.form | direction"]
    assert few.score(X_TEST, Y_TEST) > 0.8
    with pytest.raises(ParameterError, match=r"'h.fomr'.*'fomr'"):
        DependencyParser(templates=["h.fomr"]).fit(X, Y)
    with pytest.raises(ParameterError, match="none of the templates can be used"):
        DependencyParser(templates=["h.xpos m.xpos"]).fit(X, Y)
    with pytest.raises(ParameterError, match=r"expected one of .*'far'"):
        DependencyParser(templates=["h.form | far"]).fit(X, Y)


def test_nothing_is_written_to_the_data() -> None:
    """fit and predict leave sentences, trees and the treebank as they were; read-only heads will do."""
    trees = [Tree(np.array(h), None) for h in gold_heads(Y)]
    for tree in trees:
        tree.heads.flags.writeable = False
    before = repr(X), repr(trees)
    DependencyParser(max_iter=2).fit(X, trees).predict(X)
    assert (repr(X), repr(trees)) == before
    bank = as_bank(X, Y)
    heads, labels = bank.heads.copy(), list(bank.labels)
    DependencyParser(max_iter=2, projective=True).fit(bank).predict(bank)
    assert bank.heads.tobytes() == heads.tobytes()
    assert bank.labels == labels


def test_clone_params_repr_and_pickle() -> None:
    """get_params gives what was set and fit writes to none of it; clone is unfitted; repr names changes; pickle keeps all."""
    model = DependencyParser("bcfw", C=0.5, prune=3, projective=False, random_state=np.random.RandomState(0))
    before = dict(model.get_params())
    assert model.fit(X[:10], Y[:10]) is model
    assert model.get_params() == before
    twin = clone(model)
    assert not hasattr(twin, "coef_")
    assert {k: v for k, v in twin.get_params().items() if k != "random_state"} == {
        k: v for k, v in before.items() if k != "random_state"
    }
    assert repr(DependencyParser(C=0.25).fit(X[:5], Y[:5])) == "DependencyParser(C=0.25)"
    assert "DependencyParser" in estimator_html_repr(model)
    for picklable in (model, DependencyParser(max_iter=1, callbacks=print).fit(X, Y)):
        copy = pickle.loads(pickle.dumps(picklable))
        assert plain(copy.predict(X_TEST)) == plain(picklable.predict(X_TEST))
    given = BCFW(gap_sampling=True)
    assert DependencyParser(trainer=given).trainer is given
    with pytest.raises(ValueError, match="not fitted"):
        DependencyParser().predict(X)


@pytest.mark.slow
def test_cross_validation_and_grid_search() -> None:
    """cross_val_score and GridSearchCV over lists of sentences and of trees, in processes, too."""
    trees = [Tree(np.array([head for head, _ in arcs]), [label for _, label in arcs]) for arcs in Y]
    for y in (Y, trees):
        scores = cross_val_score(DependencyParser(max_iter=3), X, y, cv=KFold(3), error_score="raise")
        assert scores.shape == (3,)
        assert (scores > 0.9).all()
    grid = {"C": [1e-6, 0.01], "trainer": ["mira", "perceptron"]}
    searches = [
        GridSearchCV(DependencyParser(max_iter=2), grid, cv=KFold(2), n_jobs=jobs, error_score="raise").fit(X, Y)
        for jobs in (1, 2)
    ]
    assert searches[0].best_score_ > 0.9
    assert searches[0].cv_results_["mean_test_score"].tolist() == searches[1].cv_results_["mean_test_score"].tolist()
    assert searches[0].score(X_TEST, Y_TEST) == searches[0].best_estimator_.score(X_TEST, Y_TEST)
