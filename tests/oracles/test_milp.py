"""Mixed-integer programmes by HiGHS: against enumeration, bounds of searches cut short, amounts, forbidden parts, refusals."""

import pickle
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from structpred import check_oracle
from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import ConvergenceError, DataError, InfeasibleError, OracleError, ParameterError
from structpred.oracles import MilpOracle

A, B = np.array([[3.0, 5.0, 4.0, 6.0, 3.5], [4.0, 3.0, 6.0, 3.0, 5.0]]), np.array([11.0, 10.0])


def hard(n: int = 20, rows: int = 4, **settings) -> MilpOracle:
    """A knapsack of several rows, for which a search takes some nodes."""
    table = np.random.default_rng(1).integers(5, 60, (rows, n)).astype(float)
    return MilpOracle(table, 0.4 * table.sum(axis=1), **settings)


def test_vectors_are_those_of_the_list() -> None:
    """Of whole numbers up to 2 under rows and an equation the best vector is found, with a bound at its score."""
    oracle = MilpOracle(A, 2.0 * B, upper=2.0, A_eq=np.ones((1, 5)), b_eq=[4.0])
    outputs = np.array([x for x in product(range(3), repeat=5) if sum(x) == 4 and (A @ x <= 2.0 * B).all()])
    assert sorted(map(tuple, oracle.enumerate((5,)))) == sorted(map(tuple, outputs))
    assert 20 < len(outputs) < 45
    for scores in np.random.default_rng(0).normal(size=(6, 5)):
        labels, bound = oracle.argmax_bound(scores, (5,))
        best = float((outputs @ scores).max())
        assert labels @ scores == pytest.approx(best, abs=1e-12)
        assert best <= bound <= best + 1e-8
        assert np.bincount(oracle.parts(labels, (5,)), minlength=5).tolist() == labels.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "oracle",
    [MilpOracle(A, B), MilpOracle(csr_matrix(A), B, upper=[1, 0, 1, 2, 1]), MilpOracle(None, None, A_eq=[[1, 1, 1]], b_eq=[2])],
)
def test_the_contract_is_kept(oracle: MilpOracle) -> None:
    """Rows, a sparse matrix, an equation alone: exact at scores of every size, batches equal to loops, wrong labels refused."""
    report = check_oracle(oracle, n_random=2)
    assert {"wrong argmax", "argmax_bound", "batch different from loop", "invalid labels"} <= set(report.checked)
    assert report.checked["wrong argmax"] > 20


def test_batches_are_loops_and_wrong_labels_are_refused() -> None:
    """argmax_batch, argmax_bound_batch and parts_batch give what single calls give; vectors that break a row are no outputs."""
    oracle, scores = MilpOracle(A, 2.0 * B, upper=2.0), np.random.default_rng(3).normal(size=(3, 5))
    singles, shapes = [oracle.argmax_bound(own, (5,)) for own in scores], [(5,)] * 3
    labels, ends, bounds = oracle.argmax_bound_batch(scores.ravel(), np.arange(0, 20, 5), shapes)
    assert labels.reshape(3, 5).tolist() == [own.tolist() for own, _ in singles]
    assert bounds.tolist() == [bound for _, bound in singles]
    assert oracle.argmax_batch(scores.ravel(), np.arange(0, 20, 5), shapes)[0].tolist() == labels.tolist()
    parts, part_ends = oracle.parts_batch(labels, ends, shapes)
    assert [own.tolist() for own in np.split(parts, part_ends[1:-1])] == [oracle.parts(own, (5,)).tolist() for own, _ in singles]
    for wrong in ([2, 2, 2, 2, 2], [3, 0, 0, 0, 0], [-1, 0, 0, 0, 0], [0, 0]):
        with pytest.raises(ValueError, match=r"breaks a row|expected 5 labels"):
            oracle.parts(np.array(wrong), (5,))


def test_amounts_are_points() -> None:
    """With continuous numbers, or numbers below zero, labels are amounts, which keep the contract."""
    oracle = MilpOracle([[1.0, 1.0, 2.0]], [1.5], [0, 1, 0], lower=[-1.0, 0.0, 0.0])
    assert oracle.point(oracle.argmax(np.array([-1.0, 3.0, 2.0]), (3,)), (3,)).round(9).tolist() == [-1.0, 1.0, 0.75]
    assert check_oracle(oracle, n_random=1, max_calls=24).checked["wrong argmax"] > 5
    with pytest.raises(OracleError, match="points with amounts"):
        oracle.parts(np.zeros(3, np.int64), (3,))
    with pytest.raises(ValueError, match="breaks a row"):
        oracle.point(np.array([0, 10**12, 10**12]), (3,))


def test_a_search_that_is_cut_short_has_a_bound() -> None:
    """At a gap, or after a node, the oracle is inexact, and no vector scores more than its bound."""
    exact, rng = hard(), np.random.default_rng(2)
    assert exact.exact
    missed = 0
    for settings in ({"mip_rel_gap": 0.2}, {"node_limit": 1}):
        short = hard(**settings)
        assert not short.exact
        for scores in rng.exponential(size=(2, 20)):
            best = float(exact.argmax(scores, (20,)) @ scores)
            labels, bound = short.argmax_bound(scores, (20,))
            assert labels @ scores <= best + 1e-9
            assert best <= bound < 1.25 * best
            missed += labels @ scores < best - 1e-6
    assert missed


def test_forbidden_parts_are_left_out() -> None:
    """A part that scores -1e30 is 0; where the rows need it, InfeasibleError says so."""
    oracle = MilpOracle(None, None, A_eq=[[1, 1, 1]], b_eq=[2])
    assert oracle.argmax(np.array([FORBIDDEN, 0.0, -1.0]), (3,)).tolist() == [0, 1, 1]
    with pytest.raises(InfeasibleError, match="without the 2 parts that are forbidden"):
        oracle.argmax(np.array([FORBIDDEN, FORBIDDEN, 0.0]), (3,))
    with pytest.raises(InfeasibleError, match="no x satisfies the rows"):
        MilpOracle([[1, 1]], [-1]).argmax(np.zeros(2), (2,))
    with pytest.raises(InfeasibleError, match="no x satisfies the rows"):
        MilpOracle([[1, -1], [-1, 1]], [0.5, -0.6], upper=np.inf).argmax(np.ones(2), (2,))
    with pytest.raises(ConvergenceError, match="are lower and upper finite"):
        MilpOracle([[1, -1]], [1], upper=np.inf).argmax(np.ones(2), (2,))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (([[1, 2]], [1, 2]), "a limit for each in b"),
        (([[1, np.nan]], [1]), "finite rows"),
        ((["a"], [1]), "matrix of numbers"),
        ((None, None), "A or A_eq"),
        (([[1, 2]], [1], [1, 1, 1]), "a number, or 2 of them"),
        (([[1, 2]], [1], 2), "integrality of 0 or 1"),
    ],
)
def test_what_does_not_fit_is_refused(given: tuple, text: str) -> None:
    """Before anything is solved."""
    with pytest.raises(ParameterError, match=text):
        MilpOracle(*given)


def test_settings_shapes_and_copies() -> None:
    """Settings out of range and other shapes are errors; a copy in another process answers the same."""
    for settings in ({"mip_rel_gap": -1.0}, {"node_limit": 0}):
        with pytest.raises(ParameterError, match="mip_rel_gap < 1 and node_limit >= 1"):
            MilpOracle(A, B, **settings)
    oracle = MilpOracle(A, B)
    with pytest.raises(DataError, match=r"has one shape, \(5,\)"):
        oracle.n_parts((4,))
    scores = np.arange(5.0)
    assert pickle.loads(pickle.dumps(oracle)).argmax(scores, (5,)).tolist() == oracle.argmax(scores, (5,)).tolist()
    assert oracle.problem == MilpOracle(A, B).problem != MilpOracle(A, B + 1.0).problem
