# mypy: ignore-errors
"""What is compiled once for all trees: a look at the scores, which arcs cross, the best heads of each word, parts."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True, borrows=True)
def all_finite(scores):
    """Whether no number is NaN or infinite, without branches: before a search that reads all scores anyway."""
    bad = 0
    for i in range(scores.shape[0]):
        bad += not abs(scores[i]) < np.inf
    return bad == 0


@njit(cache=True, nogil=True)
def mark_crossing(heads, offsets, crossing):
    """crossing[word] = 1 where the arc to a word from its head crosses another arc of its sentence (those of the root, too)."""
    for i in range(offsets.shape[0] - 1):
        first = offsets[i]
        n = offsets[i + 1] - first
        leftmost = np.arange(n + 1)  # the outermost modifiers of each word: an arc may leave the span from either of its ends
        rightmost = np.arange(n + 1)
        for m in range(1, n + 1):
            h = heads[first + m - 1]
            leftmost[h] = min(leftmost[h], m)
            rightmost[h] = max(rightmost[h], m)
        for m in range(1, n + 1):
            low = min(heads[first + m - 1], m)
            high = max(heads[first + m - 1], m)
            for k in range(low + 1, high):
                h = heads[first + k - 1]
                if h < low or h > high or leftmost[k] < low or rightmost[k] > high:
                    crossing[first + m - 1] = 1
                    break


@njit(cache=True, nogil=True)
def top_heads(scores, n, k, least, first, gold, starts, listed, at):
    """Append for each word its k best heads, the left neighbour and the true head (gold; none if empty), ascending.

    least > 0: of the k only those with at least this share of the best score. Ties go to the smaller head.
    Returns (where the list ends, how many true heads were listed without being the true one).
    """
    kept = 0
    chosen = np.zeros(n + 1, np.uint8)
    for m in range(1, n + 1):
        row = scores[(m - 1) * (n + 1) : m * (n + 1)]
        chosen[:] = 0
        limit = -np.inf
        for j in range(min(k, n)):
            best = -1
            for h in range(n + 1):
                if h != m and not chosen[h] and (best < 0 or row[h] > row[best]):
                    best = h
            if row[best] < limit:
                break
            chosen[best] = 1
            if j == 0 and least > 0.0:
                limit = least * row[best]
        chosen[m - 1] = 1
        if gold.shape[0]:
            kept += chosen[gold[first + m - 1]]
            chosen[gold[first + m - 1]] = 1
        for h in range(n + 1):
            if chosen[h]:
                listed[at] = h
                at += 1
        starts[first + m] = at
    return at, kept


@njit(cache=True, nogil=True)
def grid_parts(labels, ends, n_labels, out):
    """The parts of outputs that are one label a position: t * n_labels[i] + labels[t], t counted within instance i."""
    for i in range(n_labels.shape[0]):
        for t in range(ends[i], ends[i + 1]):
            out[t] = (t - ends[i]) * n_labels[i] + labels[t]
