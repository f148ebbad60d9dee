# mypy: ignore-errors
"""Chains over functions of kernels, whose values the weights hold: the calls of _chain_body_kernels.py.

space: offsets of sequences, ends of the groups of weights, (n, labels, kernels). factors: what scales each group.
"""

import numpy as np

from structpred.core._sparse_kernels import grouped_dot
from structpred.features._position_kernels import position_row
from structpred.fused._chain_body_kernels import STEPS
from structpred.runtime.jit import family, njit


@njit(cache=True, nogil=True)
def transitions(w, factors, space, rule, trans):
    """trans = the scaled transition scores plus the fixed ones."""
    _, ends, sizes = space
    n_labels, edges, _, _ = rule
    at = ends[sizes[2] + 1]
    for p in range(n_labels):
        for label in range(n_labels):
            trans[p, label] = factors[sizes[2] + 1] * np.float64(w[at + p * n_labels + label]) + edges[p, label]


@njit(cache=True, nogil=True)
def score(w, factors, space, first, last, start, size, rule, aim, loss_weight, out):
    """The first `size` rows of out = the scores of positions from `start` on, with loss_weight times their loss."""
    n_labels, _, rows, row_of = rule
    gold, token_weights, costs, cost_rows = aim
    for k in range(size):
        t = start + k
        row = out[k]
        position_row(w, space[1], factors, space[2], t, first, last, row)
        fixed = rows[row_of[t]]
        if gold.shape[0] == 0:
            for label in range(n_labels):
                row[label] += fixed[label]
        else:
            cost = costs[cost_rows[t]]
            for label in range(n_labels):
                row[label] = row[label] + fixed[label] + loss_weight * (token_weights[t] * cost[label])


@njit(cache=True, nogil=True)
def emit_difference(labels, space, first, last, aim, idx, val):
    """Joint features of the truth minus those of labels as unsorted pairs; returns (their number, the loss)."""
    _, ends, sizes = space
    n, n_labels, n_kernels = sizes
    gold, token_weights, costs, cost_rows = aim
    m = 0
    loss = 0.0
    for t in range(first, last):
        g = gold[t]
        y = labels[t - first]
        if g != y:
            loss += token_weights[t] * costs[cost_rows[t], y]
            for side in range(2):
                label = y if side else g
                sign = -1.0 if side else 1.0
                for k in range(n_kernels):
                    idx[m] = ends[k] + (n_labels + label) * n + t
                    val[m] = sign
                    m += 1
                for edge in range(2):
                    if (edge == 0 and t == first) or (edge == 1 and t == last - 1):
                        idx[m] = ends[n_kernels] + edge * n_labels + label
                        val[m] = sign
                        m += 1
        if t > first and (g != y or gold[t - 1] != labels[t - 1 - first]):
            idx[m] = ends[n_kernels + 1] + gold[t - 1] * n_labels + g
            val[m] = 1.0
            idx[m + 1] = ends[n_kernels + 1] + labels[t - 1 - first] * n_labels + y
            val[m + 1] = -1.0
            m += 2
    return m, loss


@njit(cache=True, nogil=True)
def product(w, factors, space, idx, val):
    """<scaled weights, (idx, val)>, indices ascending, added in order."""
    return grouped_dot(w, space[1], factors, idx, val)


_, step, sweep = family(__name__, STEPS, transitions, score, emit_difference, product, borrows=True)
