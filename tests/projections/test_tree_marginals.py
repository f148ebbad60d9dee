"""Projection onto the marginals of chains and forests: against quadratic programs, Viterbi, the active set and Algorithm 3."""

from itertools import pairwise

import numpy as np
import pytest
from reference_algorithm3 import project_by_algorithm_3
from reference_wolfe import nearest_in_hull

from structpred.errors import ConvergenceError, DataError, InfeasibleError, ParameterError
from structpred.oracles.chain import ChainOracle
from structpred.oracles.mrf import graph_of, graph_shape
from structpred.oracles.tree_mrf import TreeMRF
from structpred.projections.simplex import project_onto_simplex
from structpred.projections.tree_marginals import (
    Forest,
    chain_forest,
    chain_parts,
    plan_of,
    project_forests,
    project_onto_chain_marginals,
    project_onto_tree_marginals,
)
from structpred.runtime.ranges import ends_of

SIZES = [(2, 4), (3, 2), (5, 3), (4, 1), (6, 5)]
FORESTS = [*TreeMRF.example_shapes(), graph_shape(8, 3, [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5), (6, 7)])]


def tables_of(size, scale, seed=0):
    """Random tables (T - 1, m, m)."""
    length, m = size
    return scale * np.random.default_rng(seed).normal(size=(length - 1, m, m))


def by_quadratic_program(point):
    """The same by an interior-point solver."""
    cp = pytest.importorskip("cvxpy")
    tables = [cp.Variable(table.shape, nonneg=True) for table in point]
    rules = [cp.sum(table) == 1 for table in tables]
    rules += [cp.sum(a, axis=0) == cp.sum(b, axis=1) for a, b in pairwise(tables)]
    problem = cp.Problem(cp.Minimize(sum(cp.sum_squares(a - b) for a, b in zip(tables, point, strict=True))), rules)
    problem.solve(solver=cp.CLARABEL, **{name: 1e-12 for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")})
    return np.array([table.value for table in tables])


def gap_by_viterbi(point, found):
    """max_y <point - found, y - found> over all label sequences, by the oracle of trees."""
    n, m, _ = point.shape
    shape = graph_shape(n + 1, m, [(t, t + 1) for t in range(n)])
    scores = np.concatenate((np.zeros((n + 1) * m), (point - found).ravel()))
    oracle = TreeMRF()
    on = oracle.parts(oracle.argmax(scores, shape), shape)
    return float(scores[on].sum() - ((point - found) * found).sum())


@pytest.mark.parametrize("size", SIZES)
def test_chains_equal_the_quadratic_program(size) -> None:
    """To 1e-7, on small and large scales; (3, 2) to 1e-8."""
    for scale in (0.05, 1.0, 10.0):
        point = tables_of(size, scale)
        exact = 1e-8 if size == (3, 2) else 1e-7
        np.testing.assert_allclose(project_onto_chain_marginals(point), by_quadratic_program(point), atol=exact)


@pytest.mark.parametrize("scale", [0.0, 0.01, 0.3, 1.0, 30.0, 1e4, 1e8])
def test_no_label_sequence_is_any_better(scale) -> None:
    """The optimality condition through Viterbi to 1e-8, and to rounding where scores are large; margins agree to rounding."""
    for size in ((20, 8), (7, 26), (60, 3)):
        point = tables_of(size, scale)
        found = project_onto_chain_marginals(point)
        assert gap_by_viterbi(point, found) <= 1e-8 + 1e-14 * scale * size[0]
        assert found.min() >= 0
        np.testing.assert_allclose(found.sum(axis=(1, 2)), 1.0, atol=1e-14)
        np.testing.assert_allclose(found[:-1].sum(axis=1), found[1:].sum(axis=2), atol=1e-15)


def test_consistent_tables_stay() -> None:
    """A projection is its own projection, and so is a Markov chain's table, to 1e-10."""
    found = project_onto_chain_marginals(tables_of((8, 4), 0.3))
    np.testing.assert_allclose(project_onto_chain_marginals(found), found, atol=1e-10)
    scores = np.random.default_rng(1).normal(size=7 * 4 + 16)
    mu = TreeMRF().marginals(np.concatenate((scores[:28], np.tile(scores[28:], 6))), graph_shape(7, 4, np.c_[:6, 1:7]))[1]
    tables = mu[28:].reshape(6, 4, 4)
    np.testing.assert_allclose(project_onto_chain_marginals(tables), tables, atol=1e-10)


def test_two_positions_are_a_simplex() -> None:
    """One table: equal to the projection by sorting."""
    point = tables_of((2, 6), 0.7)
    np.testing.assert_allclose(project_onto_chain_marginals(point).ravel(), project_onto_simplex(point.ravel()), atol=1e-14)


def test_a_labels_score_may_stand_on_either_side() -> None:
    """Added to the column of a table or to the row of the next one, it gives the same marginals."""
    before, extra = tables_of((5, 4), 0.5), np.array([1.0, -2.0, 0.3, 0.0])
    after = before.copy()
    before[1] += extra
    after[2] += extra[:, None]
    np.testing.assert_allclose(project_onto_chain_marginals(before), project_onto_chain_marginals(after), atol=1e-10)


@pytest.mark.parametrize("size", [(5, 3), (3, 2)])
def test_algorithm_3_repaired_comes_to_the_same_point(size) -> None:
    """The paper's block coordinate descent, to 1e-7."""
    point = tables_of(size, 0.3)
    reference = project_by_algorithm_3(point)
    assert reference.violation <= 1e-9
    np.testing.assert_allclose(project_onto_chain_marginals(point), reference.marginals, atol=1e-7)


@pytest.mark.parametrize("shape", FORESTS, ids=str)
def test_forests_equal_the_active_set(shape) -> None:
    """Any forest, edges either way, nodes alone; small, large, tied and forbidden scores: to 1e-9."""
    oracle, n = TreeMRF(), graph_of(shape).n_parts
    rng = np.random.default_rng(2)
    points = [scale * rng.normal(size=n) for scale in (0.0, 0.05, 1.0, 100.0)]
    points.append(rng.integers(-1, 2, n).astype(np.float64))
    points.append(np.where(rng.random(n) < 0.05, -1e30, points[1]))
    for point in points:
        try:
            wanted = nearest_in_hull(point, lambda s: oracle.argmax(s, shape), lambda y: oracle.parts(y, shape), n).mu
        except InfeasibleError:
            with pytest.raises(InfeasibleError, match="every output uses a forbidden part"):
                oracle.project(point, shape)
        else:
            np.testing.assert_allclose(oracle.project(point, shape), wanted, atol=1e-9)
            alone = project_onto_tree_marginals(point, *shape[:2], graph_of(shape).edges)
            np.testing.assert_allclose(alone, wanted, atol=1e-9)


def test_a_batch_is_its_loop_on_any_number_of_threads() -> None:
    """Chains of several sizes, bit for bit: marginals and multipliers."""
    sizes = [(1, 3), (6, 4), (2, 2), (6, 4), (3, 5), (9, 2)]
    rng = np.random.default_rng(3)
    points = [rng.normal(size=chain_forest(*size).n_variables) for size in sizes]
    flat, offsets = np.concatenate(points), ends_of(np.array([len(point) for point in points]))
    chains = [chain_forest(*size) for size in sizes]
    single = [project_forests(point, np.array([0, len(point)]), [one]) for point, one in zip(points, chains, strict=True)]
    for n_jobs in (1, 3):
        found, multipliers = project_forests(flat, offsets, chains, n_jobs=n_jobs)
        np.testing.assert_array_equal(found, np.concatenate([mu for mu, _ in single]))
        np.testing.assert_array_equal(multipliers, np.concatenate([m for _, m in single]))


def test_multipliers_start_the_next_call() -> None:
    """From its own multipliers a point needs no step at all; a point nearby comes to its own projection."""
    forest, point = [chain_forest(12, 5)], tables_of((12, 5), 0.5).ravel()
    offsets = np.array([0, len(point)])
    found, multipliers = project_forests(point, offsets, forest)
    again, _ = project_forests(point, offsets, forest, multipliers, tol=1e-10, max_iter=1)
    np.testing.assert_allclose(again, found, atol=1e-12)
    nearby = point + 0.01 * np.random.default_rng(4).normal(size=len(point))
    warm, cold = (project_forests(nearby, offsets, forest, start)[0] for start in (multipliers, None))
    np.testing.assert_allclose(warm, cold, atol=1e-10)


@pytest.mark.parametrize("size", [(1, 3), (2, 2), (4, 3)])
def test_clique_parts_of_a_chain(size) -> None:
    """The clique marginals of a label sequence count for its parts: mu = A x."""
    oracle, (length, m) = ChainOracle(), size
    ends, parts = oracle.clique_parts(size)
    for y in oracle.enumerate(size):
        on = y if length == 1 else (np.arange(length - 1) * m + y[:-1]) * m + y[1:]
        counted = np.concatenate([parts[ends[k] : ends[k + 1]] for k in on])
        assert sorted(counted.tolist()) == sorted(oracle.parts(y, size).tolist())
    assert len(ends) - 1 == chain_forest(*size).n_variables
    np.testing.assert_array_equal(chain_parts(*size)[1], parts)


def test_what_cannot_be_projected_is_refused() -> None:
    """NaN, another size, multipliers of another batch, a cycle, a missing node, tol, too few steps: each by its own error."""
    forest, point, offsets = [chain_forest(3, 2)], tables_of((3, 2), 1.0).ravel(), np.array([0, 8])
    with pytest.raises(DataError, match=r"finite points.*got nan for entry 7"):
        project_forests(np.append(point[:-1], np.nan), offsets, forest)
    with pytest.raises(DataError, match=r"at most 1e\+100 in absolute value, got 1e\+300 for entry 2"):
        project_onto_tree_marginals(np.array([0.0, 0.0, 1e300, 0.0, 0.0, 0.0, 0.0, 0.0]), 2, 2, [(0, 1)])
    with pytest.raises(DataError, match=r"expected points of 8 entries"):
        project_forests(point[1:], np.array([0, 7]), forest)
    with pytest.raises(DataError, match=r"expected tables \(T - 1, m, m\)"):
        project_onto_chain_marginals(np.zeros((2, 3, 4)))
    with pytest.raises(DataError, match="expected 8 finite multipliers"):
        project_forests(point, offsets, forest, np.zeros(6))
    with pytest.raises(DataError, match=r"edge ., \(., .\), closes a cycle"):
        plan_of(3, [(0, 1), (1, 2), (0, 2)])
    with pytest.raises(DataError, match=r"edge 0, \(0, 3\), names a node that is missing"):
        plan_of(3, [(0, 3)])
    with pytest.raises(ParameterError, match="tol > 0 and max_iter >= 1"):
        project_forests(point, offsets, forest, tol=0.0)
    with pytest.raises(ConvergenceError, match=r"differ by .* after 1 steps.*raise max_iter or tol"):
        project_forests(tables_of((9, 5), 0.3).ravel(), np.array([0, 200]), [chain_forest(9, 5)], max_iter=1)
    with pytest.raises(InfeasibleError, match="every output uses a forbidden part"):
        project_forests(np.full(8, -1e30), offsets, [Forest(3, 2, False, plan_of(3, [(0, 1), (1, 2)]))])
