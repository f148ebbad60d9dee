# mypy: ignore-errors
"""Compiled sums and decoding over padded batches of label chains, on the passes of `ChainOracle` over one sentence.

emissions, table, mask: as in chain_operators. places, scratch: working memory for the longest sentence. What is found is written
where there are positions. Returned: the first sentence with a score that is NaN or infinite, or without a label sequence; or -1.
"""

import numpy as np

from structpred.oracles.chains._chain_kernels import backward, first_best, forward
from structpred.oracles.chains._chain_sum_kernels import FORBIDDEN, exponentiate, forward_backward
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True, borrows=True)
def gather(scores, table, kept, places, rows):
    """The positions that there are, their scores, with those of first and last labels; how many, -1 if any is NaN or infinite."""
    n_labels, length = scores.shape[1], 0
    for t in range(kept.shape[0]):
        if kept[t]:
            places[length] = t
            for label in range(n_labels):
                if not scores[t, label] < np.inf:
                    return -1
                rows[length, label] = scores[t, label]
            length += 1
    for label in range(n_labels if length > 0 else 0):
        rows[0, label] += table[n_labels, label]
        rows[length - 1, label] += table[label, n_labels]
    return length


@njit(cache=True, nogil=True, borrows=True)
def sums(emissions, table, mask, places, scratch, log_zs, tokens, pairs):
    """log Z, the probabilities of labels, and expected transitions in the form of the table; scratch: the rows of SumScratch."""
    trans, exp_trans, rows, _, _, _, marg, counts, _ = scratch
    n_labels = emissions.shape[2]
    for p in range(n_labels):
        for label in range(n_labels):
            trans[0, p, label] = table[p, label]
    form = exponentiate(trans, n_labels, exp_trans)
    for i in range(emissions.shape[0]):
        length = gather(emissions[i], table, mask[i], places, rows)
        if length == 0:
            continue
        log_zs[i] = forward_backward(length, n_labels, form, scratch, marg) if length > 0 else -np.inf
        if log_zs[i] == -np.inf:
            return i
        for k in range(length):
            total = 0.0  # rounding of a long chain: make each position sum to one
            for label in range(n_labels):
                total += marg[k, label]
            for label in range(n_labels):
                tokens[i, places[k], label] = marg[k, label] / total
        for p in range(n_labels):
            pairs[i, n_labels, p], pairs[i, p, n_labels] = tokens[i, places[0], p], tokens[i, places[length - 1], p]
            for label in range(n_labels):
                pairs[i, p, label] = counts[p, label]
    return -1


@njit(cache=True, nogil=True, borrows=True)
def decode(emissions, table, mask, places, scratch, found, out):
    """The best labels; scratch: of `best_scratch`, with whole sentences in a block; found: labels of one."""
    trans, rows, _, _ = scratch
    n_labels = emissions.shape[2]
    for p in range(n_labels):
        for label in range(n_labels):
            trans[p, label] = table[p, label]
    for i in range(emissions.shape[0]):
        length = gather(emissions[i], table, mask[i], places, rows)
        if length == 0:
            continue
        if length > 0:
            forward(0, length, n_labels, scratch)
            found[length - 1] = first_best(rows[length - 1], n_labels)
        if length < 0 or rows[length - 1, found[length - 1]] <= FORBIDDEN:
            return i
        backward(0, length, n_labels, scratch, found, length)
        for k in range(length):
            out[i, places[k]] = found[k]
    return -1
