# mypy: ignore-errors
"""Compiled sums and decoding over padded batches of label chains: forward-backward and Viterbi.

emissions, table, kept: as in chain_operators.py, kept being the mask. Returned are the first sentence that cannot be done and the
position whose score is NaN or infinite, -1 where no label sequence is left; else (-1, -1). What is found is written to zeros.
"""

import numpy as np

from structpred.oracles.chains._chain_kernels import backward, first_best, forward
from structpred.oracles.chains._chain_sum_kernels import FORBIDDEN, exponentiate, log_pass, scaled_pass
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def gather(scores, table, kept, places, rows):
    """The kept positions, their scores as rows, with those of first and last labels; how many, or -1 - position of a bad one."""
    n_labels, length = scores.shape[1], 0
    for t in range(kept.shape[0]):
        if kept[t]:
            for label in range(n_labels):
                x = scores[t, label]
                if not x < np.inf:
                    return -1 - t
                rows[length, label] = x + (table[n_labels, label] if length == 0 else 0.0)
            places[length] = t
            length += 1
    for label in range(n_labels if length > 0 else 0):
        rows[length - 1, label] += table[label, n_labels]
    return length


@njit(cache=True, nogil=True)
def sums(emissions, table, kept, places, trans, exp_trans, rows, alpha, local, norm, marg, counts, work, log_zs, tokens, pairs):
    """log Z (B,), the probabilities of labels (B, T, m) and expected transitions (B, m + 1, m + 1), in the form of the table."""
    n_labels = emissions.shape[2]
    for p in range(n_labels):
        for label in range(n_labels):
            trans[0, p, label] = table[p, label]
    top, wide, holes = exponentiate(trans, n_labels, exp_trans)
    for i in range(emissions.shape[0]):
        length = gather(emissions[i], table, kept[i], places, rows)
        if length < 0:
            return i, -1 - length
        if length == 0:
            log_zs[i] = 0.0
            continue
        log_z = np.nan
        if not wide:
            log_z = scaled_pass(rows, length, n_labels, exp_trans, top, holes, alpha, local, norm, marg, counts, work)
        if np.isnan(log_z):
            log_z = log_pass(rows, length, n_labels, trans, alpha, marg, counts, work)
        if log_z == -np.inf:
            return i, -1
        log_zs[i] = log_z
        for k in range(length):
            total = marg[k, :n_labels].sum()  # rounding of a long chain: make each position sum to one
            for label in range(n_labels):
                tokens[i, places[k], label] = marg[k, label] / total
        for p in range(n_labels):
            for label in range(n_labels):
                pairs[i, p, label] = counts[p, label]
            pairs[i, n_labels, p] = tokens[i, places[0], p]
            pairs[i, p, n_labels] = tokens[i, places[length - 1], p]
    return -1, -1


@njit(cache=True, nogil=True)
def decode(emissions, table, kept, places, scratch, found, out):
    """The best labels (B, T), where positions are kept. scratch: with room for whole sentences in a block."""
    n_labels, trans, rows = emissions.shape[2], scratch[0], scratch[1]
    for p in range(n_labels):
        for label in range(n_labels):
            trans[p, label] = table[p, label]
    for i in range(emissions.shape[0]):
        length = gather(emissions[i], table, kept[i], places, rows)
        if length < 0:
            return i, -1 - length
        if length == 0:
            continue
        forward(0, length, n_labels, scratch)
        label = first_best(rows[length - 1], n_labels)
        if rows[length - 1, label] <= FORBIDDEN:
            return i, -1
        found[length - 1] = label
        backward(0, length, n_labels, scratch, found, length)
        for k in range(length):
            out[i, places[k]] = found[k]
    return -1, -1
