"""Two states: the relaxation against an independent LP, persistency, cuts against enumeration and scipy's maximum flow."""

import numpy as np
import pytest
from local_polytope_cases import complete, grid, lp_value
from mrf_cases import all_scores, forbid_some, random_graph
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.graph_cut import GraphCutMRF
from structpred.oracles.mrf import graph_of, graph_shape
from structpred.oracles.qpbo import QPBO


def instance(rng: np.random.Generator, kind: int) -> tuple[Shape, np.ndarray]:
    """A graph of up to 8 nodes: normal scores, whole ones with ties, and both with an eighth of them forbidden."""
    shape = random_graph(rng, int(rng.integers(1, 9)), 2, float(rng.choice([0.3, 0.6, 1.0])))
    size = graph_of(shape).n_parts
    scores = rng.normal(size=size) if kind % 2 else rng.integers(-2, 3, size).astype(float)
    return shape, forbid_some(rng, scores, 0.12) if kind >= 2 else scores


def value(mu: np.ndarray, scores: np.ndarray) -> float:
    """scores . mu; mu must be zero where it is forbidden."""
    assert not mu[scores <= 0.5 * FORBIDDEN].any()
    return float(mu[mu > 0.0] @ scores[mu > 0.0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(4))
def test_the_relaxation_has_the_value_of_the_linear_program(kind: int) -> None:
    """1,000 random instances: the value of the LP over the local polytope to 1e-9; infeasible where the LP is."""
    rng = np.random.default_rng(kind)
    solved = 0
    for _ in range(250):
        shape, scores = instance(rng, kind)
        best = lp_value(scores, shape)
        try:
            mu = QPBO().argmax_relaxed(scores, shape)
        except InfeasibleError:
            assert best is None
            continue
        assert best is not None
        assert value(mu, scores) == pytest.approx(best, rel=1e-9, abs=1e-9)
        solved += 1
    assert solved > 150


@pytest.mark.parametrize("kind", range(4))
def test_the_relaxation_is_a_point_of_the_local_polytope(kind: int) -> None:
    """Nodes are 0, 1/2 or 1, tables are >= 0 and their rows and columns are the nodes, exactly."""
    rng = np.random.default_rng(10 + kind)
    for _ in range(100):
        shape, scores = instance(rng, kind)
        try:
            mu = QPBO().argmax_relaxed(scores, shape)
        except InfeasibleError:
            continue
        graph = graph_of(shape)
        nodes, tables = mu[: 2 * graph.n].reshape(-1, 2), mu[2 * graph.n :].reshape(-1, 2, 2)
        assert np.isin(nodes, (0.0, 0.5, 1.0)).all()
        assert (nodes.sum(axis=1) == 1.0).all()
        assert (tables >= 0.0).all()
        assert (tables.sum(axis=2) == nodes[graph.edges[:, 0]]).all()
        assert (tables.sum(axis=1) == nodes[graph.edges[:, 1]]).all()


@pytest.mark.parametrize("kind", range(4))
def test_bound_labels_and_persistency(kind: int) -> None:
    """The bound is that of the relaxation and no output exceeds it; labels are allowed; whole nodes are so in a best output."""
    rng = np.random.default_rng(20 + kind)
    tight = 0
    for _ in range(200):
        shape, scores = instance(rng, kind)
        table = all_scores(shape, scores)
        try:
            labels, bound = QPBO().argmax_bound(scores, shape)
        except InfeasibleError:
            assert table.max() == -np.inf
            continue
        score = table[tuple(labels)]
        assert score > -np.inf
        assert bound >= table.max() - 1e-9
        assert bound == pytest.approx(value(QPBO().argmax_relaxed(scores, shape), scores), abs=1e-12)
        nodes = QPBO().argmax_relaxed(scores, shape)[1 : 2 * len(labels) : 2]
        fixed = table[tuple(slice(None) if x == 0.5 else int(x) for x in nodes)]
        assert fixed.max() == pytest.approx(table.max(), abs=1e-9)
        if (nodes != 0.5).all():
            assert score == pytest.approx(table.max(), abs=1e-9)
            tight += 1
    assert tight > 40


@pytest.mark.slow
def test_nodes_are_whole_where_a_best_point_has_them_whole() -> None:
    """Ties: no node of a half could be whole without a loss (the LP with the node fixed is worse, either way)."""
    rng = np.random.default_rng(30)
    halves = 0
    for _ in range(60):
        shape = random_graph(rng, 7, 2, 0.8)
        scores = rng.integers(-2, 3, graph_of(shape).n_parts).astype(float)
        scores[:14] = 0.0
        mu = QPBO().argmax_relaxed(scores, shape)
        best = value(mu, scores)
        for i in np.flatnonzero(mu[1:14:2] == 0.5):
            halves += 1
            for state in (0, 1):
                fixed = scores.copy()
                fixed[2 * i + state] = FORBIDDEN
                worse = lp_value(fixed, shape)
                assert worse is not None
                assert worse < best - 0.4
    assert halves > 20


def test_zero_scores_give_a_whole_point() -> None:
    """Where all points are equally good, the one given is an output."""
    assert set(QPBO().argmax_relaxed(np.zeros(4 * 2 + 6 * 4), complete(4))) == {0.0, 1.0}


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e12])
def test_the_size_of_scores_does_not_matter(scale: float) -> None:
    """Scores times a constant: the same nodes, and the LP's value to a relative 1e-9."""
    rng = np.random.default_rng(40)
    for _ in range(20):
        shape = complete(int(rng.integers(2, 9)))
        scores = rng.normal(size=graph_of(shape).n_parts)
        mu = QPBO().argmax_relaxed(scores, shape)
        np.testing.assert_array_equal(QPBO().argmax_relaxed(scale * scores, shape), mu)
        assert mu @ scores == pytest.approx(lp_value(scores, shape), rel=1e-9, abs=1e-9)


def test_a_cycle_of_forbidden_agreement() -> None:
    """Three nodes that must differ: the relaxation has a point, there is no output, and the labels' search says so."""
    scores = np.concatenate((np.zeros(6), np.tile([FORBIDDEN, 1.0, 1.0, FORBIDDEN], 3)))
    mu = QPBO().argmax_relaxed(scores, complete(3))
    assert value(mu, scores) == 3.0
    with pytest.raises(InfeasibleError, match="forbidden"):
        QPBO().argmax_bound(scores, complete(3))


@pytest.mark.parametrize("kind", [QPBO, GraphCutMRF])
@pytest.mark.parametrize(
    ("scores", "shape", "message"),
    [
        (np.zeros(15), (2, 3, 0, 1), "two states, got K = 3"),
        (np.zeros(7), (2, 2, 0, 1), "expected 8 scores"),
        (np.full(8, np.nan), (2, 2, 0, 1), "finite"),
        (np.zeros(8), (2, 2, 0, 2), "missing"),
    ],
)
def test_bad_input(kind: type[QPBO] | type[GraphCutMRF], scores: np.ndarray, shape: Shape, message: str) -> None:
    """Three states, the wrong number of scores, NaN, an edge to a missing node: a DataError that says it."""
    with pytest.raises(DataError, match=message):
        kind().argmax(scores, shape)


def test_everything_forbidden() -> None:
    """A node without states: InfeasibleError from both oracles."""
    scores = np.array([FORBIDDEN, FORBIDDEN, 0.0, 0.0])
    for oracle in (QPBO(), GraphCutMRF()):
        with pytest.raises(InfeasibleError):
            oracle.argmax(scores, (2, 2))


def submodular_instance(rng: np.random.Generator, whole: bool, *, swap: bool) -> tuple[Shape, np.ndarray]:
    """A random graph of up to 8 nodes whose edges favour agreement, but for the nodes whose states are swapped."""
    shape = random_graph(rng, int(rng.integers(1, 9)), 2, 0.5)
    graph = graph_of(shape)
    scores = rng.integers(-2, 3, graph.n_parts).astype(float) if whole else rng.normal(size=graph.n_parts)
    swapped = rng.random(graph.n) < 0.4 if swap else np.zeros(graph.n, bool)
    for table, (i, j) in zip(scores[2 * graph.n :].reshape(-1, 2, 2), graph.edges, strict=True):
        against = table[0, 0] + table[1, 1] < table[0, 1] + table[1, 0]
        if against != (swapped[i] != swapped[j]):
            table[:] = table[::-1].copy()
    return shape, scores


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_cuts_find_the_best_output(whole: bool, swap: bool, share: float) -> None:
    """Submodular scores, as they are and with the states of some nodes swapped, with forbidden ones: enumeration's best score.

    A forbidden pair counts as agreement or disagreement, so that a few instances are refused.
    """
    rng = np.random.default_rng(50)
    solved = refused = 0
    for _ in range(200):
        shape, scores = submodular_instance(rng, whole, swap=swap)
        scores = forbid_some(rng, scores, share)
        best = float(all_scores(shape, scores).max())
        try:
            labels = GraphCutMRF().argmax(scores, shape)
        except InfeasibleError:
            assert best == -np.inf
        except DataError:
            refused += 1
        else:
            solved += 1
            assert all_scores(shape, scores)[tuple(labels)] == pytest.approx(best, abs=1e-9)
    assert solved > 120
    assert refused == 0 or share > 0.0


def test_cuts_refuse_other_scores_and_name_an_edge() -> None:
    """A triangle in which one edge is against agreement: DataError with the number and the nodes of an edge of the cycle."""
    scores = np.concatenate((np.zeros(6), [1.0, 0.0, 0.0, 1.0] * 2, [0.0, 1.0, 1.0, 0.0]))
    with pytest.raises(DataError, match=r"edge [012], \([01], [12]\), lies on a cycle"):
        GraphCutMRF().argmax(scores, complete(3))
    lone = scores[[*range(6), *range(14, 18)]]  # one such edge is on no cycle
    assert GraphCutMRF().argmax(lone, graph_shape(3, 2, [(0, 1)])).tolist() in ([0, 1, 0], [1, 0, 0])


def test_rounding_does_not_make_an_edge_stand_against_agreement() -> None:
    """Tables that are sums of two nodes' scores, but for rounding, are on no side: cuts take them."""
    rng = np.random.default_rng(60)
    shape = complete(6)
    for _ in range(20):
        u, v = rng.normal(size=(2, 15, 2))
        scores = np.concatenate((rng.normal(size=12), (u[:, :, None] + v[:, None, :]).ravel()))
        labels = GraphCutMRF().argmax(scores, shape)
        assert all_scores(shape, scores)[tuple(labels)] == pytest.approx(all_scores(shape, scores).max(), abs=1e-12)


def test_a_grid_beside_scipys_maximum_flow() -> None:
    """A 12x12 image with whole numbers: the cut's score is what scipy's integer maximum flow says."""
    rng = np.random.default_rng(70)
    shape = grid(12, 12, 2)
    graph = graph_of(shape)
    own, strength = rng.integers(-9, 10, graph.n), rng.integers(0, 6, len(graph.edges))
    scores = np.zeros(graph.n_parts)
    scores[1 : 2 * graph.n : 2] = own
    scores[2 * graph.n :].reshape(-1, 4)[:, [1, 2]] = -strength[:, None]
    source, sink = graph.n, graph.n + 1
    network = np.zeros((graph.n + 2, graph.n + 2), np.int32)
    network[source, : graph.n], network[: graph.n, sink] = np.maximum(own, 0), np.maximum(-own, 0)
    for (i, j), c in zip(graph.edges, strength, strict=True):
        network[i, j] = network[j, i] = c
    flow = maximum_flow(csr_array(network), source, sink).flow_value
    labels = GraphCutMRF().argmax(scores, shape)
    score = scores[GraphCutMRF().parts(labels, shape)].sum()
    assert score == np.maximum(own, 0).sum() - flow
    assert QPBO().argmax_bound(scores, shape)[1] == pytest.approx(score, abs=1e-9)


def test_a_large_grid_ends() -> None:
    """100x100 nodes with normal scores: the flow ends, the bound lies above the labels' score and within a percent of it."""
    shape = grid(100, 100, 2)
    scores = np.random.default_rng(80).normal(size=graph_of(shape).n_parts)
    labels, bound = QPBO().argmax_bound(scores, shape)
    score = float(scores[QPBO().parts(labels, shape)].sum())
    assert score <= bound <= 1.01 * score
