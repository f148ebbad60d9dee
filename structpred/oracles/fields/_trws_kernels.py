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
def turned(theta, n, k, n_edges):
    """The tables of the edges with rows and columns exchanged, so that the receiver's states always lie next to each other."""
    out = np.empty(n_edges * k * k)
    for e in range(n_edges):
        at = e * k * k
        for a in range(k):
            for b in range(k):
                out[at + b * k + a] = theta[n * k + at + a * k + b]
    return out


@njit(cache=True, nogil=True)
def send(tables, at, k, belief, gamma, received, out):
    """out[b] = max over a of gamma * belief[a] - received[a] + tables[at + a * k + b], less the largest, which is returned."""
    for b in range(k):
        out[b] = -np.inf
    for a in range(k):
        share = gamma * belief[a] - received[a]
        row = tables[at + a * k : at + (a + 1) * k]
        for b in range(k):  # a choice, not max(): so that it is done for several b at once
            x = share + row[b]
            out[b] = x if x > out[b] else out[b]
    top = -np.inf
    for b in range(k):
        top = max(top, out[b])
    for b in range(k):
        out[b] = out[b] - top if out[b] > -np.inf else 0.0
    return top


@njit(cache=True, nogil=True)
def sweep(theta, other_way, n, k, first, other, edge, twin, gamma, message, belief, backwards):
    """One pass over all nodes, forwards or backwards; returns the bound, right for a backward pass."""
    bound = 0.0
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
            j = other[p]
            if (j < i) == backwards:
                at = edge[p] * k * k
                if i < j:
                    bound += send(theta, n * k + at, k, belief, gamma[i], message[p], message[twin[p]])
                else:
                    bound += send(other_way, at, k, belief, gamma[i], message[p], message[twin[p]])
    return bound


@njit(cache=True, nogil=True)
def round_off(theta, n, k, first, other, edge, message, belief, labels):
    """Each node in turn takes the best state given the labels before it and the messages of those after it."""
    labels[:] = -1
    for i in range(n):
        local_scores(theta, n, k, first, other, edge, labels, i, belief)
        best = 0
        for p in range(first[i], first[i + 1]):
            if other[p] > i:
                for a in range(k):
                    belief[a] += message[p, a]
        for a in range(1, k):
            if belief[a] > belief[best]:
                best = a
        labels[i] = best


@njit(cache=True, nogil=True)
def round_within(theta, n, k, first, other, edge, message, allowed, belief, labels):
    """As `round_off`, but each choice is followed by propagation, and taken back where that leaves nothing. False: stuck."""
    labels[:] = -1
    for i in range(n):
        local_scores(theta, n, k, first, other, edge, labels, i, belief)
        for p in range(first[i], first[i + 1]):
            if other[p] > i:
                for a in range(k):
                    belief[a] += message[p, a]
        while labels[i] < 0:
            best = -1
            for a in range(k):
                if allowed[i, a] and (best < 0 or belief[a] > belief[best]):
                    best = a
            if best < 0:
                return False
            if fix(theta, n, k, first, other, edge, allowed, i, best):
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
    gamma, other_way = shares(n, first, other), turned(theta, n, k, len(edges))
    message = np.zeros((len(other), k))
    belief = np.empty(k)
    trial = np.zeros(n, np.int64)
    recent = np.full(WINDOW, np.inf)
    bound = np.inf
    best = -np.inf
    done = 0
    while done < n_iter:
        round_off(theta, n, k, first, other, edge, message, belief, trial)
        value = score_of(theta, n, k, edges, trial)
        if value > best:
            best = value
            labels[:] = trial
        sweep(theta, other_way, n, k, first, other, edge, twin, gamma, message, belief, False)
        bound = min(bound, sweep(theta, other_way, n, k, first, other, edge, twin, gamma, message, belief, True))
        done += 1
        small = tol * abs(bound)
        if bound - best <= small or recent[done % WINDOW] - bound <= small:
            break
        recent[done % WINDOW] = bound
    if best == -np.inf and not round_within(theta, n, k, first, other, edge, message, allowed, belief, labels):
        return STUCK, bound, done
    improve(theta, n, k, first, other, edge, labels, 20)
    return OK, max(bound, score_of(theta, n, k, edges, labels)), done
