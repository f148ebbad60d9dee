# mypy: ignore-errors
"""Branch and bound for max(0, h) g, with h = offsets[0] + scores . mu and g = offsets[1] + costs . mu >= 0.

For each lam > 0, h g <= (h + lam g)^2 / (4 lam): no completion is better than phi where h + lam g <= 2 sqrt(lam phi) for all of
them, and a linear function of mu is bounded as in `_branch_kernels`. lam = h / g of the best output known makes the two sides
meet there; it comes from local search, and the search restarts where a better output has quite another h / g.
"""

import numpy as np

from structpred.oracles.fields._branch_kernels import CUT_SHORT, ROUNDING, dolls, next_leaf, row_bounds, task_of, value_of
from structpred.oracles.fields._branch_tables_kernels import decided_first, in_order, slots_of, tables_of
from structpred.oracles.fields._pairwise_kernels import LOWEST, improve, look, score_of
from structpred.oracles.mrf import OK
from structpred.runtime.jit import njit

ANEW = 5
SPREAD = 2.0  # by which factor h / g may differ from lam
STARTS = 7


@njit(cache=True, nogil=True)
def first_guess(scores, costs, offsets, k, edges, first, other, edge, labels):
    """Local search for h + lam g at several lam; fills labels if any h g > 0 is found. (h g, lam to begin with)."""
    n = len(labels)
    trial = np.zeros(n, np.int64)
    height = 0.0
    width = 0.0
    for part in range(len(scores)):
        height += abs(scores[part]) if scores[part] > LOWEST else 0.0
        width += abs(costs[part])
    lam = 1e-3 * max(height, abs(offsets[0]), 1e-100) / max(width, abs(offsets[1]), 1e-100)
    small = lam
    lam *= 16.0
    best = 0.0
    guess = -1.0
    for start in range(STARTS):
        mixed = scores + lam * costs
        for i in range(n):
            trial[i] = 0
            for a in range(1, k):
                if mixed[i * k + a] > mixed[i * k + trial[i]]:
                    trial[i] = a
        improve(mixed, n, k, first, other, edge, trial, 10)
        h = score_of(scores, n, k, edges, trial)
        g = offsets[1] + score_of(costs, n, k, edges, trial)
        if h > LOWEST and h + offsets[0] > 0.0 and (h + offsets[0]) * g > best:
            best = (h + offsets[0]) * g
            guess = (h + offsets[0]) / g
            labels[:] = trial
        lam = guess if guess > 0.0 and start >= 4 else 6.0 * lam
        if start >= 5 and guess < 0.0:
            break
    return best, guess if guess > 0.0 else small


@njit(cache=True, nogil=True)
def search_product(task, free, own_g, pair_g, offsets, lam, phi, noise, nodes, labels):
    """As `search` from the first node on, for the product. (status, phi, next lam, nodes left); labels: if phi grew."""
    trial = task[10]
    constant = offsets[0] + lam * offsets[1]
    threshold = 2.0 * np.sqrt(lam * phi) - constant
    d, value, nodes = next_leaf(0, 0, task, free, threshold + noise, nodes)
    while d >= 0 and nodes >= 0:
        g = offsets[1] + value_of(task[0], own_g, pair_g, trial) if value > LOWEST else 0.0
        h = constant + value - lam * g
        if h > 0.0 and h * g > phi:
            phi = h * g
            labels[:] = trial
            threshold = 2.0 * np.sqrt(lam * phi) - constant
            if not lam / SPREAD < h / g < lam * SPREAD:
                return ANEW, phi, h / g, nodes
        d, value, nodes = next_leaf(0, d, task, free, threshold + noise, nodes)
    return (CUT_SHORT if nodes < 0 else OK), phi, lam, nodes


@njit(cache=True, nogil=True)
def best_product(scores, costs, offsets, k, edges, first, other, edge, place, max_nodes, labels):
    """The output with the largest product, any allowed one where all products are zero. The status."""
    n = len(labels)
    for table in (scores, costs):
        status, _ = look(table)
        if status != OK:
            return status
    phi, lam = first_guess(scores, costs, offsets, k, edges, first, other, edge, labels)
    own_h, pair_h, size_h = tables_of(scores, n, k, edges)
    own_g, pair_g, size_g = tables_of(costs, n, k, edges)
    if place[0] < 0:
        decided_first(own_h + lam * own_g, pair_h + lam * pair_g, edges, place)
    slots = slots_of(n, edges, place)
    own_h, pair_h = in_order(own_h, pair_h, edges, place, slots[4])
    own_g, pair_g = in_order(own_g, pair_g, edges, place, slots[4])
    free = row_bounds(np.empty((0, len(scores))), np.empty(0), k, edges, place, slots)
    best = np.empty(n, np.int64)
    for i in range(n):
        best[place[i]] = labels[i]
    nodes = max_nodes
    status = ANEW
    while status == ANEW:
        task = task_of(slots, own_h + lam * own_g, pair_h + lam * pair_g)
        noise = ROUNDING * (size_h + lam * size_g)
        status, nodes = dolls(1, task, free, noise, nodes, np.zeros(n, np.int64))
        if status != OK:
            return status
        status, phi, lam, nodes = search_product(task, free, own_g, pair_g, offsets, lam, phi, noise, nodes, best)
        if status == OK and phi == 0.0:  # all products are zero: the best h + lam g will do
            status, nodes = dolls(0, task_of(slots, task[1], task[2]), free, noise, nodes, best)
    for i in range(n):
        labels[i] = best[place[i]]
    return status
