"""Joint features of graphs, compared with explicit dense matrices; bad input is refused by sample."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from structpred.contracts.checks import check_feature_map
from structpred.errors import DataError, ParameterError
from structpred.features.graphs import GraphFeatures
from structpred.features.rows import stack_rows
from structpred.objectives.part_losses import Hamming
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task

FORBIDDEN = -1e30


def random_graphs(rng: np.random.Generator, n_graphs: int, k: int) -> list[tuple[int, ...]]:
    """Shapes of graphs with one to five nodes, some without edges."""
    shapes = []
    for _ in range(n_graphs):
        n = int(rng.integers(1, 6))
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6]
        shapes.append((n, k, *(v for pair in pairs for v in pair)))
    return shapes


def make(
    seed: int, k: int, *, own_edges: bool, shared: bool, symmetric: bool, dtype: Any = np.float64
) -> tuple[GraphFeatures, dict]:
    """A random feature map and what it was made of; some features are zero, some rows and tables are used by several nodes."""
    rng = np.random.default_rng(seed)
    shapes = random_graphs(rng, 8, k)
    n_edges = [(len(s) - 2) // 2 for s in shapes]
    n_rows = [int(rng.integers(1, 4)) if shared else s[0] for s in shapes]
    rows = [rng.normal(size=(r, 5)) * (rng.random((r, 5)) < 0.6) for r in n_rows]
    given: dict[str, Any] = {"rows": rows, "shapes": shapes, "node_type": [rng.integers(0, 3, s[0]) for s in shapes]}
    given["row_of"] = [rng.integers(0, r, s[0]) for r, s in zip(n_rows, shapes, strict=True)] if shared else None
    given["edge_type"] = [rng.integers(0, 2, e) for e in n_edges]
    given["edge_flipped"] = [rng.random(e) < 0.5 for e in n_edges]
    given["edge_rows"] = [rng.normal(size=(e, 6)) for e in n_edges] if own_edges else None
    sizes: dict[str, Any] = {"n_node_types": 3, "n_edge_types": 2, "n_states": k, "symmetric": symmetric, "dtype": dtype}
    data = {name: given[name] for name in ("node_type", "edge_type", "edge_flipped", "edge_rows", "row_of")}
    mixed = [sparse.csr_matrix(m) if i % 2 else m for i, m in enumerate(rows)]
    return GraphFeatures(shapes, mixed, **data, **sizes), given


def dense_matrix(features: GraphFeatures, given: dict, i: int) -> np.ndarray:
    """Psi of instance i, part by part and weight by weight, from the definition."""
    shape, k = given["shapes"][i], features.n_states
    d, width = given["rows"][0].shape[1], k * (k + 1) // 2 if features.symmetric else k * k
    d_e = 1 if given["edge_rows"] is None else given["edge_rows"][0].shape[1]
    nodes, edges = np.zeros((3, d, k)), np.zeros((2, d_e, width))
    out = []
    for v in range(shape[0]):
        row = v if given["row_of"] is None else given["row_of"][i][v]
        for a in range(k):
            block = nodes.copy()
            block[given["node_type"][i][v], :, a] = given["rows"][i][row]
            out.append(np.concatenate((block.ravel(), edges.ravel())))
    for e in range((len(shape) - 2) // 2):
        x = np.ones(1) if given["edge_rows"] is None else given["edge_rows"][i][e]
        for a in range(k):
            for b in range(k):
                first, second = (b, a) if given["edge_flipped"][i][e] else (a, b)
                low, high = min(a, b), max(a, b)
                column = high * (high + 1) // 2 + low if features.symmetric else first * k + second
                block = edges.copy()
                block[given["edge_type"][i][e], :, column] = x
                out.append(np.concatenate((nodes.ravel(), block.ravel())))
    return np.array(out).reshape(-1, 3 * d * k + 2 * d_e * width)


CASES = [
    {"k": k, "own_edges": own, "shared": shared, "symmetric": symmetric}
    for k in (1, 2, 3)
    for own, shared, symmetric in ((True, True, False), (True, False, True), (False, True, True), (False, False, False))
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_graph_features_are_the_dense_matrix(case: dict) -> None:
    """scores, adjoint, spread, flush and total are products with the matrix that the definition gives."""
    features, given = make(1, **case)
    rng = np.random.default_rng(2)
    w, total, mus = rng.normal(size=features.dim), np.zeros(features.dim), []
    coefs = rng.normal(size=len(features))
    scratch = features.scratch()
    for i in range(len(features)):
        psi = dense_matrix(features, given, i)
        assert psi.shape == (features.n_parts(i), features.dim)
        np.testing.assert_allclose(features.scores(w, i), psi @ w, atol=1e-12)
        mu = rng.normal(size=len(psi)) * (rng.random(len(psi)) < 0.7)
        at = rng.permutation(np.flatnonzero(mu))
        np.testing.assert_allclose(features.adjoint(i, at, mu[at]).dense(features.dim), psi.T @ mu, atol=1e-12)
        assert features.spread(i, mu, scratch) == pytest.approx(np.sum((psi.T @ mu) ** 2))
        np.testing.assert_allclose(scratch, psi.T @ mu, atol=1e-12)
        moved = w.copy()
        features.flush(i, scratch, -0.5, moved)
        np.testing.assert_allclose(moved, w - 0.5 * psi.T @ mu, atol=1e-12)
        assert not scratch.any()
        total += coefs[i] * psi.T @ mu
        mus.append(mu)
    places = np.cumsum([0, *map(len, mus)])
    np.testing.assert_allclose(features.total(np.concatenate(mus), places, coefs), total, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_graph_features_keep_the_contract(case: dict, dtype: Any) -> None:
    """<mu, scores(w)> = <w, adjoint(mu)> to 1e-9, and the other rules of a feature map."""
    features, _ = make(3, **case, dtype=dtype)
    assert check_feature_map(features).checked["adjoint"] == len(features)
    assert features.groups.tolist() == [0, features.start, features.dim]


def test_tables_are_views_of_the_weights() -> None:
    """tables() are the weights in the documented order: (type, feature, state), then (type, feature, pair)."""
    features, _ = make(0, 3, own_edges=True, shared=False, symmetric=False)
    w = np.arange(features.dim, dtype=np.float64)
    nodes, edges = features.tables(w)
    assert nodes.shape == (3, 5, 3)
    assert edges.shape == (2, 6, 9)
    assert np.concatenate((nodes.ravel(), edges.ravel())).tolist() == w.tolist()
    assert np.shares_memory(nodes, w)


def test_one_matrix_is_one_row_an_instance() -> None:
    """Labels of one example share its row: a table per label; the same as giving each row alone; shared plans are kept once."""
    rng = np.random.default_rng(0)
    X, shape = rng.normal(size=(6, 4)), (3, 2, 0, 1, 0, 2)
    zeros, types, edge_types = np.zeros(3, np.int64), np.arange(3), np.arange(2)
    sizes = {"n_node_types": 3, "n_edge_types": 2, "n_states": 2}
    features = GraphFeatures([shape] * 6, X, [zeros] * 6, [types] * 6, edge_type=[edge_types] * 6, **sizes)
    apart = GraphFeatures(
        [(3, 2, 0, 1, 0, 2) for _ in range(6)], [x[None] for x in X], [zeros.copy() for _ in X], [types.copy() for _ in X],
        edge_type=[edge_types.copy() for _ in X], **sizes,
    )  # fmt: skip
    w = rng.normal(size=features.dim)
    for i in range(6):
        nodes = np.einsum("f,tfa->ta", X[i], features.tables(w)[0])
        np.testing.assert_allclose(features.scores(w, i)[:6], nodes.ravel(), atol=1e-12)
        assert features.scores(w, i).tolist() == apart.scores(w, i).tolist()
    assert len(features._nodes) == 3
    assert len(apart._nodes) == 18


def test_many_nodes_that_share_a_table() -> None:
    """Where there are more pairs than weights they are added up without sorting: the same sums, zeros dropped, sorted."""
    rng = np.random.default_rng(0)
    n, shape = 60, (60, 3, *(v for i in range(59) for v in (i, i + 1)))
    X = rng.integers(-2, 3, (n, 4)).astype(float)
    features = GraphFeatures([shape], [X], n_states=3)
    mu = rng.integers(-1, 2, features.n_parts(0)).astype(float)
    at = rng.permutation(np.flatnonzero(mu))
    phi = features.adjoint(0, at, mu[at])
    nodes = np.einsum("vf,va->fa", X, mu[: 3 * n].reshape(n, 3))
    wanted = np.concatenate((nodes.ravel(), mu[3 * n :].reshape(-1, 9).sum(axis=0)))
    assert phi.dense(features.dim).tolist() == wanted.tolist()
    assert phi.indices.tolist() == np.flatnonzero(wanted).tolist()


def test_fixed_scores_are_added_by_the_task_and_said_to_forbid() -> None:
    """fixed is kept an instance at a time, and a task tells constraints from priors."""
    ban, prior = np.array([0.0, FORBIDDEN, 0.0, 0.0]), np.array([0.0, 0.3, 0.0, 0.0])
    rows = np.ones((3, 1, 1))
    features = GraphFeatures([(1, 4)] * 3, rows, n_states=4, fixed=[None, ban, ban])
    assert features.fixed_scores(0) is None
    assert features.fixed_scores(1) is features.fixed_scores(2)
    mixed = GraphFeatures([(1, 4)] * 3, rows, n_states=4, fixed=[None, ban, prior])
    for given, first in ((features, None), (mixed, 2)):
        task = Task(given, MulticlassOracle(), [[0]] * 3, [(4,)] * 3, Hamming())
        assert task.sample_with_priors() == first


def test_stored_zeros_and_repeated_entries_do_no_harm() -> None:
    """A sparse matrix with stored zeros, repeated and unsorted columns gives the features of its dense form."""
    messy = sparse.csr_array((np.array([1.0, 2.0, 0.0, 4.0]), np.array([2, 0, 1, 2]), np.array([0, 4])), shape=(1, 3))
    assert stack_rows([messy]).indices.tolist() == [0, 2]
    w = np.arange(10.0)
    a, b = (GraphFeatures([(1, 2)], [m], n_states=2).scores(w, 0) for m in (messy, messy.toarray()))
    assert a.tolist() == b.tolist() == [2 * 0 + 5 * 4, 2 * 1 + 5 * 5]
    assert messy.nnz == 4


X0 = [np.ones((2, 3)), np.ones((1, 3))]
G0: list[tuple[int, ...]] = [(2, 2, 0, 1), (1, 2)]
BAD: dict[str, tuple[dict, str]] = {
    "NaN": ({"rows": [X0[0], X0[1] * np.nan]}, "sample 1: features must be finite, got nan in column 0"),
    "infinite edges": (
        {"edge_rows": [np.full((1, 1), np.inf), np.zeros((0, 1))]},
        "sample 0: edge features must be finite, got inf",
    ),
    "columns": ({"rows": [X0[0], np.ones((1, 2))]}, "sample 1: expected 3 columns of features, got 2"),
    "rows": ({"rows": [X0[0], X0[0]]}, "sample 1: the graph has 1 nodes, but there are 2 feature rows"),
    "edge rows": ({"edge_rows": [np.ones((2, 1)), np.ones((0, 1))]}, "sample 0: the graph has 1 edges, but there are 2 rows"),
    "one dimension": ({"rows": [X0[0], np.ones(3)]}, "sample 1: expected features as a 2-d array of real .*got 1-d float64"),
    "text": ({"rows": [X0[0], np.array([["a", "b", "c"]])]}, "sample 1: expected features as a 2-d array of real numbers"),
    "complex": ({"rows": [sparse.csr_matrix(X0[0] * 1j), X0[1]]}, "sample 0: expected features as a 2-d array of real numbers"),
    "no samples": ({"graphs": [], "rows": []}, "features: expected at least one sample"),
    "fewer rows": ({"rows": [X0[0]]}, "2 graphs but features of 1 samples"),
    "row_of": ({"row_of": [[0, 2], [0]]}, r"sample 0: row_of: expected numbers in \[0, 2\), got 0..2"),
    "row_of length": ({"row_of": [[0], [0]]}, "sample 0: row_of: expected 2 whole numbers, got int64 of shape"),
    "node_type": ({"node_type": [[0, 0], [-1]]}, r"sample 1: node_type: expected numbers in \[0, 1\), got -1..-1"),
    "edge_type": ({"edge_type": [[1], []]}, r"sample 0: edge_type: expected numbers in \[0, 1\), got 1..1"),
    "fractions": ({"node_type": [[0.0, 0.5], [0]]}, "sample 0: node_type: expected 2 whole numbers, got float64"),
    "entries": ({"node_type": [[0, 0]]}, "node_type: expected one entry per sample, 2, got 1"),
    "states": ({"graphs": [(2, 2, 0, 1), (1, 3)]}, r"sample 1: expected a shape \(n, 2, i1, j1, ...\), got \(1, 3\)"),
    "odd shape": ({"graphs": [(2, 2, 0), (1, 2)]}, "sample 0: expected a shape"),
    "no nodes": ({"graphs": [(2, 2, 0, 1), (0, 2)], "rows": [X0[0], np.ones((0, 3))]}, "sample 1: expected a shape"),
    "fixed length": ({"fixed": [None, np.zeros(3)]}, "sample 1: fixed: expected 2 scores, one per part, got shape"),
    "fixed infinite": ({"fixed": [None, np.array([0.0, -np.inf])]}, "sample 1: fixed scores must be finite; -1e30 forbids"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str) -> None:
    """What does not fit raises DataError with the sample, what was expected and what came."""
    changes, message = BAD[name]
    given = {"graphs": G0, "rows": X0, "n_states": 2} | changes
    with pytest.raises(DataError, match=message):
        GraphFeatures(**given)


@pytest.mark.parametrize("name", ["n_node_types", "n_edge_types", "n_states"])
def test_bad_sizes_are_named(name: str) -> None:
    """Sizes below one are a ParameterError."""
    with pytest.raises(ParameterError, match=f"{name} must be at least 1, got 0"):
        GraphFeatures(G0, X0, **({"n_states": 2} | {name: 0}))


def test_tables_too_large_for_memory_are_refused() -> None:
    """A table that cannot fit is refused before it is allocated, with the number of weights."""
    X = sparse.csr_array((1, 10**9))
    with pytest.raises(DataError, match="weights"):
        GraphFeatures([(1, 2)], X, [[0]], n_states=2, n_node_types=10**6)
