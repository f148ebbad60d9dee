"""Best trees against enumeration, on every kind of scores; batches, scratch, threads, wrong input."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from arborescence_cases import KINDS, all_arcs, scores_of
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from structpred.contracts.checks import check_oracle
from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError, InfeasibleError
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.oracles.trees import _trees

ROOTS = pytest.mark.parametrize("single_root", [True, False], ids=["single root", "any roots"])
REPEATS = 75


def check_best(theta, n, single_root, exact):
    """One check: argmax gives a tree, and the best score of all, or as few forbidden arcs as any."""
    kept, oracle = theta.copy(), ArborescenceOracle(single_root)
    heads = oracle.argmax(theta, (n,))
    assert np.array_equal(theta, kept)
    arcs, everything = oracle.parts(heads, (n,)), all_arcs(n, single_root)
    best = theta[everything].sum(axis=1).max()
    if best <= 0.5 * FORBIDDEN:
        assert theta[arcs].sum() <= 0.5 * FORBIDDEN
        assert (theta[arcs] <= 0.5 * FORBIDDEN).sum() == (theta[everything] <= 0.5 * FORBIDDEN).sum(axis=1).min()
    else:
        assert theta[arcs].sum() == pytest.approx(best, abs=0.0 if exact else 1e-9 * max(1.0, np.abs(best)))


@pytest.mark.mostly_slow
@ROOTS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", range(1, 7))
def test_the_best_of_all_trees(n, kind, single_root) -> None:
    """75 score vectors a case, 5,400 in all: a tree of the right kind with the best score; input unchanged."""
    rng = np.random.default_rng(n)
    for _ in range(REPEATS):
        check_best(scores_of(rng, n, kind), n, single_root, KINDS[kind])


def test_there_are_enough_checks() -> None:
    """At least 5,000 checks against enumeration, and those with forbidden arcs are of both sorts: a tree is left, or none."""
    assert 6 * len(KINDS) * 2 * REPEATS >= 5000
    rng, left = np.random.default_rng(4), []
    for _ in range(REPEATS):
        theta = scores_of(rng, 4, "most forbidden")
        left.append(theta[all_arcs(4, True)].sum(axis=1).max() > 0.5 * FORBIDDEN)
    assert 10 < sum(left) < REPEATS - 10


SMALL = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.just(n),
        hnp.arrays(np.float64, n * (n + 1), elements=st.sampled_from([FORBIDDEN, -1e6, -2.0, -1.0, 0.0, 1.0, 3.0, 1e6])),
        st.booleans(),
    )
)


@pytest.mark.slow
@given(SMALL)
@settings(max_examples=300)
def test_whatever_the_scores(case) -> None:
    """Whole numbers, small and large, and forbidden arcs in any combination: the best tree, exactly."""
    n, theta, single_root = case
    check_best(theta, n, single_root, exact=True)


@ROOTS
@given(n=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_raising_a_token_changes_nothing(single_root, n, seed) -> None:
    """A constant added to all arcs into a token keeps the best tree; so does a bonus for the best tree's own arcs."""
    rng, oracle = np.random.default_rng(seed), ArborescenceOracle(single_root)
    theta = np.rint(100 * rng.normal(size=n * (n + 1)))
    heads = oracle.argmax(theta, (n,))
    raised = theta + np.repeat(np.rint(1e6 * rng.normal(size=n)), n + 1)
    arcs = oracle.parts(heads, (n,))
    assert raised[oracle.parts(oracle.argmax(raised, (n,)), (n,))].sum() == raised[arcs].sum()
    theta[arcs] += 1.0
    assert np.array_equal(oracle.argmax(theta, (n,)), heads)


@ROOTS
def test_arcs_of_a_token_to_itself_are_never_on(single_root) -> None:
    """Their scores, however high or low, take no part."""
    rng, oracle = np.random.default_rng(0), ArborescenceOracle(single_root)
    for n in (1, 2, 9, 40):
        theta = rng.normal(size=(n, n + 1))
        heads = oracle.argmax(theta.ravel(), (n,))
        for score in (1e9, -1e9, FORBIDDEN):
            theta[np.arange(n), np.arange(n) + 1] = score
            assert np.array_equal(oracle.argmax(theta.ravel(), (n,)), heads)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_score_hangs_the_search(bad) -> None:
    """NaN and infinity give the kernel a tree, if not a meaningful one (the oracle refuses them before)."""
    from structpred.oracles.trees._arborescence_kernels import parted, search

    rng = np.random.default_rng(0)
    for single_root in (True, False):
        oracle = ArborescenceOracle(single_root)
        for n in (1, 3, 17):
            for share in (0.1, 1.0):
                theta, heads = np.where(rng.random(n * (n + 1)) < share, bad, rng.normal(size=n * (n + 1))), np.empty(n, np.int64)
                marks, flat = parted(_trees.tree_room(n), n)
                search(theta, n, single_root, flat, marks, heads)
                oracle.parts(heads, (n,))


@pytest.mark.parametrize("oracle", [ArborescenceOracle(), ArborescenceOracle(False), ProjectiveOracle()])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_the_first_score_that_is_not_finite_is_named(oracle, bad) -> None:
    """One score of a batch, and of a sentence: the sample and the part, though the search itself looks."""
    theta = np.zeros(2 + 12)
    theta[2 + 7] = bad
    with pytest.raises(DataError, match="sample 1: scores must be finite"):
        oracle.argmax_batch(theta, np.array([0, 2, 14]), [(1,), (3,)])
    with pytest.raises(DataError, match="for part 7"):
        oracle.argmax(theta[2:], (3,))


@ROOTS
def test_a_root_that_several_tokens_prefer_is_taken_once_where_it_must(single_root) -> None:
    """Whether none, one or several tokens like the root best, the tree scores as the best of all listed ones."""
    rng, oracle = np.random.default_rng(7), ArborescenceOracle(single_root)
    for likes in (0, 1, 2, 4):
        for _ in range(20):
            theta = rng.integers(0, 4, (4, 5)).astype(np.float64)
            theta[:, 0] = -1.0
            theta[rng.permutation(4)[:likes], 0] = 9.0
            values = [theta.ravel()[oracle.parts(y, (4,))].sum() for y in oracle.enumerate((4,))]
            assert theta.ravel()[oracle.parts(oracle.argmax(theta.ravel(), (4,)), (4,))].sum() == max(values)


@pytest.mark.slow
@ROOTS
@pytest.mark.parametrize("seed", [0, 1])
def test_contract(single_root, seed) -> None:
    """Batch equal to loop, marginals, k best, projection, label grid: both kinds of trees keep the contract."""
    report = check_oracle(ArborescenceOracle(single_root), seed=seed)
    assert {"marginals", "kbest", "project", "label grid"} <= set(report.checked)


@ROOTS
def test_batches_equal_single_calls(single_root) -> None:
    """Mixed sizes in one call, the empty batch too."""
    rng, oracle = np.random.default_rng(0), ArborescenceOracle(single_root)
    sizes = [*rng.integers(1, 60, 80).tolist(), 1, 130]
    thetas = [scores_of(rng, n, kind) for n, kind in zip(sizes, 14 * list(KINDS), strict=False)]
    offsets = np.concatenate(([0], np.cumsum([len(theta) for theta in thetas])))
    heads, ends = oracle.argmax_batch(np.concatenate(thetas), offsets, [(n,) for n in sizes])
    assert ends.tolist() == np.concatenate(([0], np.cumsum(sizes))).tolist()
    for i, (n, theta) in enumerate(zip(sizes, thetas, strict=True)):
        assert np.array_equal(heads[ends[i] : ends[i + 1]], oracle.argmax(theta, (n,)))
    nothing, ends = oracle.argmax_batch(np.empty(0), np.zeros(1, np.int64), [])
    assert nothing.shape == (0,)
    assert nothing.dtype == np.int64
    assert ends.tolist() == [0]


def test_what_scratch_held_before_does_not_matter() -> None:
    """Long and short sentences in turn, over and over, and scratch full of NaN: the same trees."""
    from structpred.oracles.trees._arborescence_kernels import best_heads

    rng, oracle = np.random.default_rng(0), ArborescenceOracle()
    cases = [(n, scores_of(rng, n, kind)) for n in (160, 3, 40, _trees.KEPT + 20, 1, 90) for kind in ("random", "ties")]
    first = [oracle.argmax(theta, (n,)) for n, theta in cases]
    for k in rng.permutation(4 * len(cases)) % len(cases):
        n, theta = cases[k]
        assert np.array_equal(oracle.argmax(theta, (n,)), first[k])
        room, heads = np.full_like(_trees.tree_room(n + 7), np.nan), np.full(n + 5, -7)
        assert best_heads(theta, 1, room, heads[:n])
        assert np.array_equal(heads[:n], first[k])
        assert (heads[n:] == -7).all()


def test_threads_do_not_share_scratch() -> None:
    """Four threads at once get what one gets."""
    rng, oracle = np.random.default_rng(0), ArborescenceOracle()
    cases = [(n, scores_of(rng, n, "random")) for n in rng.integers(1, 120, 300).tolist()]
    alone = [oracle.argmax(theta, (n,)) for n, theta in cases]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda case: oracle.argmax(case[1], (case[0],)), cases))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_wrong_sizes_are_refused() -> None:
    """The message says what was expected and what came; in a batch, which sample."""
    oracle = ArborescenceOracle()
    for scores, n in ((np.zeros(7), 2), (np.zeros((2, 3)), 2), (np.zeros(0), 0), (np.zeros(0), -1)):
        with pytest.raises(DataError, match=r"expected 6 scores .* of shape|the number of tokens must be"):
            oracle.argmax(scores, (n,))
        with pytest.raises(DataError):
            oracle.marginals(scores, (n,))
        with pytest.raises(DataError):
            oracle.kbest(scores, (n,), 2)
    with pytest.raises(DataError, match=r"sample 1: expected 6 scores, got 5"):
        oracle.argmax_batch(np.zeros(7), np.array([0, 2, 7]), [(1,), (2,)])
    with pytest.raises(DataError, match="sample 0"):
        oracle.argmax_batch(np.zeros(2), np.array([0, 0, 2]), [(0,), (1,)])


@pytest.mark.parametrize(
    ("heads", "why"),
    [([0, 0], "one token with head 0, got 2"), ([2, 1], "never reaches the root"), ([0, 2], "never reaches"), ([0, 3], "0..2"),
     ([-1, 0], "0..2"), ([0], "expected 2 heads"), ([0, 1, 1], "expected 2 heads")],
)  # fmt: skip
def test_what_is_no_tree_has_no_parts(heads, why) -> None:
    """Cycles, several roots, heads out of range, too few or too many."""
    with pytest.raises(ValueError, match=why):
        ArborescenceOracle().parts(np.array(heads), (2,))
    if heads == [0, 0]:
        assert ArborescenceOracle(single_root=False).parts(np.array(heads), (2,)).tolist() == [0, 3]


def test_parts_tell_trees_from_others() -> None:
    """Of all head sequences of four tokens, `parts` accepts those that `enumerate` lists and no other."""
    for single_root in (True, False):
        oracle = ArborescenceOracle(single_root)
        listed = {tuple(y.tolist()) for y in oracle.enumerate((4,))}
        assert len(listed) == (4**3 if single_root else 5**3)
        for heads in np.ndindex(5, 5, 5, 5):
            if heads in listed:
                oracle.parts(np.array(heads), (4,))
            else:
                with pytest.raises(ValueError, match=r"no tree|one token with head 0"):
                    oracle.parts(np.array(heads), (4,))


@ROOTS
def test_where_no_tree_is_left(single_root) -> None:
    """argmax gives a tree whose score tells, marginals raise, and there are no best trees."""
    oracle, theta = ArborescenceOracle(single_root), np.zeros(12)
    theta[4:8] = FORBIDDEN  # no head for token 2
    heads = oracle.argmax(theta, (3,))
    assert theta[oracle.parts(heads, (3,))].sum() <= 0.5 * FORBIDDEN
    assert oracle.kbest(theta, (3,), 5) == []
    with pytest.raises(InfeasibleError, match="forbidden"):
        oracle.marginals(theta, (3,))


def test_a_million_tokens_are_refused_before_allocation() -> None:
    """With the size it would need; the scores are a view of a single number here."""
    n = 1_000_000
    with pytest.raises(DataError, match=r"1,000,001,000,000 scores would need 7450.*GiB.*available"):
        ArborescenceOracle().argmax(np.broadcast_to(0.0, (n * (n + 1),)), (n,))


@pytest.mark.slow
def test_five_thousand_tokens() -> None:
    """A sentence of 5,000 tokens: a tree with a single root, its score within 0.1% of what the best heads alone would give."""
    rng, n = np.random.default_rng(0), 5000
    theta = rng.random(n * (n + 1), dtype=np.float32).astype(np.float64)
    oracle = ArborescenceOracle()
    heads = oracle.argmax(theta, (n,))
    arcs = oracle.parts(heads, (n,))
    best = theta.reshape(n, n + 1)[:, 1:].max(axis=1).sum()
    assert best * 0.999 < theta[arcs].sum() <= best + 1.0
