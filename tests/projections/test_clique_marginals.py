"""Marginals of cliques of any size and overlap: a generic solver, enumeration, and linear programs by HiGHS."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from structpred.errors import ConvergenceError, DataError, InfeasibleError
from structpred.projections.clique_marginals import cliques_of, largest_over_cliques, project_onto_clique_marginals
from structpred.projections.tree_marginals import project_onto_tree_marginals

#: cliques, and how many states each node has: a junction tree of threes, a cycle of pairs, overlaps of two nodes, a mixture
GRAPHS: dict[str, tuple[list[tuple[int, ...]], list[int]]] = {
    "junction tree": ([(0, 1, 2), (1, 2, 3), (3, 4)], [2, 3, 2, 2, 3]),
    "cycle": ([(0, 1), (1, 2), (2, 3), (0, 3)], [2, 3, 2, 3]),
    "threes": ([(0, 1, 2), (3, 1, 2), (0, 1, 3), (0, 2, 3)], [2, 2, 2, 2]),
    "mixture": ([(2,), (0, 1), (2, 1), (0, 2, 3), (4,)], [2, 2, 3, 2, 2]),
}


def vertices(name: str) -> Any:
    """The marginals of each joint state, a row each."""
    cliques, sizes = GRAPHS[name]
    rows = []
    for y in product(*map(range, sizes)):
        tables = [np.zeros([sizes[v] for v in nodes]) for nodes in cliques]
        for table, nodes in zip(tables, cliques, strict=True):
            table[tuple(y[v] for v in nodes)] = 1.0
        rows.append(np.concatenate([table.ravel() for table in tables]))
    return np.array(rows)


def agreeing(name: str) -> tuple[Any, Any]:
    """Every pair of cliques agrees on the nodes that it shares, and tables sum to 1: A x = b, written down anew."""
    cliques, sizes = GRAPHS[name]
    places, start = [], 0
    for nodes in cliques:
        shape = [sizes[v] for v in nodes]
        places.append(np.arange(start, start + int(np.prod(shape))).reshape(shape))
        start += int(np.prod(shape))
    rows, right = [], []
    for place in places:
        rows.append(np.isin(np.arange(start), place).astype(float))
        right.append(1.0)
    for a, b in product(range(len(cliques)), repeat=2):
        shared = sorted(set(cliques[a]) & set(cliques[b]))
        for states in product(*(range(sizes[v]) for v in shared)) if a < b and shared else ():
            row = np.zeros(start)
            for k, sign in ((a, 1.0), (b, -1.0)):
                at = tuple(states[shared.index(v)] if v in shared else slice(None) for v in cliques[k])
                row[np.ravel(places[k][at])] = sign
            rows.append(row)
            right.append(0.0)
    return np.array(rows), np.array(right)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_nearest_point_is_that_of_a_generic_solver(name: str) -> None:
    """In a metric d_c; on a junction tree the set is the hull of all outputs; its own multipliers start it at the end."""
    import cvxpy as cp

    rng, (cliques, sizes) = np.random.default_rng(0), GRAPHS[name]
    d = rng.uniform(0.3, 2.0, len(cliques))
    made, (A, b) = cliques_of(cliques, sizes, d), agreeing(name)
    for scale in (0.3, 3.0):
        point, x = scale * rng.normal(size=A.shape[1]), cp.Variable(A.shape[1])
        goal = cp.sum_squares(cp.multiply(np.repeat(d, np.diff(made.offsets)), x - point))
        cp.Problem(cp.Minimize(goal), [A @ x == b, x >= 0]).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
        )
        found, multipliers = project_onto_clique_marginals(point, made)
        np.testing.assert_allclose(found, x.value, atol=1e-6)
        assert found.min() >= 0.0
        np.testing.assert_allclose(A @ found, b, atol=1e-10)
        again = project_onto_clique_marginals(point, made, multipliers, max_iter=1)[0]
        assert again.tobytes() == found.tobytes()
        if name == "junction tree":
            assert ((vertices(name) - found) @ (np.repeat(d**2, np.diff(made.offsets)) * (point - found))).max() <= 1e-8


@pytest.mark.parametrize("name", GRAPHS)
def test_the_bound_is_outside_of_all_outputs(name: str) -> None:
    """Value and bound meet at the value of HiGHS's linear program, which no output exceeds; after one step it holds too."""
    rng, made, (A, b), outputs = np.random.default_rng(1), cliques_of(*GRAPHS[name]), agreeing(name), vertices(name)
    for _ in range(5):
        scores = rng.normal(size=A.shape[1])
        best = -linprog(-scores, A_eq=A, b_eq=b, method="highs").fun
        found = largest_over_cliques(scores, made)
        assert found.value == pytest.approx(best, abs=1e-7)
        assert found.bound == pytest.approx(best, abs=1e-7)
        assert min(found.bound, largest_over_cliques(scores, made, max_iter=1).bound) >= best - 1e-9
        assert (outputs @ scores).max() <= found.bound + 1e-9
        if name == "junction tree":
            assert (outputs @ scores).max() == pytest.approx(found.bound, abs=1e-7)


def test_trees_have_the_same_nearest_point() -> None:
    """As `project_onto_tree_marginals`, nodes being cliques of one; forbidden entries stay zero."""
    edges, point = [(0, 2), (1, 2), (2, 3)], np.random.default_rng(2).normal(size=12 + 27)
    point[[1, 12 + 4]] = -1e30
    made = cliques_of([(0,), (1,), (2,), (3,), *edges], [3] * 4)
    found = project_onto_clique_marginals(point, made)[0]
    assert not found[[1, 12 + 4]].any()
    np.testing.assert_allclose(found, project_onto_tree_marginals(point, 4, 3, edges), atol=1e-8)


def test_faults_are_named() -> None:
    """Cliques, metrics and points that do not fit; tables without an allowed entry; too few steps."""
    for cliques in ([()], [(0, 0)], [(0, 2)]):
        with pytest.raises(DataError, match=r"clique 0.*different nodes out of 0..1"):
            cliques_of(cliques, [2, 2])
    with pytest.raises(DataError, match="a metric of 1 numbers > 0"):
        cliques_of([(0, 1)], [2, 2], [0.0])
    made = cliques_of([(0, 1), (1, 2)], [2, 2, 2])
    with pytest.raises(DataError, match="a point of 8 finite entries"):
        project_onto_clique_marginals(np.zeros(7), made)
    with pytest.raises(InfeasibleError, match="every entry of a clique's table"):
        project_onto_clique_marginals(np.repeat([0.0, -1e30], 4), made)
    threes = cliques_of([(0, 1, 2), (1, 2, 3), (0, 2, 3)], [2] * 4)
    with pytest.raises(ConvergenceError, match="after 1 steps"):
        project_onto_clique_marginals(9.0 * np.random.default_rng(0).normal(size=24), threes, max_iter=1)
