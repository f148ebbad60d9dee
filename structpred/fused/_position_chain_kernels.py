# mypy: ignore-errors
"""Chains over functions of kernels: scores are read off and decoded, and the difference from the truth is written.

space: (ends of the groups, (n, labels, kernels)). rule: (fixed scores of transitions, fixed rows of positions, the row of each);
without them the arrays are empty. aim and scratch are those of `_chain_kernels`.
"""

import numpy as np

from structpred.core._sparse_kernels import coalesce
from structpred.fused._chain_kernels import add_truth
from structpred.oracles.chains._chain_kernels import backward, first_best, forward, n_blocks
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def transitions(w, factors, space, edges, trans):
    """trans = the scaled transition scores plus the fixed ones."""
    ends, sizes = space
    n_labels = sizes[1]
    at = ends[sizes[2] + 1]
    for p in range(n_labels):
        for label in range(n_labels):
            trans[p, label] = factors[sizes[2] + 1] * np.float64(w[at + p * n_labels + label]) + edges[p, label]


@njit(cache=True, nogil=True)
def position_row(w, factors, space, t, first, last, row):
    """row = the scores of the labels at position t of the sequence first..last-1, by the weights alone."""
    ends, sizes = space
    n, n_labels, n_kernels = sizes
    row[:] = 0.0
    for k in range(n_kernels):
        at = ends[k] + n_labels * n + t
        for label in range(n_labels):
            row[label] += factors[k] * np.float64(w[at + label * n])
    at = ends[n_kernels]
    for edge in range(2):
        if (edge == 0 and t == first) or (edge == 1 and t == last - 1):
            for label in range(n_labels):
                row[label] += factors[n_kernels] * np.float64(w[at + edge * n_labels + label])


@njit(cache=True, nogil=True)
def score_positions(w, factors, space, first, last, start, size, rule, aim, loss_weight, out):
    """The first `size` rows of out = the scores of positions from `start` on, with loss_weight times their loss."""
    n_labels = space[1][1]
    _, rows, row_of = rule
    _, token_weights, costs, cost_rows = aim
    for k in range(size):
        t = start + k
        row = out[k]
        position_row(w, factors, space, t, first, last, row)
        fixed = rows[row_of[t]]
        cost = costs[cost_rows[t]]
        for label in range(n_labels):
            row[label] = row[label] + fixed[label] + loss_weight * (token_weights[t] * cost[label])


@njit(cache=True, nogil=True)
def decode_positions(w, factors, space, first, last, rule, aim, loss_weight, scratch, out):
    """Score positions first..last-1 and decode them with loss_weight times their loss; returns (score, score of gold)."""
    n_labels = space[1][1]
    alphas = scratch[1]
    room = alphas.shape[0]
    blocks = n_blocks(last - first, scratch)
    score, truth = 0.0, 0.0
    for step in range(2 * blocks - 1):  # forth to the last block, and back
        block = min(step, 2 * (blocks - 1) - step)
        start = first + block * room
        size = min(room, last - start)
        score_positions(w, factors, space, first, last, start, size, rule, aim, loss_weight, alphas)
        if step < blocks:
            truth = add_truth(truth, aim[0], first, start, size, scratch)
        forward(block, size, n_labels, scratch)
        if step == blocks - 1:
            out[last - first - 1] = label = first_best(alphas[size - 1], n_labels)
            score = alphas[size - 1, label]
        if step >= blocks - 1:
            backward(block, size, n_labels, scratch, out, start - first + size)
    return score, truth


@njit(cache=True, nogil=True)
def emit_difference(labels, space, first, last, aim, idx, val):
    """Joint features of the truth minus those of labels as unsorted pairs; returns (their number, the loss)."""
    ends, sizes = space
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
def scaled_product(w, ends, factors, idx, val):
    """<scaled weights, (idx, val)>, indices ascending, added in order."""
    total = 0.0
    k = 0
    for e in range(idx.shape[0]):
        while idx[e] >= ends[k + 1]:
            k += 1
        total += np.float64(w[idx[e]]) * (factors[k] * val[e])
    return total


@njit(cache=True, nogil=True)
def step_positions(w, factors, space, offsets, i, rule, aim, loss_weight, scratch, out, idx, val, idx2, val2):
    """Decode sequence i and write its sorted difference; returns (pairs, loss, <scaled weights, difference>)."""
    first = offsets[i]
    last = offsets[i + 1]
    transitions(w, factors, space, rule[0], scratch[0])
    decode_positions(w, factors, space, first, last, rule, aim, loss_weight, scratch, out)
    n, loss = emit_difference(out, space, first, last, aim, idx, val)
    n = coalesce(idx, val, n, idx2, val2)
    return n, loss, scaled_product(w, space[0], factors, idx[:n], val[:n])


@njit(cache=True, nogil=True)
def sweep_positions(w, factors, space, offsets, start, stop, rule, aim, loss_weight, scratch, out, losses, found, truths):
    """Decode sequences start..stop-1: labels into out, and each one's loss, score and score of the truth."""
    _, token_weights, costs, cost_rows = aim
    transitions(w, factors, space, rule[0], scratch[0])
    base = offsets[start]
    for i in range(start, stop):
        first = offsets[i]
        last = offsets[i + 1]
        labels = out[first - base : last - base]
        found[i - start], truths[i - start] = decode_positions(
            w, factors, space, first, last, rule, aim, loss_weight, scratch, labels
        )
        losses[i - start] = 0.0
        for t in range(first, last):
            losses[i - start] += token_weights[t] * costs[cost_rows[t], labels[t - first]]
