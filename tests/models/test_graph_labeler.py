"""GraphLabeler compared with all labellings of small graphs; networkx and arrays, oracles, files, bad input."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from structpred.errors import DataError, MissingCapabilityError, ParameterError
from structpred.models import GraphLabeler, load
from structpred.oracles.dual_mrf import DualMRF
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.qpbo import QPBO
from structpred.oracles.tree_mrf import TreeMRF
from structpred.trainers.bcfw import BCFW

nx = pytest.importorskip("networkx", reason="networkx is not installed (the extra `bench`)")

NAMES = np.array(["cat", "dog", "owl"])
EDGES = [(0, 1), (3, 1), (1, 2), (4, 0), (3, 4)]  # some run from the larger node to the smaller one


def sample(seed: int = 0, n: int = 20, *, edge_features: bool = False, edges: Any = EDGES) -> tuple[list, list]:
    """Graphs of five nodes with noisy features; along an edge the label grows by one (modulo three), by its features."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        codes = rng.integers(0, 3, 5)
        for u, v in edges[:3]:
            codes[v] = (codes[u] + 1) % 3
        rows = np.eye(3)[codes] + rng.normal(0, 0.7, (5, 3))
        x = [rows, np.array(edges)]
        if edge_features:
            x.append(np.stack((np.ones(len(edges)), rng.normal(size=len(edges))), axis=1))
        X.append(tuple(x))
        y.append(NAMES[codes])
    return X, y


OUTPUTS = np.array(list(itertools.product(range(3), repeat=5)))


def scores_of(model: GraphLabeler, x: tuple) -> np.ndarray:
    """The score of each labelling of a graph with five nodes, from the definition."""
    k, d = 3, model.n_features_in_ + 1
    nodes = model.coef_[: d * k].reshape(d, k)
    tables = model.coef_[d * k :].reshape(-1, 9 if model.directed_ else 6)
    rows = np.hstack((x[0], np.ones((5, 1)))) @ nodes
    total = rows[np.arange(5), OUTPUTS].sum(axis=1)
    for e, (u, v) in enumerate(np.asarray(x[1]).tolist()):
        features = np.append(x[2][e], 1.0) if len(x) == 3 else np.ones(1)
        table = features @ tables
        for at, y in enumerate(OUTPUTS):
            a, b = y[u], y[v]
            total[at] += table[a * 3 + b] if model.directed_ else table[max(a, b) * (max(a, b) + 1) // 2 + min(a, b)]
    return total


@pytest.mark.parametrize("edge_features", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_predictions_and_marginals_are_those_of_all_labellings(directed: bool, edge_features: bool) -> None:
    """predict is the best of 3^5 labellings, whichever way edges run; predict_marginals their weighted mean."""
    model = GraphLabeler("sgd", 1.0, 15, surrogate="log", directed=directed).fit(*sample(edge_features=edge_features))
    X, _ = sample(1, 6, edge_features=edge_features)
    assert isinstance(model.oracle_, EnumerationMRF)
    for x, labels, marginals in zip(X, model.predict(X), model.predict_marginals(X), strict=True):
        scores = scores_of(model, x)
        assert labels.tolist() == NAMES[OUTPUTS[scores.argmax()]].tolist()
        p = np.exp(scores - scores.max())
        wanted = np.stack([(p[:, None] * (k == OUTPUTS)).sum(axis=0) / p.sum() for k in range(3)], axis=1)
        np.testing.assert_allclose(marginals, wanted, atol=1e-9)


@pytest.mark.parametrize("surrogate", ["margin", "slack"])
def test_the_certificate_is_the_objective(surrogate: str) -> None:
    """The primal value is the regularised risk, worked out over all labellings, with node weights in the loss."""
    C = 0.2
    X, y = sample(n=8, edge_features=True)
    weights = [np.array([1.0, 2.0, 0.0, 1.0, 0.5])] * 8
    model = GraphLabeler(BCFW(averaged=False), C, 10, 0.0, surrogate=surrogate).fit(X, y, node_weight=weights)
    risk = 0.0
    for x, truth in zip(X, y, strict=True):
        codes = np.searchsorted(NAMES, truth)
        scores = scores_of(model, x)
        gaps = scores - scores[(codes == OUTPUTS).all(axis=1).argmax()]
        wrong = (codes != OUTPUTS) @ weights[0]
        risk += float((wrong + gaps if surrogate == "margin" else wrong * np.maximum(1 + gaps, 0)).max())
    wanted = 0.5 / (C * 8) * model.coef_ @ model.coef_ + risk / 8
    assert model.certificate_.primal == pytest.approx(wanted, rel=1e-9)
    assert model.certificate_.dual <= wanted


def test_directions_count() -> None:
    """Where only the direction of an edge tells the labels, directed tables learn them all and symmetric ones cannot."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(40):
        u, v = rng.permutation(2).tolist()
        X.append((rng.normal(size=(2, 1)), [(u, v)]))
        y.append({u: "from", v: "to"})
    score = {d: GraphLabeler(C=1.0, directed=d).fit(X[:20], y[:20]).score(X[20:], y[20:]) for d in (True, False)}
    assert score[True] == 1.0
    assert score[False] < 0.8


def test_edges_help() -> None:
    """Labels that follow from their neighbours are found more often with edges than without."""
    X, y = sample(n=60, edges=[(0, 1), (1, 2), (2, 3)])
    bare = [(rows, []) for rows, _ in X]
    scores = [GraphLabeler(C=0.5, max_iter=20).fit(Z[:40], y[:40]).score(Z[40:], y[40:]) for Z in (X, bare)]
    assert scores[0] > scores[1] + 0.05


def as_networkx(x: tuple, y: np.ndarray, order: np.ndarray, kind: Any) -> tuple[Any, dict]:
    """The same graph with named nodes in another order; vectors under "x" and "f"; labels as a dict."""
    graph = kind()
    for v in order.tolist():
        graph.add_node(f"n{v}", x=x[0][v])
    for (u, v), row in zip(x[1].tolist(), x[2], strict=True):
        graph.add_edge(f"n{u}", f"n{v}", f=row)
    return graph, {f"n{v}": label for v, label in enumerate(y)}


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_networkx_graphs(kind: Any) -> None:
    """Graphs with names and attributes give the arrays' model whatever the order of their nodes; DiGraphs are directed."""
    X, y = sample(n=12, edge_features=True)
    rng = np.random.default_rng(0)
    graphs = [as_networkx(x, labels, rng.permutation(5), kind) for x, labels in zip(X, y, strict=True)]
    settings: dict[str, Any] = {"trainer": "bcfw", "C": 0.5, "max_iter": 10, "edge_features": "f"}
    model = GraphLabeler(**settings).fit([g for g, _ in graphs], [labels for _, labels in graphs])
    assert model.directed_ == (kind is nx.DiGraph)
    arrays = GraphLabeler(**settings, directed=model.directed_).fit(X, y)
    np.testing.assert_allclose(model.coef_, arrays.coef_, atol=1e-9)
    found = model.predict([g for g, _ in graphs])
    for (graph, _), labels, wanted in zip(graphs, found, arrays.predict(X), strict=True):
        assert [dict(zip(graph.nodes, labels, strict=True))[f"n{v}"] for v in range(5)] == wanted.tolist()
    assert model.score([g for g, _ in graphs], [labels for _, labels in graphs]) == arrays.score(X, y)


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_the_oracle_is_chosen_as_documented() -> None:
    """TreeMRF without cycles, enumeration for small graphs, QPBO for two labels and DualMRF for more where they are large."""
    rng = np.random.default_rng(0)

    def fitted(n: int, edges: list, k: int) -> GraphLabeler:
        X = [(rng.normal(size=(n, 2)), edges)] * 2
        return GraphLabeler(max_iter=1).fit(X, [np.arange(n) % k] * 2)

    ring = [(i, i + 1) for i in range(29)] + [(0, 29)]
    assert isinstance(fitted(30, ring[:-1], 3).oracle_, TreeMRF)
    assert isinstance(fitted(4, [(0, 1), (1, 2), (0, 2)], 3).oracle_, EnumerationMRF)
    two = fitted(30, ring, 2)
    assert isinstance(two.oracle_, QPBO)
    assert two.certificate_.proven  # by its bound
    three = fitted(30, ring, 3)
    assert isinstance(three.oracle_, DualMRF)
    small = GraphLabeler("sgd", max_iter=1, surrogate="log").fit([(rng.normal(size=(3, 2)), [(0, 1)])] * 2, [[0, 1, 2]] * 2)
    assert small.predict_marginals([(np.zeros((4, 2)), [(0, 1)])])[0].shape == (4, 3)
    for model in (three, small):  # whatever graphs it was trained on
        with pytest.raises(MissingCapabilityError, match="predict_marginals needs marginals, which DualMRF does not have"):
            model.predict_marginals([(np.zeros((30, 2)), ring)])


@pytest.mark.parametrize("surrogate", ["margin", "slack"])
@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "n_slack", "one_slack"])
def test_every_trainer_learns(trainer: str, surrogate: str) -> None:
    """Most nodes of new graphs are right."""
    assert GraphLabeler(trainer, 0.5, 20, surrogate=surrogate).fit(*sample()).score(*sample(1)) > 0.7


def test_log_loss_and_other_trainers() -> None:
    """A conditional random field on trees; the perceptron."""
    chain = [(0, 1), (1, 2), (2, 3), (3, 4)]
    for trainer in ("lbfgs", "oeg", "perceptron", "mira"):
        model = GraphLabeler(trainer, 0.5, 15).fit(*sample(edges=chain))
        assert isinstance(model.oracle_, TreeMRF)
        assert model.score(*sample(1, edges=chain)) > 0.7


def test_the_same_data_give_the_same_model() -> None:
    """Dense and sparse rows, lists and tuples, graphs of other sizes beside: the same weights to the last bit."""
    X, y = sample(n=6)
    first = GraphLabeler(max_iter=5).fit(X, y)
    thin = GraphLabeler(max_iter=5).fit([[sparse.csr_array(rows), edges.tolist()] for rows, edges in X], [list(a) for a in y])
    assert thin.coef_.tobytes() == first.coef_.tobytes()
    numbers = GraphLabeler(max_iter=5).fit(X, [np.searchsorted(NAMES, a) + 5 for a in y])
    assert numbers.coef_.tobytes() == first.coef_.tobytes()
    assert numbers.classes_.tolist() == [5, 6, 7]
    mixed = GraphLabeler(max_iter=5).fit([*X, (X[0][0][:1], [])], [*y, y[0][:1]])
    assert [len(labels) for labels in mixed.predict([X[0], (X[0][0][:1], [])])] == [5, 1]


@pytest.mark.parametrize("edge_features", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_files(tmp_path: Path, directed: bool, edge_features: bool) -> None:
    """A loaded model predicts the same, and can be trained again to the same weights."""
    X, y = sample(n=6, edge_features=edge_features)
    model = GraphLabeler(C=0.3, max_iter=4, directed=directed, node_features="v", edge_features="e").fit(X, y)
    model.save(tmp_path / "m.spz")
    for loaded in (load(tmp_path / "m.spz"), GraphLabeler.load(tmp_path / "m.spz")):
        assert [a.tolist() for a in loaded.predict(X)] == [a.tolist() for a in model.predict(X)]
        assert (loaded.node_features, loaded.edge_features, loaded.C) == ("v", "e", 0.3)
        assert loaded.fit(X, y).coef_.tobytes() == model.coef_.tobytes()
    own = GraphLabeler(max_iter=1, oracle=DualMRF()).fit(X, y)
    own.save(tmp_path / "own.spz")
    with pytest.raises(ParameterError, match=r"give load\(path, oracle=DualMRF\(\)\)"):
        load(tmp_path / "own.spz")
    assert load(tmp_path / "own.spz", oracle=DualMRF(n_iter=50)).predict(X)[0].shape == (5,)


def test_scikit_learn_tools() -> None:
    """clone and a grid search over lists of graphs."""
    X, y = sample()
    assert clone(GraphLabeler(C=0.5)).get_params()["C"] == 0.5
    grid = GridSearchCV(GraphLabeler(max_iter=5), {"C": [1e-6, 1.0]}, cv=2).fit(X, y)
    assert grid.best_params_["C"] == 1.0


X0, Y0 = sample(n=3)
XE, _ = sample(n=3, edge_features=True)
LONELY = nx.Graph([(0, 1)])
VECTORS = nx.Graph([(0, 1)])
VECTORS.add_nodes_from([(0, {"x": [1.0, 2.0]}), (1, {"x": [1.0]})])


def changed(samples: list, i: int, value: Any) -> list:
    """The list with another entry i."""
    return [*samples[:i], value, *samples[i + 1 :]]


BAD: dict[str, tuple[Any, Any, str]] = {
    "missing node": (
        changed(X0, 1, (X0[1][0], [(0, 9)])),
        Y0,
        r"sample 1: edge 0, \(0, 9\), names a node that is missing: nodes are 0..4",
    ),
    "negative node": (changed(X0, 1, (X0[1][0], [(-1, 2)])), Y0, "sample 1: edge 0, .*names a node that is missing"),
    "loop": (changed(X0, 2, (X0[2][0], [(1, 1)])), Y0, "sample 2: edge 0, .*joins a node to itself"),
    "twice": (changed(X0, 2, (X0[2][0], [(0, 1), (1, 0)])), Y0, "sample 2: edge 0, .*comes more than once"),
    "fractions": (changed(X0, 0, (X0[0][0], [(0.5, 1.0)])), Y0, "sample 0: expected edges as pairs of node numbers"),
    "triples": (changed(X0, 0, (X0[0][0], [(0, 1, 2)])), Y0, "sample 0: expected edges as pairs of node numbers"),
    "NaN": (changed(X0, 1, (X0[1][0] * np.nan, EDGES)), Y0, "sample 1: features must be finite, got nan"),
    "NaN edges": (changed(XE, 1, (*XE[1][:2], XE[1][2] * np.nan)), Y0, "sample 1: edge features must be finite, got nan"),
    "empty": (changed(X0, 1, (np.zeros((0, 3)), [])), Y0, "sample 1: the graph is empty: it has no nodes"),
    "columns": (changed(X0, 2, (X0[2][0][:, :2], EDGES)), Y0, "sample 2: expected 3 columns of features, got 2"),
    "one-dimensional": (changed(X0, 2, (X0[2][0][:, 0], EDGES)), Y0, "sample 2: expected node features as a 2-d array"),
    "edge rows": (
        changed(XE, 2, (*XE[2][:2], XE[2][2][:3])),
        Y0,
        "sample 2: the graph has 5 edges, but there are 3 rows of edge features",
    ),
    "some edge rows": (changed(XE, 2, XE[2][:2]), Y0, "sample 2: some graphs have edge features and some have none"),
    "one graph": (X0[0], Y0[0], "did you pass one graph instead of a list of graphs"),
    "one networkx graph": (LONELY, Y0, "did you pass one graph instead of a list of graphs"),
    "array": (changed(X0, 0, X0[0][0]), Y0, "sample 0: expected a networkx graph, or a tuple"),
    "no graphs": ([], [], "X: expected at least one graph"),
    "no attribute": ([LONELY], [[0, 1]], "sample 0: node 0 has no attribute 'x'; it has none"),
    "vectors": ([VECTORS], [[0, 1]], "sample 0: node 1: expected 'x' to be 2 numbers"),
    "fewer labellings": (X0, Y0[:2], "X has 3 graphs but y has 2 entries"),
    "fewer labels": (X0, changed(Y0, 1, Y0[1][:4]), "sample 1: the graph has 5 nodes but y has 4 labels"),
    "a word": (X0, changed(Y0, 1, "owlet"), "sample 1: expected one label per node, got 'owlet'"),
    "missing key": (X0, changed(Y0, 1, {0: "cat"}), "sample 1: y has no label for node 1"),
    "mixed labels": (X0, changed(Y0, 1, [1, 2, 0, 1, 2]), "labels must be all strings or all whole numbers"),
    "y nothing": (X0, None, "y: expected a list with the node labels of each graph, got NoneType"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_graphs_are_named_and_change_nothing(name: str) -> None:
    """Unusable graphs raise DataError with the sample and the cause; a model fitted before stays as it was."""
    X, y, message = BAD[name]
    model = GraphLabeler(max_iter=1).fit(X0, Y0)
    before = dict(vars(model))
    with pytest.raises(DataError, match=message):
        model.fit(X, y)
    assert vars(model) == before


def test_bad_input_to_predict_is_named() -> None:
    """Other numbers of features, edge features where there were none, labels that are new; no graphs give no labels."""
    model = GraphLabeler("sgd", max_iter=1, surrogate="log").fit(X0, Y0)
    for X, message in (
        ([(X0[0][0][:, :2], EDGES)], "X has 2 features of nodes, but the model was fitted with 3"),
        (XE, "X has 2 features of edges, but the model was fitted with none"),
        ([(X0[0][0], [(0, 7)])], "sample 0: edge 0, .*names a node that is missing"),
    ):
        with pytest.raises(DataError, match=message):
            model.predict(X)
    assert model.predict([]) == []
    assert model.predict_marginals([]) == []
    with pytest.raises(DataError, match="at least one graph"):
        model.score([], [])
    with pytest.raises(DataError, match="dev: sample 0: label 'emu' was not in the training data"):
        model.fit(X0, Y0, dev=(X0[:1], [["emu"] * 5]))
    with pytest.raises(ParameterError, match="directed: expected True, False or None"):
        GraphLabeler(directed="yes").fit(X0, Y0)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="oracle: expected an instance"):
        GraphLabeler(oracle=DualMRF).fit(X0, Y0)  # type: ignore[arg-type]


@pytest.mark.parametrize("edge_features", [False, True])
def test_the_default_trainer_closes_the_gap(edge_features: bool) -> None:
    """Noisy grids of two labels end within 1 % of the optimum by default settings, where bcfw leaves more than a tenth."""
    rng = np.random.default_rng(0)
    number = np.arange(36).reshape(6, 6)
    sides = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    edges = np.concatenate([np.stack((a.ravel(), b.ravel()), axis=1) for a, b in sides])
    X, y = [], []
    for _ in range(20):
        truth = (np.add.outer(np.arange(6), np.arange(6)) > rng.integers(2, 9)).ravel()
        rows = truth[:, None] + rng.normal(scale=0.8, size=(36, 1))
        X.append((rows, edges, abs(rows[edges[:, 0]] - rows[edges[:, 1]]))[: 2 + edge_features])
        y.append(truth.astype(int))
    found, earlier = GraphLabeler(random_state=0).fit(X, y), GraphLabeler("bcfw", random_state=0).fit(X, y)
    assert isinstance(found.oracle_, QPBO)
    assert 0.0 <= found.certificate_.gap <= 0.01 * found.certificate_.primal
    assert earlier.certificate_.gap > 0.1 * earlier.certificate_.primal
    assert earlier.certificate_.dual <= found.certificate_.primal
