"""MultiLabelMRF compared with explicit scores of all 2^L outputs; settings, files, scikit-learn, bad input."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structpred.errors import DataError, MissingCapabilityError, ModelFileError, ParameterError
from structpred.io import MultiLabelData, read_mulan
from structpred.models import GraphLabeler, MultiLabelMRF, load
from structpred.models.fields import label_graphs
from structpred.models.fields.label_graphs import LabelCounts, label_edges
from structpred.oracles.branch_and_bound import BranchAndBoundMRF
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.qpbo import QPBO
from structpred.oracles.tree_mrf import TreeMRF
from structpred.trainers.bcfw import BCFW
from structpred.trainers.marginal_bcfw import MarginalBCFW

L, D = 4, 3


def sample(seed: int = 0, n: int = 40, n_labels: int = L) -> tuple[np.ndarray, np.ndarray]:
    """Features, and labels that depend on them and on each other."""
    rng = np.random.default_rng(seed)
    hidden = np.random.default_rng(99).normal(size=(D, n_labels))
    X = rng.normal(size=(n, D))
    Y = (X @ hidden + 0.3 * rng.normal(size=(n, n_labels)) > 0).astype(int)
    Y[:, 1] = Y[:, 0] ^ (rng.random(n) < 0.1)
    return X, Y


X0, Y0 = sample()
OUTPUTS = np.array(list(itertools.product((0, 1), repeat=L)))


def tables(model: MultiLabelMRF) -> tuple[np.ndarray, np.ndarray]:
    """Node weights (L, d + 1, 2) and pair tables (E, 2, 2), from the documented order."""
    n = model.n_labels_ * (model.n_features_in_ + 1) * 2
    return model.coef_[:n].reshape(model.n_labels_, -1, 2), model.coef_[n : n + 4 * len(model.edges_)].reshape(-1, 2, 2)


def score_of(model: MultiLabelMRF, x: np.ndarray, y: np.ndarray) -> float:
    """The score of one output, from the definition."""
    nodes, pairs = tables(model)
    total = sum(float(np.append(x, 1.0) @ nodes[k][:, y[k]]) for k in range(len(y)))
    return total + sum(float(t[y[i], y[j]]) for t, (i, j) in zip(pairs, model.edges_.tolist(), strict=True))


EDGES: dict[str, Any] = {"complete": "complete", "tree": "tree", "two": 2, "given": [(3, 0), (1, 2)], "none": []}


@pytest.mark.slow
@pytest.mark.parametrize("edges", EDGES)
def test_predictions_scores_and_marginals_are_those_of_all_outputs(edges: str) -> None:
    """predict is the best of 2^L outputs, predict_scores the difference of two maxima, predict_marginals a sum."""
    model = MultiLabelMRF("sgd", 1.0, 20, surrogate="log", edges=EDGES[edges], scale=None).fit(X0, Y0)
    X, _ = sample(1, 10)
    scores = np.array([[score_of(model, x, y) for y in OUTPUTS] for x in X])
    found = model.predict(X)
    assert found.tolist() == OUTPUTS[scores.argmax(axis=1)].tolist()
    assert found.dtype == np.int64
    on = np.array([[s[OUTPUTS[:, k] == 1].max() - s[OUTPUTS[:, k] == 0].max() for k in range(L)] for s in scores])
    np.testing.assert_allclose(model.predict_scores(X), on, atol=1e-9)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_marginals(X), p @ OUTPUTS, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["margin", "slack", "log"])
def test_the_certificate_is_the_objective(surrogate: str) -> None:
    """The primal value is C-scaled risk plus regulariser, worked out over all outputs; the dual lies below."""
    C = 0.2
    trainer: Any = "lbfgs" if surrogate == "log" else BCFW(averaged=False)
    model = MultiLabelMRF(trainer, C, 30, 0.0, surrogate=surrogate, scale=None).fit(X0, Y0)
    risk = 0.0
    for x, truth in zip(X0, Y0, strict=True):
        scores = np.array([score_of(model, x, y) for y in OUTPUTS])
        own = score_of(model, x, truth)
        wrong = (truth != OUTPUTS).sum(axis=1)
        if surrogate == "margin":
            risk += float((wrong + scores - own).max())
        elif surrogate == "slack":
            risk += float((wrong * np.maximum(1 + scores - own, 0)).max())
        else:
            risk += float(np.log(np.exp(scores - own).sum()))
    lam = 1 / (C * len(X0))
    wanted = 0.5 * lam * model.coef_ @ model.coef_ + risk / len(X0)
    assert model.certificate_.primal == pytest.approx(wanted, rel=1e-9)
    assert model.certificate_.proven
    if surrogate != "log":
        assert model.certificate_.dual <= wanted + 1e-9
        assert model.certificate_.gap < 0.2 * wanted


@pytest.mark.slow
def test_independent_labels_are_labels_alone() -> None:
    """Without edges the margin objective is the sum of the objectives of each label by itself."""
    tight: dict[str, Any] = {"C": 0.5, "tol": 1e-3, "max_iter": 4000, "edges": []}
    joint = MultiLabelMRF(**tight).fit(X0, Y0)
    alone = sum(MultiLabelMRF(**tight).fit(X0, Y0[:, [k]]).certificate_.primal for k in range(L))
    assert joint.converged_
    assert joint.certificate_.primal == pytest.approx(alone, rel=2e-3)


@pytest.mark.slow
def test_pairs_help_where_labels_depend_on_each_other() -> None:
    """Labels that the features say little about but that exclude each other: pairs raise the share of rows all right."""
    rng = np.random.default_rng(0)
    choice = rng.integers(0, 3, 300)
    Y = np.eye(3, dtype=int)[choice]
    X = Y + rng.normal(0, 1.0, (300, 3))
    right = {}
    for edges in ("complete", []):
        model = MultiLabelMRF(C=1.0, max_iter=30, edges=edges).fit(X[:200], Y[:200])
        right[str(edges)] = (model.predict(X[200:]) == Y[200:]).all(axis=1).mean()
    assert right["complete"] > right["[]"] + 0.1


def test_edges_are_the_strongest() -> None:
    """A number takes the largest |correlations|; "tree" is the best spanning tree of all, also with columns that are constant."""
    rng = np.random.default_rng(3)
    Y = (rng.random((50, 4)) < 0.4).astype(np.int64)
    Y[:, 2] = 1 - (Y[:, 0] ^ (rng.random(50) < 0.1))
    strength = np.abs(np.corrcoef(Y.T))
    pairs = list(itertools.combinations(range(4), 2))
    ranked = sorted(pairs, key=lambda pair: -strength[pair])
    assert sorted(map(tuple, label_edges(2, LabelCounts.of(Y)).tolist())) == sorted(ranked[:2])
    spanning = [t for t in itertools.combinations(pairs, 3) if len({v for p in t for v in p}) == 4 and _acyclic(t)]
    best = max(spanning, key=lambda t: sum(strength[p] for p in t))
    assert list(map(tuple, label_edges("tree", LabelCounts.of(Y)).tolist())) == sorted(best)
    assert len(label_edges(99, LabelCounts.of(Y))) == len(label_edges("complete", LabelCounts.of(Y))) == 6
    Y[:, 1] = 1
    assert len(label_edges("tree", LabelCounts.of(Y))) == 3
    assert label_edges(1, LabelCounts.of(Y)).tolist() == [[0, 2]]


def _acyclic(tree: Any) -> bool:
    group = list(range(4))
    for i, j in tree:
        if group[i] == group[j]:
            return False
        group = [group[i] if g == group[j] else g for g in group]
    return True


def test_the_oracle_is_chosen_as_documented() -> None:
    """Enumeration up to 16 labels, TreeMRF for more without a cycle, else branch and bound; an object is used as it is."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 2)), (rng.random((12, 17)) < 0.3).astype(int)
    quick: dict[str, Any] = {"max_iter": 1, "C": 0.1}
    assert isinstance(MultiLabelMRF(**quick).fit(X, Y[:, :16]).oracle_, EnumerationMRF)
    assert isinstance(MultiLabelMRF(**quick, edges="tree").fit(X, Y).oracle_, TreeMRF)
    assert isinstance(MultiLabelMRF(**quick).fit(X, Y).oracle_, BranchAndBoundMRF)
    own = TreeMRF()
    assert MultiLabelMRF(**quick, edges="tree", oracle=own).fit(X, Y[:, :3]).oracle_ is own


def test_a_search_that_is_cut_short_leaves_a_valid_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seventeen labels that are all joined, a handful of partial outputs: training goes on, and the gap counts the bounds."""
    X, Y = sample(2, 12, 17)
    exact = MultiLabelMRF("bcfw", 0.05, 3).fit(X, Y).certificate_
    monkeypatch.setattr(label_graphs, "MAX_NODES", 3)
    cut = MultiLabelMRF("bcfw", 0.05, 3).fit(X, Y)
    assert cut.certificate_.proven
    assert cut.certificate_.dual <= exact.primal
    assert cut.certificate_.primal >= exact.dual
    assert cut.predict(X).shape == Y.shape


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [TreeMRF(), BranchAndBoundMRF(), QPBO()], ids=lambda oracle: type(oracle).__name__)
def test_other_oracles_reach_the_same_optimum(oracle: Any) -> None:
    """On a tree all of these are exact or have an exact bound: their certificates overlap with that of enumeration."""
    tight: dict[str, Any] = {"C": 0.2, "tol": 1e-3, "max_iter": 1000, "edges": "tree"}
    a, b = MultiLabelMRF(**tight).fit(X0, Y0), MultiLabelMRF(**tight, oracle=oracle).fit(X0, Y0)
    assert a.certificate_.proven
    assert b.certificate_.proven
    assert a.certificate_.dual <= b.certificate_.primal + 1e-9
    assert b.certificate_.dual <= a.certificate_.primal + 1e-9


LEARNING = [*itertools.product(("bcfw", "sgd", "n_slack", "one_slack"), ("margin", "slack"))]
LEARNING += [(name, None) for name in ("perceptron", "mira", "oeg", "lbfgs")]


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("trainer", "surrogate"), LEARNING)
def test_every_trainer_learns(trainer: str, surrogate: str | None) -> None:
    """Margin and slack rescaling, or a trainer's own loss: new rows are mostly right, and there is a row of history a pass."""
    model = MultiLabelMRF(trainer, 1.0, 40, surrogate=surrogate).fit(X0, Y0)
    assert model.score(*sample(1)) > 0.65
    assert len(model.history_) == model.n_iter_


def test_samples_with_weight_two_are_copies() -> None:
    """At the optimum, weight 2 is the same as standing there twice."""
    tight: dict[str, Any] = {"C": 0.1, "tol": 1e-3, "max_iter": 5000}
    weighted = MultiLabelMRF(**tight).fit(X0, Y0, sample_weight=[2] * 10 + [1] * 30)
    repeated = MultiLabelMRF(**tight).fit(np.concatenate((X0[:10], X0)), np.concatenate((Y0[:10], Y0)))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-3)


def test_held_out_data_choose_the_weights() -> None:
    """With dev data the best pass is kept."""
    dev = sample(2)
    model = MultiLabelMRF("perceptron", max_iter=30, patience=3).fit(X0, Y0, dev=dev)
    assert model.score(*dev) == max(row["dev_score"] for row in model.history_)


def test_the_same_data_give_the_same_model() -> None:
    """Two fits, dense and sparse rows, lists and MultiLabelData, give the same weights to the last bit; another seed does not."""
    first = MultiLabelMRF(max_iter=5).fit(X0, Y0)
    data = MultiLabelData(sparse.csr_array(X0), Y0.astype(np.uint8), ["a", "b", "c", "d"], ["x", "y", "z"])
    for X, y in ((X0, Y0), (sparse.csc_matrix(X0), sparse.csr_matrix(Y0)), (X0.tolist(), Y0.tolist()), (X0, Y0.astype(bool))):
        assert MultiLabelMRF(max_iter=5).fit(X, y).coef_.tobytes() == first.coef_.tobytes()
    named = MultiLabelMRF(max_iter=5).fit(data)
    assert named.coef_.tobytes() == first.coef_.tobytes()
    assert named.label_names_ == ["a", "b", "c", "d"]
    assert named.score(data) == first.score(X0, Y0)
    models = [MultiLabelMRF(MarginalBCFW(start=False), max_iter=5, random_state=seed).fit(X0, Y0) for seed in (0, 1)]
    assert models[0].coef_.tobytes() != models[1].coef_.tobytes()


def test_without_bias() -> None:
    """bias=0 leaves the constant out: a row of zeros scores by its pairs alone."""
    model = MultiLabelMRF(max_iter=5, bias=0.0, edges=[]).fit(X0, Y0)
    assert len(model.coef_) == L * D * 2 + 4
    assert model.predict_scores(np.zeros((1, D))).tolist() == [[0.0] * L]


@pytest.mark.parametrize(
    "settings", [{}, {"edges": "tree"}, {"edges": [(0, 1)]}, {"surrogate": "slack", "bias": 2.0}, {"edges": 2}]
)
def test_files(tmp_path: Path, settings: Any) -> None:
    """A loaded model predicts the same, has the same settings, and can be trained again to the same weights."""
    path = tmp_path / "m.spz"
    model = MultiLabelMRF(C=0.3, max_iter=4, random_state=3, **settings).fit(X0, Y0)
    model.save(path)
    for loaded in (MultiLabelMRF.load(path), load(path)):
        assert loaded.predict_scores(X0).tobytes() == model.predict_scores(X0).tobytes()
        assert loaded.certificate_ == model.certificate_
        assert loaded.edges_.tolist() == model.edges_.tolist()
        assert (loaded.C, loaded.bias, loaded.surrogate, loaded.n_labels_) == (0.3, model.bias, model.surrogate, L)
        assert loaded.fit(X0, Y0).coef_.tobytes() == model.coef_.tobytes()


def test_a_file_names_an_oracle_of_yours(tmp_path: Path) -> None:
    """A model that was trained with a given oracle wants it again, and says which."""
    path = tmp_path / "m.spz"
    model = MultiLabelMRF(max_iter=2, oracle=QPBO()).fit(X0, Y0)
    model.save(path)
    for wrong in (None, TreeMRF()):
        with pytest.raises(ParameterError, match=r"QPBO; give load\(path, oracle=QPBO\(\)\)"):
            load(path, oracle=wrong)
    assert load(path, oracle=QPBO()).predict(X0).tolist() == model.predict(X0).tolist()
    with pytest.raises(ModelFileError, match="expected a GraphLabeler, the file holds a MultiLabelMRF"):
        GraphLabeler.load(path)


def test_files_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    """Weights of another length, edges that are none, missing entries: ModelFileError."""
    from structpred.storage.bundles import read_bundle, write_bundle

    path = tmp_path / "m.spz"
    MultiLabelMRF(max_iter=2).fit(X0, Y0).save(path)
    changes: list[tuple[str, str, Any]] = [
        *(("header", *one) for one in (("n_features", 7), ("label_names", ["a"]), ("bias", "x"), ("oracle", None))),
        *(("arrays", "edges", edges) for edges in (np.array([[0, 9]]), np.zeros((2, 3), np.int64))),
        ("arrays", "weights", np.zeros(5)),
    ]
    for part, name, value in changes:
        bundle = read_bundle(path, kind="model")
        getattr(bundle, part)[name] = value
        write_bundle(tmp_path / "bad.spz", bundle, kind="model")
        with pytest.raises(ModelFileError, match=r"bad\.spz"):
            load(tmp_path / "bad.spz")


def test_scikit_learn_tools() -> None:
    """clone, get_params, set_params, a pipeline, cross-validation with a scorer of scikit-learn's, a grid search."""
    model = MultiLabelMRF(C=0.5, edges="tree", max_iter=5)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(C=2.0).C == 2.0
    with pytest.raises(NotFittedError):
        copy.predict(X0)
    scores = cross_val_score(make_pipeline(StandardScaler(), model), X0, Y0, cv=3, scoring="f1_micro")
    assert scores.min() > 0.6
    grid = GridSearchCV(model, {"C": [1e-6, 1.0], "edges": ["tree", []]}, cv=2).fit(X0, Y0)
    assert grid.best_params_["C"] == 1.0
    assert grid.best_estimator_.score(*sample(1)) > 0.65


def with_entry(array: np.ndarray, i: int, j: int, value: float) -> np.ndarray:
    """A float copy with another entry."""
    out = array.astype(float)
    out[i, j] = value
    return out


BAD: dict[str, tuple[Any, Any, str]] = {
    "NaN": (with_entry(X0, 7, 1, np.nan), Y0, "sample 7: features must be finite, got nan in column 1"),
    "infinity": (sparse.csr_array(with_entry(X0, 3, 0, np.inf)), Y0, "sample 3: features must be finite, got inf in column 0"),
    "one row": (X0[0], Y0, r"X: expected a 2-d array \(n_samples, n_features\), got 1-d"),
    "text": ([["a"] * D] * 40, Y0, "X: expected a 2-d array of numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], Y0[:2], "X: expected a 2-d array of numbers"),
    "no rows": (X0[:0], Y0[:0], "X: expected at least one sample"),
    "no columns": (X0[:, :0], Y0, "X: expected at least one feature column"),
    "y missing": (X0, None, "y: expected rows of 0 and 1, one column per label, got None"),
    "fewer labels": (X0, Y0[:5], "X has 40 samples but y has 5"),
    "values": (X0, with_entry(Y0, 4, 2, 2), "sample 4: y must be 0 or 1, got 2.0 for label 2"),
    "NaN labels": (X0, with_entry(Y0, 4, 2, np.nan), "sample 4: y must be 0 or 1, got nan for label 2"),
    "one column": (X0, Y0[:, 0], "y: expected rows of 0 and 1, one column per label, got 1-d int64.*MultiLabelBinarizer"),
    "no labels": (X0, Y0[:, :0], "y: expected at least one label columns, got 0"),
    "sets": (X0, [("a", 1)] * 40, "MultiLabelBinarizer"),
    "ragged sets": (X0, [("a",), ("a", 1)] * 20, "y: expected rows of 0 and 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_are_named_and_change_nothing(name: str) -> None:
    """Unusable data raise DataError with the sample or the cause; a model fitted before stays as it was."""
    X, y, message = BAD[name]
    model = MultiLabelMRF(max_iter=2).fit(X0, Y0)
    before = dict(vars(model))
    with pytest.raises(DataError, match=message):
        model.fit(X, y)
    assert vars(model) == before


@pytest.mark.parametrize(("settings", "message"), [
    ({"edges": "star"}, "edges: expected 'complete', 'tree', a number of pairs"),
    ({"edges": -1}, "edges: expected 'complete'"),
    ({"edges": [(0, 9)]}, "edges: edge 0, .*names a node that is missing"),
    ({"edges": [(0, 1), (1, 0)]}, "edges: edge .*comes more than once"),
    ({"edges": [(1, 1)]}, "edges: edge 0, .*joins a node to itself"),
    ({"oracle": EnumerationMRF}, "oracle: expected an instance"),
    ({"bias": -1.0}, "bias must be finite and >= 0"),
    ({"bias": np.nan}, "bias must be finite and >= 0"),
    ({"C": 0.0}, "C must be a positive number"),
    ({"trainer": "newton"}, "trainer: expected one of"),
    ({"surrogate": "hing"}, "surrogate: expected one of"),
    ({"loss": "f2"}, "loss: expected one of"),
    ({"patience": 2}, "patience needs held-out data"),
])  # fmt: skip
def test_bad_settings_are_named(settings: Any, message: str) -> None:
    """Settings out of range or of the wrong kind raise ParameterError."""
    with pytest.raises(ParameterError, match=message):
        MultiLabelMRF(**({"max_iter": 2} | settings)).fit(X0, Y0)


def test_bad_input_to_predict_is_named() -> None:
    """Other numbers of columns, NaN, other numbers of labels; no rows give no rows."""
    model = MultiLabelMRF("sgd", max_iter=2, surrogate="log").fit(X0, Y0)
    for call in (model.predict, model.predict_scores, model.predict_marginals):
        with pytest.raises(DataError, match="X has 2 features, but the model was fitted with 3"):
            call(X0[:, :2])
        with pytest.raises(DataError, match="sample 0: features must be finite"):
            call(with_entry(X0, 0, 0, np.nan))
        assert call(X0[:0]).shape == (0, L)
    with pytest.raises(DataError, match="y: expected 4 label columns, got 2"):
        model.score(X0, Y0[:, :2])
    with pytest.raises(DataError, match="dev: y: expected 4 label columns, got 2"):
        model.fit(X0, Y0, dev=(X0, Y0[:, :2]))
    with pytest.raises(MissingCapabilityError, match="predict_marginals needs marginals, which QPBO does not have"):
        MultiLabelMRF(max_iter=1, oracle=QPBO()).fit(X0, Y0).predict_marginals(X0)


@pytest.mark.slow
def test_yeast(data_dir: Path) -> None:
    """On yeast a few passes are better than the commonest labels for all."""
    where = data_dir / "multilabel_yeast"
    train, test = (read_mulan(where / f"yeast-{part}.arff.gz", where / "yeast.xml.gz") for part in ("train", "test"))
    model = MultiLabelMRF(C=0.1, max_iter=3).fit(train)
    common = np.tile(train.Y.mean(axis=0) > 0.5, (len(test), 1)).astype(int)
    assert f1_score(test.Y, model.predict(test), average="micro") > f1_score(test.Y, common, average="micro") + 0.03
    assert model.score(test) > 0.46


def test_many_pairs_are_said_before_the_work(caplog: pytest.LogCaptureFixture) -> None:
    """All pairs of 150 labels are one line, with their number and what to give instead; few labels, and few pairs, are none."""
    Y = np.eye(150, dtype=np.int64)
    label_edges("complete", LabelCounts.of(Y[:, :60]))
    label_edges(450, LabelCounts.of(Y))
    assert not caplog.records
    label_edges("complete", LabelCounts.of(Y))
    (record,) = caplog.records
    for told in ("all 11,175 pairs of 150 labels", "edges='tree' joins 149 pairs", "edges=450 the strongest"):
        assert told in record.getMessage()
