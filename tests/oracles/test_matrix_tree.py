"""Sums over all trees: log Z and marginals against enumeration, differences and exact whole-number determinants."""

import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.arborescence import ArborescenceOracle, matrix_tree, matrix_tree_scratch
from structpred.oracles.chain import ChainOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.runtime import memory


def is_tree(heads, single_root):
    """Whether every token reaches 0, and one token has head 0 where asked for."""
    for m in range(1, len(heads) + 1):
        k, steps = m, 0
        while k and steps <= len(heads):
            k, steps = heads[k - 1], steps + 1
        if k:
            return False
    return not single_root or heads.count(0) == 1


TREES = {
    (n, single): np.array([h for h in product(range(n + 1), repeat=n) if is_tree(h, single)])
    for n in range(1, 7)
    for single in (False, True)
}


def listed(scores, n, single_root):
    """(log Z, marginals) by adding up all trees; None if all are forbidden."""
    trees = TREES[n, single_root]
    values = scores.reshape(n, n + 1)[np.arange(n), trees].sum(axis=1)
    best = values.max()
    if best <= 0.5 * FORBIDDEN:
        return None
    shares = np.exp(values - best)
    rows = [np.bincount(trees[:, m], shares / shares.sum(), n + 1) for m in range(n)]
    return best + np.log(shares.sum()), np.concatenate(rows)


def exact_determinant(matrix):
    """The determinant of a matrix of whole numbers, without rounding (Bareiss 1968)."""
    a, before, sign = [[int(x) for x in row] for row in matrix], 1, 1
    for k in range(len(a) - 1):
        if a[k][k] == 0:
            swap = next((i for i in range(k + 1, len(a)) if a[i][k]), None)
            if swap is None:
                return 0
            a[k], a[swap], sign = a[swap], a[k], -sign
        for i in range(k + 1, len(a)):
            for j in range(k + 1, len(a)):
                a[i][j] = (a[i][j] * a[k][k] - a[i][k] * a[k][j]) // before
        before = a[k][k]
    return sign * a[-1][-1]


def exact_sum(weights, single_root):
    """Z from whole-number weights, weights[m][h]: a determinant (Tutte; with one root Koo et al. 2007), exactly."""
    n = len(weights)
    inner = [[weights[m][h + 1] if h != m else 0 for h in range(n)] for m in range(n)]
    matrix = [[-inner[m][h] for h in range(n)] for m in range(n)]
    for m in range(n):
        matrix[m][m] = sum(inner[m]) + (0 if single_root else weights[m][0])
    if single_root:  # a column of the Laplacian replaced by the root weights
        for m in range(n):
            matrix[m][0] = weights[m][0]
    return exact_determinant(matrix)


def log_of(whole):
    """log of a positive whole number of any size."""
    bits = max(whole.bit_length() - 1000, 0)
    return float(np.log(float(whole >> bits))) + bits * float(np.log(2.0))


def random_scores(rng, n, scale, forbidden=0.0):
    """Normal scores; each arc forbidden with the given probability."""
    scores = scale * rng.normal(size=n * (n + 1))
    scores[rng.random(len(scores)) < forbidden] = FORBIDDEN
    return scores


def test_the_number_of_trees() -> None:
    """With scores of zero: (n + 1)^(n - 1) trees, n^(n - 1) with a single root (Cayley), up to 200 tokens."""
    for n in (1, 2, 3, 7, 40, 200):
        assert matrix_tree(np.zeros(n * (n + 1)), n, False)[0] == pytest.approx((n - 1) * np.log(n + 1), rel=1e-13, abs=1e-12)
        assert matrix_tree(np.zeros(n * (n + 1)), n, True)[0] == pytest.approx((n - 1) * np.log(n), rel=1e-13, abs=1e-12)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("forbidden", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 200.0, 1e4, 1e6])
def test_sums_equal_enumeration(single_root, forbidden, scale) -> None:
    """log Z and marginals, n <= 6, by their relative errors (absolute ones with forbidden arcs and one root); no tree raises."""
    rng = np.random.default_rng(0)
    for k in range(60):
        n = int(rng.integers(1, 7))
        scores = random_scores(rng, n, scale, forbidden)
        if k % 2:
            scores = np.rint(scores)
        expected = listed(scores, n, single_root)
        if expected is None:
            with pytest.raises(InfeasibleError, match="forbidden arc"):
                matrix_tree(scores, n, single_root)
            continue
        log_z, mu = matrix_tree(scores, n, single_root)
        assert log_z == pytest.approx(expected[0], rel=1e-13, abs=1e-12)
        floor = 1e-11 if single_root and forbidden else 1e-290
        np.testing.assert_allclose(mu, expected[1], rtol=1e-12 * max(10.0, 10.0 * scale), atol=floor)
        assert not mu[scores <= FORBIDDEN].any()


@pytest.mark.parametrize("single_root", [True, False])
def test_marginals_are_the_gradient_of_log_z(single_root) -> None:
    """Central differences by every arc, on 1 to 12 tokens."""
    rng = np.random.default_rng(1)
    for n in (1, 2, 5, 12):
        scores = random_scores(rng, n, 2.0)
        mu = matrix_tree(scores, n, single_root)[1]
        for j in range(len(scores)):
            step = np.zeros(len(scores))
            step[j] = 1e-5
            slope = (matrix_tree(scores + step, n, single_root)[0] - matrix_tree(scores - step, n, single_root)[0]) / 2e-5
            assert mu[j] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("scale", [1.0, 100.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("forbidden", [0.0, 0.6])
def test_each_token_has_one_head(single_root, scale, forbidden) -> None:
    """Marginals of a token add up to 1 to 1e-9, with a single root those of root arcs too, nothing is negative; n up to 60."""
    rng = np.random.default_rng(2)
    for n in (1, 2, 9, 30, 60):
        scores = random_scores(rng, n, scale, forbidden)
        chain = np.arange(n) * (n + 2)
        scores[chain] = np.maximum(scores[chain], -scale)  # one tree at least: 0 -> 1 -> 2 -> ...
        log_z, mu = matrix_tree(scores, n, single_root)
        rows = mu.reshape(n, n + 1)
        assert np.isfinite(log_z)
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert mu.min() >= 0.0
        assert not rows[np.arange(n), np.arange(1, n + 1)].any()
        if single_root:
            assert rows[:, 0].sum() == pytest.approx(1.0, abs=1e-9)


def test_strong_cycles_do_not_cancel() -> None:
    """Two tokens that want each other as head by 1e6: every determinant in float64 would be 0; the sums are exact."""
    scores = np.array([1.0, 0.0, 1e6, 2.0, 1e6, 0.0])
    share = 1.0 / (1.0 + np.exp(1.0))
    for single_root in (True, False):  # 0 -> 1 -> 2 and 0 -> 2 -> 1; both at the root has a share of e^-1e6
        log_z, mu = matrix_tree(scores, 2, single_root)
        assert log_z == pytest.approx(1e6 + np.log(np.exp(1.0) + np.exp(2.0)), rel=1e-15)
        np.testing.assert_allclose(mu, [share, 0, 1 - share, 1 - share, share, 0], rtol=1e-14)


def test_a_constant_moves_log_z_alone() -> None:
    """Added to all arcs of one token, it leaves the marginals as they are; with a single root also if added to all root arcs."""
    rng, n = np.random.default_rng(3), 8
    for scale in (1.0, 300.0):
        rows = random_scores(rng, n, scale).reshape(n, n + 1)
        moved, rooted = rows.copy(), rows.copy()
        moved[2] += 512.0
        rooted[:, 0] -= 4096.0
        for single_root, other, by in [(True, moved, 512.0), (False, moved, 512.0), (True, rooted, -4096.0)]:
            log_z, mu = matrix_tree(rows.ravel(), n, single_root)
            other_log_z, other_mu = matrix_tree(other.ravel(), n, single_root)
            assert other_log_z == pytest.approx(log_z + by, rel=1e-12)
            np.testing.assert_allclose(other_mu, mu, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize(
    ("n", "bits", "forbidden"), [(100, 8, 0.0), (24, 150, 0.0), (24, 150, 0.7), (12, 900, 0.0), (12, 900, 0.6)]
)
def test_long_sentences_equal_exact_arithmetic(single_root, n, bits, forbidden) -> None:
    """Weights 2^0 to 2^bits: log Z from a determinant without rounding, marginals as exact fractions, tiny ones too."""
    rng = np.random.default_rng(4)
    powers = rng.integers(0, bits + 1, (n, n + 1))
    absent = rng.random((n, n + 1)) < forbidden
    absent[np.arange(n), np.arange(n)] = False
    absent[np.arange(n), np.arange(1, n + 1)] = True
    scores = np.where(absent, FORBIDDEN, powers * np.log(2.0)).ravel()
    weights = [[0 if absent[m, h] else 1 << int(powers[m, h]) for h in range(n + 1)] for m in range(n)]
    total = exact_sum(weights, single_root)
    log_z, mu = matrix_tree(scores, n, single_root)
    assert log_z == pytest.approx(log_of(total), rel=1e-13)
    usual = np.flatnonzero(~absent.ravel())
    tiniest = usual[np.argsort(mu[usual])[:3]]
    for part in [*rng.choice(usual, 3, replace=False), *tiniest]:
        m, h = divmod(int(part), n + 1)
        without = [row.copy() for row in weights]
        without[m][h] = 0
        share = Fraction(total - exact_sum(without, single_root), total)
        assert mu[part] == pytest.approx(float(share), rel=1e-10, abs=1e-11 if single_root and forbidden else 1e-290)


def test_no_tree_at_all() -> None:
    """A token without a head, no root, a closed cycle, and (single root) two tokens that can only hang from the root."""
    zeros = np.zeros((3, 4))
    headless, rootless, closed, apart = zeros.copy(), zeros.copy(), zeros.copy(), zeros.copy()
    headless[1], rootless[:, 0], closed[:2, [0, 3]], apart[:2, 1:] = FORBIDDEN, FORBIDDEN, FORBIDDEN, FORBIDDEN
    for scores in (headless, rootless, closed):
        for single_root in (True, False):
            with pytest.raises(InfeasibleError):
                matrix_tree(scores.ravel(), 3, single_root)
    with pytest.raises(InfeasibleError):
        matrix_tree(apart.ravel(), 3, True)
    assert matrix_tree(apart.ravel(), 3, False)[0] == pytest.approx(np.log(3.0))


def test_tokens_that_head_nothing() -> None:
    """Arcs from most tokens forbidden, as pruning leaves them: the same as for the tokens that are left, in both forms."""
    rng, n, kept = np.random.default_rng(5), 40, 5
    for scale in (3.0, 500.0):
        rows = random_scores(rng, n, scale).reshape(n, n + 1)
        rows[:, kept + 1 :] = FORBIDDEN
        rows[kept:, 0] = FORBIDDEN
        log_z, mu = matrix_tree(rows.ravel(), n, True)
        inner = np.ascontiguousarray(rows[:kept, : kept + 1])
        inner_log_z, inner_mu = matrix_tree(inner.ravel(), kept, True)
        outer = rows[kept:, 1 : kept + 1]
        log_sums = np.logaddexp.reduce(outer, axis=1)
        assert log_z == pytest.approx(inner_log_z + log_sums.sum(), rel=1e-12)
        np.testing.assert_allclose(mu.reshape(n, n + 1)[:kept, : kept + 1], inner_mu.reshape(kept, kept + 1), rtol=1e-10)
        np.testing.assert_allclose(mu.reshape(n, n + 1)[kept:, 1 : kept + 1], np.exp(outer - log_sums[:, None]), rtol=1e-10)


def test_scratch_of_a_longer_sentence_serves_a_shorter_one() -> None:
    """Bit for bit the same, whatever the scratch held before."""
    from structpred.oracles.trees._matrix_tree_kernels import tree_marginals

    rng, work = np.random.default_rng(6), matrix_tree_scratch(30)
    for scale in (1.0, 1e6):
        for n in (1, 4, 17, 30):
            work[:] = rng.normal(size=work.shape)
            scores = random_scores(rng, n, scale, 0.1)
            scores[np.arange(n) * (n + 2)] = 0.0
            kept, mu = scores.copy(), np.full(len(scores), np.nan)
            log_z = tree_marginals(scores, n, True, work, mu)
            other_log_z, other_mu = matrix_tree(scores, n, True)
            assert log_z == other_log_z
            assert np.array_equal(mu, other_mu)
            assert np.array_equal(scores, kept)


def test_what_cannot_fit_is_refused_before_it_is_allocated(monkeypatch) -> None:
    """An error with the size it would need."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"trees of 20,000 tokens would need 23\.9 GiB"):
            matrix_tree_scratch(20_000)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "oracle", [ArborescenceOracle(), ArborescenceOracle(single_root=False), ProjectiveOracle(), ChainOracle()]
)
def test_scores_of_any_size_end_in_numbers_or_in_an_error(oracle) -> None:
    """However far scores lie apart, sums end: in finite numbers, or in an error that says so; never in NaN, never in no end."""
    rng, refused = np.random.default_rng(0), 0
    for _ in range(300):
        shape = (int(rng.integers(1, 6)), *([3] if isinstance(oracle, ChainOracle) else []))
        n = oracle.n_parts(shape)
        scores = rng.normal(size=n) * 10.0 ** rng.integers(-5, 308, size=n) * rng.integers(0, 2, size=n)
        try:
            log_z, mu = oracle.marginals(scores, shape)
        except (DataError, InfeasibleError) as error:
            refused += "too far apart" in str(error)
        else:
            assert np.isfinite(log_z)
            assert np.isfinite(mu).all()
    assert refused
