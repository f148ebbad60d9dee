# mypy: ignore-errors
"""Compiled sums and decoding over padded batches of label chains, on the passes of `ChainOracle` over one sentence.

emissions, table, mask: as in structpred.torch.chain_operators. places (2, longest) and scratch, with transitions: working memory.
Returned is the first sentence with a score that is NaN or infinite, or without a label sequence; -1 where there is none.
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
def sums(emissions, table, mask, places, scratch, gold, values, tokens, pairs):
    """What `chain_sums` gives; scratch: the rows of SumScratch."""
    trans, exp_trans, rows, _, _, _, marg, counts, _ = scratch
    n_labels = emissions.shape[2]
    form = exponentiate(trans, n_labels, exp_trans)
    for i in range(emissions.shape[0]):
        length = gather(emissions[i], table, mask[i], places[0], rows)
        if length == 0:
            continue
        value = forward_backward(length, n_labels, form, scratch, marg) if length > 0 else -np.inf
        if value == -np.inf:
            return i
        for p in range(n_labels):
            for label in range(n_labels):
                pairs[i, p, label] = counts[p, label]
        before = -1
        for k in range(length):
            t, total = places[0, k], 0.0  # rounding of a long chain: make each position sum to one
            for label in range(n_labels):
                total += marg[k, label]
            for label in range(n_labels):
                tokens[i, t, label] = marg[k, label] / total
            if gold.shape[1] > 0:
                label = gold[i, t]
                value -= rows[k, label]
                tokens[i, t, label] -= 1.0
                if k > 0:
                    value -= trans[0, before, label]
                    pairs[i, before, label] -= 1.0
                before = label
        for label in range(n_labels):
            pairs[i, n_labels, label] = tokens[i, places[0, 0], label]
            pairs[i, label, n_labels] = tokens[i, places[0, length - 1], label]
        values[i] = value
    return -1


@njit(cache=True, nogil=True, borrows=True)
def decode(emissions, table, mask, places, scratch, out):
    """The best labels; scratch: of `best_scratch`, with whole sentences in a block."""
    rows, found, n_labels = scratch[1], places[1], emissions.shape[2]
    for i in range(emissions.shape[0]):
        length = gather(emissions[i], table, mask[i], places[0], rows)
        if length == 0:
            continue
        if length > 0:
            forward(0, length, n_labels, scratch)
            found[length - 1] = first_best(rows[length - 1], n_labels)
        if length < 0 or rows[length - 1, found[length - 1]] <= FORBIDDEN:
            return i
        backward(0, length, n_labels, scratch, found, length)
        for k in range(length):
            out[i, places[0, k]] = found[k]
    return -1
