# mypy: ignore-errors
"""Compiled Viterbi decoding over given part scores, block by block of positions; and the best for each loss, and with each label.

Label axes are padded to `width`, a multiple of 8; the columns that fill it are computed and never read.
Ties go to the first label, at every step. There are no back-pointers: the label before is looked for on the way back, in the
label's column alone, so the way forward is a maximum, which is all vector instructions. What it needs of a sequence is kept for
one block; of other blocks it is the last row, and the way back computes the rest again.

scratch: (transitions; scores, then best scores, of a block; best scores without the position's own; last rows of blocks).
"""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True, borrows=True)
def advance(alpha, trans, n_labels, best):
    """best[l] = max_p alpha[p] + trans[p, l]."""
    width = best.shape[0]
    best[:] = -np.inf
    p = 0
    while p + 8 <= n_labels:  # eight at a time, so that best is read and written an eighth as often
        x0, x1, x2, x3 = alpha[p], alpha[p + 1], alpha[p + 2], alpha[p + 3]
        x4, x5, x6, x7 = alpha[p + 4], alpha[p + 5], alpha[p + 6], alpha[p + 7]
        for label in range(width):
            top = best[label]
            x = x0 + trans[p, label]
            top = x if x > top else top
            x = x1 + trans[p + 1, label]
            top = x if x > top else top
            x = x2 + trans[p + 2, label]
            top = x if x > top else top
            x = x3 + trans[p + 3, label]
            top = x if x > top else top
            x = x4 + trans[p + 4, label]
            top = x if x > top else top
            x = x5 + trans[p + 5, label]
            top = x if x > top else top
            x = x6 + trans[p + 6, label]
            top = x if x > top else top
            x = x7 + trans[p + 7, label]
            best[label] = x if x > top else top
        p += 8
    while p < n_labels:
        before = alpha[p]
        for label in range(width):
            x = before + trans[p, label]
            top = best[label]
            best[label] = x if x > top else top
        p += 1


@njit(cache=True, nogil=True, borrows=True)
def forward(block, size, n_labels, scratch):
    """The first `size` rows of the block hold scores of positions: add the best score of what may stand before each label."""
    trans, alphas, bests, lasts = scratch
    for t in range(size):
        row = alphas[t]
        if t > 0 or block > 0:
            best = bests[t]
            advance(alphas[t - 1] if t > 0 else lasts[block - 1], trans, n_labels, best)
            for label in range(row.shape[0]):
                row[label] = best[label] + row[label]
    for label in range(lasts.shape[1]):  # assigning the row compiles sentences about wrong shapes for seconds
        lasts[block, label] = alphas[size - 1, label]


@njit(cache=True, nogil=True, borrows=True)
def first_best(alpha, n_labels):
    """The first label with the largest score."""
    label = 0
    for k in range(1, n_labels):
        if alpha[k] > alpha[label]:
            label = k
    return label


@njit(cache=True, nogil=True, borrows=True)
def backward(block, size, n_labels, scratch, out, end):
    """Write the labels before position out[end - 1], whose label is there, down to the position before the block."""
    trans, alphas, bests, lasts = scratch
    label = out[end - 1]
    for t in range(size - 1, -1, -1):
        if t == 0 and block == 0:
            break
        alpha = alphas[t - 1] if t > 0 else lasts[block - 1]
        top = bests[t, label]
        p = 0
        while p < n_labels - 1 and alpha[p] + trans[p, label] != top:  # the same sum as on the way forward
            p += 1
        label = p
        out[end - size + t - 1] = label


@njit(cache=True, nogil=True, borrows=True)
def n_blocks(length, scratch):
    """Into how many blocks a sequence is cut."""
    return (length - 1) // scratch[1].shape[0] + 1


@njit(cache=True, nogil=True)
def decode_flat(scores, offsets, lengths, n_labels, scratch, out):
    """Viterbi for a batch of flat part scores: T * n_labels emissions, then n_labels^2 transitions, each."""
    trans, alphas, _, _ = scratch
    room = alphas.shape[0]
    written = 0
    for i in range(lengths.shape[0]):
        length = lengths[i]
        base = offsets[i]
        transitions = base + length * n_labels
        for p in range(n_labels):
            for label in range(n_labels):
                trans[p, label] = scores[transitions + p * n_labels + label]
        found = out[written : written + length]
        blocks = n_blocks(length, scratch)
        for step in range(2 * blocks - 1):  # forth to the last block, and back
            block = min(step, 2 * (blocks - 1) - step)
            start = block * room
            size = min(room, length - start)
            for t in range(size):
                for label in range(n_labels):
                    alphas[t, label] = scores[base + (start + t) * n_labels + label]
            forward(block, size, n_labels, scratch)
            if step == blocks - 1:
                found[length - 1] = first_best(alphas[size - 1], n_labels)
            if step >= blocks - 1:
                backward(block, size, n_labels, scratch, found, start + size)
        written += length


@njit(cache=True, nogil=True)
def parts_of(labels, length, n_labels):
    """The parts of the first `length` of these labels."""
    out = np.empty(max(2 * length - 1, 0), np.int64)
    write_parts(labels, 0, length, n_labels, out, 0)
    return out


@njit(cache=True, nogil=True)
def chain_parts(labels, ends, n_labels, places, out):
    """The parts of label sequences: those of instance i are its position-label parts, then its label-label parts."""
    for i in range(n_labels.shape[0]):
        write_parts(labels, ends[i], ends[i + 1] - ends[i], n_labels[i], out, places[i])


@njit(cache=True, nogil=True)
def write_parts(labels, first, length, n_labels, out, place):
    """The parts of labels[first:first + length] into out, from `place` on."""
    for t in range(length):
        out[place + t] = t * n_labels + labels[first + t]
    for t in range(length - 1):
        out[place + length + t] = (length + labels[first + t]) * n_labels + labels[first + t + 1]


@njit(cache=True, nogil=True)
def max_marginals(scores, length, n_labels, step, ahead, out):
    """out[t, l] = the best score of a sequence that has label l at position t. step: how far apart tables of transitions are."""
    edges = length * n_labels
    for label in range(n_labels):
        out[0, label] = scores[label]
    for t in range(1, length):
        for label in range(n_labels):
            best = -np.inf
            for p in range(n_labels):
                best = max(best, out[t - 1, p] + scores[edges + (t - 1) * step + p * n_labels + label])
            out[t, label] = best + scores[t * n_labels + label]
    ahead[0, :] = 0.0
    for t in range(length - 2, -1, -1):
        for p in range(n_labels):
            best = -np.inf
            for label in range(n_labels):
                x = ahead[0, label] + scores[(t + 1) * n_labels + label] + scores[edges + t * step + p * n_labels + label]
                best = max(best, x)
            ahead[1, p] = best
        for p in range(n_labels):
            ahead[0, p] = ahead[1, p]
            out[t, p] += ahead[1, p]
