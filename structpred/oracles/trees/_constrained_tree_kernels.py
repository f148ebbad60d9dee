# mypy: ignore-errors
"""Compiled bound for trees under linear constraints: the linear program over mixtures of trees, by column generation.

max sum_k p_k t_k  with  sum_k p_k v_k + s = 0,  sum_k p_k = 1,  p, s >= 0: t_k is the score of tree k, v_k = A mu_k - b what it
exceeds the limits by. Its dual is the Lagrangian one, min over lam >= 0 of max_k t_k - lam . v_k (Geoffrion 1974), and the column
that enters is a maximum spanning arborescence for the scores theta - lam A. With r constraints the basis has r + 1 columns, so a
step costs little besides that tree. Trees found earlier are kept in a pool, and looked at first.
"""

import numpy as np

from structpred.oracles.trees._arborescence_kernels import best_heads
from structpred.runtime.jit import njit

FORBIDDEN = -1e30
#: column numbers below zero: the artificial column, and slack j as -2 - j
ARTIFICIAL = -1
STEPS = 200


@njit(cache=True, nogil=True)
def measure(theta, A, b, heads, values):
    """values[0] is the score of a tree, values[1:] are A mu - b."""
    n = len(heads)
    values[0] = 0.0
    for j in range(len(b)):
        values[1 + j] = -b[j]
    for m in range(n):
        arc = m * (n + 1) + heads[m]
        values[0] += theta[arc]
        for j in range(len(b)):
            values[1 + j] += A[j, arc]


@njit(cache=True, nogil=True)
def best_column(lam, sigma, allowed, pool, values, n_pool):
    """The tree of the pool that is worth most at these prices, -1 if none is worth anything; trees with arcs that are not
    allowed are skipped."""
    n = pool.shape[1]
    best, column = 1e-9 * (1.0 + abs(sigma)), -1
    for k in range(n_pool):
        worth = values[k, 0] - sigma
        for j in range(len(lam)):
            worth -= lam[j] * values[k, 1 + j]
        if worth > best:
            inside = True
            for m in range(n):
                if not allowed[m * (n + 1) + pool[k, m]]:
                    inside = False
                    break
            if inside:
                best, column = worth, k
    return column


@njit(cache=True, nogil=True)
def enter(inverse, costs, basis, share, column, cost, label):
    """Pivot a column into the basis: the row that it takes, -1 where none lets it in."""
    size = len(share)
    step = np.empty(size)
    row, least = -1, np.inf
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += inverse[i, j] * column[j]
        step[i] = total
        if step[i] > 1e-9:
            ratio = share[i] / step[i]
            if ratio < least - 1e-12 or (ratio < least + 1e-12 and row >= 0 and basis[i] == ARTIFICIAL):
                row, least = i, ratio
    if row < 0:
        return row
    for i in range(size):
        share[i] -= least * step[i]
        if share[i] < 0.0:
            share[i] = 0.0
    share[row] = least
    for j in range(size):
        inverse[row, j] /= step[row]
    for i in range(size):
        if i != row:
            for j in range(size):
                inverse[i, j] -= step[i] * inverse[row, j]
    basis[row], costs[row] = label, cost
    return row


@njit(cache=True, nogil=True)
def bound_cell(theta, A, b, allowed, single_root, cutoff, lowest, penalty, pool, values, n_pool, room, arcs):
    """Bound the trees without arcs that are not allowed: (bound, number of trees in the pool).

    Stops once the bound is at most `cutoff`. A bound below `lowest`, which every tree's score exceeds, says that none satisfies
    the limits; -inf: every tree has an arc that is not allowed. penalty: the score of doing without any tree, below `lowest`.
    arcs: filled with the shares of the arcs in the best mixture. Trees that are found go into the pool (a ring), their values
    next to it.
    """
    n, n_rows, size = pool.shape[1], len(b), len(b) + 1
    inverse = np.zeros((size, size))
    costs, share, lam = np.zeros(size), np.zeros(size), np.zeros(n_rows)
    basis = np.empty(size, np.int64)
    for j in range(size):
        inverse[j, j] = 1.0
        basis[j] = -2 - j
    basis[n_rows] = ARTIFICIAL
    costs[n_rows] = penalty
    share[n_rows] = 1.0
    heads = np.empty(n, np.int64)
    trees = np.empty((size, n), np.int64)  # of the basis: the pool is a ring, and its rows are used again
    column = np.empty(size)
    shifted = np.empty(len(theta))
    bound = np.inf
    for _ in range(STEPS):
        worst, sigma = -1, 0.0
        for i in range(size):
            sigma += costs[i] * inverse[i, n_rows]
        for j in range(n_rows):
            lam[j] = 0.0
            for i in range(size):
                lam[j] += costs[i] * inverse[i, j]
            if lam[j] < -1e-12 and (worst < 0 or lam[j] < lam[worst]):
                worst = j
        if worst >= 0:
            for j in range(size):
                column[j] = 1.0 if j == worst else 0.0
            if enter(inverse, costs, basis, share, column, 0.0, -2 - worst) < 0:
                break
            continue
        k = best_column(lam, sigma, allowed, pool, values, min(n_pool, len(pool)))
        if k < 0:
            for i in range(len(theta)):
                if allowed[i]:
                    total = theta[i]
                    for j in range(n_rows):
                        total -= lam[j] * A[j, i]
                    shifted[i] = total
                else:
                    shifted[i] = FORBIDDEN
            best_heads(shifted, single_root, room, heads)
            k = n_pool % len(pool)
            lagrangian = 0.0
            for m in range(n):
                arc = m * (n + 1) + heads[m]
                if not allowed[arc]:
                    return -np.inf, n_pool
                pool[k, m] = heads[m]
                lagrangian += shifted[arc]
            for j in range(n_rows):
                lagrangian += lam[j] * b[j]
            n_pool += 1
            measure(theta, A, b, heads, values[k])
            bound = min(bound, lagrangian)
            if bound <= cutoff or bound < lowest or lagrangian <= sigma + 1e-11 * (1.0 + abs(sigma)):
                break
        for j in range(n_rows):
            column[j] = values[k, 1 + j]
        column[n_rows] = 1.0
        row = enter(inverse, costs, basis, share, column, values[k, 0], k)
        if row < 0:
            break
        for m in range(n):
            trees[row, m] = pool[k, m]
    for i in range(len(arcs)):
        arcs[i] = 0.0
    for i in range(size):
        if basis[i] >= 0:
            for m in range(n):
                arcs[m * (n + 1) + trees[i, m]] += share[i]
    return bound, n_pool
