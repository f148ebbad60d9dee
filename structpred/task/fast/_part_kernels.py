# mypy: ignore-errors
"""Compiled halves of a step that knows nothing but parts: costs are added, the output found is compared with the truth."""

import numpy as np

from structpred.core._sparse_kernels import coalesce
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True, borrows=True)
def augment(scores, costs, loss_weight, out):
    """out = scores + loss_weight * costs; returns whether all scores are finite."""
    finite = True
    for k in range(scores.shape[0]):
        finite &= np.isfinite(scores[k])
        out[k] = scores[k] + loss_weight * costs[k]
    return finite


@njit(cache=True, nogil=True, borrows=True)
def add_grid(grid, first, last, places, loss_weight, out):
    """out[places[i - first]:] += loss_weight times what the labels of instance i cost, at each of its positions (`FlatGrid`)."""
    starts, widths, gold, rows, weights, table = grid
    for i in range(first, last):
        for t in range(starts[i], starts[i + 1]):
            at = places[i - first] + (t - starts[i]) * widths[i]
            if table.shape[0] > 0:
                for label in range(widths[i]):
                    out[at + label] += loss_weight * (weights[t] * table[rows[t], label])
                continue
            extra = loss_weight * weights[t]
            for label in range(widths[i]):
                if label != gold[t]:
                    out[at + label] += extra


@njit(cache=True, nogil=True, borrows=True)
def grid_loss(grid, i, labels):
    """What these labels of instance i cost."""
    starts, _, gold, rows, weights, table = grid
    loss = 0.0
    for t in range(starts[i], starts[i + 1]):
        label = labels[t - starts[i]]
        if label != gold[t]:
            loss += weights[t] * table[rows[t], label] if table.shape[0] > 0 else weights[t]
    return loss


@njit(cache=True, nogil=True, borrows=True)
def merge(truth, found, idx, val):
    """truth - found as pairs, for parts that ascend; -1 for others, else the number of pairs."""
    a = 0
    b = 0
    n = 0
    last = np.int64(-1)
    while a < truth.shape[0] or b < found.shape[0]:
        if b >= found.shape[0] or (a < truth.shape[0] and truth[a] < found[b]):
            idx[n] = truth[a]
            val[n] = 1.0
            a += 1
        elif a >= truth.shape[0] or found[b] < truth[a]:
            idx[n] = found[b]
            val[n] = -1.0
            b += 1
        else:
            if truth[a] <= last:
                return -1
            last = truth[a]
            a += 1
            b += 1
            continue
        if idx[n] <= last:
            return -1
        last = idx[n]
        n += 1
    return n


@njit(cache=True, nogil=True, borrows=True)
def subtract(truth, found, idx, val, idx2, val2):
    """truth - found as parts and counts, sorted, unique, without zeros; returns their number."""
    n = merge(truth, found, idx, val)
    if n >= 0:
        return n
    n = truth.shape[0]
    for k in range(n):
        idx[k] = truth[k]
        val[k] = 1.0
    for k in range(found.shape[0]):
        idx[n + k] = found[k]
        val[n + k] = -1.0
    return coalesce(idx, val, n + found.shape[0], idx2, val2)


@njit(cache=True, nogil=True)
def difference(truth, found):
    """truth - found as parts and counts, sorted, unique, without zeros."""
    size = truth.shape[0] + found.shape[0]
    idx = np.empty(size, np.int64)
    val = np.empty(size)
    n = subtract(truth, found, idx, val, np.empty(size, np.int64), np.empty(size))
    return idx[:n], val[:n]


@njit(cache=True, nogil=True, borrows=True)
def loss_of(found, constant, costs):
    """(whether `found` are parts, what they cost)."""
    loss = 0.0
    for k in range(found.shape[0]):
        if not 0 <= found[k] < costs.shape[0]:
            return False, 0.0
        loss += costs[found[k]]
    return True, constant + loss


@njit(cache=True, nogil=True, borrows=True)
def weigh(w, idx, val):
    """(the inner product of dense weights and a sparse vector, the sum of the sizes of its terms); NaN beyond the weights."""
    total = 0.0
    size = 0.0
    for k in range(idx.shape[0]):
        if not 0 <= idx[k] < w.shape[0]:
            return np.nan, 0.0
        term = w[idx[k]] * val[k]
        total += term
        size += abs(term)
    return total, size


@njit(cache=True, nogil=True, borrows=True)
def weigh_each(w, idx, val, ends, totals, others, sizes, drift):
    """totals: `weigh` for the vectors idx[ends[k]:ends[k + 1]], val; sizes are added up. Whether a total is not the other."""
    apart = False
    for k in range(totals.shape[0]):
        here = slice(ends[k], ends[k + 1])
        totals[k], size = weigh(w, idx[here], val[here])
        sizes[k] += size
        apart |= not abs(others[k] - totals[k]) <= drift * sizes[k]
    return apart


@njit(cache=True, nogil=True)
def compare(truth, found, constant, costs, scores):
    """(whether `found` are parts, their loss, by how much the truth scores above them, the sizes of the terms of that,
    truth - found as parts, counts): sorted, unique, without zeros."""
    size = truth.shape[0] + found.shape[0]
    idx = np.empty(size, np.int64)
    val = np.empty(size)
    fits, loss = loss_of(found, constant, costs)
    n = subtract(truth, found, idx, val, np.empty(size, np.int64), np.empty(size)) if fits else 0
    gap, terms = weigh(scores, idx[:n], val[:n])
    return fits, loss, gap, terms, idx[:n], val[:n]


@njit(cache=True, nogil=True)
def compare_each(
    truth, truth_ends, found, found_ends, constants, costs, scores, loss_weight, free, places, losses, gaps, sizes, ends
):
    """`compare` for a block: (the first instance whose `found` are not parts, or -1, the differences as parts and counts, flat).

    truth_ends[k] is where the true parts of instance k begin; its costs begin at places[k], its difference at ends[k].
    gaps, sizes: by how much the truth, which costs nothing, scores above what was found without its loss; the sizes of the terms.
    """
    n_instances = losses.shape[0]
    size = truth_ends[n_instances] - truth_ends[0] + found.shape[0]
    idx = np.empty(size, np.int64)
    val = np.empty(size)
    most = 0
    for k in range(n_instances):
        most = max(most, truth_ends[k + 1] - truth_ends[k] + found_ends[k + 1] - found_ends[k])
    idx2 = np.empty(most, np.int64)
    val2 = np.empty(most)
    n = 0
    ends[0] = 0
    for k in range(n_instances):
        own = found[found_ends[k] : found_ends[k + 1]]
        fits, losses[k] = loss_of(own, constants[k], costs[places[k] : places[k + 1]])
        if not fits:
            return k, idx, val
        m = n + subtract(truth[truth_ends[k] : truth_ends[k + 1]], own, idx[n:], val[n:], idx2, val2)
        gaps[k], sizes[k] = weigh(scores[places[k] : places[k + 1]], idx[n:m], val[n:m])
        gaps[k] += loss_weight * losses[k]
        sizes[k] += abs(loss_weight) * (abs(losses[k]) + free * (1.0 + abs(constants[k])))
        n = m
        ends[k + 1] = n
    return -1, idx[:n], val[:n]
