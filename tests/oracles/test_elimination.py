"""EliminationMRF against a table of all outputs made by NumPy, on graphs too large for one, and where it must refuse."""

import numpy as np
import pytest
from local_polytope_cases import complete, grid
from mrf_cases import all_scores, eliminated, exact_marginals, forbid_some, random_forest, random_graph
from scipy.special import logsumexp

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.oracles.elimination import EliminationMRF, plan_of
from structpred.oracles.mrf import graph_of, graph_shape
from structpred.oracles.tree_mrf import TreeMRF

ORACLE = EliminationMRF()


def _score(scores: np.ndarray, labels: np.ndarray, shape: Shape) -> float:
    return float(scores[ORACLE.parts(labels, shape)].sum())


def _cycle(n: int, k: int) -> Shape:
    return graph_shape(n, k, [(i, (i + 1) % n) for i in range(n)])


@pytest.mark.mostly_slow
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_random_graphs(share: float) -> None:
    """Best score, log Z and marginals on 400 graphs, sparse to complete, connected or not, without and with forbidden parts."""
    rng = np.random.default_rng(int(100 * share))
    nothing = 0
    for _ in range(400):
        n, k = int(rng.integers(1, 8)), int(rng.integers(1, 5))
        shape = random_graph(rng, n, k, rng.choice([0.2, 0.5, 1.0]))
        scores = forbid_some(rng, rng.normal(size=ORACLE.n_parts(shape)) * rng.choice([0.1, 1.0, 20.0]), share)
        table = all_scores(shape, scores)
        if table.max() == -np.inf:
            nothing += 1
            for call in (ORACLE.argmax, ORACLE.marginals, ORACLE.log_partition):
                with pytest.raises(InfeasibleError, match="every output uses a forbidden part"):
                    call(scores, shape)
            continue
        given = scores.copy()
        assert _score(scores, ORACLE.argmax(scores, shape), shape) == pytest.approx(table.max(), abs=1e-10)
        log_z, mu = ORACLE.marginals(scores, shape)
        true_log_z, true_mu = exact_marginals(shape, scores)
        assert log_z == pytest.approx(true_log_z, abs=1e-10)
        assert ORACLE.log_partition(scores, shape) == log_z
        np.testing.assert_allclose(mu, true_mu, atol=1e-12)
        np.testing.assert_array_equal(scores, given)
    assert (nothing > 5) == (share > 0)


@pytest.mark.parametrize("shape", [grid(6, 6, 3), grid(3, 40, 4), _cycle(300, 5), _cycle(3, 40), complete(12)], ids=str)
def test_larger_graphs(shape: Shape) -> None:
    """Grids, cycles and a complete graph: best score and log Z are those of another elimination in NumPy."""
    rng = np.random.default_rng(1)
    scores = forbid_some(rng, rng.normal(size=graph_of(shape).n_parts), 0.05)
    best = _score(scores, ORACLE.argmax(scores, shape), shape)
    assert best == pytest.approx(eliminated(shape, scores, np.max), abs=1e-9)
    assert ORACLE.log_partition(scores, shape) == pytest.approx(eliminated(shape, scores, logsumexp), abs=1e-9)


@pytest.mark.slow
def test_forests_as_by_dynamic_programming() -> None:
    """On forests all answers are TreeMRF's, and a path of 20,000 nodes needs no recursion."""
    rng = np.random.default_rng(2)
    for shape in (random_forest(rng, 200, 3), graph_shape(20_000, 2, [(i, i + 1) for i in range(19_999)])):
        scores = rng.normal(size=graph_of(shape).n_parts)
        np.testing.assert_array_equal(ORACLE.argmax(scores, shape), TreeMRF().argmax(scores, shape))
        (log_z, mu), (true_log_z, true_mu) = ORACLE.marginals(scores, shape), TreeMRF().marginals(scores, shape)
        assert log_z == pytest.approx(true_log_z, abs=1e-8)
        np.testing.assert_allclose(mu, true_mu, atol=1e-9)


def test_marginals_are_the_gradient_of_log_z() -> None:
    """Finite differences on a grid whose tables are larger than one row of the kernel, and of a part that is never on."""
    rng = np.random.default_rng(3)
    shape = grid(7, 9, 3)
    scores = rng.normal(size=graph_of(shape).n_parts)
    scores[[3, 200, 500]] = FORBIDDEN
    log_z, mu = ORACLE.marginals(scores, shape)
    assert log_z == pytest.approx(eliminated(shape, scores, logsumexp), abs=1e-9)
    np.testing.assert_array_equal(mu[[3, 200, 500]], 0.0)
    for part in rng.permutation(len(scores))[:15]:
        step = np.zeros(len(scores))
        step[part] = 1e-5
        slope = (ORACLE.log_partition(scores + step, shape) - ORACLE.log_partition(scores - step, shape)) / 2e-5
        assert slope == pytest.approx(mu[part], abs=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_huge_scores(size: float) -> None:
    """With scores far apart the marginals are the best output's parts, log Z its score, and every table adds up to one."""
    rng = np.random.default_rng(4)
    shape = grid(5, 8, 3)
    n, k = shape[:2]
    scores = size * rng.normal(size=graph_of(shape).n_parts)
    labels = ORACLE.argmax(scores, shape)
    assert _score(scores, labels, shape) == pytest.approx(eliminated(shape, scores, np.max), rel=1e-12)
    log_z, mu = ORACLE.marginals(scores, shape)
    assert log_z == pytest.approx(_score(scores, labels, shape), rel=1e-12, abs=1.0)
    np.testing.assert_allclose(mu[: n * k].reshape(n, k).sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(mu[n * k :].reshape(-1, k * k).sum(axis=1), 1.0, atol=1e-9)
    if size >= 1e6:
        np.testing.assert_allclose(mu[ORACLE.parts(labels, shape)], 1.0, atol=1e-6)


def test_states_that_nodes_lack_cost_nothing() -> None:
    """A grid of two states given as one of thirty: within the limit that the small one needs, and with the same answers."""
    rng = np.random.default_rng(5)
    small, large = grid(4, 4, 2), grid(4, 4, 30)
    scores, padded = rng.normal(size=graph_of(small).n_parts), np.zeros(graph_of(large).n_parts)
    n = small[0]
    padded[: n * 30].reshape(n, 30)[:, 2:] = FORBIDDEN
    padded[: n * 30].reshape(n, 30)[:, :2] = scores[: n * 2].reshape(n, 2)
    padded[n * 30 :].reshape(-1, 30, 30)[:, :2, :2] = scores[n * 2 :].reshape(-1, 2, 2)
    oracle = EliminationMRF(max_table=2**6)
    np.testing.assert_array_equal(oracle.argmax(padded, large), oracle.argmax(scores, small))
    assert oracle.log_partition(padded, large) == oracle.log_partition(scores, small)
    padded[: n * 30] = 0.0  # forbidden as pairs alone: every state without a partner is dropped as well
    padded[n * 30 :].reshape(-1, 30, 30)[:, 2:] = FORBIDDEN
    padded[n * 30 :].reshape(-1, 30, 30)[:, :, 2:] = FORBIDDEN
    assert oracle.argmax(padded, large).max() < 2


def test_states_that_force_each_other_are_no_work() -> None:
    """A complete graph of 30 nodes, all equal, one of them known: nothing is left to eliminate."""
    shape = graph_shape(30, 3, [(i, j) for i in range(30) for j in range(i + 1, 30)])
    scores = np.zeros(graph_of(shape).n_parts)
    scores[90:].reshape(-1, 9)[:, [1, 2, 3, 5, 6, 7]] = FORBIDDEN
    scores[[51, 53]] = FORBIDDEN
    oracle = EliminationMRF(max_table=1)
    np.testing.assert_array_equal(oracle.argmax(scores, shape), np.ones(30))
    log_z, mu = oracle.marginals(scores, shape)
    assert log_z == 0.0
    assert mu.sum() == 30 + 435


def test_a_constraint_that_only_the_whole_shows() -> None:
    """Two colours for a triangle: every pair is possible, no output is."""
    shape = _cycle(3, 2)
    scores = np.concatenate((np.zeros(6), np.tile([FORBIDDEN, 0.0, 0.0, FORBIDDEN], 3)))
    for call in (ORACLE.argmax, ORACLE.marginals, ORACLE.log_partition):
        with pytest.raises(InfeasibleError):
            call(scores, shape)


def test_ties_go_to_the_same_output() -> None:
    """All outputs equal: the same labels every time, from a new plan as well."""
    shape = grid(5, 5, 3)
    scores = np.zeros(graph_of(shape).n_parts)
    first = ORACLE.argmax(scores, shape)
    plan_of.cache_clear()
    np.testing.assert_array_equal(EliminationMRF().argmax(scores, shape), first)


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (grid(12, 12, 2), r"needs a table of 8,192 entries \(width 12\), and max_table is 1,000"),
        (grid(30, 30, 8), r"more than 2\^64 entries \(width \d+ or more\)"),
        (complete(40), r"at least 2\^40\.0 entries"),
        (random_graph(np.random.default_rng(6), 500, 2, 0.01), r"entries \(width \d+"),
    ],
    ids=["grid", "many states", "complete", "random"],
)
def test_what_is_too_wide_is_refused(shape: Shape, words: str) -> None:
    """DataError with the width and the size of the table needed, by every method, before the table is made."""
    oracle, scores = EliminationMRF(max_table=1000), np.zeros(graph_of(shape).n_parts)
    for call in (oracle.argmax, oracle.marginals, oracle.log_partition):
        with pytest.raises(DataError, match=words):
            call(scores, shape)


def test_the_limit_is_the_largest_table() -> None:
    """A complete graph of ten binary nodes takes 2^10 entries, no fewer."""
    shape = complete(10)
    scores = np.random.default_rng(7).normal(size=graph_of(shape).n_parts)
    EliminationMRF(max_table=1024).argmax(scores, shape)
    with pytest.raises(DataError, match=r"2\^10\.0 entries"):
        EliminationMRF(max_table=1023).argmax(scores, shape)
    with pytest.raises(ParameterError, match="max_table"):
        EliminationMRF(max_table=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    """NaN and infinity, by every method; and so are scores that are too few."""
    shape = graph_shape(3, 2, [(0, 1)])
    wrong = np.zeros(10)
    wrong[7] = bad
    for call in (ORACLE.argmax, ORACLE.marginals, ORACLE.log_partition):
        with pytest.raises(DataError, match="finite"):
            call(wrong, shape)
        with pytest.raises(DataError, match="expected 10 scores"):
            call(np.zeros(9), shape)
