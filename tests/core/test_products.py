"""Sums over long vectors in one fixed order."""

import numpy as np
import pytest

from structpred.core.products import add_multiple, dot, dot_of_differences


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1003])
def test_the_order_is_fixed(dtype, n) -> None:
    """64 sums side by side, then half onto half: to the last bit, for both types, wherever the vectors lie in memory."""
    rng = np.random.default_rng(n)
    a, b = (rng.normal(size=2 * n + 1)[1::2].astype(dtype) for _ in range(2))
    products = np.zeros(-(-n // 64) * 64)
    products[:n] = a.astype(np.float64) * b.astype(np.float64)
    sums = np.zeros(64)
    for row in products.reshape(-1, 64):
        sums += row
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    assert dot(a, b) == sums[0]
    assert dot(a, b.astype(np.float64)) == dot(a, b)


@pytest.mark.parametrize("n", [0, 1, 64, 1003])
def test_differences_are_multiplied_as_if_they_were_vectors(n) -> None:
    """To the last bit."""
    a, b, c, d = np.random.default_rng(n).normal(size=(4, n))
    assert dot_of_differences(a, b, c, d) == dot(a - b, c - d)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_multiple_is_rounded_before_it_is_added(dtype) -> None:
    """As NumPy does it in either precision, whether the CPU could do both at once or not."""
    rng = np.random.default_rng(0)
    out, vector = rng.normal(size=(2, 1003)).astype(dtype)
    expected = out + dtype(0.3) * vector
    add_multiple(out, 0.3, vector)
    assert out.tobytes() == expected.tobytes()


def test_vectors_of_different_lengths_are_an_error() -> None:
    """Nothing is read beyond the end of the shorter one."""
    with pytest.raises(ValueError, match="one length"):
        dot(np.zeros(3), np.zeros(4))
