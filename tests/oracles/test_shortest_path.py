"""Best paths in directed acyclic graphs: numbering, what is refused, larger graphs than those that the contract lists."""

import numpy as np
import pytest

from structpred.core.packing import argmax_batch
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.shortest_path import ShortestPathOracle, graph_of, grid_edges, path_shape


def test_a_grid_is_numbered_row_by_row() -> None:
    """A grid is the graph of its edges, listed row after row: to the right, then down."""
    assert grid_edges(2, 3).tolist() == [[0, 1], [1, 2], [0, 3], [1, 4], [2, 5], [3, 4], [4, 5]]
    scores = np.random.default_rng(0).normal(size=40)
    oracle, same = ShortestPathOracle(), path_shape(25, grid_edges(5, 5))
    assert oracle.argmax(scores, (5, 5)).tolist() == oracle.argmax(scores, same).tolist()
    assert graph_of((5, 5)).n_paths == 70


def test_paths_of_a_larger_graph_are_best() -> None:
    """In a random graph of 60 nodes, numbered at random, no edge leads to a better value than the best path's (Bellman)."""
    rng = np.random.default_rng(1)
    names = rng.permutation(60)
    pairs = [(i, j) for i in range(60) for j in range(i + 1, 60) if j == i + 1 or rng.random() < 0.1]
    shape = path_shape(60, [(names[i], names[j]) for i, j in pairs], names[0], names[59])
    scores = rng.normal(size=len(pairs))
    best = {0: 0.0}
    for j in range(1, 60):
        best[j] = max(best[i] + scores[e] for e, (i, k) in enumerate(pairs) if k == j)
    path = ShortestPathOracle().argmax(scores, shape)
    assert scores[ShortestPathOracle().parts(path, shape)].sum() == pytest.approx(best[59], rel=1e-12)


def test_marginals_are_a_flow_of_one_unit() -> None:
    """On a grid too large to list, what flows into a cell flows out of it, and log Z of zero scores counts the paths."""
    oracle, shape = ShortestPathOracle(), (12, 15)
    mu = oracle.marginals(np.random.default_rng(2).normal(size=oracle.n_parts(shape)), shape)[1]
    net = np.bincount(grid_edges(*shape)[:, 1], mu, 180) - np.bincount(grid_edges(*shape)[:, 0], mu, 180)
    assert np.abs(net[1:-1]).max() < 1e-12
    assert (net[0], net[-1]) == pytest.approx((-1.0, 1.0))
    assert oracle.marginals(np.zeros(len(mu)), shape)[0] == pytest.approx(np.log(graph_of(shape).n_paths))


def test_forbidden_edges() -> None:
    """Forbidden edges are in no marginal and none of the k best; where they leave no path, marginals say so."""
    oracle, scores = ShortestPathOracle(), np.array([0.0, 0.0, -1e30, 0.0])
    assert oracle.marginals(scores, (2, 2))[1].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert [y.tolist() for y in oracle.kbest(scores, (2, 2), 5)] == [[1, 3]]
    with pytest.raises(InfeasibleError, match="every path uses a forbidden edge"):
        oracle.marginals(np.full(4, -1e30), (2, 2))


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        (path_shape(3, [(0, 1), (1, 0), (1, 2)]), DataError, "cycle through some of the nodes .0, 1, 2."),
        (path_shape(3, [(0, 1)]), InfeasibleError, "no path leads from node 0 to node 2"),
        (path_shape(2, [(0, 1)], 0, 0), DataError, "two of 2 nodes, got 0 and 0"),
        (path_shape(2, [(0, 7)]), DataError, "from node to node, 0 to 1, got 0 to 7"),
        ((1, 1), DataError, "a grid of one cell"),
        ((0, 2), DataError, "number of rows"),
    ],
)
def test_what_is_no_graph_is_refused(shape: object, error: type[Exception], message: str) -> None:
    """Shapes without paths raise a clear error, which names the sample in a batch."""
    with pytest.raises(error, match=message):
        ShortestPathOracle().n_parts(shape)
    with pytest.raises(error, match="sample 1"):
        argmax_batch(ShortestPathOracle(), np.zeros(5), np.array([0, 4, 5]), [(2, 2), shape])
