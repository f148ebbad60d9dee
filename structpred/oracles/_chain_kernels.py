# mypy: ignore-errors
"""Compiled Viterbi decoding: over given part scores, and fused with the scoring of sparse feature rows.

Label axes are padded to `width`, a multiple of 8; the columns that fill it are computed and never read.
Ties go to the first label, at every step. Back-pointers are the only array that grows with the sequence.
"""

import numpy as np

from structpred.core._feature_kernels import emit_token, score_row
from structpred.core._sparse_kernels import coalesce, dot
from structpred.core.jit import njit


@njit(cache=True, nogil=True)
def advance(alpha, trans, n_labels, best, back):
    """best[l] = max_p alpha[p] + trans[p, l]; back[l] = the first p that attains it."""
    width = alpha.shape[0]
    for label in range(width):
        best[label] = alpha[0] + trans[0, label]
        back[label] = 0
    p = 1
    while p + 4 <= n_labels:  # four at a time, so that best and back are read and written a quarter as often
        x0 = alpha[p]
        x1 = alpha[p + 1]
        x2 = alpha[p + 2]
        x3 = alpha[p + 3]
        for label in range(width):
            top = best[label]
            first = back[label]
            x = x0 + trans[p, label]
            first = p if x > top else first
            top = x if x > top else top
            x = x1 + trans[p + 1, label]
            first = p + 1 if x > top else first
            top = x if x > top else top
            x = x2 + trans[p + 2, label]
            first = p + 2 if x > top else first
            top = x if x > top else top
            x = x3 + trans[p + 3, label]
            first = p + 3 if x > top else first
            top = x if x > top else top
            best[label] = top
            back[label] = first
        p += 4
    while p < n_labels:
        before = alpha[p]
        for label in range(width):
            x = before + trans[p, label]
            better = x > best[label]
            best[label] = x if better else best[label]
            back[label] = p if better else back[label]
        p += 1


@njit(cache=True, nogil=True)
def trace_back(alpha, pointers, length, n_labels, out):
    """Write the best path into out[:length]; returns its score."""
    label = np.int64(0)
    for k in range(1, n_labels):
        if alpha[k] > alpha[label]:
            label = k
    score = alpha[label]
    out[length - 1] = label
    for t in range(length - 1, 0, -1):
        label = np.int64(pointers[t, label])
        out[t - 1] = label
    return score


@njit(cache=True, nogil=True)
def decode_flat(scores, offsets, lengths, n_labels, trans, work, back, pointers, out):
    """Viterbi for a batch of flat part scores: T * n_labels emissions, then n_labels^2 transitions, each."""
    alpha = work[0]
    best = work[1]
    written = 0
    for i in range(lengths.shape[0]):
        length = lengths[i]
        base = offsets[i]
        transitions = base + length * n_labels
        for p in range(n_labels):
            for label in range(n_labels):
                trans[p, label] = scores[transitions + p * n_labels + label]
        for label in range(n_labels):
            alpha[label] = scores[base + label]
        for t in range(1, length):
            advance(alpha, trans, n_labels, best, back)
            for label in range(n_labels):
                alpha[label] = best[label] + scores[base + t * n_labels + label]
                pointers[t, label] = back[label]
        trace_back(alpha, pointers, length, n_labels, out[written : written + length])
        written += length


@njit(cache=True, nogil=True)
def scale_transitions(table, start_row, scale, n_labels, fixed, trans):
    """trans = scale times the transition rows of the weight table plus the fixed scores, in float64."""
    for p in range(n_labels):
        for label in range(trans.shape[1]):
            trans[p, label] = scale * np.float64(table[start_row + 2 + p, label]) + fixed[p, label]


@njit(cache=True, nogil=True)
def decode_sequence(
    table, scale, indices, values, indptr, first, last, start_row, n_labels,
    trans, rows, row_of, gold, token_weights, costs, loss_weight, work, back, pointers, out,
):  # fmt: skip
    """Score tokens first..last-1 and decode them with loss_weight times their loss; returns (score, score of gold)."""
    alpha = work[0]
    best = work[1]
    row = work[2]
    width = row.shape[0]
    truth = 0.0
    for t in range(first, last):
        row[:] = 0.0
        score_row(table, indices, values, indptr[t], indptr[t + 1], row)
        if t == first:
            for label in range(width):
                row[label] += np.float64(table[start_row, label])
        if t == last - 1:
            for label in range(width):
                row[label] += np.float64(table[start_row + 1, label])
        cost = costs[gold[t]]
        weight = token_weights[t]
        fixed = rows[row_of[t]]
        for label in range(width):
            row[label] = scale * row[label] + fixed[label] + loss_weight * (weight * cost[label])
        truth += row[gold[t]]
        if t == first:
            for label in range(width):
                alpha[label] = row[label]
        else:
            truth += trans[gold[t - 1], gold[t]]
            advance(alpha, trans, n_labels, best, back)
            pointer = pointers[t - first]
            for label in range(width):
                alpha[label] = best[label] + row[label]
                pointer[label] = back[label]
    return trace_back(alpha, pointers, last - first, n_labels, out), truth


@njit(cache=True, nogil=True)
def emit_difference(
    gold, labels, indices, values, indptr, first, last, start_row, width, token_weights, costs, idx, val
):  # fmt: skip
    """Joint features of gold minus those of labels as unsorted pairs; returns (their number, the loss)."""
    n = 0
    loss = 0.0
    for t in range(first, last):
        g = gold[t]
        y = labels[t - first]
        if g != y:
            loss += token_weights[t] * costs[g, y]
            n = emit_token(indices, values, indptr[t], indptr[t + 1], width, g, 1.0, idx, val, n)
            n = emit_token(indices, values, indptr[t], indptr[t + 1], width, y, -1.0, idx, val, n)
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
def step_sequence(
    flat, table, scale, indices, values, indptr, first, last, start_row, n_labels, edges, trans, rows, row_of,
    gold, token_weights, costs, loss_weight, work, back, pointers, out, idx, val, idx2, val2,
):  # fmt: skip
    """Decode one sequence and write its sorted difference; returns (pairs, loss, <flat weights, difference>)."""
    scale_transitions(table, start_row, scale, n_labels, edges, trans)
    decode_sequence(
        table, scale, indices, values, indptr, first, last, start_row, n_labels,
        trans, rows, row_of, gold, token_weights, costs, loss_weight, work, back, pointers, out,
    )  # fmt: skip
    n, loss = emit_difference(
        gold, out, indices, values, indptr, first, last, start_row, table.shape[1], token_weights, costs, idx, val
    )
    n = coalesce(idx, val, n, idx2, val2)
    return n, loss, dot(flat, idx[:n], val[:n])


@njit(cache=True, nogil=True)
def sweep_sequences(
    table, scale, indices, values, indptr, offsets, start, stop, start_row, n_labels, edges, trans, rows, row_of,
    gold, token_weights, costs, loss_weight, work, back, pointers, out, losses, found, truths,
):  # fmt: skip
    """Decode sequences start..stop-1: labels into out, and each one's loss, score and score of the truth."""
    scale_transitions(table, start_row, scale, n_labels, edges, trans)
    base = offsets[start]
    for i in range(start, stop):
        first = offsets[i]
        last = offsets[i + 1]
        labels = out[first - base : last - base]
        score, truth = decode_sequence(
            table, scale, indices, values, indptr, first, last, start_row, n_labels,
            trans, rows, row_of, gold, token_weights, costs, loss_weight, work, back, pointers, labels,
        )  # fmt: skip
        total = 0.0
        for t in range(first, last):
            total += token_weights[t] * costs[gold[t], labels[t - first]]
        losses[i - start] = total
        found[i - start] = score
        truths[i - start] = truth
