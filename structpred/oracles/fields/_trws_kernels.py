# mypy: ignore-errors
"""Sequential tree-reweighted message passing (TRW-S; Kolmogorov, PAMI 2006), for maximisation.

The graph is covered by chains along which node numbers grow; the bound is the sum of the chains' maxima, and no sweep raises it.
message[p] is what the other end of link p says to the node the link belongs to, one number per state. gamma_i, the share of
node i's belief that each chain through it gets, is one over the larger of its numbers of earlier and of later neighbours.

`theta` are the scores with -inf for what is forbidden; after propagation each allowed state has an allowed partner at each
neighbour, so that messages to allowed states are finite; messages to the others stay zero.
"""

import numpy as np

from structpred.oracles.fields._pairwise_kernels import LOWEST, allow, fix, improve, local_scores, look, score_of
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit

STUCK = 4  # an allowed output was not found
WINDOW = 10  # sweeps


@njit(cache=True, nogil=True)
def tables_of(theta, n, k, n_edges):
    """The tables of the edges, and those with rows and columns exchanged: the receiver's states always lie next to each other.

    Rows are filled up with -inf to a multiple of four numbers, so that loops over them are whole vector instructions.
    """
    width = k if k < 4 else (k + 3) // 4 * 4
    straight = np.full(n_edges * k * width, -np.inf)
    other_way = np.full(n_edges * k * width, -np.inf)
    for e in range(n_edges):
        table = theta[n * k + e * k * k : n * k + (e + 1) * k * k]
        same = straight[e * k * width : (e + 1) * k * width]
        turned = other_way[e * k * width : (e + 1) * k * width]
        for a in range(k):
            for b in range(k):
                same[a * width + b] = table[a * k + b]
                turned[a * width + b] = table[b * k + a]
    return straight, other_way


@njit(cache=True, nogil=True)
def send(table, k, share, out):
    """out[b] = max over a of share[a] + table[a, b], less the largest, which is returned; four rows at a time."""
    width = out.shape[0]
    row = table[:width]
    for b in range(width):
        out[b] = share[0] + row[b]
    a = 1
    while a + 4 <= k:
        s0 = share[a]
        s1 = share[a + 1]
        s2 = share[a + 2]
        s3 = share[a + 3]
        row = table[a * width : (a + 1) * width]
        row1 = table[(a + 1) * width : (a + 2) * width]
        row2 = table[(a + 2) * width : (a + 3) * width]
        row3 = table[(a + 3) * width : (a + 4) * width]
        for b in range(width):  # choices, not max(): so that it is done for several b at once
            x0 = s0 + row[b]
            x1 = s1 + row1[b]
            x2 = s2 + row2[b]
            x3 = s3 + row3[b]
            x0 = x1 if x1 > x0 else x0
            x2 = x3 if x3 > x2 else x2
            x0 = x2 if x2 > x0 else x0
            out[b] = x0 if x0 > out[b] else out[b]
        a += 4
    while a < k:
        s0 = share[a]
        row = table[a * width : (a + 1) * width]
        for b in range(width):
            x0 = s0 + row[b]
            out[b] = x0 if x0 > out[b] else out[b]
        a += 1
    top = -np.inf
    for b in range(k):
        top = max(top, out[b])
    for b in range(width):
        out[b] = out[b] - top if out[b] > -np.inf else 0.0
    return top


@njit(cache=True, nogil=True)
def sweep(theta, tables, n, k, first, other, edge, twin, gamma, message, belief, backwards):
    """One pass over all nodes, forwards or backwards; returns the bound, right for a backward pass."""
    bound = 0.0
    size = k * message.shape[1]
    side = tables[1] if backwards else tables[0]
    share = np.empty(k)
    for step in range(n):
        i = n - 1 - step if backwards else step
        for a in range(k):
            belief[a] = theta[i * k + a]
        for p in range(first[i], first[i + 1]):
            for a in range(k):
                belief[a] += message[p, a]
        top = belief[0]
        for a in range(1, k):
            top = max(top, belief[a])
        bound += top
        for a in range(k):
            belief[a] -= top
        for p in range(first[i], first[i + 1]):
            if (other[p] < i) == backwards:
                received = message[p]
                for a in range(k):
                    share[a] = gamma[i] * belief[a] - received[a]
                at = edge[p] * size
                bound += send(side[at : at + size], k, share, message[twin[p]])
    return bound


@njit(cache=True, nogil=True)
def round_off(theta, n, k, first, other, edge, message, allowed, belief, labels):
    """Each node in turn takes the best state given the labels before it and the messages of those after it.

    With states `allowed` each choice is followed by propagation, and taken back where that leaves nothing. False: stuck.
    """
    labels[:] = -1
    whole = allowed.shape[0] == 0
    for i in range(n):
        local_scores(theta, n, k, first, other, edge, labels, i, belief)
        for p in range(first[i], first[i + 1]):
            if other[p] > i:
                for a in range(k):
                    belief[a] += message[p, a]
        while labels[i] < 0:
            best = -1
            for a in range(k):
                if (whole or allowed[i, a]) and (best < 0 or belief[a] > belief[best]):
                    best = a
            if best < 0:
                return False
            if whole or fix(theta, n, k, first, other, edge, allowed, i, best):
                labels[i] = best
            else:
                allowed[i, best] = False
    return True


@njit(cache=True, nogil=True)
def prepare(scores, n, k, first, other, edge):
    """(status, the scores with -inf for what is forbidden or follows to be, the allowed states)."""
    allowed = np.ones((n, k), np.bool_)
    theta = scores.copy()
    status, forbids = look(scores)
    if status != OK or not forbids:
        return status, theta, allowed
    if not allow(scores, n, k, first, other, edge, allowed):
        return NOTHING_LEFT, theta, allowed
    for part in range(len(theta)):
        if theta[part] <= LOWEST:
            theta[part] = -np.inf
    for i in range(n):
        for a in range(k):
            if not allowed[i, a]:
                theta[i * k + a] = -np.inf
    return OK, theta, allowed


@njit(cache=True, nogil=True)
def shares(n, first, other):
    """gamma of each node."""
    gamma = np.ones(n)
    for i in range(n):
        before = 0
        for p in range(first[i], first[i + 1]):
            before += other[p] < i
        gamma[i] = 1.0 / max(1, before, first[i + 1] - first[i] - before)
    return gamma


@njit(cache=True, nogil=True)
def trws(scores, k, edges, first, other, edge, twin, n_iter, tol, labels):
    """Fill `labels`; (status, bound, sweeps made)."""
    n = len(labels)
    status, theta, allowed = prepare(scores, n, k, first, other, edge)
    if status != OK:
        return status, 0.0, 0
    gamma, tables = shares(n, first, other), tables_of(theta, n, k, len(edges))
    message = np.zeros((len(other), len(tables[0]) // max(1, k * len(edges))))
    belief = np.empty(k)
    trial = np.zeros(n, np.int64)
    recent = np.full(WINDOW, np.inf)
    bound = np.inf
    best = -np.inf
    done = 0
    while done < n_iter:
        round_off(theta, n, k, first, other, edge, message, allowed[:0], belief, trial)
        value = score_of(theta, n, k, edges, trial)
        if value > best:
            best = value
            labels[:] = trial
        sweep(theta, tables, n, k, first, other, edge, twin, gamma, message, belief, False)
        bound = min(bound, sweep(theta, tables, n, k, first, other, edge, twin, gamma, message, belief, True))
        done += 1
        small = tol * abs(bound)
        if bound - best <= small or recent[done % WINDOW] - bound <= small:
            break
        recent[done % WINDOW] = bound
    if best == -np.inf and not round_off(theta, n, k, first, other, edge, message, allowed, belief, labels):
        return STUCK, bound, done
    improve(theta, n, k, first, other, edge, labels, 20)
    return OK, max(bound, score_of(theta, n, k, edges, labels)), done


@njit(cache=True, nogil=True)
def trws_of_each(scores, places, k, edges, first, other, edge, twin, n_iter, tol, labels, bounds):
    """`trws` for instances of one graph, whose scores begin at places[i]: (status, the instance it is of)."""
    for i in range(labels.shape[0]):
        own = scores[places[i] : places[i + 1]]
        status, bounds[i], _ = trws(own, k, edges, first, other, edge, twin, n_iter, tol, labels[i])
        if status != OK:
            return status, i
    return OK, 0
