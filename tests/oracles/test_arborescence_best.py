"""The k best trees: against enumeration, against a plain search that forbids one arc at a time, and among each other."""

import heapq
from itertools import count

import numpy as np
import pytest
from arborescence_cases import KINDS, all_arcs, scores_of

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.trees._trees import arcs_of, tree_room
from structpred.runtime import memory

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single root", "any roots"])


def check_list(theta, found, wanted):
    """The wanted scores, best first, and no tree twice."""
    values = np.array([theta[arcs_of(y)].sum() for y in found])
    assert len(found) == len(wanted)
    np.testing.assert_allclose(values, wanted, rtol=1e-9, atol=1e-9)
    assert len({y.tobytes() for y in found}) == len(found)


@pytest.mark.mostly_slow
@ROOTS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", range(1, 6))
def test_k_best_are_the_first_of_all_sorted(n, kind, single_root) -> None:
    """For k up to all of them; none with a forbidden arc, never more than there are, the first is the best; input unchanged."""
    rng, oracle = np.random.default_rng(n), ArborescenceOracle(single_root)
    for _ in range(6):
        theta = scores_of(rng, n, kind)
        kept, everything = theta.copy(), np.sort(theta[all_arcs(n, single_root)].sum(axis=1))[::-1]
        everything = everything[everything > 0.5 * FORBIDDEN]
        for k in (0, 1, 2, 5, 30, 2000):
            found = oracle.kbest(theta, (n,), k)
            check_list(theta, found, everything[:k])
            for y in found:
                oracle.parts(y, (n,))
        if found:
            assert np.array_equal(found[0], oracle.argmax(theta, (n,)))
        assert np.array_equal(theta, kept)


def by_forbidding_arcs(oracle, theta, n, k):
    """Scores of the k best trees: a set is split into those that keep the first arcs of its best tree but lack the next one."""
    number, queue, values = count(), [], []

    def push(scores, n_fixed):
        heads = oracle.argmax(scores, (n,))
        if scores[arcs_of(heads)].min() > 0.5 * FORBIDDEN:
            heapq.heappush(queue, (-theta[arcs_of(heads)].sum(), next(number), scores, n_fixed, heads))

    push(theta, 0)
    while queue and len(values) < k:
        value, _, scores, n_fixed, heads = heapq.heappop(queue)
        values.append(-value)
        for m in range(n_fixed, n):
            rest = scores.reshape(n, n + 1).copy()
            for j in range(m):
                rest[j, np.arange(n + 1) != heads[j]] = FORBIDDEN
            rest[m, heads[m]] = FORBIDDEN
            push(rest.ravel(), m)
    return np.array(values)


@pytest.mark.mostly_slow
@ROOTS
@pytest.mark.parametrize("kind", ["random", "ties", "some forbidden", "wide"])
@pytest.mark.parametrize("n", [8, 13, 25])
def test_k_best_of_longer_sentences(n, kind, single_root) -> None:
    """As a plain search finds that splits each set of trees n ways and calls argmax for each part."""
    rng, oracle = np.random.default_rng(n), ArborescenceOracle(single_root)
    for _ in range(4):
        theta = scores_of(rng, n, kind)
        check_list(theta, oracle.kbest(theta, (n,), 40), by_forbidding_arcs(oracle, theta, n, 40))


@ROOTS
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_k_best_of_a_long_sentence(single_root, scale) -> None:
    """On 60 tokens, 300 trees: sorted, all different, all trees; nothing between them that a single changed head would give."""
    rng, oracle, n = np.random.default_rng(0), ArborescenceOracle(single_root), 60
    theta = scale * rng.normal(size=n * (n + 1))
    found = oracle.kbest(theta, (n,), 300)
    values = np.array([theta[oracle.parts(y, (n,))].sum() for y in found])
    assert (np.diff(values) <= 1e-9 * np.abs(values).max()).all()
    known = {y.tobytes() for y in found}
    assert len(known) == 300
    for m in range(n):
        for h in range(n + 1):
            other = found[0].copy()
            other[m] = h
            if other.tobytes() in known or theta[arcs_of(other)].sum() <= values[-1]:
                continue
            with pytest.raises(ValueError, match=r"no tree|head 0"):
                oracle.parts(other, (n,))


def test_the_second_best_is_found_where_the_contraction_is_unclear() -> None:
    """Given a tree that is not the best (as rounding could), the step falls back on trying every arc: the best other tree."""
    from structpred.oracles.trees._arborescence_best_kernels import UNCLEAR, cheapest_swap, second_best
    from structpred.oracles.trees._arborescence_kernels import parted

    rng, n, unclear = np.random.default_rng(0), 5, 0
    everything, none = all_arcs(n, True), np.empty(0, np.int64)
    width = n + 1
    for _ in range(100):
        theta, heads = rng.normal(size=n * width), np.empty(n, np.int64)
        arcs = everything[rng.integers(len(everything))]
        tree = arcs % width
        room, more = tree_room(n), np.empty((3, width))
        marks, rows = parted(room, n)
        if cheapest_swap(theta, n, True, tree, 1e-12, rows, more[:2], more[2], marks) != UNCLEAR:
            continue
        unclear += 1
        m = second_best(theta, n, True, tree, np.zeros(n, np.bool_), none, 1e-12, np.empty(n * width), room, heads)
        others = everything[(everything != arcs).any(axis=1)]
        assert theta[arcs_of(heads)].sum() == pytest.approx(theta[others].sum(axis=1).max())
        assert heads[m - 1] != tree[m - 1]
    assert unclear > 20


def test_what_cannot_fit_is_refused(monkeypatch) -> None:
    """With 64 KiB of memory left: an error that says what for, how much it would need, and how much there is."""
    theta = np.zeros(20 * 21)
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 16)
    with pytest.raises(DataError, match=r"best trees of 20 tokens would need .* GiB.*available"):
        ArborescenceOracle().kbest(theta, (20,), 10_000)
