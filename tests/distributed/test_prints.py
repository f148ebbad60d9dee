"""Shards that are read again: whatever differs from the first read is an error that names the shard and what differs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

from structpred.core.instances import Instance
from structpred.distributed import Shards, fit, tasks
from structpred.distributed.reading import read_shard
from structpred.distributed.shards import FunctionShard
from structpred.errors import DataError
from structpred.features.parts import PartFeatures
from structpred.models import ChainLabeler

X = [[["the"], ["cat"]], [["a"], ["dog"]], [["cats"]]]
Y = [["DT", "NN"], ["DT", "NN"], ["NN"]]
BENT: dict[str, Callable[[], tuple[Any, ...]]] = {
    "rows, labels, features (2 rows)": lambda: (X[:2], Y[:2], None, None),
    "labels": lambda: (X, [labels[::-1] for labels in Y], None, None),
    "features": lambda: ([[["the"], ["dog"]], *X[1:]], Y, None, None),
    "weights": lambda: (X, Y, [1.0, 2.0, 1.0], None),
}
READS = {"n": 0, "bent": 0}


class Bent:
    """A function that gives other data from its n-th call on."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __call__(self) -> tuple[Any, ...]:
        READS["n"] += 1
        return BENT[self.what]() if READS["n"] >= READS["bent"] else (X, Y, None, None)


def steady() -> tuple[Any, ...]:
    """Data that stay."""
    return X, Y, None, None


class Named(NamedTuple):
    """A tuple whose fields are called as the methods of other things."""

    arrays: int
    nodes: int


@pytest.mark.mostly_slow
@pytest.mark.parametrize("bent", [2, 3])
@pytest.mark.parametrize("what", BENT)
def test_a_later_read_that_differs_is_an_error(here: Any, what: str, bent: int) -> None:
    """The second read, where the shard is built, and the third, after its worker was lost, are compared with the first."""
    READS.update(n=0, bent=bent)

    def lose(row: Any) -> None:
        tasks.HELD.clear()

    model = ChainLabeler("perceptron", max_iter=4, callbacks=(lose,))
    with pytest.raises(DataError, match=r"shard 1 .*expected what the first read gave \(3 rows\), got other ") as raised:
        fit(model, Shards.of_functions([steady, Bent(what)]), client=here)
    assert what in str(raised.value)
    assert READS["n"] == bent


def test_a_file_that_changes_is_an_error(here: Any, tmp_path: Path) -> None:
    """A file that is written while it is trained on is named, with its shard; the same bytes are read as often as need be."""
    path = tmp_path / "train.txt"
    path.write_text("the DT\ncat NN\n\na DT\ndog NN\n\n")

    def lose(row: Any) -> None:
        tasks.HELD.clear()
        if row["passes"] == 2:
            path.write_text("the DT\ncat NN\n\na NN\ndog DT\n\n")

    model = ChainLabeler("perceptron", template="pos", max_iter=4, callbacks=(lose,))
    with pytest.raises(DataError, match=r"shard 1 \(.*train\.txt, bytes .*got other content "):
        fit(model, Shards.of_file(path, 2), client=here)


def test_equal_values_have_equal_prints() -> None:
    """Order of dicts and sets, and other objects with the same values, make no difference; each value makes one."""
    graph = pytest.importorskip("networkx").path_graph(3)
    kinds = [
        lambda a: [[{"x": a, "y": True}, {"y": "s"}]],
        lambda a: [{"x", f"y{a}"}],
        lambda a: [[12, a], [1, 2 + a]],
        lambda a: [{"x": np.array([a, 2.0]), 3: None}],
        lambda a: np.array([[a, "b"], [None, 2]], dtype=object),
        lambda a: [Instance([[a]], (2, "s")), Instance([[1.0]], (2,))],
        lambda a: [(graph.subgraph([0, 1] if a else [1, 2]), a)],
        lambda a: [("a", f"{a}\ud800")],
        lambda a: PartFeatures([np.full((2, 2), float(a))]),
        lambda a: sparse.csr_array(np.array([[0.0, a + 1.0]])),
        lambda a: [Named(a, 2)],
        lambda a: np.arange(12.0).reshape(3, 4)[:, a : a + 2].T,
        lambda a: [np.array(a, dtype="datetime64[D]")],
        lambda a: np.zeros((0, a)),
        lambda a: np.array([f"{a}"]),
    ]
    for kind in kinds:
        _, first = read_shard(FunctionShard(lambda: (kind(1), None)), None)  # noqa: B023
        read_shard(FunctionShard(lambda: (kind(1), None)), first)  # noqa: B023
        with pytest.raises(DataError, match="got other features "):
            read_shard(FunctionShard(lambda: (kind(0), None)), first)  # noqa: B023
    a, b = ({"x": 1, "y": 2}, {"y": 2, "x": 1})
    _, first = read_shard(FunctionShard(lambda: ([a], None)), None)
    read_shard(FunctionShard(lambda: ([b], None)), first)
