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
"""

import numpy as np

from structpred.oracles.fields._pairwise_kernels import LOWEST, look
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit

CUT_SHORT = 4
ROUNDING = 1e-15  # of the sum of all scores: smaller differences are ignored


@njit(cache=True, nogil=True)
def center(table, k, u, v):
    """Take the means of rows and columns out of a table (k, k) and add them to the two nodes' scores u and v.

    Where pairs are forbidden, the largest allowed entries are taken out instead.
    """
    low = 0.0
    for a in range(k):
        for b in range(k):
            low = min(low, table[a, b])
    for side in range(2):
        for a in range(k):
            mean = 0.0
            top = -np.inf
            for b in range(k):
                x = table[a, b] if side == 0 else table[b, a]
                mean += x
                top = max(top, x)
            share = mean / k if low > LOWEST else top
            if share <= LOWEST:
                continue  # no partner is allowed: it stays as it is
            if side == 0:
                u[a] += share
            else:
                v[a] += share
            for b in range(k):
                if side == 0 and table[a, b] > LOWEST:
                    table[a, b] -= share
                elif side == 1 and table[b, a] > LOWEST:
                    table[b, a] -= share


@njit(cache=True, nogil=True)
def tables_of(scores, n, k, edges):
    """(node scores (n, k), edge tables (E, k, k), the size of all): the same scores with all that nodes can say moved to them."""
    own = scores[: n * k].copy().reshape(n, k)
    pair = scores[n * k :].copy().reshape(len(edges), k, k)
    for e in range(len(edges)):
        center(pair[e], k, own[edges[e, 0]], own[edges[e, 1]])
    size = 0.0
    for i in range(n):
        top = 0.0
        for a in range(k):
            if scores[i * k + a] <= LOWEST:
                own[i, a] = 2 * LOWEST
            else:
                top = max(top, abs(own[i, a]))
        size += top
    for e in range(len(edges)):
        top = 0.0
        for a in range(k):
            for b in range(k):
                if pair[e, a, b] > LOWEST:
                    top = max(top, abs(pair[e, a, b]))
        size += top
    return own, pair, size


@njit(cache=True, nogil=True)
def decided_first(own, pair, edges, place):
    """place[i] = node i's place in an order for dense graphs: clear nodes and strong edges first."""
    n, k = own.shape
    strength = np.zeros(n)
    for i in range(n):
        low = np.inf
        high = -np.inf
        for a in range(k):
            if own[i, a] > LOWEST:
                low = min(low, own[i, a])
                high = max(high, own[i, a])
        strength[i] = low - high
    for e in range(len(edges)):
        top = 0.0
        for a in range(k):
            for b in range(k):
                if pair[e, a, b] > LOWEST:
                    top = max(top, abs(pair[e, a, b]))
        strength[edges[e, 0]] -= 0.2 * top
        strength[edges[e, 1]] -= 0.2 * top
    order = np.argsort(strength, kind="mergesort")
    for d in range(n):
        place[order[d]] = d


@njit(cache=True, nogil=True)
def slots_of(n, edges, place):
    """(ptr, later, prev, last, edge of each slot): which tables are met in which order; nothing of the scores."""
    m = len(edges)
    ptr = np.zeros(n + 1, np.int64)
    for e in range(m):
        ptr[min(place[edges[e, 0]], place[edges[e, 1]]) + 1] += 1
    for d in range(n):
        ptr[d + 1] += ptr[d]
    free = ptr[:n].copy()
    later = np.empty(m, np.int64)
    prev = np.empty(m, np.int64)
    edge = np.empty(m, np.int64)
    last = m + np.arange(n)
    for e in range(m):
        i = place[edges[e, 0]]
        j = place[edges[e, 1]]
        q = free[min(i, j)]
        free[min(i, j)] += 1
        later[q] = max(i, j)
        edge[q] = e
    for q in range(m):
        prev[q] = last[later[q]]
        last[later[q]] = q
    return ptr, later, prev, last, edge


@njit(cache=True, nogil=True)
def in_order(own, pair, edges, place, edge):
    """The node scores and tables by place and slot, the earlier node's states as rows."""
    n, k = own.shape
    own2 = np.empty((n, k))
    pair2 = np.empty((len(edge), k, k))
    for i in range(n):
        for a in range(k):
            own2[place[i], a] = own[i, a]
    for q in range(len(edge)):
        e = edge[q]
        turned = place[edges[e, 0]] > place[edges[e, 1]]
        for a in range(k):
            for b in range(k):
                pair2[q, a, b] = pair[e, b, a] if turned else pair[e, a, b]
    return own2, pair2


@njit(cache=True, nogil=True)
def reach_of(ptr, pair, n, k):
    """reach[d, a] = the most that the slots from node d in state a can add to the fields of later nodes."""
    reach = np.zeros((n, k))
    for d in range(n):
        for q in range(ptr[d], ptr[d + 1]):
            for a in range(k):
                top = pair[q, a, 0]
                for b in range(1, k):
                    top = max(top, pair[q, a, b])
                reach[d, a] += top
    return reach


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
def search(start, slots, own, pair, reach, rest, field, top, threshold, noise, nodes, labels):
    """The best labels of the nodes start.. among themselves, if they score more than `threshold`, else `labels` stay.

    rest: R. nodes: how many may still be visited. Returns (the larger of best score and threshold, nodes left or -1 if cut).
    """
    ptr, later, prev, last, _ = slots
    n, k = own.shape
    value = np.zeros(n + 1)
    total = np.zeros(n + 1)
    tried = np.zeros((n, k), np.bool_)
    trial = np.empty(n, np.int64)
    d = start
    while d >= start:
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
            return threshold, -1
        nodes -= 1
        others = descend(ptr, later, prev, pair, field, top, d, a, others)
        if here + others + rest[d + 1] <= threshold + noise:
            continue
        trial[d] = a
        if d == n - 1:
            threshold = here
            for i in range(start, labels.shape[0]):
                labels[i] = trial[i]
            continue
        d += 1
        value[d] = here
        total[d] = others
        tried[d] = False
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
def extend(d, slots, own, pair, rest, labels):
    """Give node d the state that is best with the labels of those after it; the score, LOWEST where every state is forbidden."""
    ptr, later = slots[0], slots[1]
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
def dolls(first, slots, own, pair, reach, rest, field, top, noise, nodes, labels):
    """Fill rest[d] and the best labels for d = n - 1, ..., first. (status, nodes left)."""
    for d in range(len(own) - 1, first - 1, -1):
        threshold = extend(d, slots, own, pair, rest, labels)
        threshold, nodes = search(d, slots, own, pair, reach, rest, field, top, threshold, noise, nodes, labels)
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
    own, pair, size = tables_of(scores, n, k, edges)
    if place[0] < 0:
        decided_first(own, pair, edges, place)
    slots = slots_of(n, edges, place)
    own, pair = in_order(own, pair, edges, place, slots[4])
    reach = reach_of(slots[0], pair, n, k)
    rest = np.zeros(n + 1)
    field = np.zeros((len(edges) + n, k))
    top = np.zeros(len(edges) + n)
    found = np.zeros(n, np.int64)
    noise = ROUNDING * size
    status, nodes = dolls(1, slots, own, pair, reach, rest, field, top, noise, max_nodes, found)
    if status != OK:
        return status
    threshold = extend(0, slots, own, pair, rest, found)
    if labels[0] >= 0:
        known = np.empty(n, np.int64)
        for i in range(n):
            known[place[i]] = labels[i]
        value = value_of(slots, own, pair, known)
        if value > threshold:
            threshold = value
            for i in range(n):
                found[i] = known[i]
    threshold, nodes = search(0, slots, own, pair, reach, rest, field, top, threshold, noise, nodes, found)
    for i in range(n):
        labels[i] = found[place[i]]
    if nodes < 0:
        return CUT_SHORT
    return OK if threshold > LOWEST else NOTHING_LEFT
