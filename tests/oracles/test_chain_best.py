"""The k best, the best for each loss, the best with each label: against enumeration, and between each other."""

import numpy as np
import pytest

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError
from structpred.oracles.chain import ChainOracle
from structpred.oracles.chains._chain_kernels import max_marginals
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.runtime import memory

CHAIN = ChainOracle()
LISTED = EnumeratedOracle.of(CHAIN)
SHAPES = [(1, 1), (1, 4), (2, 3), (5, 2), (4, 3), (6, 3)]


def scores_of(rng, shape, kind):
    """Normal scores, or small whole numbers with many ties, or huge ones, or some forbidden."""
    theta = rng.normal(size=CHAIN.n_parts(shape))
    if kind == "ties":
        return np.rint(theta)
    if kind == "forbidden":
        theta[rng.random(len(theta)) < 0.15] = FORBIDDEN
    return theta * (1e6 if kind == "huge" else 1.0)


@pytest.mark.parametrize("kind", ["random", "ties", "huge", "forbidden"])
@pytest.mark.parametrize("shape", SHAPES)
def test_k_best_are_the_first_of_all_sorted(shape, kind) -> None:
    """Scores as in the sorted list of all outputs, all different, best first; never more than there are, none forbidden."""
    rng = np.random.default_rng(0)
    for k in (1, 2, 7, 1000):
        theta = scores_of(rng, shape, kind)
        found = CHAIN.kbest(theta, shape, k)
        values = [theta[CHAIN.parts(y, shape)].sum() for y in found]
        everything = np.sort(LISTED.table(shape).counts @ theta)[::-1]
        wanted = everything[everything > 0.5 * FORBIDDEN][:k]
        np.testing.assert_allclose(values, wanted, rtol=1e-9, atol=1e-9)
        assert len({y.tobytes() for y in found}) == len(found)
    if len(wanted):
        assert np.array_equal(CHAIN.kbest(theta, shape, 1)[0], CHAIN.argmax(theta, shape)) or kind == "ties"


@pytest.mark.parametrize("kind", ["random", "ties", "huge"])
@pytest.mark.parametrize("shape", SHAPES)
def test_best_for_each_loss(shape, kind) -> None:
    """Every attained loss once, ascending, with the best score among the outputs that have it, as enumeration finds."""
    rng = np.random.default_rng(1)
    for low in (0, -2):
        theta = scores_of(rng, shape, kind)
        costs = rng.integers(low, 4, len(theta)).astype(float)
        losses, best, labels = CHAIN.argmax_per_loss(theta, costs, shape)
        true_losses, true_best, _ = LISTED.argmax_per_loss(theta, costs, shape)
        assert losses.tolist() == true_losses.tolist()
        np.testing.assert_allclose(best, true_best, rtol=1e-12, atol=1e-9)
        for loss, value, y in zip(losses, best, labels, strict=True):
            parts = CHAIN.parts(y, shape)
            assert costs[parts].sum() == loss
            assert theta[parts].sum() == pytest.approx(value, rel=1e-12, abs=1e-9)


def test_losses_that_are_no_whole_numbers_are_refused() -> None:
    """The table counts losses, so halves cannot be counted."""
    with pytest.raises(DataError, match="whole numbers"):
        CHAIN.argmax_per_loss(np.zeros(8), np.full(8, 0.5), (2, 2))


@pytest.mark.parametrize("kind", ["random", "ties", "huge"])
@pytest.mark.parametrize("shape", SHAPES)
def test_max_marginals(shape, kind) -> None:
    """out[t, l] is the best score among the outputs with label l at position t; its maximum is the best score at every t."""
    rng = np.random.default_rng(2)
    theta = scores_of(rng, shape, kind)
    (length, n_labels), nodes, found, own = shape, shape[0] * shape[1], np.empty(shape), np.empty(shape)
    max_marginals(theta, length, n_labels, 0, np.empty((2, n_labels)), found)
    repeated = np.concatenate((theta[:nodes], np.tile(theta[nodes:], length)))  # a table of its own for each step
    max_marginals(repeated, length, n_labels, n_labels**2, np.empty((2, n_labels)), own)
    assert np.array_equal(found, own)
    listed, counts = LISTED.table(shape)
    values, labels = counts @ theta, np.array(listed)
    wanted = [[values[labels[:, t] == label].max() for label in range(shape[1])] for t in range(shape[0])]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(found.max(axis=1), values.max(), rtol=1e-12, atol=1e-9)


def test_k_best_of_a_long_chain() -> None:
    """On 400 positions: sorted, different, each score recomputed from its labels; the first is the best sequence."""
    rng, shape = np.random.default_rng(3), (400, 6)
    theta = rng.normal(size=CHAIN.n_parts(shape))
    found = CHAIN.kbest(theta, shape, 50)
    values = np.array([theta[CHAIN.parts(y, shape)].sum() for y in found])
    assert (np.diff(values) <= 1e-9).all()
    assert len({y.tobytes() for y in found}) == 50
    assert np.array_equal(found[0], CHAIN.argmax(theta, shape))


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda theta, shape: CHAIN.argmax(theta, shape), "decoding"),
        (lambda theta, shape: CHAIN.marginals(theta, shape), "marginals"),
        (lambda theta, shape: CHAIN.kbest(theta, shape, 1000), "1000 best"),
        (lambda theta, shape: CHAIN.argmax_per_loss(theta, np.arange(len(theta)) % 2.0, shape), "losses of"),
    ],
    ids=["argmax", "marginals", "kbest", "argmax_per_loss"],
)
def test_what_cannot_fit_is_refused_before_it_is_allocated(call, what, monkeypatch) -> None:
    """With 64 KiB of memory left: an error that says what for, how much it would need, and how much there is."""
    import tracemalloc

    shape = (20_000, 8)
    theta = np.zeros(CHAIN.n_parts(shape))
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 16)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=rf"{what}.*would need .* GiB.*available"):
            call(theta, shape)
        assert tracemalloc.get_traced_memory()[1] < 5 * theta.nbytes
    finally:
        tracemalloc.stop()
