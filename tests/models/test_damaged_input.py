"""Sparse matrices whose index arrays were damaged, and labels that arrays cannot hold: clear errors in every estimator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from structpred.errors import DataError
from structpred.models import ChainLabeler, GraphLabeler, MultiLabelMRF, StructuredPredictor
from structpred.oracles.multiclass import MulticlassOracle

DAMAGE: dict[str, Callable[[Any], None]] = {
    "an index too large": lambda m: m.indices.__setitem__(4, 10**6),
    "a negative index": lambda m: m.indices.__setitem__(4, -1),
    "an end too large": lambda m: m.indptr.__setitem__(2, 10**6),
    "ends that descend": lambda m: m.indptr.__setitem__(1, 5),
    "too few values": lambda m: setattr(m, "data", m.data[:-1]),
}
FITS: dict[str, Callable[[Any], Any]] = {
    "chain": lambda m: ChainLabeler(max_iter=1).fit([np.ones((1, 3)), m], [["a"], ["a", "b", "a"]]),
    "graph": lambda m: GraphLabeler(max_iter=1).fit([(np.ones((1, 3)), []), (m, [(0, 1)])], [["a"], ["a", "b", "a"]]),
    "parts": lambda m: StructuredPredictor(MulticlassOracle(), max_iter=1).fit([np.ones((3, 3)), m], [[0], [1]], [(3,), (3,)]),
}


def damaged(kind: str) -> Any:
    """Three rows with two entries each; the damage is in the second or the third."""
    matrix = sparse.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 2.0]]))
    DAMAGE[kind](matrix)
    return matrix


@pytest.mark.parametrize("estimator", FITS)
@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_matrices_name_the_sample(kind: str, estimator: str) -> None:
    """Where each sample has a matrix of its own, the sample is named."""
    with pytest.raises(DataError, match="sample 1: features: the index arrays of this sparse matrix are damaged"):
        FITS[estimator](damaged(kind))


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_rows_and_labels_of_examples(kind: str) -> None:
    """One matrix for all samples: the row is named where it can be told; label matrices are looked at, too."""
    where = "" if kind == "too few values" else "sample [012]: "
    with pytest.raises(DataError, match=f"^{where}features: the index arrays"):
        MultiLabelMRF(max_iter=1).fit(damaged(kind), np.eye(3))
    with pytest.raises(DataError, match=f"^{where}y: the index arrays"):
        MultiLabelMRF(max_iter=1).fit(np.ones((3, 2)), damaged(kind))
    with pytest.raises(DataError, match="features: the index arrays"):
        MultiLabelMRF(max_iter=1).fit(transposed(kind), np.eye(3))


def transposed(kind: str) -> Any:
    """The same damage in columns."""
    matrix = damaged(kind)
    columns = sparse.csc_array((3, 3))
    columns.data, columns.indices, columns.indptr = matrix.data, matrix.indices, matrix.indptr
    return columns


@pytest.mark.parametrize("labels", [[-1, 2**63], [0, 2**64 - 1, -5], ["a", "a\0"], ["\0", ""]])
def test_labels_that_an_array_would_change_are_refused(labels: list[Any]) -> None:
    """Whole numbers beyond 64 bits together, which would be rounded, and strings that end with NUL, which would lose it."""
    with pytest.raises(DataError, match="would be read back as"):
        ChainLabeler(max_iter=1).fit([np.ones((len(labels), 2))], [labels])
    with pytest.raises(DataError, match="would be read back as"):
        GraphLabeler(max_iter=1).fit([(np.ones((len(labels), 2)), [])], [labels])


@pytest.mark.parametrize("labels", [[-(2**63), 2**63 - 1], [2**63, 2**64 - 1], ["a", "a\0b"], [False, True]])
def test_labels_that_fit_come_back(labels: list[Any], tmp_path: Any) -> None:
    """The largest whole numbers that fit, and strings with a NUL inside, are predicted and loaded as they were given."""
    X = [np.eye(2)]
    model = ChainLabeler(max_iter=20, C=100.0).fit(X, [labels])
    model.save(tmp_path / "m.spz")
    for one in (model, ChainLabeler.load(tmp_path / "m.spz")):
        assert one.predict(X)[0].tolist() == labels
