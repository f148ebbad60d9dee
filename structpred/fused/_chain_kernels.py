# mypy: ignore-errors
"""Chains over sparse feature rows: scoring welded to decoding, to forward-backward and to the writing of differences.

Label axes are padded to `width`, a multiple of 8; the columns that fill it are computed and never read. What goes together comes
as one tuple: corpus (feature indices, values, none where all are one, indptr of tokens, offsets of sequences), rule (the first
row of transitions in the table, n_labels, fixed scores of transitions, fixed rows of tokens, the row of each token), aim (true
labels, token weights, rows of label costs, the row of each token, of a label or a set), and the scratch of Viterbi.
"""

import numpy as np

from structpred.core._sparse_kernels import coalesce, dot
from structpred.features._feature_kernels import add_bounds, score_rows
from structpred.oracles.chains._chain_kernels import backward, first_best, forward, n_blocks
from structpred.oracles.chains._chain_sum_kernels import exponentiate, log_pass, scaled_pass
from structpred.runtime.jit import njit
from structpred.task.fast._move_kernels import doubted, move


@njit(cache=True, nogil=True)
def scale_transitions(table, start_row, scale, n_labels, fixed, trans):
    """trans = scale times the transition rows of the weight table plus the fixed scores, in float64."""
    for p in range(n_labels):
        for label in range(trans.shape[1]):
            trans[p, label] = scale * np.float64(table[start_row + 2 + p, label]) + fixed[p, label]


@njit(cache=True, nogil=True)
def score_tokens(table, scale, corpus, first, last, start, size, rule, aim, loss_weight, out):
    """The first `size` rows of out = the scores of tokens from `start` on, of the sequence first..last-1.

    With loss_weight times their loss, where there is an aim.
    """
    indices, values, indptr, _ = corpus
    start_row, _, _, rows, row_of = rule
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


@njit(cache=True, nogil=True)
def decode_sequence(table, scale, corpus, first, last, rule, aim, loss_weight, scratch, out):
    """Score tokens first..last-1 and decode them with loss_weight times their loss; returns (score, score of gold).

    The transitions of scratch are scaled already.
    """
    n_labels = rule[1]
    alphas = scratch[1]
    room = alphas.shape[0]
    blocks = n_blocks(last - first, scratch)
    score, truth = 0.0, 0.0
    for step in range(2 * blocks - 1):  # forth to the last block, and back
        block = min(step, 2 * (blocks - 1) - step)
        start = first + block * room
        size = min(room, last - start)
        score_tokens(table, scale, corpus, first, last, start, size, rule, aim, loss_weight, alphas)
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
def add_truth(truth, gold, first, start, size, scratch):
    """`truth` plus the scores of the true labels of positions from `start` on, of the sequence that begins at `first`."""
    trans, alphas, _, _ = scratch
    for k in range(size if gold.shape[0] > 0 else 0):
        t = start + k
        truth += alphas[k, gold[t]]
        if t > first:
            truth += trans[gold[t - 1], gold[t]]
    return truth


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def emit_difference(labels, corpus, first, last, start_row, width, aim, idx, val):
    """Joint features of the truth minus those of labels as unsorted pairs; returns (their number, the loss)."""
    indices, values, indptr, _ = corpus
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


@njit(cache=True, nogil=True)
def step_sequence(flat, table, scale, corpus, i, rule, aim, loss_weight, scratch, out, idx, val, idx2, val2):
    """Decode sequence i and write its sorted difference; returns (pairs, loss, <flat weights, difference>)."""
    start_row, n_labels, edges, _, _ = rule
    first = corpus[3][i]
    last = corpus[3][i + 1]
    scale_transitions(table, start_row, scale, n_labels, edges, scratch[0])
    decode_sequence(table, scale, corpus, first, last, rule, aim, loss_weight, scratch, out)
    n, loss = emit_difference(out, corpus, first, last, start_row, table.shape[1], aim, idx, val)
    n = coalesce(idx, val, n, idx2, val2)
    return n, loss, dot(flat, idx[:n], val[:n])


@njit(cache=True, nogil=True)
def visit_sequences(
    items, table, corpus, rule, aim, loss_weight, scratch, out, idx, val, idx2, val2, most, moves, limits, state
):  # fmt: skip
    """Steps of these sequences with the moves of an online trainer, until `most` tokens are reached or a step is in doubt.

    Returns how many sequences were visited, and whether the weights changed.
    """
    offsets = corpus[3]
    changed = False
    tokens = 0
    for k in range(items.shape[0]):
        i = items[k]
        scale = state[3][()]
        n, loss, product = step_sequence(
            state[0], table, scale, corpus, i, rule, aim, loss_weight, scratch, out, idx, val, idx2, val2
        )  # fmt: skip
        product = scale * product
        if doubted(loss_weight * loss, product):
            return k, changed
        if move(moves, limits[i], state, idx[:n], val[:n], loss, loss_weight, product):
            changed = True
        tokens += offsets[i + 1] - offsets[i]
        if tokens >= most:
            return k + 1, changed
    return items.shape[0], changed


@njit(cache=True, nogil=True)
def sweep_sequences(
    table, scale, corpus, start, stop, rule, aim, loss_weight, scratch, out, losses, found, truths
):  # fmt: skip
    """Decode sequences start..stop-1: labels into out, and each one's loss, score and score of the truth (an empty aim: 0)."""
    offsets = corpus[3]
    start_row, n_labels, edges, _, _ = rule
    gold, token_weights, costs, cost_rows = aim
    scale_transitions(table, start_row, scale, n_labels, edges, scratch[0])
    base = offsets[start]
    for i in range(start, stop):
        first = offsets[i]
        last = offsets[i + 1]
        labels = out[first - base : last - base]
        score, truth = decode_sequence(table, scale, corpus, first, last, rule, aim, loss_weight, scratch, labels)
        total = 0.0
        for t in range(first, last if gold.shape[0] > 0 else first):
            total += token_weights[t] * costs[cost_rows[t], labels[t - first]]
        losses[i - start] = total
        found[i - start] = score
        truths[i - start] = truth


@njit(cache=True, nogil=True)
def log_loss_sweep(table, corpus, start, stop, rule, gold, shares, scratch, errors, edge_errors, out):
    """Negative log-likelihoods of sequences start..stop-1, and truth minus expectation of their parts, times their shares.

    errors: (tokens from offsets[start] on, width), position-label. edge_errors: (n_labels, width), summed over the sequences.
    scratch: transitions, their exponentials, emissions, alpha, local, norm, counts, work (SumScratch).
    """
    indices, values, indptr, offsets = corpus
    start_row, n_labels, edges, rows, row_of = rule
    trans, exp_trans, emissions, alpha, local, norm, counts, work = scratch
    width = table.shape[1]
    for p in range(n_labels):
        for label in range(n_labels):
            trans[p, label] = np.float64(table[start_row + 2 + p, label]) + edges[p, label]
    top, wide, holes = exponentiate(trans, n_labels, exp_trans)
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
            for label in range(width):
                emissions[t, label] += rows[f, label]
            truth += emissions[t, gold[first + t]]
            if t > 0:
                truth += trans[gold[first + t - 1], gold[first + t]]
        marg = errors[first - base : first - base + length]
        log_z = np.nan
        if not wide:
            log_z = scaled_pass(emissions, length, n_labels, exp_trans, top, holes, alpha, local, norm, marg, counts, work)
        if np.isnan(log_z):
            log_z = log_pass(emissions, length, n_labels, trans, alpha, marg, counts, work)
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


@njit(cache=True, nogil=True)
def gather_rows(starts, tokens, values, errors, first, last, coef, out):
    """out[f] += coef * sum over the tokens that have feature f of value * errors[token], for features first..last-1."""
    width = out.shape[1]
    for f in range(first, last):
        target = out[f]
        for k in range(starts[f], starts[f + 1]):
            x = coef * np.float64(values[k])
            row = errors[tokens[k]]
            for label in range(width):
                target[label] += x * row[label]


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
