"""TreeMRF against a table of all outputs made by NumPy, and on forests too large for one."""

import numpy as np
import pytest
from mrf_cases import all_scores, eliminated, exact_marginals, forbid_some, random_forest
from scipy.special import logsumexp

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.mrf import graph_shape
from structpred.oracles.tree_mrf import TreeMRF

ORACLE = TreeMRF()


def _score(scores: np.ndarray, labels: np.ndarray, shape: tuple[int, ...]) -> float:
    return float(scores[ORACLE.parts(labels, shape)].sum())


@pytest.mark.mostly_slow
@pytest.mark.parametrize("share", [0.0, 0.15])
def test_a_thousand_random_forests(share: float) -> None:
    """Best score, log Z, marginals, k best and best per loss on 700 forests, without and with forbidden parts."""
    rng = np.random.default_rng(int(100 * share))
    for _ in range(700):
        n, k = int(rng.integers(1, 7)), int(rng.integers(1, 5))
        shape = random_forest(rng, n, k, rng.choice([0.5, 0.9, 1.0]))
        scores = forbid_some(rng, rng.normal(size=ORACLE.n_parts(shape)) * rng.choice([0.1, 1.0, 20.0]), share)
        table = all_scores(shape, scores)
        ordered = np.sort(table[table > -np.inf], axis=None)[::-1]
        found = ORACLE.kbest(scores, shape, 4)
        np.testing.assert_allclose([_score(scores, y, shape) for y in found], ordered[:4], atol=1e-10)
        assert len({y.tobytes() for y in found}) == len(found)
        costs = rng.integers(-1, 3, len(scores)).astype(np.float64)
        losses = all_scores(shape, costs)
        levels = np.unique(losses[table > -np.inf])
        values, best, labels = ORACLE.argmax_per_loss(scores, costs, shape)
        np.testing.assert_array_equal(values, levels)
        np.testing.assert_allclose(best, [table[losses == level].max() for level in levels], atol=1e-10)
        for value, score, y in zip(values, best, labels, strict=True):
            assert (_score(costs, y, shape), _score(scores, y, shape)) == (value, pytest.approx(score, abs=1e-10))
        if not len(ordered):
            for call in (ORACLE.argmax, ORACLE.marginals):
                with pytest.raises(InfeasibleError, match="every output uses a forbidden part"):
                    call(scores, shape)
            continue
        assert _score(scores, ORACLE.argmax(scores, shape), shape) == pytest.approx(ordered[0], abs=1e-10)
        log_z, mu = ORACLE.marginals(scores, shape)
        true_log_z, true_mu = exact_marginals(shape, scores)
        assert log_z == pytest.approx(true_log_z, abs=1e-10)
        np.testing.assert_allclose(mu, true_mu, atol=1e-12)


def test_large_forests() -> None:
    """Best score and log Z of forests of 300 nodes agree with elimination; the marginals are the gradient of log Z."""
    rng = np.random.default_rng(1)
    for k in (2, 5):
        shape = random_forest(rng, 300, k, 0.95)
        scores = rng.normal(size=ORACLE.n_parts(shape))
        best = _score(scores, ORACLE.argmax(scores, shape), shape)
        assert best == pytest.approx(eliminated(shape, scores, np.max), abs=1e-9)
        log_z, mu = ORACLE.marginals(scores, shape)
        assert log_z == pytest.approx(eliminated(shape, scores, logsumexp), abs=1e-9)
        for part in rng.permutation(len(scores))[:25]:
            step = np.zeros(len(scores))
            step[part] = 1e-5
            slope = (ORACLE.marginals(scores + step, shape)[0] - ORACLE.marginals(scores - step, shape)[0]) / 2e-5
            assert slope == pytest.approx(mu[part], abs=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_marginals_of_huge_scores(size: float) -> None:
    """With scores far apart the marginals are the parts of the best output, log Z its score, and every table adds up to one."""
    rng = np.random.default_rng(2)
    shape = random_forest(rng, 200, 3, 0.97)
    scores = size * rng.normal(size=ORACLE.n_parts(shape))
    labels = ORACLE.argmax(scores, shape)
    log_z, mu = ORACLE.marginals(scores, shape)
    assert log_z == pytest.approx(_score(scores, labels, shape), rel=1e-12, abs=1.0)
    assert np.isfinite(mu).all()
    np.testing.assert_allclose(mu[:600].reshape(200, 3).sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(mu[600:].reshape(-1, 9).sum(axis=1), 1.0, atol=1e-9)
    if size >= 1e6:
        np.testing.assert_allclose(mu[ORACLE.parts(labels, shape)], 1.0, atol=1e-6)


def test_hamming_levels_of_a_long_path() -> None:
    """A path of 60 nodes: 61 losses, the best score among them is that of argmax, and loss 0 is the truth alone."""
    rng = np.random.default_rng(3)
    shape = graph_shape(60, 3, [(i, i + 1) for i in range(59)])
    scores, truth = rng.normal(size=ORACLE.n_parts(shape)), rng.integers(0, 3, 60)
    costs = np.zeros(len(scores))
    costs[:180] = 1.0
    costs[np.arange(60) * 3 + truth] = 0.0
    values, best, labels = ORACLE.argmax_per_loss(scores, costs, shape)
    np.testing.assert_array_equal(values, np.arange(61))
    np.testing.assert_array_equal(labels[0], truth)
    assert best.max() == pytest.approx(_score(scores, ORACLE.argmax(scores, shape), shape), abs=1e-9)
    for value, score, y in zip(values, best, labels, strict=True):
        assert ((y != truth).sum(), _score(scores, y, shape)) == (value, pytest.approx(score, abs=1e-9))


@pytest.mark.parametrize(
    ("edges", "words"),
    [([(0, 1), (1, 2), (0, 2)], r"edge 2, \(0, 2\), closes a cycle"), ([(3, 4), (0, 1), (2, 4), (2, 3)], r"edge 3, \(2, 3\)")],
)
def test_a_cycle_is_refused_by_its_edge(edges: list[tuple[int, int]], words: str) -> None:
    """The message names the edge that closes the cycle, in every method."""
    shape = graph_shape(5, 2, edges)
    scores = np.zeros(ORACLE.n_parts(shape))
    calls = [ORACLE.argmax, ORACLE.marginals, lambda s, g: ORACLE.kbest(s, g, 2), lambda s, g: ORACLE.argmax_per_loss(s, s, g)]
    for call in calls:
        with pytest.raises(DataError, match=words):
            call(scores, shape)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    """NaN and infinity, by every method; and so are scores that are too few."""
    shape = graph_shape(3, 2, [(0, 1)])
    zeros, wrong = np.zeros(10), np.zeros(10)
    wrong[7] = bad
    calls = [
        lambda s: ORACLE.argmax(s, shape),
        lambda s: ORACLE.argmax_batch(np.concatenate((zeros, s)), np.array([0, 10, 10 + len(s)]), [shape, shape]),
        lambda s: ORACLE.marginals(s, shape),
        lambda s: ORACLE.kbest(s, shape, 2),
        lambda s: ORACLE.argmax_per_loss(s, zeros, shape),
    ]
    for call in calls:
        with pytest.raises(DataError, match="finite"):
            call(wrong)
        with pytest.raises(DataError, match="expected 10 scores"):
            call(zeros[:9])
    for costs, message in ((zeros + 0.5, "whole numbers"), (zeros[:9], "expected 10 scores")):
        with pytest.raises(DataError, match=message):
            ORACLE.argmax_per_loss(zeros, costs, shape)


def test_a_forbidden_tree_makes_the_forest_infeasible() -> None:
    """One tree without an output is enough, whatever the others are."""
    shape = graph_shape(4, 2, [(0, 1), (2, 3)])
    scores = np.zeros(ORACLE.n_parts(shape))
    scores[4:6] = FORBIDDEN
    with pytest.raises(InfeasibleError):
        ORACLE.argmax(scores, shape)
    assert ORACLE.argmax_per_loss(scores, np.zeros(len(scores)), shape)[2] == []
    assert ORACLE.kbest(scores, shape, 3) == []


@pytest.mark.slow
def test_a_very_deep_tree() -> None:
    """A path of 50,000 nodes needs no recursion; neighbours that must differ do."""
    n = 50_000
    shape = graph_shape(n, 2, np.stack((np.arange(n - 1), np.arange(1, n)), axis=1))
    scores = np.concatenate((np.zeros(2 * n), np.tile([FORBIDDEN, 0.0, 0.0, FORBIDDEN], n - 1)))
    scores[0] = 1.0
    labels = ORACLE.argmax(scores, shape)
    np.testing.assert_array_equal(labels, np.arange(n) % 2)
    log_z, mu = ORACLE.marginals(scores, shape)
    assert log_z == pytest.approx(np.log(1.0 + np.e), abs=1e-9)
    np.testing.assert_allclose(mu[: 2 * n : 2][:2], [np.e / (1 + np.e), 1 / (1 + np.e)], atol=1e-9)
