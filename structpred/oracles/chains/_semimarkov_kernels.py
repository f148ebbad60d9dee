# mypy: ignore-errors
"""Compiled dynamic programs over labelled segmentations: the best, the k best, sums over all.

Part scores of one instance: scores[(t * longest + m - 1) * n_labels + l] for the segment of length m and label l that starts
at t, then n_labels^2 transitions. best[e, l] belongs to segmentations of the first e positions whose last segment has label l;
into[s, l] to those of the first s positions that continue with a segment of label l (the transition is counted).
"""

import numpy as np

from structpred.oracles.chains._chain_sum_kernels import FORBIDDEN, log_sum
from structpred.oracles.fields._tree_mrf_kernels import merge_states
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def decode_segments(scores, offsets, shapes, out):
    """The best segmentation of each instance, written one after the other; shapes: (n, 3) of T, L, M.

    Ties go to the shorter last segment, and to the first label.
    """
    rows, columns = np.max(shapes[:, 0]) + 1, np.max(shapes[:, 1])
    best, into = np.empty((2, rows, columns))
    before, lengths = np.zeros((2, rows, columns), np.int64)
    written = 0
    for i in range(shapes.shape[0]):
        length, n_labels, longest = shapes[i]
        theta = scores[offsets[i] : offsets[i + 1]]
        edges = length * longest * n_labels
        into[0, :n_labels] = 0.0
        for e in range(1, length + 1):
            best[e, :n_labels] = -np.inf
            for m in range(1, min(longest, e) + 1):
                row = ((e - m) * longest + m - 1) * n_labels
                for label in range(n_labels):
                    x = into[e - m, label] + theta[row + label]
                    if x > best[e, label]:
                        best[e, label] = x
                        lengths[e, label] = m
            into[e, :n_labels] = -np.inf
            for p in range(n_labels):
                for label in range(n_labels):
                    x = best[e, p] + theta[edges + p * n_labels + label]
                    if x > into[e, label]:
                        into[e, label] = x
                        before[e, label] = p
        label = 0
        for k in range(1, n_labels):
            if best[length, k] > best[length, label]:
                label = k
        e = length
        while e > 0:  # back from the end: 2 * label + 1 where a segment starts, 2 * label where it continues
            start = e - lengths[e, label]
            for t in range(start + 1, e):
                out[written + t] = 2 * label
            out[written + start] = 2 * label + 1
            e = start
            if e > 0:
                label = before[e, label]
        written += length


@njit(cache=True, nogil=True)
def share(logs, start, step, n, width, totals):
    """Of n rows, `step` numbers apart: columns' shares of the sums of their exp(logs), in place, and the sums' logs in totals."""
    totals[:width] = -np.inf
    for k in range(n):
        for label in range(width):
            totals[label] = max(totals[label], logs[start + k * step + label])
    for label in range(width):
        total = 0.0
        for k in range(n):
            at = start + k * step + label
            logs[at] = np.exp(logs[at] - totals[label]) if logs[at] > -np.inf else 0.0
            total += logs[at]
        if total > 0.0:
            totals[label] += np.log(total)
            for k in range(n):
                logs[start + k * step + label] /= total


@njit(cache=True, nogil=True)
def sum_segments(theta, length, n_labels, longest, mu):
    """log Z, minus infinity where nothing is left; expected counts into mu (zeros at first).

    Forward: logarithms of sums, and what share of each sum its terms have. Backward: the probability of each (end, label) is
    handed on by these shares, which add up to one. So probabilities stay consistent to rounding however large the scores are.
    """
    edges, step = length * longest * n_labels, (longest - 1) * n_labels
    arrive, starts = np.zeros(
        (2, length + 1, n_labels)
    )  # of an end, and of a start: first logarithms of sums, then probabilities
    before = np.empty((length + 1, n_labels * n_labels))  # of each start and label: the shares of the labels before
    for e in range(1, length + 1):
        n = min(longest, e)
        row = (e * longest - 1) * n_labels - n * step  # of the longest segment that ends at e
        for k in range(n):
            for label in range(n_labels):
                x = theta[row + k * step + label]
                mu[row + k * step + label] = starts[e - n + k, label] + x if x > FORBIDDEN else -np.inf
        share(mu, row, step, n, n_labels, arrive[e])
        for p in range(n_labels):
            for label in range(n_labels):
                x = theta[edges + p * n_labels + label]
                before[e, p * n_labels + label] = arrive[e, p] + x if x > FORBIDDEN else -np.inf
        share(before[e], 0, n_labels, n_labels, n_labels, starts[e])
    log_z = log_sum(arrive[length], n_labels)
    if log_z == -np.inf:
        return log_z
    share(arrive[length], 0, 1, n_labels, 1, starts[length])
    starts[:] = 0.0
    for e in range(length, 0, -1):
        n = min(longest, e)
        row = (e * longest - 1) * n_labels - n * step
        for k in range(n):
            for label in range(n_labels):
                mu[row + k * step + label] *= arrive[e, label]
                starts[e - n + k, label] += mu[row + k * step + label]
        for p in range(n_labels if e > 1 else 0):  # every segment that starts at e - 1 is known now
            arrive[e - 1, p] = 0.0
            for label in range(n_labels):
                x = before[e - 1, p * n_labels + label] * starts[e - 1, label]
                arrive[e - 1, p] += x
                mu[edges + p * n_labels + label] += x
    return log_z


@njit(cache=True, nogil=True)
def sum_each(scores, offsets, sizes, log_zs, mu):
    """`sum_segments` of a batch; returns the first instance of which nothing is left, else -1."""
    for i in range(sizes.shape[0]):
        own = slice(offsets[i], offsets[i + 1])
        log_zs[i] = sum_segments(scores[own], sizes[i, 0], sizes[i, 1], sizes[i, 2], mu[own])
        if log_zs[i] == -np.inf:
            return i
    return -1


@njit(cache=True, nogil=True)
def best_segmentations(theta, length, n_labels, longest, k, out, totals):
    """The k best segmentations, best first, into out (k, length), and their scores into totals; -inf where there are no more.

    The k best values of each (end, label) and each (start, label), with where they come from: the length of the last segment less
    one, or the label before, and the rank there.
    """
    edges, shape, most = length * longest * n_labels, (length + 1, n_labels, k), max(n_labels, longest)
    best, into = np.full(shape, -np.inf), np.full(shape, -np.inf)
    lengths, ranks = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    before, into_ranks = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    extra, at = np.zeros(most), np.empty(most, np.int64)
    into[0, :, 0] = 0.0
    for e in range(1, length + 1):
        n = min(longest, e)
        for label in range(n_labels):
            for m in range(n):
                extra[m] = theta[((e - m - 1) * longest + m) * n_labels + label]
            starts = into[e - n : e, label][::-1]
            merge_states(starts, extra, at, k, best[e, label], lengths[e, label], ranks[e, label])
        for label in range(n_labels):
            for p in range(n_labels):
                extra[p] = theta[edges + p * n_labels + label]
            merge_states(best[e], extra, at, k, into[e, label], before[e, label], into_ranks[e, label])
    extra[:] = 0.0
    labels, last = np.zeros(k, np.int64), np.zeros(k, np.int64)
    merge_states(best[length], extra, at, k, totals, labels, last)
    for r in range(k):
        label, rank, e = labels[r], last[r], length
        while e > 0 and totals[r] > -np.inf:
            start = e - lengths[e, label, rank] - 1
            for t in range(start + 1, e):
                out[r, t] = 2 * label
            out[r, start] = 2 * label + 1
            rank, e = ranks[e, label, rank], start
            if e > 0:
                label, rank = before[e, label, rank], into_ranks[e, label, rank]


@njit(cache=True, nogil=True)
def segment_parts(labels, ends, sizes, places, out):
    """The parts of segmentations, those of instance i from places[i] on: segments, then transitions; how many, -1 if invalid."""
    n = 0
    for i in range(sizes.shape[0]):
        length, n_labels, longest = sizes[i]
        start = ends[i]
        for t in range(start, ends[i + 1]):
            wrong = labels[start] % 2 == 0 or labels[t] // 2 != labels[start] // 2 or t - start >= longest
            if wrong or not 0 <= labels[t] < 2 * n_labels:
                return -1
            if t + 1 == ends[i + 1] or labels[t + 1] % 2 == 1:  # the last position of its segment
                out[n] = ((start - ends[i]) * longest + t - start) * n_labels + labels[t] // 2
                n += 1
                start = t + 1
        before = np.int64(-1)
        for t in range(ends[i], ends[i + 1]):
            if labels[t] % 2 == 1:
                if before >= 0:
                    out[n] = length * longest * n_labels + before * n_labels + labels[t] // 2
                    n += 1
                before = labels[t] // 2
        places[i + 1] = n
    return n
