# mypy: ignore-errors
"""Marginals of a small pairwise MRF from the list of all its outputs' scores; for the names see the enumeration kernels."""

import math

import numpy as np

from structpred.oracles.fields._mrf_enumeration_kernels import HEAD, sizes, step
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def within(table, plan, first, last, mu):
    """Add the joint distribution `table` of the nodes first..last-1 to the nodes' and the inner edges' marginals."""
    k = plan[1]
    place = 1
    for node in range(last - 1, first - 1, -1):
        at = plan[HEAD + node]
        end = plan[HEAD + node + 1]
        while at < end and plan[at] >= last:
            at += 2
        for y in range(table.shape[0]):
            mu[node * k + (y // place) % k] += table[y]
        while at < end:
            other = k ** (last - 1 - plan[at])
            part = plan[at + 1]
            for y in range(table.shape[0]):
                mu[part + (y // place) % k * k + (y // other) % k] += table[y]
            at += 2
        place *= k


@njit(cache=True, nogil=True)
def across(table, plan, node, state, first, last, mu):
    """Add the distribution `table` of the nodes first..last-1, jointly with an earlier node's state, to the edges between."""
    k = plan[1]
    for at in range(plan[HEAD + node], plan[HEAD + node + 1], 2):
        if first <= plan[at] < last:
            other = k ** (last - 1 - plan[at])
            row = plan[at + 1] + state * k
            for y in range(table.shape[0]):
                mu[row + (y // other) % k] += table[y]


@njit(cache=True, nogil=True)
def share_out(table, total):
    """Divide by the total."""
    for y in range(table.shape[0]):
        table[y] /= total


@njit(cache=True, nogil=True)
def part_marginals(values, top, plan, mu):
    """mu (zeros at first) = the expected part counts; values: all scores, top: the largest of them. Returns log Z."""
    n_high, n_middle, n_low = sizes(plan)
    k = plan[1]
    rest = n_middle * n_low
    high = np.zeros(n_high)
    low = np.zeros(rest)
    cross = np.zeros((plan[2] * k, n_middle + n_low))
    sums = np.empty(n_middle + n_low)
    digits = np.zeros(plan[2], np.int64)
    for y in range(n_high):
        for j in range(sums.shape[0]):
            sums[j] = 0.0
        for m in range(n_middle):
            for c in range(n_low):
                share = math.exp(values[y * rest + m * n_low + c] - top)
                low[m * n_low + c] += share
                sums[m] += share
                sums[n_middle + c] += share
        for m in range(n_middle):
            high[y] += sums[m]
        for i in range(plan[2]):
            row = cross[i * k + digits[i]]
            for j in range(sums.shape[0]):
                row[j] += sums[j]
        step(digits, k)
    total = 0.0
    for y in range(n_high):
        total += high[y]
    share_out(high, total)
    share_out(low, total)
    share_out(cross.reshape(-1), total)
    within(high, plan, 0, plan[2], mu)
    within(low, plan, plan[2], plan[0], mu)
    middle = plan[2] + plan[3]
    for node in range(plan[2]):
        for state in range(k):
            row = cross[node * k + state]
            across(row[:n_middle], plan, node, state, plan[2], middle, mu)
            across(row[n_middle:], plan, node, state, middle, plan[0], mu)
    return top + math.log(total)
