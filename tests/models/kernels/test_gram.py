"""The Gram matrix as features: exact, of the right rank, and refused where it is no kernel or does not fit."""

import numpy as np
import pytest
from scipy import sparse

from structpred.data.sequences import PackedSequences
from structpred.errors import DataError
from structpred.models import KernelChainLabeler
from structpred.models.chain.inputs import NumericInput
from structpred.models.kernels.functions import RBF, Kernel, Linear, Polynomial
from structpred.models.kernels.gram import factorise
from structpred.models.kernels.inputs import KernelInput
from structpred.runtime import memory

ROWS = np.random.default_rng(0).normal(size=(12, 3)).round(2)
SPANNED = {Linear(): 3, Polynomial(2): 10, RBF(0.5): 12}


@pytest.mark.parametrize("kernel", SPANNED, ids=str)
def test_coordinates_give_the_kernel(kernel: Kernel) -> None:
    """Inner products of the coordinates are kernel values, as many as the feature space has dimensions; pivots come first."""
    gram = kernel(sparse.csr_array(ROWS), sparse.csr_array(ROWS))
    factor = factorise(gram.copy(), "the matrix")
    assert factor.rank == SPANNED[kernel]
    coordinates = np.zeros((12, factor.rank))
    for i in range(12):
        coordinates[i, : len(factor.row(i))] = factor.row(i)
    assert np.allclose(coordinates @ coordinates.T, gram, rtol=0, atol=1e-9 * gram.max())
    assert factor.places[factor.pivots].tolist() == list(range(factor.rank))


@pytest.mark.parametrize("kernel", SPANNED, ids=str)
def test_new_positions_get_coordinates_in_the_same_space(kernel: Kernel) -> None:
    """Inner products of coordinates of training and of any other positions are kernel values; equal positions count once."""
    X = [ROWS[:4], ROWS[[2, 2]], ROWS[4:]]
    input_ = KernelInput(NumericInput(), kernel)
    old = matrix(input_.fit_transform(X))
    assert old.shape == (14, SPANNED[kernel])
    new = np.vstack((-0.5 * ROWS, ROWS))
    expected = kernel(sparse.csr_array(new), sparse.csr_array(np.vstack(X)))
    assert np.allclose(matrix(input_.transform([new])) @ old.T, expected, atol=2e-6 * np.abs(expected).max())
    support = sparse.csr_array(np.array([X[i][t] for i, t in input_.support]))
    assert np.allclose(input_.triangle @ input_.triangle.T, kernel(support, support), atol=1e-9 * np.abs(expected).max())


def matrix(packed: PackedSequences) -> np.ndarray:
    """The rows of packed sequences as an array."""
    return sparse.csr_array(
        (packed.values.astype(float), packed.indices, packed.indptr), (packed.n_tokens, packed.n_features)
    ).toarray()


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        ([[0.0, 1.0], [1.0, 0.0]], "not positive semidefinite"),
        ([[1.0, 2.0], [2.0, 1.0]], "not positive semidefinite"),
        ([[1.0, 0.0], [0.0, -1.0]], "not positive semidefinite"),
        ([[1.0, 0.5], [0.4, 1.0]], "not symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], "must be finite"),
    ],
)
def test_what_is_no_kernel_is_refused(gram: list[list[float]], message: str) -> None:
    """A matrix that is not finite, symmetric and positive semidefinite is a DataError with the reason; so through fit."""
    with pytest.raises(DataError, match=f"the matrix: .*{message}"):
        factorise(np.array(gram), "the matrix")
    with pytest.raises(DataError, match=f"kernel <lambda> .*{message}"):
        KernelChainLabeler(kernel=lambda a, b: np.array(gram)).fit([np.eye(2)], [["a", "b"]])


def test_nothing_is_nothing() -> None:
    """Positions without any feature span nothing under the linear kernel, and are labelled by transitions alone."""
    X, y = [np.zeros((2, 3))] * 2, [["a", "b"]] * 2
    model = KernelChainLabeler(kernel="linear").fit(X, y)
    assert len(model.support_) == 0
    assert model.predict(X)[0].tolist() == ["a", "b"]


def test_memory_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the Gram matrix does not fit, the size it would need is said and the kernel is never called."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 80 << 20)
    X = [np.arange(6000.0).reshape(-1, 1) / 6000]
    with pytest.raises(
        DataError, match=r"Gram matrix of 6,000 distinct positions and the features of 6,000 positions would need 0.5 GiB"
    ):
        KernelChainLabeler(kernel=pytest.fail).fit(X, [[0] * 6000])
