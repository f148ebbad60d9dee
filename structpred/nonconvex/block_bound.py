"""A lower bound of the least objective from blocks of points, where branch and bound over all of them has none."""

from typing import NamedTuple

import numpy as np

from structpred.errors import ParameterError
from structpred.nonconvex.branch_and_bound import BranchAndBound
from structpred.nonconvex.problem import SemiSupervisedProblem


class BlockBound(NamedTuple):
    """value: no labels within the balance have a lower objective. n_inner: inner problems. closed: whether all blocks were solved
    to the end; else a larger `max_inner` may raise the value."""

    value: float
    n_inner: int
    closed: bool


def block_bound(problem: SemiSupervisedProblem, n_blocks: int, max_inner: int = 10_000, seed: int = 0) -> BlockBound:
    """The bound that the concavity of J gives for a random partition of the unlabelled points into blocks B_1, ..., B_m.

    J(plus, minus), the least objective for weights of the labels +1 and -1, is a minimum of functions that are linear in the
    weights, so concave wherever no weight is negative. The weights of labels p are the mean of m points: p times m on B_j, and
    zero elsewhere. So

        J(p) >= 1/m sum_j J(m p on B_j, 0 elsewhere) >= 1/m sum_j phi_j(k_j),

    with phi_j(k) the least objective of labels of B_j alone, k of them +1, for the weight m C2: branch and bound closes for few
    points of a large weight. The least sum over k_1 + ... + k_m = `positives` is found by dynamic programming. One block is the
    problem itself; with u blocks each point has the weight u C2 (cuts at a vertex of the box, in contrast, leave out that vertex
    alone, for beyond its neighbours F is infinite).

    max_inner: the most inner problems of a block and a count; where they do not suffice the bound of the open tree counts.

    >>> problem = SemiSupervisedProblem(np.eye(4), np.array([1, -1, 0, 0]), 1.0, 1.0, positives=1)
    >>> print(round(block_bound(problem, 1).value, 4), round(block_bound(problem, 2).value, 4))
    2.0 1.25
    """
    if problem.kind != SemiSupervisedProblem.kind:
        raise ParameterError(f"block_bound: expected unlabelled points, got {problem.kind}")
    if not 1 <= n_blocks <= max(1, problem.u):
        raise ParameterError(f"n_blocks: expected 1 to {problem.u}, the number of unlabelled points, got {n_blocks!r}")
    labelled, order = np.flatnonzero(problem.y != 0), np.random.default_rng(seed).permutation(problem.unlabelled)
    total, solver, n_inner, closed = np.zeros(1), BranchAndBound(max_inner), 0, True
    for block in np.array_split(order, n_blocks):
        part = problem.subset(np.sort(np.concatenate([labelled, block])), n_blocks * problem.C2)
        free = problem.positives is None
        found = [solver.solve(part if free else part.with_positives(k)) for k in range(1 if free else part.u + 1)]
        before, own = total, np.array([one.lower_bound for one in found])
        total = np.full(len(before) + len(own) - 1, np.inf)
        for i, value in enumerate(before):  # total_k = min over i + j = k of before_i + own_j
            np.minimum(total[i : i + len(own)], value + own, out=total[i : i + len(own)])
        n_inner += sum(one.n_inner for one in found)
        closed &= all(one.level == "global" for one in found)
    value = total[0] if problem.positives is None else total[int(problem.positives)]
    return BlockBound(float(value) / n_blocks, n_inner, closed)
