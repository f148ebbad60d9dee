# mypy: ignore-errors
"""Compiled bucket elimination: all tables lie in one array, laid out as the Plan of oracles/elimination.py says.

A bucket's entries are looked at in rows: the first axes are tabulated together (how far each factor's entry lies from the row's
first one), the others are counted through. Factors that do not change along a row, or from row to row, are added up once.
"""

import math

import numpy as np

from structpred.oracles.fields._pairwise_kernels import LOWEST, allow, look
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit

ALL, ROWS, COLUMNS = 0, 1, 2  # what a factor depends on: both, only which row it is, only the place in the row


@njit(cache=True, nogil=True)
def usable_states(scores, n, k, first, other, edge, kept, counts):
    """The states that some allowed pair of every edge has: how many, and which, the first counts[i] of kept[i]."""
    usable = np.ones((n, k), np.bool_)
    _, forbids = look(scores)
    if forbids and not allow(scores, n, k, first, other, edge, usable):
        return NOTHING_LEFT
    for i in range(n):
        counts[i] = 0
        for a in range(k):
            if usable[i, a]:
                kept[i, counts[i]] = a
                counts[i] += 1
    return OK


@njit(cache=True, nogil=True)
def exchange_tables(flat, k, edges, kept, counts, tables, pool, back):
    """The tables of nodes and edges over the usable states get the scores of their parts; `back`: the parts what they hold."""
    n = counts.shape[0]
    for i in range(n):
        for s in range(counts[i]):
            part, place = i * k + kept[i, s], tables[i] + s
            if back:
                flat[part] = pool[place]
            else:
                pool[place] = flat[part]
    for e in range(edges.shape[0]):
        i, j, base, at = edges[e, 0], edges[e, 1], n * k + e * k * k, tables[n + e]
        for s in range(counts[i]):
            for t in range(counts[j]):
                part, place = base + kept[i, s] * k + kept[j, t], at + s * counts[j] + t
                if back:
                    flat[part] = pool[place]
                else:
                    pool[place] = flat[part] if flat[part] > LOWEST else -np.inf  # what is forbidden


@njit(cache=True, nogil=True)
def open_bucket(bucket, count, pool, axes, factors, strides, base, along, kinds, at, digits):
    """Tabulate a bucket's first axes: what each factor depends on, its offsets along a row, the sum of those of every row.

    Returns the length of a row and the number of rows.
    """
    first_axis, n_axes, n_low, first, n_factors = bucket[1], bucket[2], bucket[3], bucket[4], bucket[5]
    low = 1
    for axis in range(n_low):
        low *= axes[first_axis + axis]
    high = 1
    for axis in range(n_low, n_axes):
        high *= axes[first_axis + axis]
        digits[axis] = 0
    base[: count * low] = 0.0
    for f in range(n_factors):
        start, step, own = factors[first + f, 0], factors[first + f, 1], factors[first + f, 2]
        at[f] = start
        in_row = False
        across = False
        along[f, 0] = 0
        done = 1
        for axis in range(n_low):
            stride = strides[own + axis]
            in_row = in_row or stride != 0
            for s in range(1, axes[first_axis + axis]):
                for i in range(done):
                    along[f, s * done + i] = along[f, i] + s * stride
            done *= axes[first_axis + axis]
        for axis in range(n_low, n_axes):
            across = across or strides[own + axis] != 0
        kinds[f] = COLUMNS if not across else ALL if in_row else ROWS
        if not across:
            for a in range(count):
                for i in range(low):
                    base[a * low + i] += pool[start + a * step + along[f, i]]
    return low, high


@njit(cache=True, nogil=True)
def add_row(bucket, count, low, pool, factors, base, along, kinds, at, row):
    """The sums of all factors along a row, state by state."""
    first, n_factors = bucket[4], bucket[5]
    for a in range(count):
        constant = 0.0
        for f in range(n_factors):
            if kinds[f] == ROWS:
                constant += pool[at[f] + a * factors[first + f, 1]]
        for i in range(low):
            row[a * low + i] = base[a * low + i] + constant
        for f in range(n_factors):
            if kinds[f] == ALL:
                start = at[f] + a * factors[first + f, 1]
                for i in range(low):
                    row[a * low + i] += pool[start + along[f, i]]


@njit(cache=True, nogil=True)
def next_row(bucket, axes, factors, strides, at, digits):
    """Count on to the next row: where each factor's first entry lies."""
    first_axis, n_axes, n_low, first, n_factors = bucket[1], bucket[2], bucket[3], bucket[4], bucket[5]
    for axis in range(n_low, n_axes):
        digits[axis] += 1
        back = digits[axis] == axes[first_axis + axis]
        steps = 1 - digits[axis] if back else 1
        for f in range(n_factors):
            at[f] += steps * strides[factors[first + f, 2] + axis]
        if not back:
            return
        digits[axis] = 0


@njit(cache=True, nogil=True)
def eliminate(pool, counts, buckets, axes, factors, strides, summed, base, row, along, kinds, at, digits):
    """All buckets: the best of each node's states, or the log of their sum. Returns the best score or log Z."""
    total = 0.0
    for t in range(buckets.shape[0]):
        bucket = buckets[t]
        count, out = counts[bucket[0]], bucket[6]
        low, high = open_bucket(bucket, count, pool, axes, factors, strides, base, along, kinds, at, digits)
        for h in range(high):
            add_row(bucket, count, low, pool, factors, base, along, kinds, at, row)
            if summed:
                for i in range(low):
                    pool[out + i] = log_sum(row, i, count, low)
            else:
                for i in range(low):
                    pool[out + i] = row[i]
                for a in range(1, count):
                    for i in range(low):
                        if row[a * low + i] > pool[out + i]:
                            pool[out + i] = row[a * low + i]
            out += low
            if h + 1 < high:
                next_row(bucket, axes, factors, strides, at, digits)
        if bucket[2] == 0:
            total += pool[bucket[6]]
    return total


@njit(cache=True, nogil=True)
def log_sum(row, i, count, low):
    """log(sum_a exp(row[a, i]))."""
    top = 0
    for a in range(1, count):
        if row[a * low + i] > row[top * low + i]:
            top = a
    most = row[top * low + i]
    if most == -np.inf:
        return most
    rest = 0.0
    for a in range(count):
        if a != top:
            rest += math.exp(row[a * low + i] - most)
    return most + math.log1p(rest) if rest > 0.0 else most


@njit(cache=True, nogil=True)
def read_best(pool, kept, counts, buckets, axes, factors, strides, nodes, labels):
    """The best states, from the bucket eliminated last to the first: nodes names the node of each axis, labels is int64 (n,).

    Ties go to the smallest state, given the nodes eliminated later.
    """
    for t in range(buckets.shape[0] - 1, -1, -1):
        node, first_axis, n_axes, first, n_factors = (
            buckets[t, 0], buckets[t, 1], buckets[t, 2], buckets[t, 4], buckets[t, 5]
        )  # fmt: skip
        best, top = -1, -np.inf
        for a in range(counts[node]):
            value = 0.0
            for f in range(first, first + n_factors):
                place = factors[f, 0] + a * factors[f, 1]
                for axis in range(n_axes):
                    place += strides[factors[f, 2] + axis] * labels[nodes[first_axis + axis]]
                value += pool[place]
            if best < 0 or value > top:
                best, top = a, value
        labels[node] = best
    for i in range(labels.shape[0]):
        labels[i] = kept[i, labels[i]]


@njit(cache=True, nogil=True)
def share_out(pool, counts, buckets, axes, factors, strides, base, row, along, kinds, at, digits, columns, shares):
    """The buckets backwards after a sum: every table's place then holds how probable each of its entries is.

    A bucket's message is over the nodes that its own bucket is joined to. Once its probabilities are known, those of the
    bucket's states given each entry come from the factors again, and each factor's are added up in `shares`.
    """
    for t in range(buckets.shape[0] - 1, -1, -1):
        bucket = buckets[t]
        count, out, first, n_factors = counts[bucket[0]], bucket[6], bucket[4], bucket[5]
        if bucket[2] == 0:
            pool[out] = 1.0
        low, high = open_bucket(bucket, count, pool, axes, factors, strides, base, along, kinds, at, digits)
        columns[: count * low] = 0.0
        total = 0
        for f in range(n_factors):
            total += factors[first + f, 3]
        shares[:total] = 0.0
        for h in range(high):
            add_row(bucket, count, low, pool, factors, base, along, kinds, at, row)
            for i in range(low):
                divide(row, i, count, low, pool[out + i])
            share_row(bucket, count, low, factors, along, kinds, at, row, columns, shares)
            out += low
            if h + 1 < high:
                next_row(bucket, axes, factors, strides, at, digits)
        done = 0
        for f in range(n_factors):
            start, step, size = factors[first + f, 0], factors[first + f, 1], factors[first + f, 3]
            if kinds[f] == COLUMNS:
                for a in range(count):
                    for i in range(low):
                        shares[done + a * step + along[f, i]] += columns[a * low + i]
            for i in range(size):
                pool[start + i] = shares[done + i]
            done += size


@njit(cache=True, nogil=True)
def divide(row, i, count, low, share):
    """Turn the log scores of a node's states into probabilities that add up to `share`."""
    most = row[i]
    for a in range(1, count):
        most = max(most, row[a * low + i])
    if share <= 0.0 or most == -np.inf:
        for a in range(count):
            row[a * low + i] = 0.0
        return
    total = 0.0
    for a in range(count):
        row[a * low + i] = math.exp(row[a * low + i] - most)
        total += row[a * low + i]
    for a in range(count):
        row[a * low + i] *= share / total


@njit(cache=True, nogil=True)
def share_row(bucket, count, low, factors, along, kinds, at, row, columns, shares):
    """Add a row's probabilities to those of the factors' entries; those of factors that no row changes wait in `columns`."""
    first, n_factors = bucket[4], bucket[5]
    for a in range(count):
        total = 0.0
        for i in range(low):
            total += row[a * low + i]
            columns[a * low + i] += row[a * low + i]
        done = 0
        for f in range(n_factors):
            start = done + at[f] - factors[first + f, 0] + a * factors[first + f, 1]
            if kinds[f] == ROWS:
                shares[start] += total
            elif kinds[f] == ALL:
                for i in range(low):
                    shares[start + along[f, i]] += row[a * low + i]
            done += factors[first + f, 3]
