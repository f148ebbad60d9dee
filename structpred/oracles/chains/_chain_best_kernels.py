# mypy: ignore-errors
"""Compiled searches other than the best path of a chain: the k best, the best for each loss, the best with each label."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def best_paths(scores, length, n_labels, k, values, froms, ranks, heads):
    """The k best ways to reach each (position, label): values, the label before and its rank there; unused ones are -inf.

    values: (length, n_labels, k). Ties go to the first label before, and to the better rank.
    """
    edges = length * n_labels
    values[:] = -np.inf
    for label in range(n_labels):
        values[0, label, 0] = scores[label]
    for t in range(1, length):
        for label in range(n_labels):
            heads[:] = 0
            for r in range(k):
                best = -np.inf
                at = -1
                for p in range(n_labels):
                    if heads[p] < k:
                        x = values[t - 1, p, heads[p]] + scores[edges + p * n_labels + label]
                        if x > best:
                            best = x
                            at = p
                if at < 0:
                    break
                values[t, label, r] = best + scores[t * n_labels + label]
                froms[t, label, r] = at
                ranks[t, label, r] = heads[at]
                heads[at] += 1


@njit(cache=True, nogil=True)
def read_paths(values, froms, ranks, length, n_labels, k, heads, out, totals):
    """Write the k best whole paths into out (k, length), best first; returns how many there are."""
    heads[:] = 0
    for r in range(k):
        best = -np.inf
        at = -1
        for label in range(n_labels):
            if heads[label] < k and values[length - 1, label, heads[label]] > best:
                best = values[length - 1, label, heads[label]]
                at = label
        if at < 0:
            return r
        totals[r] = best
        label = at
        rank = heads[at]
        heads[at] += 1
        for t in range(length - 1, 0, -1):
            out[r, t] = label
            before = froms[t, label, rank]
            rank = ranks[t, label, rank]
            label = before
        out[r, 0] = label
    return k


@njit(cache=True, nogil=True)
def best_per_loss(scores, costs, length, n_labels, low, size, values, froms):
    """values[t, c, l]: the best score of a prefix of cost low * (t + 1) + c that ends in label l; froms: the label before.

    costs are whole numbers, each position's node and edge together at least `low`. (Bauer, Mueller & Kloft 2014.)
    """
    edges = length * n_labels
    values[:] = -np.inf
    for label in range(n_labels):
        values[0, costs[label] - low, label] = scores[label]
    for t in range(1, length):
        for p in range(n_labels):
            for label in range(n_labels):
                gain = scores[edges + p * n_labels + label] + scores[t * n_labels + label]
                step = costs[edges + p * n_labels + label] + costs[t * n_labels + label] - low
                for c in range(size - step):
                    before = values[t - 1, c, p]
                    if before > -np.inf and before + gain > values[t, c + step, label]:
                        values[t, c + step, label] = before + gain
                        froms[t, c + step, label] = p


@njit(cache=True, nogil=True)
def read_per_loss(values, froms, costs, length, n_labels, low, c, label, out):
    """Write the path that ends in `label` with cost index c into out."""
    edges = length * n_labels
    for t in range(length - 1, -1, -1):
        out[t] = label
        if t > 0:
            p = froms[t, c, label]
            c -= costs[edges + p * n_labels + label] + costs[t * n_labels + label] - low
            label = p


@njit(cache=True, nogil=True)
def max_marginals(scores, length, n_labels, ahead, out):
    """out[t, l] = the best score of a sequence that has label l at position t."""
    edges = length * n_labels
    for label in range(n_labels):
        out[0, label] = scores[label]
    for t in range(1, length):
        for label in range(n_labels):
            best = -np.inf
            for p in range(n_labels):
                best = max(best, out[t - 1, p] + scores[edges + p * n_labels + label])
            out[t, label] = best + scores[t * n_labels + label]
    ahead[0, :] = 0.0
    for t in range(length - 2, -1, -1):
        for p in range(n_labels):
            best = -np.inf
            for label in range(n_labels):
                x = ahead[0, label] + scores[(t + 1) * n_labels + label] + scores[edges + p * n_labels + label]
                best = max(best, x)
            ahead[1, p] = best
        for p in range(n_labels):
            ahead[0, p] = ahead[1, p]
            out[t, p] += ahead[1, p]
