# mypy: ignore-errors
"""Branch and bound for the best output with A mu <= b.

The score is bounded as in `_branch_kernels`; each row of A is bounded from below at the same time, its fields kept in chains
as those of the scores are, with the nodes' own entries in them and the smallest entries of pairs that are not labelled yet.
"""

import numpy as np

from structpred.oracles.fields._branch_kernels import (
    CUT_SHORT,
    ROUNDING,
    choose,
    decided_first,
    descend,
    dolls,
    in_order,
    reach_of,
    slots_of,
    tables_of,
)
from structpred.oracles.fields._pairwise_kernels import LOWEST, look, score_of
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def row_chains(rows, k, edges, place, slots):
    """(pairs, fields, least entries of the fields, least sum of the pairs among nodes d..) of each row, by place and slot."""
    ptr, n, m = slots[0], len(place), len(edges)
    pair = np.empty((len(rows), m, k, k))
    field = np.zeros((len(rows), m + n, k))
    least = np.zeros((len(rows), m + n))
    rest = np.zeros((len(rows), n + 1))
    for r in range(len(rows)):
        own = rows[r, : n * k].copy().reshape(n, k)
        tables = rows[r, n * k :].copy().reshape(m, k, k)
        own, pair[r] = in_order(own, tables, edges, place, slots[4])
        for d in range(n - 1, -1, -1):
            field[r, m + d] = own[d]
            least[r, m + d] = own[d].min()
            rest[r, d] = rest[r, d + 1]
            for q in range(ptr[d], ptr[d + 1]):
                rest[r, d] += pair[r, q].min()
    return pair, field, least, rest


@njit(cache=True, nogil=True)
def descend_rows(slots, pair, field, least, d, a, total, out):
    """As `descend`, for all rows: out[r] = the sum of the fields' least entries."""
    ptr, _, prev, last, _ = slots
    k = field.shape[2]
    for r in range(len(field)):
        others = total[r] - least[r, last[d]]
        for q in range(ptr[d], ptr[d + 1]):
            p = prev[q]
            low = np.inf
            for b in range(k):
                x = field[r, p, b] + pair[r, q, a, b]
                field[r, q, b] = x
                low = min(low, x)
            least[r, q] = low
            others += low - least[r, p]
        out[r] = others


@njit(cache=True, nogil=True)
def within(rows, limits, k, edges, place, trial, output):
    """Write the labels by node to `output`; whether they satisfy the rows."""
    n = len(output)
    for i in range(n):
        output[i] = trial[place[i]]
    kept = True
    for r in range(len(rows)):
        kept &= score_of(rows[r], n, k, edges, output) <= limits[r]
    return kept


@njit(cache=True, nogil=True)
def best_within(scores, rows, limits, k, edges, place, max_nodes, labels):
    """The best output within the rows. (status, bound): the bound holds where the search was cut short, too."""
    n, m = len(labels), len(edges)
    status, _ = look(scores)
    if status != OK:
        return status, 0.0
    own, pair, size = tables_of(scores, n, k, edges)
    if place[0] < 0:
        decided_first(own, pair, edges, place)
    slots = slots_of(n, edges, place)
    own, pair = in_order(own, pair, edges, place, slots[4])
    reach = reach_of(slots[0], pair, n, k)
    rest = np.zeros(n + 1)
    field = np.zeros((m + n, k))
    top = np.zeros(m + n)
    noise = ROUNDING * size
    status, nodes = dolls(0, slots, own, pair, reach, rest, field, top, noise, max_nodes, labels.copy())
    if status != OK:
        return status, np.inf
    r_pair, r_field, r_least, r_rest = row_chains(rows, k, edges, place, slots)
    slack = np.empty(len(rows))
    r_total = np.zeros((n + 1, len(rows)))
    for r in range(len(rows)):
        slack[r] = limits[r] + 4 * ROUNDING * (np.abs(rows[r]).sum() + abs(limits[r]))
        for d in range(n):
            r_total[0, r] += r_least[r, m + d]
    return search_within(
        (rows, limits, slack, r_pair, r_field, r_least, r_rest, r_total),
        slots,
        own,
        pair,
        reach,
        rest,
        field,
        top,
        noise,
        nodes,
        place,
        edges,
        labels,
    )


@njit(cache=True, nogil=True)
def search_within(given, slots, own, pair, reach, rest, field, top, noise, nodes, place, edges, labels):
    """The search itself; NOTHING_LEFT where no output satisfies the rows."""
    rows, limits, slack, r_pair, r_field, r_least, r_rest, r_total = given
    ptr, later, prev, last, _ = slots
    n, k = own.shape
    value = np.zeros(n + 1)
    total = np.zeros(n + 1)
    r_value = np.zeros((n + 1, len(rows)))
    tried = np.zeros((n, k), np.bool_)
    trial = np.empty(n, np.int64)
    output = np.empty(n, np.int64)
    threshold = LOWEST
    d = 0
    while d >= 0:
        row = last[d]
        a, gain = choose(own[d], field[row], tried[d])
        if a < 0:
            d -= 1
            continue
        tried[d, a] = True
        here = value[d] + gain
        others = total[d] - top[row]
        if here + others + reach[d, a] + rest[d + 1] <= threshold + noise:
            continue
        if nodes == 0:
            return CUT_SHORT, rest[0]
        nodes -= 1
        others = descend(ptr, later, prev, pair, field, top, d, a, others)
        if here + others + rest[d + 1] <= threshold + noise:
            continue
        descend_rows(slots, r_pair, r_field, r_least, d, a, r_total[d], r_total[d + 1])
        possible = True
        for r in range(len(rows)):
            r_value[d + 1, r] = r_value[d, r] + r_field[r, row, a]
            possible &= r_value[d + 1, r] + r_total[d + 1, r] + r_rest[r, d + 1] <= slack[r]
        if not possible:
            continue
        trial[d] = a
        if d < n - 1:
            d += 1
            value[d] = here
            total[d] = others
            tried[d] = False
        elif within(rows, limits, k, edges, place, trial, output):
            threshold = here
            for i in range(n):
                labels[i] = output[i]
    return (OK, threshold) if threshold > LOWEST else (NOTHING_LEFT, -np.inf)
