# mypy: ignore-errors
"""Maximum flow by blocking flows (Dinic 1970), float64 capacities, source and sink left implicit.

A node with excess > 0 has an arc of that capacity from the source, one with excess < 0 an arc to the sink. Each augmentation
uses up an arc (its bottleneck is subtracted from itself), and the distance from the source to the sink grows with every phase,
so that there are at most N phases whatever the capacities; a residue of at most `eps` counts as none.

Arcs: node u's are first[u] to first[u + 1]; head: where an arc leads; twin: the same arc seen from there; cap: its residual
capacity (inf: no limit).
"""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def number_levels(first, head, cap, excess, eps, level, queue):
    """level[u] = the number of arcs from the source's side to u, -1 where it cannot be reached. Whether a sink is reached."""
    n = len(level)
    last = 0
    for u in range(n):
        level[u] = -1
        if excess[u] > eps:
            level[u] = 0
            queue[last] = u
            last += 1
    found = False
    at = 0
    while at < last:
        u = queue[at]
        at += 1
        if excess[u] < -eps:
            found = True
        for p in range(first[u], first[u + 1]):
            v = head[p]
            if level[v] < 0 and cap[p] > eps:
                level[v] = level[u] + 1
                queue[last] = v
                last += 1
    return found


@njit(cache=True, nogil=True)
def push(head, twin, cap, excess, eps, s, u, path, depth):
    """Push what the path from s to u allows; the number of its arcs before the first one that is used up."""
    delta = min(excess[s], -excess[u])
    for k in range(depth):
        delta = min(delta, cap[path[k]])
    excess[s] -= delta
    excess[u] += delta
    kept = depth
    for k in range(depth - 1, -1, -1):
        p = path[k]
        cap[p] -= delta
        cap[twin[p]] += delta
        if cap[p] <= eps:
            kept = k
    return kept


@njit(cache=True, nogil=True)
def block(first, head, twin, cap, excess, eps, level, at, path):
    """Push along paths of growing level until none is left."""
    n = len(level)
    at[:n] = first[:n]
    for s in range(n):
        u = s
        depth = 0
        while excess[s] > eps:
            if excess[u] < -eps:
                kept = push(head, twin, cap, excess, eps, s, u, path, depth)
                if kept < depth:
                    u = head[twin[path[kept]]]
                    depth = kept
                continue
            p = at[u]
            end = first[u + 1]
            while p < end and (cap[p] <= eps or level[head[p]] != level[u] + 1):
                p += 1
            at[u] = p
            if p < end:
                path[depth] = p
                depth += 1
                u = head[p]
            elif depth == 0:
                break
            else:
                depth -= 1
                u = head[twin[path[depth]]]
                at[u] += 1


@njit(cache=True, nogil=True)
def max_flow(first, head, twin, cap, excess, eps, level):
    """Change cap and excess to what a maximum flow leaves. Then level[u] >= 0 for the nodes of the smallest source side."""
    queue = np.empty(len(level), np.int64)
    path = np.empty(len(level), np.int64)
    while number_levels(first, head, cap, excess, eps, level, queue):
        block(first, head, twin, cap, excess, eps, level, queue, path)
