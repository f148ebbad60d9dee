"""Batch training under regularisers of groups: a small gap where online steps leave a tenth, at the optimum of a solver."""

import numpy as np
import pytest
from test_proximal import grouped_task
from training_cases import optimum

from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.group_lasso import GroupLasso, SparseGroupLasso
from structpred.objectives.regularisers.mkl import ElasticNetMKL
from structpred.objectives.regularisers.named_groups import GroupTree, OverlappingGroups
from structpred.trainers.corrective import Corrective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem
from structpred.trainers.proximal import OnlineProximal

#: regularisers of the six groups a, b, c, d, start and stop, transitions; lists of groups; weights of norms, l1 norm and squares
CASES = {
    "group_lasso": (GroupLasso(), [[0], [1], [2], [3], [4], [5]], 1.0, 0.0, 0.0),
    "elastic_net": (ElasticNetMKL(0.3), [[0], [1], [2], [3], [4], [5]], 0.7, 0.0, 0.3),
    "sparse_group": (SparseGroupLasso(0.4), [[0], [1], [2], [3], [4], [5]], 0.4, 0.6, 0.0),
    "tree": (GroupTree(["*", ["a", "b"], "b", "start and stop"]), [[0, 1, 2, 3, 4, 5], [0, 1], [1], [4]], 1.0, 0.0, 0.0),
    "overlaps": (
        OverlappingGroups([["a", "b"], ["b", "c"], ["c", "d", "start and stop"], ["transitions", "start and stop"]]),
        [[0, 1], [1, 2], [2, 3, 4], [4, 5]], 1.0, 0.0, 0.0,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_small_gap_at_the_optimum(name) -> None:
    """After at most 200 passes the gap is below .1 %, and the optimum of a convex program between the bounds at every check."""
    import cvxpy as cp

    regulariser, unions, norms, ones, squares = CASES[name]
    task = grouped_task(3)
    places = [np.concatenate([np.arange(*task.groups[k : k + 2]) for k in union]) for union in unions]
    value, _ = optimum(
        task, 0.1,
        lambda w: norms * sum(cp.norm(w[at]) for at in places) + ones * cp.norm1(w) + squares / 2 * cp.sum_squares(w),
    )  # fmt: skip
    prob = Problem(task, MarginRescaling(), 0.1, regulariser=regulariser)
    result = train(prob, Corrective(), RunSettings(max_iter=200, tol=1e-3, check_every=10))
    for row in result.history:
        if row["dual"] is not None:
            assert row["dual"] <= value + 1e-6
            assert row["primal"] >= value - 1e-6
    assert result.certificate.relative_gap <= 1e-3
    online = train(prob, OnlineProximal(eta0=0.3), RunSettings(max_iter=200, check_every=200, tol=1e-3)).certificate
    assert online.relative_gap > 1e-3


def test_a_dual_point_is_divided_among_overlapping_groups() -> None:
    """The bound is that of the best division, found by a convex program; equal parts leave up to a third of it."""
    import cvxpy as cp

    r = OverlappingGroups([["a", "b"], ["b", "c"], ["c", "d"]]).grouped(np.arange(5), ("a", "b", "c", "d"))
    rng = np.random.default_rng(0)
    for _ in range(5):
        u = 3.0 * rng.exponential(size=4)
        parts = cp.Variable((3, 4))
        outside = [parts[0, 2:] == 0, parts[1, [0, 3]] == 0, parts[2, :2] == 0]
        dual_norm = cp.Problem(cp.Minimize(cp.max(cp.norm(parts, axis=1))), [cp.sum(parts, axis=0) == u, *outside]).solve()
        assert r.bound(1.0, 1.0, [u]) <= 1.0 / max(1.0, dual_norm) + 1e-7
        assert r.bound(1.0, 1.0, [u]) >= 0.998 / max(1.0, dual_norm)
