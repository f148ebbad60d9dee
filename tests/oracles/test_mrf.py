"""Graphs as shapes: numbering of parts, and clear errors for what is no graph."""

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.oracles.mrf import PairwiseOracle, graph_of, graph_shape
from structpred.oracles.mrf_enumeration import EnumerationMRF


def test_parts_are_numbered_as_documented() -> None:
    """Node i, state a: i * K + a; edge e, states a and b: n * K + e * K^2 + a * K + b."""
    shape = graph_shape(3, 4, [(2, 1), (0, 2)])
    assert shape == (3, 4, 1, 2, 0, 2)
    found = EnumerationMRF().parts(np.array([3, 0, 2]), shape)
    assert found.tolist() == [3, 4, 10, 12 + 0 * 4 + 2, 12 + 16 + 3 * 4 + 2]
    assert EnumerationMRF().n_parts(shape) == 12 + 32
    assert EnumerationMRF().label_grid(shape) == (3, 4)


def test_a_graph_is_read_once() -> None:
    """The same shape gives the same, unchangeable graph."""
    graph = graph_of((3, 2, 0, 1))
    assert graph_of((3, 2, 0, 1)) is graph
    with pytest.raises(ValueError, match="read-only"):
        graph.edges[0, 0] = 1


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((3,), "got 1 numbers"),
        ((3, 2, 0), "got 3 numbers"),
        ((0, 2), "at least one node, got n = 0"),
        ((2, 0), "at least one state, got K = 0"),
        ((3, 2, 0, 1, 0, 3), r"edge 1, \(0, 3\), names a node that is missing: nodes are 0\.\.2"),
        ((3, 2, -1, 1), r"edge 0, \(-1, 1\), names a node that is missing"),
        ((3, 2, 1, 1), r"edge 0, \(1, 1\), joins a node to itself"),
        ((3, 2, 0, 1, 1, 2, 0, 1), r"edge 0, \(0, 1\), comes more than once"),
        ((3, 2, 2, 1), r"edge 0, \(2, 1\), has its larger node first"),
    ],
)
def test_what_is_no_graph_is_refused(shape: tuple[int, ...], words: str) -> None:
    """DataError names the edge, its nodes and what is wrong."""
    with pytest.raises(DataError, match=words):
        graph_of(shape)


@pytest.mark.parametrize("edges", [[(0.0, 1.0)], [(0, 1, 2)], [0, 1], [("a", "b")]])
def test_edges_must_be_pairs_of_whole_numbers(edges: list) -> None:
    """DataError for edges of any other kind."""
    with pytest.raises(DataError, match=r"integer array \(E, 2\)"):
        graph_shape(3, 2, edges)


@pytest.mark.parametrize(
    ("labels", "words"), [([0, 1], "expected 3 states"), ([0, 1, 2], "states must lie in"), ([0, -1, 0], "lie in")]
)
def test_labels_that_are_no_output_are_refused(labels: list[int], words: str) -> None:
    """parts() tells a wrong number of nodes and states out of range."""
    with pytest.raises(ValueError, match=words):
        EnumerationMRF().parts(np.array(labels), graph_shape(3, 2, [(0, 1)]))


def test_enumeration_of_outputs_is_complete() -> None:
    """K^n outputs, all different, and each example shape is small enough for the contract checks."""
    for shape in PairwiseOracle.example_shapes():
        outputs = {y.tobytes() for y in EnumerationMRF().enumerate(shape)}
        assert len(outputs) == shape[1] ** shape[0] <= 256
