# mypy: ignore-errors
"""Chains over sparse feature rows: the calls of _chain_body_kernels.py, visits of online trainers, and forward-backward.

Label axes are padded to `width`, a multiple of 8; the columns that fill it are computed and never read. table: the weights, a row
a feature. space: offsets of sequences, feature indices, values, none where all are one, indptr of tokens, the first row of start,
stop and transitions in the table, and the width.
"""

import numpy as np

from structpred.core._sparse_kernels import dot
from structpred.features._feature_kernels import add_bounds, score_rows
from structpred.fused._chain_body_kernels import STEPS
from structpred.oracles.chains._chain_sum_kernels import exponentiate, forward_backward
from structpred.runtime import lanes
from structpred.runtime.jit import family, njit, prefetch
from structpred.task.fast._update_kernels import apply_update, doubted


@njit(cache=True, nogil=True, borrows=True)
def transitions(table, scale, space, rule, trans):
    """trans = scale times the transition rows of the weight table plus the fixed scores, in float64."""
    n_labels, fixed, _, _ = rule
    start_row = space[4]
    for p in range(n_labels):
        for label in range(trans.shape[1]):
            trans[p, label] = scale * np.float64(table[start_row + 2 + p, label]) + fixed[p, label]


@njit(cache=True, nogil=True, borrows=True)
def score(table, scale, space, first, last, start, size, rule, aim, loss_weight, out):
    """The first `size` rows of out = the scores of tokens from `start` on, of the sequence first..last-1.

    With loss_weight times their loss, where there is an aim.
    """
    _, indices, values, indptr, start_row, _ = space
    _, _, rows, row_of = rule
    gold, token_weights, costs, cost_rows = aim
    score_rows(table, indices, values, indptr, start, size, out)
    add_bounds(table, start_row, start, size, first, last, out)
    for k in range(size):
        t = start + k
        f = row_of[t]
        if gold.shape[0] == 0:
            for label in range(out.shape[1]):
                out[k, label] = scale * out[k, label] + rows[f, label]
        else:
            g = cost_rows[t]
            weight = token_weights[t]
            for label in range(out.shape[1]):
                out[k, label] = scale * out[k, label] + rows[f, label] + loss_weight * (weight * costs[g, label])


@njit(cache=True, nogil=True, borrows=True)
def emit_swap(indices, values, start, stop, width, g, y, idx, val, n):
    """Append the features of one token with label g, and minus those with label y, by ascending index where features ascend."""
    low, high = min(g, y), max(g, y)
    sign = 1.0 if g < y else -1.0
    for k in range(start, stop):
        x = sign if values.shape[0] == 0 else sign * np.float64(values[k])
        base = np.int64(indices[k]) * width
        idx[n] = base + low
        idx[n + 1] = base + high
        val[n] = x
        val[n + 1] = -x
        n += 2
    return n


@njit(cache=True, nogil=True, borrows=True)
def emit_difference(labels, space, first, last, aim, idx, val):
    """Joint features of the truth minus those of labels as unsorted pairs; returns (their number, the loss)."""
    _, indices, values, indptr, start_row, width = space
    gold, token_weights, costs, cost_rows = aim
    n = 0
    loss = 0.0
    for t in range(first, last):
        g = gold[t]
        y = labels[t - first]
        if g != y:
            loss += token_weights[t] * costs[cost_rows[t], y]
            n = emit_swap(indices, values, indptr[t], indptr[t + 1], width, g, y, idx, val, n)
            for edge in range(2):
                if (edge == 0 and t == first) or (edge == 1 and t == last - 1):
                    idx[n] = (start_row + edge) * width + g
                    val[n] = 1.0
                    idx[n + 1] = (start_row + edge) * width + y
                    val[n + 1] = -1.0
                    n += 2
        if t > first and (g != y or gold[t - 1] != labels[t - 1 - first]):
            idx[n] = (start_row + 2 + gold[t - 1]) * width + g
            val[n] = 1.0
            idx[n + 1] = (start_row + 2 + labels[t - 1 - first]) * width + y
            val[n + 1] = -1.0
            n += 2
    return n, loss


@njit(cache=True, nogil=True, borrows=True)
def product(w, scale, space, idx, val):
    """<scale * w, (idx, val)>."""
    return scale * dot(w, idx, val)


_, step, sweep = family(__name__, STEPS, transitions, score, emit_difference, product, borrows=True)


@njit(cache=True, nogil=True, borrows=True)
def sequence_updates(
    items, table, space, rule, aim, loss_weight, scratch, out, idx, val, idx2, val2, most, update, limits, state
):  # fmt: skip
    """Steps of these sequences with the update of an online trainer, until `most` tokens are reached or a step is in doubt.

    Returns how many sequences were done, and whether the weights changed.
    """
    offsets = space[0]
    changed = False
    tokens = 0
    for k in range(items.shape[0]):
        i = items[k]
        scale = state[3][()]
        n, loss, scored = step(state[0], table, scale, space, i, rule, aim, loss_weight, scratch, out, idx, val, idx2, val2)
        if doubted(loss_weight * loss, scored):
            return k, changed
        if apply_update(update, limits[i], state, idx[:n], val[:n], loss, loss_weight, scored):
            changed = True
        tokens += offsets[i + 1] - offsets[i]
        if tokens >= most:
            return k + 1, changed
    return items.shape[0], changed


@njit(cache=True, nogil=True, borrows=True)
def log_loss_sweep(table, space, start, stop, rule, gold, shares, scratch, errors, edge_errors, out):
    """Negative log-likelihoods of sequences start..stop-1, and truth minus expectation of their parts, times their shares.

    errors: (tokens from offsets[start] on, width), position-label. edge_errors: (n_labels, width), summed over the sequences.
    scratch: the rows of SumScratch.
    """
    offsets, indices, values, indptr, start_row, width = space
    n_labels, edges, rows, row_of = rule
    trans, exp_trans, emissions, _, _, _, _, counts, _ = scratch
    for p in range(n_labels):
        for label in range(n_labels):
            trans[0, p, label] = np.float64(table[start_row + 2 + p, label]) + edges[p, label]
    form = exponentiate(trans, n_labels, exp_trans)
    edge_errors[:] = 0.0
    base = offsets[start]
    for i in range(start, stop):
        first = offsets[i]
        length = offsets[i + 1] - first
        score_rows(table, indices, values, indptr, first, length, emissions)
        add_bounds(table, start_row, first, length, first, first + length, emissions)
        truth = 0.0
        for t in range(length):
            f = row_of[first + t]
            for label in range(n_labels):
                emissions[t, label] += rows[f, label]
            for label in range(n_labels, width):
                emissions[t, label] = -np.inf
            truth += emissions[t, gold[first + t]]
            if t > 0:
                truth += trans[0, gold[first + t - 1], gold[first + t]]
        marg = errors[first - base : first - base + length]
        log_z = forward_backward(length, n_labels, form, scratch, marg)
        out[i - start] = log_z - truth
        share = shares[i]
        for t in range(length):
            row = marg[t]
            for label in range(n_labels):
                row[label] = -share * row[label]
            for label in range(n_labels, width):
                row[label] = 0.0
            row[gold[first + t]] += share
            if t > 0:
                edge_errors[gold[first + t - 1], gold[first + t]] += share
        for p in range(n_labels):
            for label in range(n_labels):
                edge_errors[p, label] -= share * counts[p, label]


@njit(cache=True, nogil=True, borrows=True)
def scatter_rows(indptr, indices, values, start, errors, coef, first, last, out):
    """out[f] += coef * value * errors[k] for each feature f of token start + k, in eights of columns first..last-1.

    Empty values say that all of them are one. The next token's rows of `out` are fetched ahead: most are in no cache near.
    """
    for k in range(errors.shape[0]):
        begin, end = indptr[start + k], indptr[start + k + 1]
        for j in range(end, indptr[start + k + 2] if k + 1 < errors.shape[0] else end):
            prefetch(out, indices[j], first * lanes.WIDTH)
            prefetch(out, indices[j], last * lanes.WIDTH - 1)
        for j in range(begin, end):
            x = lanes.spread(coef if values.shape[0] == 0 else coef * np.float64(values[j]))
            for c in range(first * lanes.WIDTH, last * lanes.WIDTH, lanes.WIDTH):
                row = lanes.load(out, indices[j], c)
                lanes.store(out, indices[j], c, lanes.plus(row, lanes.times(x, lanes.load(errors, k, c))))


@njit(cache=True, nogil=True)
def gather_squares(starts, tokens, values, errors, sequence, shares, first, last, out):
    """out[f] += sum over sequences i of shares[i] * (sum over their tokens that have feature f of value * errors[token])^2.

    For features first..last-1, whose tokens are ascending. sequence: that of each token.
    """
    width = out.shape[1]
    total = np.zeros(width)
    for f in range(first, last):
        target = out[f]
        for k in range(starts[f], starts[f + 1]):
            x = np.float64(values[k])
            row = errors[tokens[k]]
            i = sequence[tokens[k]]
            ends = k + 1 == starts[f + 1] or sequence[tokens[k + 1]] != i
            for label in range(width):
                total[label] += x * row[label]
                if ends:
                    target[label] += shares[i] * total[label] * total[label]
                    total[label] = 0.0
