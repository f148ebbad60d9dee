"""Sparse vectors: sorted, unique, the same to the last bit whatever the length."""

import numpy as np
import pytest

from structpred.core.sparse import SparseVector, coalesced, sparse_dot


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 17, 100, 1000])
def test_coalesced_equals_a_dictionary(n) -> None:
    """Sums of equal indices in the order of the pairs, to the last bit; sorted; zeros dropped; the arguments unchanged."""
    rng = np.random.default_rng(n)
    for spread in (3, n + 1, 10**12):
        idx, val = rng.integers(0, spread, n), rng.normal(size=n) * 10.0 ** rng.integers(-8, 8, n)
        val[rng.random(n) < 0.2] = 0.0
        kept, sums = (idx.copy(), val.copy()), {}
        for i, x in zip(idx.tolist(), val.tolist(), strict=True):
            sums[i] = sums.get(i, 0.0) + x
        wanted = sorted((i, x) for i, x in sums.items() if x != 0.0)
        out = coalesced(idx, val)
        assert list(zip(out.indices.tolist(), out.values.tolist(), strict=True)) == wanted
        assert (out.indices.dtype, out.values.dtype) == (np.int64, np.float64)
        np.testing.assert_array_equal(idx, kept[0])
        np.testing.assert_array_equal(val, kept[1])


def test_both_ways_to_order_pairs_agree_to_the_last_bit():
    """Pairs of few and of many indices, zeros and sums of zero among them: by rank as by sorting."""
    from structpred.core._sparse_kernels import add_up, in_order

    rng = np.random.default_rng(0)
    for size, dim in [(0, 1), (1, 1), (17, 8), (40, 2000), (300, 70), (500, 8191), (500, 8192)]:
        idx, val = rng.integers(0, dim, size), rng.normal(size=size) * rng.integers(0, 2, size)
        val[: size // 4], idx[: size // 4] = -val[size // 4 : 2 * (size // 4)], idx[size // 4 : 2 * (size // 4)]
        wanted = coalesced(idx, val)
        for order in (add_up, in_order):
            found = order(idx.copy(), val.copy(), dim)
            assert found[0].tobytes() == wanted.indices.tobytes()
            assert found[1].tobytes() == wanted.values.tobytes()


def test_cancelling_pairs_vanish() -> None:
    """+1 and -1 at one index leave nothing."""
    assert not len(coalesced([5, 5], [1.0, -1.0]).indices)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dot_and_dense_agree(dtype) -> None:
    """<w, v> is that of the dense vector, summed in float64."""
    rng = np.random.default_rng(0)
    w, v = rng.normal(size=50).astype(dtype), coalesced(rng.integers(0, 50, 30), rng.normal(size=30))
    assert sparse_dot(w, v) == pytest.approx(w.astype(float) @ v.dense(50), rel=1e-12)
    assert sparse_dot(w, SparseVector(np.empty(0, np.int64), np.empty(0))) == 0.0
