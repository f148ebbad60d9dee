# mypy: ignore-errors
"""Compiled Viterbi decoding over given part scores.

Label axes are padded to `width`, a multiple of 8; the columns that fill it are computed and never read.
Ties go to the first label, at every step. Back-pointers are the only array that grows with the sequence.
"""

import numpy as np

from structpred.runtime.jit import njit


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
def chain_parts(labels, ends, n_labels, places, out):
    """The parts of label sequences: those of instance i are its position-label parts, then its label-label parts."""
    for i in range(n_labels.shape[0]):
        first = ends[i]
        length = ends[i + 1] - first
        for t in range(length):
            out[places[i] + t] = t * n_labels[i] + labels[first + t]
        for t in range(length - 1):
            out[places[i] + length + t] = (length + labels[first + t]) * n_labels[i] + labels[first + t + 1]
