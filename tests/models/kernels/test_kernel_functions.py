"""Kernels: what they compute, what they take from data, and what is refused."""

import numpy as np
import pytest
from scipy import sparse

from structpred.errors import DataError, ParameterError
from structpred.models.kernels.functions import RBF, B1Spline, Linear, Polynomial, kernels, resolve_kernel, restored, saved

A = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.5, -1.0, 0.0]])
B = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 2.0]])
FORMULAS = {
    Linear(): lambda a, b: a @ b,
    Polynomial(3, 0.5, 2.0): lambda a, b: (0.5 * a @ b + 2.0) ** 3,
    RBF(0.3): lambda a, b: np.exp(-0.3 * ((a - b) @ (a - b))),
    B1Spline(width=2.5): lambda a, b: max(0.0, 1.0 - np.linalg.norm(a - b) / 2.5),
    Linear(normalised=True): lambda a, b: a @ b / (np.linalg.norm(a) * np.linalg.norm(b) or 1.0),
    Polynomial(2, 0.5, 1.0, normalised=True): lambda a, b: (0.5 * a @ b + 1.0) ** 2 / ((0.5 * a @ a + 1.0) * (0.5 * b @ b + 1.0)),
}


@pytest.mark.parametrize("kernel", FORMULAS, ids=str)
@pytest.mark.parametrize("zeros", [0, 40])
def test_kernels_follow_their_formulas(kernel: object, zeros: int) -> None:
    """Every pair of rows gets the value of the formula, whether few entries are zero or most."""
    a, b = (sparse.csr_array(np.hstack((x, np.zeros((len(x), zeros))))) for x in (A, B))
    expected = [[FORMULAS[kernel](x, z) for z in B] for x in A]
    assert np.allclose(kernel(a, b), expected, rtol=1e-14, atol=1e-15)


def test_the_width_is_that_of_the_data() -> None:
    """RBF(None) takes 1 / (features times variance of all entries), and 1 where nothing varies."""
    assert RBF().fitted(sparse.csr_array(A)).gamma == pytest.approx(1.0 / (3 * A.var()), rel=1e-14)
    assert RBF().fitted(sparse.csr_array(np.zeros((2, 3)))).gamma == 1.0
    assert RBF(0.2).fitted(sparse.csr_array(A)).gamma == 0.2
    rows = sparse.csr_array(np.random.default_rng(0).normal(size=(60, 2)))
    assert np.mean(B1Spline(0.1).fitted(rows)(rows, rows) > 0) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(0.0), "gamma must be a positive number"),
        (lambda: RBF(float("nan")), "gamma must be"),
        (lambda: B1Spline(0.0), "share must be a number in"),
        (lambda: Polynomial(0), "degree must be a whole number >= 1"),
        (lambda: Polynomial(2, 1.0, -1.0), "constant must be finite and >= 0"),
        (lambda: resolve_kernel("rbff"), "expected one of b1spline, linear, polynomial, precomputed, rbf.*did you mean 'rbf'"),
        (lambda: resolve_kernel(RBF), "an instance such as RBF"),
        (lambda: resolve_kernel(3), "got 3"),
    ],
)
def test_bad_kernels_are_refused(make: object, message: str) -> None:
    """A setting that makes no kernel, or something else than a kernel, is a ParameterError that says what was expected."""
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_function_must_give_a_matrix() -> None:
    """A kernel of the user's own that returns another shape is named, with both shapes."""

    def rows_only(a: object, b: object) -> object:
        return np.ones(3)

    with pytest.raises(DataError, match=r"kernel rows_only: expected numbers of shape \(3, 2\), got float64 of shape \(3,\)"):
        resolve_kernel(rows_only)(sparse.csr_array(A), sparse.csr_array(B))


@pytest.mark.parametrize("kernel", [*FORMULAS, "precomputed", RBF()], ids=str)
def test_files_hold_kernels(kernel: object) -> None:
    """A kernel of ours is read back with its settings; a function is not, and says so when it is called."""
    assert restored(saved(kernel)) == resolve_kernel(kernel)
    assert set(kernels()) == {"linear", "polynomial", "rbf", "b1spline", "precomputed"}
    lost = restored(saved(len))
    with pytest.raises(ParameterError, match=r"kernel function len: give load\(path, kernel=...\)"):
        lost(sparse.csr_array(A), sparse.csr_array(B))
