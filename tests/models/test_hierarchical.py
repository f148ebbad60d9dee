"""HierarchicalMultiLabel compared with all closed outputs of small trees and graphs; files, settings, bad input."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.io import read_clus
from structpred.models import HierarchicalMultiLabel, load
from structpred.models.bundles import to_bundle
from structpred.oracles.cp_sat import CpSatMRF
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.tree_mrf import TreeMRF
from structpred.trainers.bcfw import BCFW

SHAPES = {
    "tree": LabelHierarchy.from_parents([2, 0, -1, 2, -1]),  # parents after and before their children
    "chain": LabelHierarchy.from_parents([-1, 0, 1, 2, 3]),
    "graph": LabelHierarchy(5, [(0, 1), (0, 2), (1, 3), (2, 3), (4, 3)]),
    "flat": LabelHierarchy(5, []),
    "two trees": LabelHierarchy.from_parents([-1, 4, 0, 0, -1, 2, 4, 2]),  # not in depth-first order
}


def sample(hierarchy: LabelHierarchy, seed: int = 0, n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Features, and closed labels that depend on them."""
    rng = np.random.default_rng(seed)
    hidden = np.random.default_rng(99).normal(size=(3, hierarchy.n))
    X = rng.normal(size=(n, 3))
    return X, hierarchy.closed((X @ hidden + 0.3 * rng.normal(size=(n, hierarchy.n))) > 0.8).astype(int)


def closed_outputs(hierarchy: LabelHierarchy) -> np.ndarray:
    """All outputs that are closed."""
    every = np.array(list(itertools.product((0, 1), repeat=hierarchy.n)))
    return every[[hierarchy.broken(y[None]) is None for y in every]]


def scores_of(model: HierarchicalMultiLabel, x: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """The score of each output, from the definition."""
    n = model.n_labels_ * (model.n_features_in_ + 1) * 2
    nodes = np.einsum("f,lfa->la", np.append(x, 1.0), model.coef_[:n].reshape(model.n_labels_, -1, 2))
    pairs = model.coef_[n:].reshape(-1, 2, 2)
    total = nodes[np.arange(model.n_labels_), outputs].sum(axis=1)
    for t, (i, j) in zip(pairs, model.edges_.tolist(), strict=False):
        total += t[outputs[:, i], outputs[:, j]]
    return total


@pytest.mark.parametrize("name", SHAPES)
def test_predictions_are_the_best_closed_outputs(name: str) -> None:
    """predict, predict_scores and predict_marginals are those of all closed outputs; marginals never grow downwards."""
    tree = SHAPES[name]
    model = HierarchicalMultiLabel("sgd", 1.0, 20, surrogate="log", hierarchy=tree, scale=None).fit(*sample(tree))
    X, _ = sample(tree, 1, 12)
    outputs = closed_outputs(tree)
    scores = np.array([scores_of(model, x, outputs) for x in X])
    assert model.predict(X).tolist() == outputs[scores.argmax(axis=1)].tolist()
    on = np.array([[s[outputs[:, k] == 1].max() - s[outputs[:, k] == 0].max() for k in range(tree.n)] for s in scores])
    np.testing.assert_allclose(model.predict_scores(X), on, atol=1e-9)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    marginals = model.predict_marginals(X)
    np.testing.assert_allclose(marginals, (p / p.sum(axis=1, keepdims=True)) @ outputs, atol=1e-9)
    assert (marginals[:, tree.edges[:, 0]] >= marginals[:, tree.edges[:, 1]] - 1e-12).all()


@pytest.mark.mostly_slow
@pytest.mark.parametrize("surrogate", ["margin", "slack"])
@pytest.mark.parametrize("weights", ["uniform", "depth", "sibling", [1.0, 0.5, 2.0, 0.0, 3.0]], ids=str)
def test_the_certificate_is_the_objective_over_closed_outputs(weights: Any, surrogate: str) -> None:
    """The primal value counts wrong labels with their weights, over closed outputs only; the dual lies below."""
    tree, C = SHAPES["tree"], 0.2
    X, Y = sample(tree)
    model = HierarchicalMultiLabel(
        BCFW(averaged=False),
        C,
        20,
        0.0,
        hierarchy=tree,
        scale=None,
        label_weights=weights,
        surrogate=surrogate,
        oracle=EnumerationMRF(),
    ).fit(X, Y)
    known = {"uniform": np.ones(5), "depth": 0.75**tree.depths, "sibling": np.array([0.5, 0.5, 1.0, 0.5, 1.0])}
    costs = known[weights] if isinstance(weights, str) else np.array(weights)
    assert model.label_weights_.tolist() == costs.tolist()
    outputs, risk = closed_outputs(tree), 0.0
    for x, truth in zip(X, Y, strict=True):
        gaps = scores_of(model, x, outputs) - scores_of(model, x, truth[None])
        wrong = (outputs != truth) @ costs
        risk += float((wrong + gaps if surrogate == "margin" else wrong * np.maximum(1 + gaps, 0)).max())
    wanted = 0.5 / (C * len(X)) * model.coef_ @ model.coef_ + risk / len(X)
    assert model.certificate_.primal == pytest.approx(wanted, rel=1e-9)
    assert model.certificate_.dual <= wanted


@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "n_slack", "one_slack", "mira"])
def test_every_trainer_learns_closed_outputs(trainer: str) -> None:
    """New rows are mostly right, and always closed."""
    tree = SHAPES["tree"]
    model = HierarchicalMultiLabel(trainer, 1.0, 30, hierarchy=tree, scale=None).fit(*sample(tree))
    X, Y = sample(tree, 1)
    assert model.score(X, Y) > 0.65
    assert tree.broken(model.predict(X)) is None


def test_the_oracle_is_chosen_as_documented() -> None:
    """TreeMRF for trees; enumeration for small graphs with two parents, CP-SAT for larger ones, whose outputs are closed too."""
    for name, kind in (("tree", TreeMRF), ("flat", TreeMRF), ("graph", EnumerationMRF)):
        assert isinstance(HierarchicalMultiLabel(max_iter=1, hierarchy=SHAPES[name]).fit(*sample(SHAPES[name])).oracle_, kind)
    edges = [(0, k) for k in range(1, 17)] + [(1, 17), (2, 17)]
    large = LabelHierarchy(18, edges)
    X, Y = sample(large, n=6)
    model = HierarchicalMultiLabel(max_iter=1, hierarchy=large).fit(X, Y)
    assert isinstance(model.oracle_, CpSatMRF)
    assert large.broken(model.predict(X)) is None


def test_ways_to_say_the_hierarchy(data_dir: Path) -> None:
    """Parents, edges, an object, or that of the data give the same model; names come along."""
    tree = SHAPES["tree"]
    X, Y = sample(tree)
    models = [HierarchicalMultiLabel(max_iter=2, hierarchy=h).fit(X, Y) for h in (tree, [2, 0, -1, 2, -1], tree.edges.tolist())]
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes() == models[2].coef_.tobytes()
    data = read_clus(data_dir / "hierarchical_imclef07a" / "ImCLEF07A_Test.arff.gz").take(np.arange(100))
    model = HierarchicalMultiLabel(C=0.01, max_iter=2).fit(data)
    assert model.label_names_ == data.label_names
    assert data.hierarchy is not None
    assert data.hierarchy.broken(model.predict(data)) is None
    assert model.score(data) > 0.3


@pytest.mark.parametrize("name", ["tree", "graph"])
@pytest.mark.parametrize("weights", ["depth", [1.0, 0.5, 2.0, 0.0, 3.0]], ids=str)
def test_files(tmp_path: Path, name: str, weights: Any) -> None:
    """A loaded model predicts the same and can be trained again to the same weights."""
    tree = SHAPES[name]
    X, Y = sample(tree)
    model = HierarchicalMultiLabel(C=0.3, max_iter=4, hierarchy=tree, label_weights=weights).fit(X, Y)
    model.save(tmp_path / "m.spz")
    for loaded in (load(tmp_path / "m.spz"), HierarchicalMultiLabel.load(tmp_path / "m.spz")):
        assert loaded.predict_scores(X).tobytes() == model.predict_scores(X).tobytes()
        assert loaded.hierarchy_.edges.tolist() == tree.edges.tolist()
        assert loaded.fit(X, Y).coef_.tobytes() == model.coef_.tobytes()


def test_scikit_learn_tools() -> None:
    """clone, and a grid search over C and label weights."""
    tree = SHAPES["tree"]
    model = HierarchicalMultiLabel(max_iter=5, hierarchy=tree)
    assert clone(model).get_params()["C"] == 1.0
    grid = GridSearchCV(model, {"C": [1e-6, 1.0], "label_weights": ["uniform", "depth"]}, cv=2).fit(*sample(tree))
    assert grid.best_params_["C"] == 1.0


TREE = SHAPES["tree"]
X0, Y0 = sample(TREE)
OPEN = Y0.copy()
OPEN[3] = [0, 1, 0, 0, 0]
BAD: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "open rows": (TREE, OPEN, DataError, "sample 3: label '1' is on without its parent '0'; close the rows first"),
    "cycle": ([1, 0, -1, -1, -1], Y0, DataError, "the hierarchy of labels has a cycle: '0' -> '1' -> '0'"),
    "missing label": ([(0, 9)], Y0, DataError, "names a label that is missing"),
    "size": ([-1, 0], Y0, DataError, "the hierarchy has 2 labels, but y has 5 columns"),
    "none": (None, Y0, ParameterError, "hierarchy: give one"),
    "NaN": (TREE, Y0 * np.nan, DataError, "sample 0: y must be 0 or 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_hierarchies_and_rows_are_named(name: str) -> None:
    """Open rows, circles, missing labels, wrong sizes: an error that says so, and an earlier fit stays as it was."""
    hierarchy, Y, kind, message = BAD[name]
    model = HierarchicalMultiLabel(max_iter=1, hierarchy=TREE).fit(X0, Y0)
    model.hierarchy = hierarchy
    before = dict(vars(model))
    with pytest.raises(kind, match=message):
        model.fit(X0, Y)
    assert vars(model) == before


@pytest.mark.parametrize("weights", ["height", [1.0], [-1.0] * 5, [np.nan] * 5, [0.0] * 5, "12345"])
def test_bad_label_weights_are_named(weights: Any) -> None:
    """Unknown names, other lengths, negative or no weights: ParameterError."""
    with pytest.raises(ParameterError, match="label_weights: expected"):
        HierarchicalMultiLabel(max_iter=1, hierarchy=TREE, label_weights=weights).fit(X0, Y0)


def test_held_out_rows_must_be_closed() -> None:
    """Open rows among held-out data are an error that says that they are held out."""
    with pytest.raises(DataError, match="dev: sample 3: label '1' is on without its parent"):
        HierarchicalMultiLabel(max_iter=1, hierarchy=TREE).fit(X0, Y0, dev=(X0, OPEN))


def paths_of(hierarchy: LabelHierarchy, n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features, and one path a row that depends on them."""
    rng = np.random.default_rng(seed)
    leaves = np.array([k for k in range(hierarchy.n) if not hierarchy.children[k]])
    X = rng.normal(size=(n, 4))
    best = (X @ np.random.default_rng(99).normal(size=(4, len(leaves)))).argmax(axis=1)
    return X, hierarchy.closed(np.eye(hierarchy.n)[leaves[best]]).astype(int)


def outputs_that(need: str | None, hierarchy: LabelHierarchy) -> np.ndarray:
    """All closed outputs that are a path to a leaf or to any label, one in each tree, or that have a leaf on."""
    leaves = np.array([not below for below in hierarchy.children])
    every, paths = closed_outputs(hierarchy), hierarchy.closed(np.eye(hierarchy.n)).astype(int)
    if need == "trees":
        roots = [k for k in range(hierarchy.n) if not hierarchy.parents[k]]
        none = np.zeros((1, hierarchy.n), int)
        choices = [np.concatenate((none, paths[paths[:, k] == 1])) for k in roots]
        return np.array([np.sum(rows, axis=0) for rows in itertools.product(*choices)])
    return {"path": paths[leaves], "node": paths, "leaf": every[every[:, leaves].any(axis=1)], None: every}[need]


@pytest.mark.filterwarnings("ignore:the first pass over the data changed nothing")  # a chain has one path
@pytest.mark.parametrize("name", ["tree", "chain", "flat", "two trees"])
@pytest.mark.parametrize("need", ["path", "node", "trees", "leaf", None])
def test_predictions_are_the_best_of_what_is_required(need: str | None, name: str) -> None:
    """With any noise in the rows: the best path, paths or closed set; scores likewise, 1e30 where each output has the label."""
    tree = SHAPES[name]
    model = HierarchicalMultiLabel(C=0.5, max_iter=10, hierarchy=tree, require=need, scale=None).fit(*paths_of(tree))
    outputs, (X, _) = outputs_that(need, tree), paths_of(tree, 12, 1)
    scores = np.array([scores_of(model, x, outputs) for x in X])
    assert model.require_ == need
    assert model.predict(X).tolist() == outputs[scores.argmax(axis=1)].tolist()
    on = [[s[outputs[:, k] == 1].max() - s[outputs[:, k] == 0].max(initial=-1e30) for k in range(tree.n)] for s in scores]
    np.testing.assert_allclose(model.predict_scores(X), np.clip(on, -1e30, 1e30), atol=1e-9)
    slow = type("OfOnesOwn", (type(model.oracle_),), {})
    if need != "leaf":  # whose inference in training is another one
        object.__setattr__(model._field, "oracle", slow(*([model.oracle_.to] if need else [])))
        np.testing.assert_allclose(model.predict_scores(X), np.clip(on, -1e30, 1e30), atol=1e-9)


def test_what_is_required_by_default() -> None:
    """The strictest rule that every row keeps; nothing with tables, graphs or own oracles."""
    tree = SHAPES["tree"]
    X, Y = paths_of(tree)
    cut, one, two, empty, both = (Y.copy() for _ in range(5))
    cut[3], one[0], two[0], empty[1], both[0] = [0, 0, 1, 0, 0], [0, 0, 1, 0, 1], [1, 1, 1, 1, 1], 0, [1, 1, 1, 1, 1]
    both[1] = 0
    for rows, need in ((Y, "path"), (cut, "node"), (one, "trees"), (empty, "trees"), (two, "leaf"), (both, None)):
        assert HierarchicalMultiLabel(max_iter=1, hierarchy=tree).fit(X, rows).require_ == need
    for settings in ({"tables": True}, {"oracle": TreeMRF()}):
        assert HierarchicalMultiLabel(max_iter=1, hierarchy=tree, **settings).fit(X, Y).require_ is None
    assert HierarchicalMultiLabel(max_iter=1, hierarchy=SHAPES["graph"]).fit(*sample(SHAPES["graph"])).require_ is None


def test_rows_that_contradict_what_is_required() -> None:
    """An error names the sample and its labels; settings that exclude each other, and graphs, are errors, too."""
    tree = SHAPES["tree"]
    X, Y = paths_of(tree)
    Y[7], Y[9] = [1, 1, 1, 0, 0], 0
    with pytest.raises(DataError, match="sample 9: require='leaf' expects a set with a leaf on, got the labels none"):
        HierarchicalMultiLabel(hierarchy=tree, require="leaf").fit(X, Y)
    Y[7] = [1, 1, 1, 1, 0]
    with pytest.raises(DataError, match=r"sample 7: require='path' expects one path .* got the labels '0', '1', '2', '3'"):
        HierarchicalMultiLabel(hierarchy=tree, require="path").fit(X, Y)
    with pytest.raises(DataError, match="has 3 parents"):
        HierarchicalMultiLabel(hierarchy=SHAPES["graph"], require="leaf").fit(*sample(SHAPES["graph"]))
    for settings, words in (({"tables": True}, "tables=True"), ({"oracle": TreeMRF()}, "an oracle of your own")):
        with pytest.raises(ParameterError, match=words):
            HierarchicalMultiLabel(hierarchy=tree, require="leaf", **settings).fit(X, Y)
    with pytest.raises(ParameterError, match="expected 'path', 'node', 'trees', 'leaf', 'auto' or None"):
        HierarchicalMultiLabel(hierarchy=tree, require="paths").fit(X, Y)


@pytest.mark.parametrize(
    ("need", "tables"), [("path", False), ("node", False), ("trees", False), ("leaf", False), (None, False), (None, True)]
)
def test_files_know_tables_and_what_is_required(tmp_path: Path, need: str | None, tables: bool) -> None:
    """A loaded model predicts and trains the same; one of a file that says nothing of either has tables and no requirement."""
    tree = SHAPES["tree"]
    X, Y = paths_of(tree)
    model = HierarchicalMultiLabel(C=0.3, max_iter=3, hierarchy=tree, require=need, tables=tables).fit(X, Y)
    assert len(model.coef_) == 5 * 5 * 2 + 4 * 3 * tables
    model.save(tmp_path / "m.spz")
    loaded = load(tmp_path / "m.spz")
    assert (loaded.require_, loaded.tables, loaded.trainer) == (need, tables, "marginal_bcfw")
    assert loaded.predict_scores(X).tobytes() == model.predict_scores(X).tobytes()
    assert loaded.fit(X, Y).coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("need", ["path", "node", "trees"])
def test_probabilities_of_paths(need: str) -> None:
    """With the log loss the marginals are those of a soft-max over all outputs."""
    tree = SHAPES["tree"]
    model = HierarchicalMultiLabel("sgd", 1.0, 5, surrogate="log", hierarchy=tree, require=need, scale=None).fit(*paths_of(tree))
    outputs, (X, _) = outputs_that(need, tree), paths_of(tree, 6, 1)
    scores = np.array([scores_of(model, x, outputs) for x in X])
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_marginals(X), (p / p.sum(axis=1, keepdims=True)) @ outputs, atol=1e-9)


def test_the_default_trainer_is_that_over_marginals_where_it_applies() -> None:
    """Margin rescaling in forests and small graphs; slack rescaling falls to corrective, the rest to bcfw."""
    tree = SHAPES["tree"]
    X, Y = sample(tree)
    quick: dict[str, Any] = {"max_iter": 1, "hierarchy": tree}
    for settings, name in (({}, "marginal_bcfw"), ({"tables": True}, "marginal_bcfw"), ({"surrogate": "slack"}, "corrective")):
        assert to_bundle(HierarchicalMultiLabel(**quick, **settings).fit(X, Y)).header["trainer"] == name
    assert to_bundle(HierarchicalMultiLabel(**quick, regulariser="l1").fit(X, Y)).header["trainer"] == "bcfw"
    graph = HierarchicalMultiLabel(max_iter=1, hierarchy=SHAPES["graph"]).fit(*sample(SHAPES["graph"]))
    assert to_bundle(graph).header["trainer"] == "bcfw"
