# mypy: ignore-errors
"""Roof duality by maximum flow (Boros & Hammer 2002; Kolmogorov & Rother 2007) for pairwise MRFs with two states.

With x = +-1 the score is a constant + sum_i field_i x_i + sum_e J_e x_i x_j. Node i is in the network twice, as "x_i = 1" (i)
and as "x_i = 0" (n + i); an edge with J > 0 joins i to j and n + i to n + j, one with J < 0 joins i to n + j and n + i to j, with
the capacity |J| both ways. A node's field is its excess, of opposite signs at its two places. The maximum of the score over
the local polytope is the sum of all |field| and |J| less the maximum flow, and a node is 1 or 0 where the smallest cut says
so, else 1/2. A forbidden pair is a capacity without limit, one way only.
"""

import numpy as np

from structpred.oracles.fields._max_flow_kernels import max_flow
from structpred.oracles.fields._pairwise_kernels import LOWEST, allow, fix, improve, local_scores, look
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit

# whether two states of an edge are forbidden: bit 2 a + b
SAME = 0b1001
DIFFERENT = 0b0110
NOISE = 1e-15  # of the sum of all fields and couplings at a node: what rounding may leave


@njit(cache=True, nogil=True)
def add_edge(scores, table, i, j, allowed, field):
    """Add an edge's fields; (J, the forbidden pairs, the size of the numbers added)."""
    s00 = scores[table]
    s01 = scores[table + 1]
    s10 = scores[table + 2]
    s11 = scores[table + 3]
    hard = 0
    if allowed.shape[0] > 0:
        i_free = allowed[i, 0] and allowed[i, 1]
        j_free = allowed[j, 0] and allowed[j, 1]
        if i_free and not j_free:
            field[i] += 0.5 * (s10 - s00 if allowed[j, 0] else s11 - s01)
        if j_free and not i_free:
            field[j] += 0.5 * (s01 - s00 if allowed[i, 0] else s11 - s10)
        if not (i_free and j_free):
            return 0.0, 0, 0.0
        hard = (s00 <= LOWEST) + 2 * (s01 <= LOWEST) + 4 * (s10 <= LOWEST) + 8 * (s11 <= LOWEST)
        # what replaces a forbidden score makes J zero; propagation leaves at most one in each row and column
        if hard == 1:
            s00 = s01 + s10 - s11
        elif hard == 8:
            s11 = s01 + s10 - s00
        elif hard == 2:
            s01 = s00 + s11 - s10
        elif hard == 4:
            s10 = s00 + s11 - s01
        elif hard == SAME:
            s11 = s10
            s00 = s01
        elif hard == DIFFERENT:
            s10 = s11
            s01 = s00
    field[i] += 0.25 * ((s11 - s01) + (s10 - s00))
    field[j] += 0.25 * ((s11 - s10) + (s01 - s00))
    if hard:
        return 0.0, hard, 0.0
    return 0.25 * ((s11 - s10) - (s01 - s00)), 0, 0.25 * (abs(s00) + abs(s01) + abs(s10) + abs(s11))


@njit(cache=True, nogil=True)
def fields_of(scores, n, edges, allowed, field, coupling, hard):
    """Fill the fields, the couplings J, and the forbidden pairs; returns what counts as zero compared with these numbers."""
    size = 0.0
    for i in range(n):
        field[i] = 0.0
        if allowed.shape[0] == 0 or (allowed[i, 0] and allowed[i, 1]):
            field[i] = 0.5 * (scores[2 * i + 1] - scores[2 * i])
            size = max(size, abs(scores[2 * i + 1]) + abs(scores[2 * i]))
    for e in range(len(edges)):
        coupling[e], hard[e], sum_ = add_edge(scores, 2 * n + 4 * e, edges[e, 0], edges[e, 1], allowed, field)
        size = max(size, sum_)
        if abs(coupling[e]) <= 4 * NOISE * sum_:
            coupling[e] = 0.0
    for i in range(n):
        if allowed.shape[0] > 0 and not (allowed[i, 0] and allowed[i, 1]):
            field[i] = 0.0
        size = max(size, abs(field[i]))
    return 4 * NOISE * size


@njit(cache=True, nogil=True)
def network(n, first, other, edge, twin, field, coupling, hard):
    """The doubled network: first, head, twin, cap, excess."""
    m = len(other)
    first2 = np.empty(2 * n + 1, np.int64)
    head = np.empty(2 * m, np.int64)
    twin2 = np.empty(2 * m, np.int64)
    cap = np.empty(2 * m)
    excess = np.empty(2 * n)
    for i in range(n):
        first2[i] = first[i]
        first2[n + i] = m + first[i]
        excess[i] = field[i]
        excess[n + i] = -field[i]
        for p in range(first[i], first[i + 1]):
            j = other[p]
            e = edge[p]
            across = coupling[e] < 0.0 or hard[e] & SAME != 0
            head[p] = j + n if across else j
            head[m + p] = j if across else j + n
            twin2[p] = twin[p] + m if across else twin[p]
            twin2[m + p] = twin[p] if across else twin[p] + m
            cap[p] = abs(coupling[e])
            cap[m + p] = cap[p]
            if hard[e]:  # x_i = 1 forces x_j where (1, not x_j) is forbidden; x_i = 0 likewise
                b = 1 if across else 0
                cap[p] = np.inf if hard[e] & (1 << (2 + b if i < j else 2 * b + 1)) else 0.0
                cap[m + p] = np.inf if hard[e] & (1 << (1 - b if i < j else 2 * (1 - b))) else 0.0
    first2[2 * n] = 2 * m
    return first2, head, twin2, cap, excess


@njit(cache=True, nogil=True)
def settle(n, first, head, twin, cap, eps, level, halves):
    """Give whole values to undecided nodes where some optimum has them: strong components of the residual network (Tarjan).

    A node that can follow from its opposite, but not the other way round, is true; one in a cycle with its opposite stays 1/2.
    """
    m = len(head) // 2
    rank = np.zeros(2 * n, np.int64)  # the order in which components are closed; 0: not closed
    low = np.zeros(2 * n, np.int64)  # 0: not met
    at = first[: 2 * n].copy()
    call = np.empty(2 * n, np.int64)
    stack = np.empty(2 * n, np.int64)
    met = 0
    closed = 0
    n_stack = 0
    for root in range(2 * n):
        if low[root] > 0 or halves[root % n] != 1:
            continue
        call[0] = root
        depth = 1
        while depth > 0:
            u = call[depth - 1]
            if low[u] == 0:
                met += 1
                low[u] = met
                stack[n_stack] = u
                n_stack += 1
                rank[u] = -met
            descended = False
            while at[u] < first[u + 1]:
                p = at[u]
                v = head[p]
                at[u] += 1
                back = twin[p]  # an arc counts if it is usable in the residual network of the flow, or of its mirror image
                usable = cap[p] > eps or cap[back - m if back >= m else back + m] > eps
                if halves[v % n] != 1 or not usable:
                    continue
                if low[v] == 0:
                    call[depth] = v
                    depth += 1
                    at[u] -= 1  # looked at again when v is done
                    descended = True
                    break
                if rank[v] < 0:
                    low[u] = min(low[u], low[v])
            if descended:
                continue
            depth -= 1
            if low[u] == -rank[u]:
                closed += 1
                while True:
                    n_stack -= 1
                    v = stack[n_stack]
                    rank[v] = closed
                    if v == u:
                        break
    for i in range(n):
        if halves[i] == 1 and rank[i] != rank[n + i]:
            halves[i] = 2 if rank[i] < rank[n + i] else 0


@njit(cache=True, nogil=True)
def solve(scores, edges, first, other, edge, twin):
    """(status, halves, coupling, hard, allowed): 0, 1 or 2 halves of state 1 at each node, what edges say, the states left."""
    n = len(first) - 1
    coupling, hard = np.empty(len(edges)), np.empty(len(edges), np.int64)
    halves, allowed = np.empty(n, np.int64), np.ones((n, 2), np.bool_)
    status, forbids = look(scores)
    if status == OK and forbids and not allow(scores, n, 2, first, other, edge, allowed):
        status = NOTHING_LEFT
    if status != OK:
        return status, halves, coupling, hard, allowed
    free = allowed if forbids else allowed[:0]
    field = np.empty(n)
    eps = fields_of(scores, n, edges, free, field, coupling, hard)
    first2, head, twin2, cap, excess = network(n, first, other, edge, twin, field, coupling, hard)
    level = np.empty(2 * n, np.int64)
    max_flow(first2, head, twin2, cap, excess, eps, level)
    undecided = False
    for i in range(n):
        halves[i] = 1 + (level[i] >= 0) - (level[n + i] >= 0)
        if forbids and not (allowed[i, 0] and allowed[i, 1]):
            halves[i] = 2 if allowed[i, 1] else 0
        undecided |= halves[i] == 1
    if undecided:
        settle(n, first2, head, twin2, cap, eps, level, halves)
    return OK, halves, coupling, hard, allowed


@njit(cache=True, nogil=True)
def relax(scores, edges, first, other, edge, twin, mu):
    """The best point of the local polytope. The status."""
    status, halves, coupling, hard, _ = solve(scores, edges, first, other, edge, twin)
    if status == OK:
        spread(edges, coupling, hard, halves, mu)
    return status


@njit(cache=True, nogil=True)
def spread(edges, coupling, hard, halves, mu):
    """The best mu with the given nodes: neighbours agree as far as they can where J >= 0, disagree where J < 0."""
    n = len(halves)
    for i in range(n):
        mu[2 * i] = 1.0 - 0.5 * halves[i]
        mu[2 * i + 1] = 0.5 * halves[i]
    at = 2 * n
    for e in range(len(edges)):
        x = halves[edges[e, 0]]
        y = halves[edges[e, 1]]
        both = max(0, x + y - 2) if coupling[e] < 0.0 or hard[e] & SAME != 0 else min(x, y)
        mu[at] = 0.5 * (2 - x - y + both)
        mu[at + 1] = 0.5 * (y - both)
        mu[at + 2] = 0.5 * (x - both)
        mu[at + 3] = 0.5 * both
        at += 4


@njit(cache=True, nogil=True)
def round_off(scores, edges, first, other, edge, twin, labels):
    """Labels near the best point of the local polytope; (status, the value of that point)."""
    n = len(labels)
    status, halves, coupling, hard, allowed = solve(scores, edges, first, other, edge, twin)
    if status != OK:
        return status, 0.0
    mu = np.empty(len(scores))
    spread(edges, coupling, hard, halves, mu)
    value = 0.0
    for part in range(len(mu)):
        if mu[part] > 0.0:
            value += mu[part] * scores[part]
    forbids = False
    for e in range(len(edges)):
        forbids |= hard[e] != 0
    local = np.empty(2)
    for i in range(n):
        labels[i] = halves[i] // 2 if halves[i] != 1 else -1
    for i in range(n):
        if labels[i] >= 0:
            continue
        local_scores(scores, n, 2, first, other, edge, labels, i, local)
        best = 1 if local[1] > local[0] else 0
        if forbids:  # with two states, what propagation does not refute can be completed if anything can
            if not allowed[i, best]:
                best = 1 - best
            elif not fix(scores, n, 2, first, other, edge, allowed, i, best):
                best = 1 - best
                if not fix(scores, n, 2, first, other, edge, allowed, i, best):
                    return NOTHING_LEFT, value
        labels[i] = best
    improve(scores, n, 2, first, other, edge, labels, 20)
    return OK, value


@njit(cache=True, nogil=True)
def swaps(n, first, other, edge, coupling, hard, swapped):
    """Fill `swapped` (0 or 1): with these nodes' states swapped no edge is against agreement. -1, or an edge that still is."""
    stack = np.empty(n, np.int64)
    swapped[:] = -1
    for root in range(n):
        if swapped[root] >= 0:
            continue
        swapped[root] = 0
        stack[0] = root
        n_stack = 1
        while n_stack > 0:
            n_stack -= 1
            i = stack[n_stack]
            for p in range(first[i], first[i + 1]):
                e = edge[p]
                if coupling[e] == 0.0 and hard[e] == 0:
                    continue
                wanted = swapped[i] ^ (1 if coupling[e] < 0.0 or hard[e] & SAME != 0 else 0)
                if swapped[other[p]] == -1:
                    swapped[other[p]] = wanted
                    stack[n_stack] = other[p]
                    n_stack += 1
                elif swapped[other[p]] != wanted:
                    return e
    return -1


@njit(cache=True, nogil=True)
def cut(scores, edges, first, other, edge, twin, labels):
    """The best output by one minimum cut; (status, the edge that no swapping of states makes submodular, or -1)."""
    n = len(labels)
    m = len(other)
    status, forbids = look(scores)
    if status != OK:
        return status, -1
    allowed = np.ones((n if forbids else 0, 2), np.bool_)
    if forbids and not allow(scores, n, 2, first, other, edge, allowed):
        return NOTHING_LEFT, -1
    field = np.empty(n)
    coupling = np.empty(len(edges))
    hard = np.empty(len(edges), np.int64)
    swapped = np.empty(n, np.int64)
    eps = fields_of(scores, n, edges, allowed, field, coupling, hard)
    wrong = swaps(n, first, other, edge, coupling, hard, swapped)
    if wrong >= 0:
        return OK, wrong
    _first2, _head, _twin2, cap, excess = network(n, first, other, edge, twin, field, coupling, hard)
    for i in range(n):  # of the two halves of the network, the one with node i at its place `swapped` says
        if swapped[i]:
            excess[i] = excess[n + i]
            for e in range(first[i], first[i + 1]):
                cap[e] = cap[m + e]
    level = np.empty(n, np.int64)
    max_flow(first, other, twin, cap, excess, eps, level)
    for i in range(n):
        labels[i] = (1 if level[i] >= 0 else 0) ^ swapped[i]
        if forbids and not (allowed[i, 0] and allowed[i, 1]):
            labels[i] = 1 if allowed[i, 1] else 0
    return OK, -1
