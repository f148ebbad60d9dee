"""Hierarchies of labels: closures and depths compared with walks by hand, and what is no hierarchy."""

import numpy as np
import pytest

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError

DIAMOND = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]


def test_a_diamond() -> None:
    """Two parents: ancestors over both ways, the depth of the shortest, no tree."""
    graph = LabelHierarchy(6, [*DIAMOND, (0, 4)])
    assert graph.depths.tolist() == [0, 1, 1, 2, 1, 0]
    assert np.flatnonzero(graph.ancestors[4]).tolist() == [0, 1, 2, 3]
    assert graph.closed([[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1]]).tolist() == [[1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1]]
    assert not graph.is_tree
    with pytest.raises(DataError, match="expected a tree of labels, but '3' has 2 parents: '1' and '2'"):
        graph.require_tree()


def test_closures_of_random_graphs() -> None:
    """closed() is what walking upwards from each label gives; it is closed itself; the order has parents first."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 9))
        names = rng.permutation(n)
        edges = [(int(names[i]), int(names[j])) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.3]
        graph = LabelHierarchy(n, edges)
        Y = (rng.random((5, n)) < 0.3).astype(np.uint8)
        wanted = Y.copy()
        for row in wanted:
            for _ in range(n):
                for p, c in edges:
                    row[p] |= row[c]
        closed = graph.closed(Y)
        assert closed.tolist() == wanted.tolist()
        assert graph.broken(closed) is None
        assert all(graph.order.index(p) < graph.order.index(c) for p, c in edges)
        assert np.array_equal(
            graph.ancestors.T[:, :].astype(np.uint8) @ np.eye(n, dtype=np.uint8), graph.closed(np.eye(n)).T - np.eye(n)
        )


def test_the_first_open_row_is_named() -> None:
    """broken() gives the row, the parent and the child; the rows themselves are left alone."""
    graph = LabelHierarchy(3, [(0, 1), (1, 2)])
    Y = np.array([[1, 0, 0], [1, 0, 1]], np.uint8)
    assert graph.broken(Y) == (1, 1, 2)
    graph.closed(Y)
    assert Y.tolist() == [[1, 0, 0], [1, 0, 1]]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (1, 2), (2, 0)], "the hierarchy of labels has a cycle: 'a' -> 'b' -> 'c' -> 'a'"),
        ([(0, 1), (1, 1)], "edge 1 of the hierarchy makes label 'b' its own parent"),
        ([(0, 3)], r"edge 0 of the hierarchy, \(0, 3\), names a label that is missing: 0..2"),
        ([(-1, 0)], "names a label that is missing"),
        ([(0, 1), (0, 1)], "comes more than once"),
        ([(0, 1, 2)], r"pairs \(parent, child\)"),
        ([(0.5, 1.0)], r"pairs \(parent, child\)"),
    ],
)
def test_what_is_no_hierarchy(edges: list, message: str) -> None:
    """Circles, missing labels, self-parents and repeats raise DataError that names them."""
    with pytest.raises(DataError, match=message):
        LabelHierarchy(3, edges, ["a", "b", "c"])


def test_parents() -> None:
    """from_parents is the forest; other values are refused."""
    assert LabelHierarchy.from_parents([1, -1, 1, -1]).edges.tolist() == [[1, 0], [1, 2]]
    assert LabelHierarchy.from_parents([-1, -1]).edges.shape == (0, 2)
    with pytest.raises(DataError, match="parents must be whole numbers"):
        LabelHierarchy.from_parents([0.5])
    with pytest.raises(DataError, match="cycle"):
        LabelHierarchy.from_parents([1, 0])
    with pytest.raises(DataError, match="3 labels got 1 names"):
        LabelHierarchy(3, [], ["a"])
