"""Projective trees: the best, the k best and sums against enumeration, long ones against another dynamic program."""

import tracemalloc
from itertools import product
from math import comb

import numpy as np
import pytest

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.runtime import memory

ONE, MANY = ProjectiveOracle(), ProjectiveOracle(single_root=False)
BOTH = pytest.mark.parametrize("oracle", [ONE, MANY], ids=["one root", "several roots"])


def is_projective_tree(heads, single_root):
    """By the definition: each token reaches 0, and whatever lies between a head and its modifier descends from the head."""
    n, above = len(heads), {0: {0}}
    for m in range(1, n + 1):
        seen, k = {m}, heads[m - 1]
        while k and k not in seen:
            seen.add(k)
            k = heads[k - 1]
        if k:
            return False
        above[m] = seen | {0}
    if single_root and list(heads).count(0) != 1:
        return False
    return all(h in above[k] for m, h in enumerate(heads, 1) for k in range(min(m, h) + 1, max(m, h)))


TREES = {
    (n, single): np.array([h for h in product(range(n + 1), repeat=n) if is_projective_tree(h, single)])
    for n in range(1, 7)
    for single in (False, True)
}


def random_scores(rng, n, kind, forbidden=0.0):
    """Scores of a kind; each arc forbidden with the given probability."""
    size = n * (n + 1)
    scores = {
        "normal": lambda: rng.normal(size=size),
        "ties": lambda: rng.integers(-1, 2, size).astype(float),
        "huge": lambda: 1e6 * rng.normal(size=size),
        "whole and huge": lambda: 1e6 * rng.integers(-3, 4, size),
        "zero": lambda: np.zeros(size),
    }[kind]()
    scores[rng.random(size) < forbidden] = FORBIDDEN
    return scores


def values_of(scores, trees):
    """The score of each tree."""
    n = trees.shape[1]
    return scores.reshape(n, n + 1)[np.arange(n), trees].sum(axis=1)


def random_tree(rng, n):
    """A projective tree with one root, by hanging random halves below random tokens."""
    heads = np.zeros(n, np.int64)

    def hang(head, start, stop, only):
        while start <= stop:
            end = stop if only else int(rng.integers(start, stop + 1))
            child = int(rng.integers(start, end + 1))
            heads[child - 1] = head
            hang(child, start, child - 1, False)
            hang(child, child + 1, end, False)
            start = end + 1

    hang(0, 1, n, True)
    return heads


def best_value(scores, n, single_root):
    """The score of the best projective tree by spans with heads: best[i, j, h], merged two at a time, O(n^4)."""
    arcs = scores.reshape(n, n + 1)
    gain = np.vstack((np.full(n + 1, -np.inf), arcs)).T  # gain[head, token]
    best = np.full((n + 1, n + 1, n + 1), -np.inf)
    below = np.full((n + 1, n + 1, n + 1), -np.inf)  # below[i, j, h]: the span hung below a head h outside it
    for width in range(n + 1):
        for i in range(n + 1 - width):
            j = i + width
            if width == 0:
                best[i, i, i] = 0.0
            splits = np.arange(i, j)
            if width:
                left, right = best[i, splits], best[splits + 1, j]
                best[i, j] = np.maximum(left + below[splits + 1, j], right + below[i, splits]).max(axis=0)
            below[i, j] = (best[i, j, i : j + 1] + gain[:, i : j + 1]).max(axis=1)
            below[i, j, i : j + 1] = -np.inf
    return below[1, n, 0] if single_root else best[0, n, 0]


@pytest.mark.slow
def test_the_number_of_projective_trees() -> None:
    """Enumeration gives each tree once, and exactly those that meet the definition; their number is known in closed form."""
    for n in range(1, 7):
        for oracle in (ONE, MANY):
            listed = {y.tobytes() for y in oracle.enumerate((n,))}
            assert listed == {y.tobytes() for y in TREES[n, oracle.single_root]}
    for n in range(1, 9):
        assert sum(1 for _ in ONE.enumerate((n,))) == comb(3 * n - 2, n - 1) // n
        assert sum(1 for _ in MANY.enumerate((n,))) == comb(3 * n + 1, n) // (3 * n + 1)


@BOTH
@pytest.mark.parametrize("kind", ["normal", "ties", "huge", "whole and huge", "zero"])
@pytest.mark.parametrize("forbidden", [0.0, 0.2, 0.5])
def test_the_best_equals_enumeration(oracle, kind, forbidden) -> None:
    """3,600 score vectors in all, n <= 6: a projective tree with the score of the best one, at each call the same one."""
    rng = np.random.default_rng(0)
    for k in range(120):
        n = k % 6 + 1
        scores = random_scores(rng, n, kind, forbidden)
        trees = TREES[n, oracle.single_root]
        found, best = oracle.argmax(scores, (n,)), values_of(scores, trees).max()
        assert is_projective_tree(found.tolist(), oracle.single_root)
        value = values_of(scores, found[None])[0]
        assert value == pytest.approx(best, rel=1e-12, abs=1e-12) or value == best
        assert np.array_equal(found, oracle.argmax(scores, (n,)))


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("n", [15, 40, 90])
def test_long_sentences_equal_another_dynamic_program(oracle, n) -> None:
    """The score of the best tree, with and without forbidden arcs, and with ties."""
    rng = np.random.default_rng(n)
    for kind, forbidden in [("normal", 0.0), ("ties", 0.0), ("normal", 0.6)]:
        scores = random_scores(rng, n, kind)
        scores[rng.random(len(scores)) < forbidden] = FORBIDDEN
        scores[np.arange(n) * (n + 2)] = np.maximum(scores[np.arange(n) * (n + 2)], -9.0)  # one tree at least
        found = oracle.argmax(scores, (n,))
        assert len(oracle.parts(found, (n,))) == n
        assert values_of(scores, found[None])[0] == pytest.approx(best_value(scores, n, oracle.single_root), rel=1e-11)


@BOTH
def test_three_hundred_tokens(oracle) -> None:
    """A hidden tree is found where its arcs lead; elsewhere one at least as good, and at most as the best of all trees."""
    rng, n = np.random.default_rng(1), 300
    hidden = random_tree(rng, n)
    arcs = oracle.parts(hidden, (n,))
    for bonus in (50.0, 1.0):
        scores = rng.normal(size=n * (n + 1))
        scores[arcs] += bonus
        found = oracle.argmax(scores, (n,))
        free = ArborescenceOracle(single_root=oracle.single_root).argmax(scores, (n,))
        value = scores[oracle.parts(found, (n,))].sum()
        assert value >= scores[arcs].sum() - 1e-9
        assert value <= values_of(scores, free[None])[0] + 1e-9
        if bonus > 10.0:
            assert np.array_equal(found, hidden)


@BOTH
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("forbidden", [0.0, 0.2, 0.5])
def test_sums_equal_enumeration(oracle, scale, forbidden) -> None:
    """log Z, and every marginal by its relative error, however small; InfeasibleError where no tree is left."""
    rng = np.random.default_rng(2)
    for k in range(60):
        n = k % 6 + 1
        scores = random_scores(rng, n, "normal") * scale
        scores[rng.random(len(scores)) < forbidden] = FORBIDDEN
        trees = TREES[n, oracle.single_root]
        values = values_of(scores, trees)
        if values.max() <= 0.5 * FORBIDDEN:
            with pytest.raises(InfeasibleError, match="forbidden arc"):
                oracle.marginals(scores, (n,))
            continue
        log_z, mu = oracle.marginals(scores, (n,))
        shares = np.exp(values - values.max())
        expected = np.concatenate([np.bincount(trees[:, m], shares / shares.sum(), n + 1) for m in range(n)])
        assert log_z == pytest.approx(values.max() + np.log(shares.sum()), rel=1e-13, abs=1e-12)
        np.testing.assert_allclose(mu, expected, rtol=1e-12 * max(10.0, scale), atol=1e-290)
        assert not mu[scores <= FORBIDDEN].any()


@BOTH
def test_marginals_are_the_gradient_of_log_z(oracle) -> None:
    """Central differences by every arc, on 1 to 12 tokens."""
    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 12):
        scores = 2.0 * rng.normal(size=n * (n + 1))
        mu = oracle.marginals(scores, (n,))[1]
        for j in range(len(scores)):
            step = np.zeros(len(scores))
            step[j] = 1e-5
            slope = (oracle.marginals(scores + step, (n,))[0] - oracle.marginals(scores - step, (n,))[0]) / 2e-5
            assert mu[j] == pytest.approx(slope, abs=1e-8)


@BOTH
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0, 1e6, 1e9])
def test_each_token_has_one_head(oracle, scale) -> None:
    """On up to 120 tokens: marginals of a token add up to 1 to 1e-12, log Z lies between the best score and that of all trees."""
    rng = np.random.default_rng(4)
    for n in (1, 9, 40, 120):
        scores = scale * rng.normal(size=n * (n + 1))
        log_z, mu = oracle.marginals(scores, (n,))
        rows = mu.reshape(n, n + 1)
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert mu.min() >= 0.0
        if oracle.single_root:
            assert rows[:, 0].sum() == pytest.approx(1.0, abs=1e-12)
        best = scores[oracle.parts(oracle.argmax(scores, (n,)), (n,))].sum()
        number = comb(3 * n - 2, n - 1) // n if oracle.single_root else comb(3 * n + 1, n) // (3 * n + 1)
        assert best - 1e-12 * abs(best) - 1e-9 <= log_z <= best + np.log(float(number)) + 1e-12 * abs(best) + 1e-9


@BOTH
@pytest.mark.parametrize("kind", ["normal", "ties", "huge"])
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_the_k_best_equal_enumeration(oracle, kind, forbidden) -> None:
    """Their scores, in order, all different, none with a forbidden arc; all of them where k exceeds their number."""
    rng = np.random.default_rng(5)
    for n, k in [(1, 1), (1, 5), (2, 2), (3, 4), (4, 100), (5, 20), (6, 12), (6, 40)]:
        scores = random_scores(rng, n, kind, forbidden)
        values = np.sort(values_of(scores, TREES[n, oracle.single_root]))[::-1]
        possible = values[values > 0.5 * FORBIDDEN][:k]
        found = oracle.kbest(scores, (n,), k)
        np.testing.assert_allclose([scores[oracle.parts(y, (n,))].sum() for y in found], possible, rtol=1e-12, atol=1e-12)
        assert len({y.tobytes() for y in found}) == len(found)
        assert oracle.kbest(scores, (n,), 0) == []


@BOTH
def test_the_projection_is_a_mixture_of_trees(oracle) -> None:
    """The optimality of the nearest point, against all trees; a point that is a tree is its own projection."""
    rng, shape = np.random.default_rng(6), (5,)
    trees = np.zeros((len(TREES[5, oracle.single_root]), 30))
    for row, y in zip(trees, TREES[5, oracle.single_root], strict=True):
        row[oracle.parts(y, shape)] = 1.0
    for _ in range(10):
        point = rng.normal(size=30)
        mu = oracle.project(point, shape)
        assert ((trees - mu) @ (point - mu)).max() <= 1e-9
        np.testing.assert_allclose(mu.reshape(5, 6).sum(axis=1), 1.0)
    np.testing.assert_allclose(oracle.project(trees[7], shape), trees[7], atol=1e-12)


def test_what_is_no_projective_tree_is_refused() -> None:
    """Crossing arcs (the root's among them), cycles, several roots against single_root, heads out of range, too few of them."""
    for heads, message in [
        ([3, 0, 2], "1 crosses|2 crosses"),
        ([2, 0, 1], "crosses"),
        ([3, 4, 0, 3], "crosses"),
        ([2, 1, 0], "never reaches the root"),
        ([0, 2, 1], "never reaches the root"),
        ([0, 0, 1], "one token with head 0"),
        ([0, 5, 1], "must lie in"),
        ([0, -1, 1], "must lie in"),
    ]:
        with pytest.raises(ValueError, match=message):
            ONE.parts(np.array(heads), (len(heads),))
    with pytest.raises(ValueError, match="expected 3 heads"):
        ONE.parts(np.array([0, 1]), (3,))
    assert MANY.parts(np.array([0, 0, 2]), (3,)).tolist() == [0, 4, 10]
    with pytest.raises(ValueError, match="crosses"):  # 3 -> 1 over a root
        MANY.parts(np.array([3, 0, 0]), (3,))
    for n in range(1, 7):
        for heads in product(range(n + 1), repeat=n) if n < 5 else ArborescenceOracle().enumerate((n,)):
            accepted = True
            try:
                ONE.parts(np.array(heads), (n,))
            except ValueError:
                accepted = False
            assert accepted == is_projective_tree(list(heads), True)


def test_wrong_sizes_are_refused() -> None:
    """No token at all, and scores that do not fit the length, one at a time and in a batch."""
    for scores, n in [(np.zeros(0), 0), (np.zeros(5), 2), (np.zeros(12), 2)]:
        for call in (ONE.argmax, ONE.marginals, ONE.project, lambda scores, shape: ONE.kbest(scores, shape, 2)):
            with pytest.raises(DataError, match=r"number of tokens|expected \d+ scores"):
                call(scores, (n,))
        with pytest.raises(DataError, match="sample 1"):
            ONE.argmax_batch(np.concatenate((np.zeros(2), scores)), np.array([0, 2, 2 + len(scores)]), [(1,), (n,)])


@BOTH
def test_scratch_is_reused(oracle) -> None:
    """Mixed lengths, one by one and in a batch, give the same trees as with fresh scratch, whatever it held before."""
    from structpred.oracles.trees._projective_kernels import best_heads
    from structpred.oracles.trees._trees import projective_scratch

    rng = np.random.default_rng(7)
    lengths = [40, 1, 7, 300, 2, 39, 12, 41, 1]
    all_scores = [rng.integers(-2, 3, n * (n + 1)).astype(float) for n in lengths]
    offsets = np.concatenate(([0], np.cumsum([len(s) for s in all_scores])))
    heads, ends = oracle.argmax_batch(np.concatenate(all_scores), offsets, [(n,) for n in lengths])
    worn = projective_scratch(300)
    for i, (n, scores) in enumerate(zip(lengths, all_scores, strict=True)):
        fresh, again = np.empty((2, n), np.int64)
        kept = scores.copy()
        best_heads(scores, int(oracle.single_root), projective_scratch(n), fresh)
        worn[:] = rng.normal(size=worn.shape)
        best_heads(scores, int(oracle.single_root), worn, again)
        for found in (again, oracle.argmax(scores, (n,)), heads[ends[i] : ends[i + 1]]):
            assert np.array_equal(found, fresh)
        assert np.array_equal(scores, kept)


def test_an_empty_batch() -> None:
    """No instances, no trees."""
    heads, ends = ONE.argmax_batch(np.zeros(0), np.array([0]), [])
    assert heads.size == 0
    assert ends.tolist() == [0]


def test_what_cannot_fit_is_refused_before_it_is_allocated(monkeypatch) -> None:
    """An error with the size it would need, from every method."""
    n = 1000
    scores = np.zeros(n * (n + 1))
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 16)
    tracemalloc.start()
    try:
        for call in (ONE.argmax, ONE.marginals, lambda scores, shape: ONE.kbest(scores, shape, 3)):
            with pytest.raises(DataError, match=r"1,000 tokens would need"):
                call(scores, (n,))
        assert tracemalloc.get_traced_memory()[1] < scores.nbytes
    finally:
        tracemalloc.stop()
