"""Best trees compared with other programs: ufal.chu_liu_edmonds (TurboParser's decoder) and networkx."""

import numpy as np
import pytest
from arborescence_cases import scores_of

from structpred.core.fixed_scores import FORBIDDEN
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.trees._trees import arcs_of

ANY, SINGLE = ArborescenceOracle(single_root=False), ArborescenceOracle()


@pytest.fixture(scope="module")
def decode():
    """ufal's function: (n + 1, n + 1) scores, a row a modifier, NaN leaves an arc out; heads (-1 for the root) and the score."""
    return pytest.importorskip("ufal.chu_liu_edmonds", reason="ufal.chu-liu-edmonds has no wheels here").chu_liu_edmonds


def padded(theta, n):
    """Our scores as ufal wants them: a first row for the root, NaN for what is forbidden and for tokens that head themselves."""
    matrix = np.full((n + 1, n + 1), np.nan)
    matrix[1:] = np.where(theta <= 0.5 * FORBIDDEN, np.nan, theta).reshape(n, n + 1)
    np.fill_diagonal(matrix, np.nan)
    return matrix


@pytest.mark.mostly_slow
@pytest.mark.parametrize("low", range(10, 160, 15))
def test_the_score_of_ufal(decode, low) -> None:
    """110 random matrices a case, 1,100 in all, n = 10..160: the same score, and almost always the same tree."""
    rng = np.random.default_rng(low)
    same = 0
    for n in rng.integers(low, min(low + 15, 160) + 1, 110).tolist():
        theta = rng.normal(size=n * (n + 1))
        heads = ANY.argmax(theta, (n,))
        others, value = decode(padded(theta, n))
        assert theta[ANY.parts(heads, (n,))].sum() == pytest.approx(value, rel=1e-12)
        same += np.array_equal(others[1:], heads)
    assert same >= 109


@pytest.mark.parametrize("kind", ["ties", "some forbidden", "wide"])
def test_other_scores_beside_ufal(decode, kind) -> None:
    """Ties, forbidden arcs (their convention: NaN), scores of a million: the same score."""
    rng = np.random.default_rng(0)
    for n in rng.integers(10, 60, 60).tolist():
        theta = scores_of(rng, n, kind)
        value = decode(padded(theta, n))[1]
        assert theta[ANY.parts(ANY.argmax(theta, (n,)), (n,))].sum() == pytest.approx(value, rel=1e-12)


def test_ufals_documented_convention(decode) -> None:
    """Cell (i, j) scores the arc from j to i, index 0 is the root, whose own head is given as -1: our rows with one on top."""
    theta = np.array([[1.0, 0.0, 9.0], [5.0, 2.0, 0.0]])
    heads, value = decode(padded(theta.ravel(), 2))
    assert list(heads) == [-1, 2, 0]
    assert ANY.argmax(theta.ravel(), (2,)).tolist() == [2, 0]
    assert value == 14.0


@pytest.mark.parametrize("kind", ["random", "wide"])
def test_a_single_root_is_the_best_of_all_choices_of_the_root(decode, kind) -> None:
    """ufal, asked once for each token with all other root arcs left out, finds no better tree than we do at once."""
    rng = np.random.default_rng(0)
    for n in rng.integers(10, 40, 25).tolist():
        theta = scores_of(rng, n, kind)
        values = []
        for root in range(n):
            chosen = theta.reshape(n, n + 1).copy()
            chosen[np.arange(n) != root, 0] = FORBIDDEN
            values.append(decode(padded(chosen.ravel(), n))[1])
        assert theta[SINGLE.parts(SINGLE.argmax(theta, (n,)), (n,))].sum() == pytest.approx(max(values), rel=1e-12)


@pytest.mark.parametrize("kind", ["random", "ties"])
def test_the_weight_of_networkx(kind) -> None:
    """maximum_spanning_arborescence (on a graph of its own: it alters what it is given) finds a tree of the same weight."""
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 8, 12):
        for _ in range(4):
            theta = scores_of(rng, n, kind)
            graph = networkx.DiGraph()
            for m in range(1, n + 1):
                for h in range(n + 1):
                    if h != m:
                        graph.add_edge(h, m, weight=float(theta[(m - 1) * (n + 1) + h]))
            tree = networkx.maximum_spanning_arborescence(graph.copy())
            wanted = sum(graph[h][m]["weight"] for h, m in tree.edges)
            assert theta[arcs_of(ANY.argmax(theta, (n,)))].sum() == pytest.approx(wanted, rel=1e-12)
