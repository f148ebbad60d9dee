"""Labelled segmentations: the best, the k best and sums against enumeration, against the chain, and in training."""

import tracemalloc

import numpy as np
import pytest

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError, InfeasibleError
from structpred.models import StructuredPredictor
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.semimarkov import SemiMarkovOracle, as_segments, from_segments
from structpred.runtime import memory

SEGMENTS = SemiMarkovOracle()
LISTED = EnumeratedOracle.of(SEGMENTS)
SHAPES = [*SemiMarkovOracle.example_shapes(), (7, 2, 3), (6, 3, 2)]


def scores_of(rng, shape, scale=1.0, forbidden=0.0):
    """Normal scores, some forbidden."""
    theta = scale * rng.normal(size=SEGMENTS.n_parts(shape))
    theta[rng.random(len(theta)) < forbidden] = FORBIDDEN
    return theta


def test_the_number_of_segmentations() -> None:
    """Enumeration itself: with L labels and no limit there are L (1 + L)^(T - 1), and with M = 1 there are L^T."""
    for length, n_labels in [(1, 3), (4, 2), (5, 3)]:
        assert len(list(SEGMENTS.enumerate((length, n_labels, length)))) == n_labels * (1 + n_labels) ** (length - 1)
        assert len(list(SEGMENTS.enumerate((length, n_labels, 1)))) == n_labels**length
    tribonacci = [len(list(SEGMENTS.enumerate((length, 1, 3)))) for length in range(1, 9)]
    assert tribonacci == [1, 2, 4, 7, 13, 24, 44, 81]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("forbidden", [0.0, 0.2])
def test_the_best_equals_enumeration(shape, forbidden) -> None:
    """Scores of the best and of the k best, with scores from tiny to 1e6, and with forbidden parts."""
    rng = np.random.default_rng(0)
    counts = LISTED.table(shape).counts
    for scale in (1e-3, 1.0, 1e3, 1e6):
        theta = scores_of(rng, shape, scale, forbidden)
        values = np.sort(counts @ theta)[::-1]
        assert theta[SEGMENTS.parts(SEGMENTS.argmax(theta, shape), shape)].sum() == pytest.approx(values[0], rel=1e-12)
        possible = values[values > 0.5 * FORBIDDEN]
        found = SEGMENTS.kbest(theta, shape, 6)
        np.testing.assert_allclose([theta[SEGMENTS.parts(y, shape)].sum() for y in found], possible[:6], rtol=1e-9)
        assert len({y.tobytes() for y in found}) == len(found)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("forbidden", [0.0, 0.2])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4, 1e6])
def test_sums_equal_enumeration(shape, forbidden, scale) -> None:
    """log Z and marginals; exact zeros where forbidden; InfeasibleError where nothing is left."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        theta = scores_of(rng, shape, scale, forbidden)
        if (LISTED.table(shape).counts @ theta).max() <= 0.5 * FORBIDDEN:
            with pytest.raises(InfeasibleError, match="forbidden part"):
                SEGMENTS.marginals(theta, shape)
            continue
        log_z, mu = SEGMENTS.marginals(theta, shape)
        true_log_z, true_mu = LISTED.marginals(theta, shape)
        assert log_z == pytest.approx(true_log_z, rel=1e-12, abs=1e-10)
        np.testing.assert_allclose(mu, true_mu, atol=1e-10 if scale < 1e3 else 1e-6)
        assert not mu[theta <= FORBIDDEN].any()


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_every_position_lies_in_one_segment(scale) -> None:
    """On 300 positions: the segments over each position have probability 1 to 1e-9 in all; transitions number segments less 1."""
    shape = length, n_labels, longest = (300, 4, 6)
    log_z, mu = SEGMENTS.marginals(scores_of(np.random.default_rng(2), shape, scale), shape)
    segments = mu[: -(n_labels**2)].reshape(length, longest, n_labels)
    covered = np.zeros(length)
    for t in range(length):
        for m in range(1, min(longest, length - t) + 1):
            covered[t : t + m] += segments[t, m - 1].sum()
        assert not segments[t, length - t :].any()  # no segment reaches past the end
    np.testing.assert_allclose(covered, 1.0, atol=1e-9)
    assert mu[-(n_labels**2) :].sum() == pytest.approx(segments.sum() - 1.0, abs=1e-7)
    assert np.isfinite(log_z)


def test_marginals_are_the_gradient_of_log_z() -> None:
    """Central differences by every part score."""
    shape = (6, 2, 3)
    theta = scores_of(np.random.default_rng(3), shape, 2.0)
    mu = SEGMENTS.marginals(theta, shape)[1]
    for j in range(len(theta)):
        shift = np.zeros(len(theta))
        shift[j] = 1e-5
        slope = (SEGMENTS.marginals(theta + shift, shape)[0] - SEGMENTS.marginals(theta - shift, shape)[0]) / 2e-5
        assert mu[j] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_segments_of_one_position_are_a_chain(scale) -> None:
    """With M = 1: the same best labels, the same log Z and the same marginals as ChainOracle, on 60 positions."""
    length, n_labels = 60, 5
    theta = scale * np.random.default_rng(4).normal(size=length * n_labels + n_labels**2)
    labels = SEGMENTS.argmax(theta, (length, n_labels, 1))
    assert np.array_equal(as_segments(labels)[:, 2], ChainOracle().argmax(theta, (length, n_labels)))
    log_z, mu = SEGMENTS.marginals(theta, (length, n_labels, 1))
    chain_log_z, chain_mu = ChainOracle().marginals(theta, (length, n_labels))
    assert log_z == pytest.approx(chain_log_z, rel=1e-12)
    np.testing.assert_allclose(mu, chain_mu, atol=1e-9 if scale == 1.0 else 1e-7)


def test_labels_and_segments_translate() -> None:
    """as_segments and from_segments undo each other on every output; what is no segmentation is refused."""
    for labels in SEGMENTS.enumerate((5, 2, 3)):
        segments = as_segments(labels)
        assert np.array_equal(from_segments(segments), labels)
        assert segments[:, 1].sum() == 5
        assert segments[:, 1].max() <= 3
    for broken in ([], [2, 2], [3, 0], [1, 2, 3]):
        with pytest.raises(ValueError, match="a segment"):
            as_segments(np.array(broken, dtype=np.int64))
    for broken in ([], [(1, 1, 0)], [(0, 2, 0), (1, 1, 0)], [(0, 0, 1)]):
        with pytest.raises(ValueError, match="without gaps"):
            from_segments(broken)


def test_labels_that_do_not_fit_the_shape_are_refused() -> None:
    """Too long a segment, a label out of range, another number of positions."""
    for labels, message in [([1, 0, 0], "at most 2"), ([5, 1, 1], "must lie in"), ([1, 1], "expected 3")]:
        with pytest.raises(ValueError, match=message):
            SEGMENTS.parts(np.array(labels), (3, 2, 2))
    for shape in [(0, 2, 2), (3, 0, 2), (3, 2, 0)]:
        with pytest.raises(DataError, match="must be a whole number from 1"):
            SEGMENTS.argmax(np.zeros(8), shape)


def test_what_cannot_fit_is_refused_before_it_is_allocated(monkeypatch) -> None:
    """An error with the size it would need, from every method, and nothing large was allocated."""
    shape = (20_000, 4, 2)
    theta = np.zeros(SEGMENTS.n_parts(shape))
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 16)
    tracemalloc.start()
    try:
        for call in (SEGMENTS.argmax, SEGMENTS.marginals, lambda theta, shape: SEGMENTS.kbest(theta, shape, 9)):
            with pytest.raises(DataError, match=r"20,000 positions.* would need"):
                call(theta, shape)
        assert tracemalloc.get_traced_memory()[1] < theta.nbytes
    finally:
        tracemalloc.stop()


def planted(seed, n=25):
    """Segment features, and as the truth the best segmentation under hidden weights."""
    rng, hidden = np.random.default_rng(seed), np.array([2.0, -1.5, 1.0])
    shapes = [(int(rng.integers(2, 9)), 2, 3) for _ in range(n)]
    X = [rng.normal(size=(SEGMENTS.n_parts(shape), 3)) for shape in shapes]
    return X, [SEGMENTS.argmax(x @ hidden, shape) for x, shape in zip(X, shapes, strict=True)], shapes


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "mira", "perceptron", "oeg", "lbfgs"])
def test_every_trainer_learns_segmentations(trainer) -> None:
    """Margin or log loss: new instances get the segmentations that the hidden weights give, nearly always."""
    model = StructuredPredictor(SEGMENTS, "extra_parts", trainer, 10.0, max_iter=30).fit(*planted(0))
    assert model.score(*planted(1)) > 0.9
