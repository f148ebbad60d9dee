"""Feature maps: scores and joint features are adjoint, and bad input is refused by sample."""

import numpy as np
import pytest
from scipy import sparse

from structpred.contracts.checks import check_feature_map
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures


def packed(seed=0, n=6, n_features=7) -> PackedSequences:
    """Random sequences; some tokens have no feature, some one twice."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, n)
    counts = rng.integers(0, 5, lengths.sum())
    indices, values = rng.integers(0, n_features, counts.sum()), rng.normal(size=counts.sum())
    return PackedSequences(np.cumsum([0, *counts]), indices, values, np.cumsum([0, *lengths]), n_features)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transitions", [True, False])
@pytest.mark.parametrize("n_labels", [1, 3, 8, 9])
def test_sequence_features_are_adjoint(dtype, transitions, n_labels) -> None:
    """<mu, scores(w)> = <w, adjoint(mu)> to 1e-9, and the other rules of a feature map."""
    features = SequenceFeatures(packed(), n_labels, transitions=transitions, dtype=dtype)
    assert check_feature_map(features).checked["adjoint"] == len(features)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_part_features_are_adjoint(dtype) -> None:
    """The same for one feature row per part, dense and sparse matrices mixed."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.5) for n in (3, 1, 8, 4)]
    rows = [sparse.csr_matrix(m) if k % 2 else m for k, m in enumerate(rows)]
    assert check_feature_map(PartFeatures(rows, dtype=dtype)).checked["adjoint"] == 4


def test_sequence_scores_are_those_of_the_table() -> None:
    """Emissions are features times rows; start and stop are added at the ends; transitions are the last rows."""
    data, n_labels = packed(1), 3
    features, rng = SequenceFeatures(data, n_labels, dtype=np.float64), np.random.default_rng(0)
    w = rng.normal(size=features.dim)
    table = features.table(w)[:, :n_labels]
    for i in range(len(data)):
        first, last = data.offsets[i], data.offsets[i + 1]
        emissions = np.zeros((last - first, n_labels))
        for t in range(first, last):
            for k in range(data.indptr[t], data.indptr[t + 1]):
                emissions[t - first] += data.values[k] * table[data.indices[k]]
        emissions[0] += table[data.n_features]
        emissions[-1] += table[data.n_features + 1]
        wanted = np.concatenate((emissions.ravel(), table[data.n_features + 2 :].ravel()))
        np.testing.assert_allclose(features.scores(w, i), wanted, atol=1e-12)
        assert features.n_parts(i) == len(wanted)


def test_sequence_layout() -> None:
    """Rows are padded to eight labels; groups are emissions, start and stop, transitions."""
    features = SequenceFeatures(packed(n_features=7), 9)
    assert (features.width, features.n_rows, features.dim, features.dtype) == (16, 7 + 2 + 9, 18 * 16, np.float32)
    assert features.groups.tolist() == [0, 7 * 16, 9 * 16, 18 * 16]
    alone = SequenceFeatures(packed(n_features=7), 9, transitions=False)
    assert (alone.dim, alone.groups.tolist()) == (7 * 16, [0, 7 * 16])
    with pytest.raises(ParameterError, match="n_labels must be at least 1"):
        SequenceFeatures(packed(), 0)


def test_part_scores_are_rows_times_weights() -> None:
    """X_i w, in float64 also for float32 weights; counts may be fractions and repeat."""
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(n, 4)) for n in (2, 5)]
    features, w = PartFeatures(rows), rng.normal(size=4).astype(np.float32)
    for i, matrix in enumerate(rows):
        np.testing.assert_allclose(features.scores(w, i), matrix @ w.astype(float), rtol=1e-12)
        parts, counts = np.array([1, 0, 1]), np.array([0.5, 2.0, 1.0])
        np.testing.assert_allclose(features.adjoint(i, parts, counts).dense(4), counts @ matrix[parts], atol=1e-12)


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ([], "no samples"),
        ([np.eye(2), np.ones((2, 3))], "sample 1: expected 2 feature columns, got 3"),
        ([np.eye(2), np.array([[1.0, np.nan]])], "sample 1: features must be finite"),
        ([np.ones(3)], "sample 0: expected a 2-d numeric array .* got 1-d float64; did you pass one sample"),
        ([[["a", "b"]]], "sample 0: expected a 2-d numeric array"),
    ],
)
def test_bad_matrices_are_refused(matrices, message) -> None:
    """The error names the sample, what was expected and what came."""
    with pytest.raises(DataError, match=message):
        PartFeatures(matrices)
