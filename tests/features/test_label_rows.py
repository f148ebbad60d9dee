"""LabelRows: one row per instance and a column of weights a label, the same problem as rows with a block a label."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from structpred import LabelRows
from structpred.contracts.checks import check_feature_map
from structpred.core.feature_map import FeatureMap
from structpred.errors import DataError, ParameterError
from structpred.features.parts import PartFeatures


def made(dtype: type = np.float64) -> tuple[np.ndarray, LabelRows, PartFeatures]:
    """Five rows, one of them empty; as LabelRows, and as a block of weights a label."""
    X = np.random.default_rng(0).normal(size=(5, 3)) * [[1], [0], [1], [1], [1]]
    blocks = [np.kron(x[:, None], np.eye(4)).T for x in X]  # row l has x_f in column f * 4 + l
    return X, LabelRows(sparse.csr_array(X), 4, dtype=dtype), PartFeatures(blocks, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_map_keeps_the_rules_of_feature_maps(dtype: type) -> None:
    """Adjoint, spread, flush and total agree with each other, for weights of both types."""
    _, rows, _ = made(dtype)
    assert isinstance(rows, FeatureMap)
    assert check_feature_map(rows).checked["adjoint"] == len(rows)


def test_it_is_the_map_of_a_block_a_label() -> None:
    """Scores, differences and totals equal those of explicit part rows."""
    X, rows, blocks = made()
    rng = np.random.default_rng(1)
    w = rng.normal(size=rows.dim)
    assert (rows.dim, len(rows), rows.n_parts(2), rows.shapes) == (12, 5, 4, [(4,)] * 5)
    for i, x in enumerate(X):
        np.testing.assert_allclose(rows.scores(w, i), x @ rows.table(w), rtol=1e-12)
        for parts, counts in (([1, 3], [1.0, -1.0]), ([3, 1], [-1.0, 1.0]), ([2], [0.5]), ([], []), ([0, 0], [1.0, -1.0])):
            given = np.array(parts, np.int64), np.array(counts)
            left, right = rows.adjoint(i, *given), blocks.adjoint(i, *given)
            assert left.indices.tolist() == right.indices.tolist()
            np.testing.assert_allclose(left.values, right.values)
    mu, places = rng.normal(size=20), np.arange(0, 21, 4)
    coefs = rng.normal(size=5)
    np.testing.assert_allclose(rows.total(mu, places, coefs), blocks.total(mu, places, coefs))


def test_blocks_give_the_bits_of_single_calls() -> None:
    """Scores and differences of many instances in one call are those of single calls, to the last bit, empty rows included."""
    _, rows, _ = made()
    rng = np.random.default_rng(3)
    w, out, parts = rng.normal(size=rows.dim), np.empty(16), np.array([0, 3, 2, 1, 2])
    rows.score_block(w, 0.3, 1, 5, np.arange(0, 17, 4), out)
    assert np.array_equal(out, np.concatenate([0.3 * rows.scores(w, i) for i in range(1, 5)]))
    counts, ends = np.array([1.0, -1.0, 0.0, 2.0, -2.0]), np.array([0, 2, 3, 3, 5])
    indices, values, places = rows.adjoint_block(1, parts, counts, ends)
    for k, (a, b) in enumerate(pairwise(ends.tolist())):
        own = slice(places[k], places[k + 1])
        single = rows.adjoint(1 + k, parts[a:b], counts[a:b])
        assert np.array_equal(indices[own], single.indices)
        assert np.array_equal(values[own], single.values)


def test_a_difference_of_two_labels_is_short() -> None:
    """2 nnz(x) entries, however many labels there are."""
    rows = LabelRows(np.array([[1.0, 0.0, 2.0]]), 1000)
    assert rows.adjoint(0, np.array([7, 900]), np.array([1.0, -1.0])).indices.tolist() == [7, 900, 2007, 2900]
    assert rows.scratch().shape == (1000,)


def test_bad_rows_are_named() -> None:
    """NaN by sample; a list of matrices with more than one row; no labels; weights that fit no memory."""
    with pytest.raises(DataError, match="sample 1: X must be finite"):
        LabelRows([[[1.0]], [[np.nan]]], 2)
    with pytest.raises(DataError, match="sample 1: expected one row, got 2"):
        LabelRows([np.ones((1, 2)), np.ones((2, 2))], 2)
    for n_labels in (0, 2.0, True):
        with pytest.raises(ParameterError, match="n_labels must be a whole number >= 1"):
            LabelRows(np.ones((1, 2)), n_labels)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="weights would need"):
        LabelRows(sparse.csr_array((1, 10**9)), 10**4)
