# mypy: ignore-errors
"""Depth-first branch and bound for pairwise MRFs, its bounds made by Russian doll search (Verfaillie, Lemaitre & Schiex 1996).

Nodes are numbered by their place in the order of branching. R[d] is the best score of nodes d.. among themselves: each is
found, from d = n down to 0, by the same search with the bounds of those before it. With the nodes before d labelled, no
completion scores more than

    value(labels) + sum over later nodes j of max_b field_j(b) + R[d],    field_j(b) = what the labelled neighbours say to j in b

Edges from earlier nodes to later ones are slots: node d's are ptr[d] to ptr[d + 1], later[q] the other node, pair[q] the table,
its rows the states of d. field[q] is the field of later[q] once d is labelled, prev[q] the slot before it in the same field's
chain, m + j the row that begins node j's chain (zeros), last[j] the chain's end: nothing is undone on the way back up. top[q]
is the largest entry of field[q], reach[d, a] what slots from d can add at most.

Rows A mu <= b are bounded from below at the same time, their fields kept in chains as those of the scores are, with the nodes'
own entries in them and the smallest entries of pairs that are not labelled yet.
"""

import numpy as np

from structpred.oracles.fields._branch_tables_kernels import decided_first, in_order, reach_of, slots_of, tables_of
from structpred.oracles.fields._pairwise_kernels import LOWEST, look, score_of
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit

CUT_SHORT = 4
ROUNDING = 1e-15  # of the sum of all scores: smaller differences are ignored


@njit(cache=True, nogil=True)
def choose(own, field, tried):
    """The untried state with the largest own score + field, -1 where all were tried; and that number."""
    best = -np.inf
    state = -1
    for a in range(len(own)):
        if not tried[a] and own[a] + field[a] > best:
            best = own[a] + field[a]
            state = a
    return state, best


@njit(cache=True, nogil=True)
def descend(ptr, later, prev, pair, field, top, d, a, total):
    """Label node d with a: write the fields of its later neighbours; `total`, the sum of their largest entries, as it is then."""
    k = field.shape[1]
    for q in range(ptr[d], ptr[d + 1]):
        p = prev[q]
        high = -np.inf
        for b in range(k):
            x = field[p, b] + pair[q, a, b]
            field[q, b] = x
            high = max(high, x)
        top[q] = high
        total += high - top[p]
    return total


@njit(cache=True, nogil=True)
def task_of(slots, own, pair):
    """What a search goes over, all by place: (slots, own scores, tables, reach, R, fields, top, and its own state).

    The state: the value of the labels before each node, the sum of the later fields' largest entries, states tried, the labels.
    """
    n, k = own.shape
    m = len(pair)
    bounds = reach_of(slots[0], pair, n, k), np.zeros(n + 1)
    fields = np.zeros((m + n, k)), np.zeros(m + n)
    return slots, own, pair, *bounds, *fields, np.zeros(n + 1), np.zeros(n + 1), np.zeros((n, k), np.bool_), np.empty(n, np.int64)


@njit(cache=True, nogil=True)
def prepared(scores, n, k, edges, place):
    """(task, noise) of these scores; fills `place` where the scores decide the order."""
    own, pair, size = tables_of(scores, n, k, edges)
    if place[0] < 0:
        decided_first(own, pair, edges, place)
    slots = slots_of(n, edges, place)
    own, pair = in_order(own, pair, edges, place, slots[4])
    return task_of(slots, own, pair), ROUNDING * size


@njit(cache=True, nogil=True)
def row_bounds(rows, limits, k, edges, place, slots):
    """What bounds the rows, by row, place and slot: (limits, rounding let in, pairs, fields, their least entries, ...).

    Then the least sum of the pairs among nodes d.., and, for the labels before node d, [d, row]: the least sum of the fields, the
    sum of the entries.
    """
    ptr, n, m = slots[0], len(place), len(edges)
    slack = np.empty(len(rows))
    pair = np.empty((len(rows), m, k, k))
    field = np.zeros((len(rows), m + n, k))
    least = np.zeros((len(rows), m + n))
    rest = np.zeros((len(rows), n + 1))
    total = np.zeros((n + 1, len(rows)))
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
        slack[r] = limits[r] + 4 * ROUNDING * (np.abs(rows[r]).sum() + abs(limits[r]))
        for d in range(n):
            total[0, r] += least[r, m + d]
    return slack, pair, field, least, rest, total, np.zeros((n + 1, len(rows)))


@njit(cache=True, nogil=True)
def rows_allow(bounds, slots, d, a):
    """As `descend`, for all rows: whether each can still keep its limit."""
    slack, pair, field, least, rest, total, value = bounds
    ptr, _, prev, last, _ = slots
    possible = True
    for r in range(len(slack)):
        others = total[d, r] - least[r, last[d]]
        for q in range(ptr[d], ptr[d + 1]):
            p = prev[q]
            low = np.inf
            for b in range(field.shape[2]):
                x = field[r, p, b] + pair[r, q, a, b]
                field[r, q, b] = x
                low = min(low, x)
            least[r, q] = low
            others += low - least[r, p]
        total[d + 1, r] = others
        value[d + 1, r] = value[d, r] + field[r, last[d], a]
        possible &= value[d + 1, r] + others + rest[r, d + 1] <= slack[r]
    return possible


@njit(cache=True, nogil=True)
def next_leaf(start, d, task, bounds, floor, nodes):
    """Go on at node d until all nodes start.. have labels: the next ones that may score more than `floor` and keep the rows.

    nodes: how many may still be visited. Returns (d, score of the labels, nodes left); d < start: there are none, nodes -1: cut.
    """
    slots, own, pair, reach, rest, field, top, value, total, tried, trial = task
    ptr, later, prev, last, _ = slots
    n = len(own)
    while d >= start:
        row = last[d]
        a, gain = choose(own[d], field[row], tried[d])
        if a < 0:
            tried[d] = False
            d -= 1
            continue
        tried[d, a] = True
        here = value[d] + gain
        others = total[d] - top[row]
        if here + others + reach[d, a] + rest[d + 1] <= floor:
            continue
        if nodes == 0:
            return d, here, -1
        nodes -= 1
        others = descend(ptr, later, prev, pair, field, top, d, a, others)
        if here + others + rest[d + 1] <= floor or not rows_allow(bounds, slots, d, a):
            continue
        trial[d] = a
        if d == n - 1:
            return d, here, nodes
        d += 1
        value[d] = here
        total[d] = others
    return d, -np.inf, nodes


@njit(cache=True, nogil=True)
def search(start, task, bounds, threshold, noise, nodes, labels):
    """The best labels of the nodes start.. among themselves, if they score more than `threshold`, else `labels` stay.

    Returns (the larger of best score and threshold, nodes left or -1 if cut).
    """
    trial = task[10]
    d, value, nodes = next_leaf(start, start, task, bounds, threshold + noise, nodes)
    while d >= start and nodes >= 0:
        threshold = value
        labels[start:] = trial[start:]
        d, value, nodes = next_leaf(start, d, task, bounds, threshold + noise, nodes)
    return threshold, nodes


@njit(cache=True, nogil=True)
def value_of(slots, own, pair, labels):
    """The score of labels."""
    ptr, later = slots[0], slots[1]
    total = 0.0
    for d in range(len(own)):
        total += own[d, labels[d]]
        for q in range(ptr[d], ptr[d + 1]):
            total += pair[q, labels[d], labels[later[q]]]
    return total


@njit(cache=True, nogil=True)
def extend(d, task, labels):
    """Give node d the state that is best with the labels of those after it; the score, LOWEST where every state is forbidden."""
    (ptr, later, _, _, _), own, pair, _, rest = task[:5]
    best = LOWEST
    labels[d] = 0
    for a in range(own.shape[1]):
        value = own[d, a] + rest[d + 1]
        for q in range(ptr[d], ptr[d + 1]):
            value += pair[q, a, labels[later[q]]]
        if value > best:
            best = value
            labels[d] = a
    return best


@njit(cache=True, nogil=True)
def dolls(first, task, bounds, noise, nodes, labels):
    """Fill R[d] and the best labels for d = n - 1, ..., first. (status, nodes left)."""
    rest = task[4]
    for d in range(len(labels) - 1, first - 1, -1):
        threshold = extend(d, task, labels)
        threshold, nodes = search(d, task, bounds, threshold, noise, nodes, labels)
        if nodes < 0:
            return CUT_SHORT, nodes
        if threshold <= LOWEST:
            return NOTHING_LEFT, nodes
        rest[d] = threshold
    return OK, nodes


@njit(cache=True, nogil=True)
def best_output(scores, k, edges, place, max_nodes, labels):
    """Raise `labels` (an allowed output, or -1 in front) to the best output. The status.

    place: the order of branching, -1 in front for one that is found from the scores.
    """
    n = len(labels)
    status, _ = look(scores)
    if status != OK:
        return status
    task, noise = prepared(scores, n, k, edges, place)
    slots, own, pair = task[:3]
    free = row_bounds(np.empty((0, len(scores))), np.empty(0), k, edges, place, slots)
    found = np.zeros(n, np.int64)
    status, nodes = dolls(1, task, free, noise, max_nodes, found)
    if status != OK:
        return status
    threshold = extend(0, task, found)
    if labels[0] >= 0:
        known = np.empty(n, np.int64)
        for i in range(n):
            known[place[i]] = labels[i]
        value = value_of(slots, own, pair, known)
        if value > threshold:
            threshold = value
            found[:] = known
    threshold, nodes = search(0, task, free, threshold, noise, nodes, found)
    for i in range(n):
        labels[i] = found[place[i]]
    if nodes < 0:
        return CUT_SHORT
    return OK if threshold > LOWEST else NOTHING_LEFT


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
    """The best output with rows . mu <= limits. (status, bound): the bound holds where the search was cut short, too.

    NOTHING_LEFT where no output satisfies the rows.
    """
    n = len(labels)
    status, _ = look(scores)
    if status != OK:
        return status, 0.0
    task, noise = prepared(scores, n, k, edges, place)
    rest, trial, output = task[4], task[10], np.empty(n, np.int64)
    free = row_bounds(rows[:0], limits[:0], k, edges, place, task[0])
    status, nodes = dolls(0, task, free, noise, max_nodes, labels.copy())
    if status != OK:
        return status, np.inf
    bounds = row_bounds(rows, limits, k, edges, place, task[0])
    threshold = LOWEST
    d, value, nodes = next_leaf(0, 0, task, bounds, threshold + noise, nodes)
    while d >= 0 and nodes >= 0:
        if within(rows, limits, k, edges, place, trial, output):
            threshold = value
            labels[:] = output
        d, value, nodes = next_leaf(0, d, task, bounds, threshold + noise, nodes)
    if nodes < 0:
        return CUT_SHORT, rest[0]
    return (OK, threshold) if threshold > LOWEST else (NOTHING_LEFT, -np.inf)
