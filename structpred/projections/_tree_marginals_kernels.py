# mypy: ignore-errors
"""Compiled projections onto the marginals of trees, by their dual in the separators.

An instance is a forest of `n` nodes with `m` states each. Its variables are n * m node marginals, where it has them (`own`),
then an m by m table an edge. A row e of `plan` is (parent, child, table, transposed): the number of the edge's table, and
whether its columns belong to the parent. Parents come before their children. Here tables are kept in the plan's order, with
the parent's states as rows. Each has two multipliers of length m: row 2 e of `lam` for its rows, 2 e + 1 for its columns.
With them the table is the projection of M + lam(row) + lam(column) on the simplex, and a node's own marginal is x - (the sum of
its tables' multipliers). The dual's gradient is how far a table's margin is from the node's marginal: its own one, or the mean
of the margins of all tables around it.

Plain loops in place of array expressions: they compile in a fraction of the time.
"""

import numpy as np

from structpred.projections._simplex_kernels import simplex_of_table
from structpred.runtime.jit import njit

LOWEST = -0.5e30  # what is not above it is forbidden
MEMORY = 8  # pairs of L-BFGS
SEARCH = 40  # evaluations a line search may take
ROUNDING = 1e-15  # of the largest multiplier: what the gradient's own rounding may amount to
ENOUGH = 0.5  # a line search ends where the slope has fallen to this share


@njit(cache=True, nogil=True)
def dot(a, b):
    """a . b, in four sums that do not wait for one another."""
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    j = 0
    while j + 4 <= a.shape[0]:
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
        j += 4
    while j < a.shape[0]:
        s0 += a[j] * b[j]
        j += 1
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, nogil=True)
def consistent(tables, nodes, plan, degrees, lam):
    """Move scores between neighbouring tables until all hold the best output on top, by max-product; lam says what was moved.

    Large scores then agree from the start, and the digits of the small differences between good outputs are kept. What only
    forbidden entries complete gets -inf. False where nothing is left. `nodes`: the nodes' own scores; sums on the way up.
    """
    n, m = nodes.shape
    known = np.zeros(n, np.bool_)
    final = np.empty((n, m))  # max-marginals of the nodes, 0 for the best
    for e in range(plan.shape[0] - 1, -1, -1):
        parent = plan[e, 0]
        child = plan[e, 1]
        for a in range(m):
            top = -np.inf
            for b in range(m):
                top = max(top, tables[e, a, b] + nodes[child, b])
            lam[2 * e, a] = top
            nodes[parent, a] += top
    for e in range(plan.shape[0]):
        parent = plan[e, 0]
        child = plan[e, 1]
        extra = 0.0
        if not known[parent]:  # a root
            extra = -np.inf
            for a in range(m):
                extra = max(extra, nodes[parent, a])
            if extra == -np.inf:
                return False
            for a in range(m):
                final[parent, a] = nodes[parent, a] - extra
        known[parent] = True
        known[child] = True
        for b in range(m):
            final[child, b] = -np.inf
        for a in range(m):
            if final[parent, a] == -np.inf:
                lam[2 * e, a] = -np.inf
                continue
            rest = final[parent, a] - lam[2 * e, a]
            for b in range(m):
                final[child, b] = max(final[child, b], rest + tables[e, a, b] + nodes[child, b])
            lam[2 * e, a] = extra - lam[2 * e, a] + final[parent, a] / degrees[parent]
        for b in range(m):
            share = (1.0 - 1.0 / degrees[child]) * final[child, b]
            lam[2 * e + 1, b] = nodes[child, b] - share if final[child, b] > -np.inf else -np.inf
    return True


@njit(cache=True, nogil=True)
def prepare(point, own, plan, degrees, warm, lam, tables, rest):
    """Fill `tables` with the scores that lam moved, `rest` with the node terms less the sums of lam; False: nothing is left."""
    n, m = rest.shape
    nodes = np.empty((n, m))
    for i in range(n):
        for a in range(m):
            x = point[i * m + a] if own else 0.0
            rest[i, a] = x if x > LOWEST else -np.inf
            nodes[i, a] = rest[i, a]
    for e in range(plan.shape[0]):
        first = (n * m if own else 0) + plan[e, 2] * m * m
        down = 1 if plan[e, 3] else m
        for a in range(m):
            for b in range(m):
                x = point[first + a * down + b * (m + 1 - down)]
                tables[e, a, b] = x if x > LOWEST else -np.inf
    if not warm and not consistent(tables, nodes, plan, degrees, lam):
        return False
    for e in range(plan.shape[0]):
        for side in range(2):
            for a in range(m):
                if rest[plan[e, side], a] == -np.inf:  # a state that no output has
                    lam[2 * e + side, a] = -np.inf
        top = -np.inf
        for a in range(m):
            for b in range(m):
                tables[e, a, b] += lam[2 * e, a] + lam[2 * e + 1, b]
                top = max(top, tables[e, a, b])
        if top == -np.inf:
            return False
        for a in range(m):
            for b in range(m):
                tables[e, a, b] -= top
    for e in range(plan.shape[0]):
        for side in range(2):
            for a in range(m):
                if lam[2 * e + side, a] == -np.inf:
                    lam[2 * e + side, a] = 0.0
                rest[plan[e, side], a] -= lam[2 * e + side, a]
    for i in range(n):
        for a in range(m):
            if rest[i, a] == -np.inf:
                rest[i, a] = 0.0
    return True


@njit(cache=True, nogil=True)
def evaluate(tables, rest, own, plan, degrees, lam, tau, hub, marginals, grad, counts):
    """The tables' projections for the multipliers lam, and the dual's gradient; its largest entry."""
    n, m = hub.shape
    for i in range(n):
        for a in range(m):
            hub[i, a] = rest[i, a] if own else 0.0
    for e in range(plan.shape[0]):
        tau[e] = simplex_of_table(
            tables[e], lam[2 * e], lam[2 * e + 1], tau[e], counts, grad[2 * e], grad[2 * e + 1], marginals[e]
        )
        for side in range(2):
            node = plan[e, side]
            for a in range(m):
                hub[node, a] += -lam[2 * e + side, a] if own else grad[2 * e + side, a] / degrees[node]
    worst = 0.0
    for e in range(plan.shape[0]):
        for side in range(2):
            node = plan[e, side]
            for a in range(m):
                grad[2 * e + side, a] -= hub[node, a]
                worst = max(worst, abs(grad[2 * e + side, a]))
    return worst


@njit(cache=True, nogil=True)
def direction_of(grad, steps, changes, curvatures, shares, kept, newest, out):
    """out = H grad, with the inverse curvature of the pairs that are kept (Nocedal and Wright, algorithm 7.4)."""
    for j in range(out.shape[0]):
        out[j] = grad[j]
    for q in range(kept):
        k = (newest - q) % MEMORY
        shares[k] = dot(steps[k], out) / curvatures[k]
        for j in range(out.shape[0]):
            out[j] -= shares[k] * changes[k, j]
    scale = curvatures[newest] / dot(changes[newest], changes[newest]) if kept else 0.5
    for j in range(out.shape[0]):
        out[j] *= scale
    for q in range(kept - 1, -1, -1):
        k = (newest - q) % MEMORY
        share = shares[k] - dot(changes[k], out) / curvatures[k]
        for j in range(out.shape[0]):
            out[j] += share * steps[k, j]


@njit(cache=True, nogil=True)
def limit_of(flat, tol):
    """The largest gradient entry to end with: tol, and what rounding may amount to."""
    largest = 0.0
    for j in range(flat.shape[0]):
        largest = max(largest, abs(flat[j]))
    return tol + ROUNDING * largest


@njit(cache=True, nogil=True)
def solve(tables, rest, own, plan, degrees, lam, tol, max_iter, hub, marginals):
    """Minimise the dual by L-BFGS from lam on; lam and marginals are what it ends with. Returns 0, or the largest gradient
    entry where that is still above tol.

    The dual is piecewise quadratic and its slope along a line is piecewise linear and monotone: the line search finds a
    smaller slope by secants, and needs no values, which would have fewer right digits than the gradient.
    """
    n_tables = plan.shape[0]
    m = hub.shape[1]
    size = 2 * n_tables * m
    if size == 0:
        return 0.0
    tau = np.full(n_tables, 1e300)
    counts = np.empty(m)
    grad, new, trial = np.empty(size), np.empty(size), np.empty(size)
    step, shares, curvatures = np.empty(size), np.empty(MEMORY), np.empty(MEMORY)
    steps, changes = np.empty((MEMORY, size)), np.empty((MEMORY, size))
    flat = lam.reshape(size)
    shape = (2 * n_tables, m)
    worst = evaluate(tables, rest, own, plan, degrees, lam, tau, hub, marginals, grad.reshape(shape), counts)
    limit = tol
    kept, newest = 0, MEMORY - 1
    for _ in range(max_iter):
        limit = limit_of(flat, tol)
        if worst <= limit:
            break
        direction_of(grad, steps, changes, curvatures, shares, kept, newest, step)
        start = -dot(grad, step)
        low, low_slope, high, high_slope, length = 0.0, start, np.inf, 0.0, 1.0
        for _ in range(SEARCH):
            for j in range(size):
                trial[j] = flat[j] - length * step[j]
            worst = evaluate(
                tables, rest, own, plan, degrees, trial.reshape(shape), tau, hub, marginals, new.reshape(shape), counts
            )
            slope = -dot(new, step)
            if worst <= limit or abs(slope) <= -ENOUGH * start:
                break
            if slope < 0.0:
                low, low_slope = length, slope
            else:
                high, high_slope = length, slope
            if high == np.inf:
                length = min(10.0 * length, max(2.0 * length, length * start / (start - slope) if slope > start else np.inf))
            else:
                length = low - (high - low) * low_slope / (high_slope - low_slope)
                length = min(max(length, low + 0.05 * (high - low)), high - 0.05 * (high - low))
        place = (newest + 1) % MEMORY
        for j in range(size):
            steps[place, j] = trial[j] - flat[j]
            changes[place, j] = new[j] - grad[j]
            flat[j] = trial[j]
            grad[j] = new[j]
        curvatures[place] = dot(steps[place], changes[place])
        if curvatures[place] > 0.0:
            newest, kept = place, min(kept + 1, MEMORY)
        else:
            kept = 0
    return worst if worst > limit_of(flat, tol) else 0.0


@njit(cache=True, nogil=True)
def round_off(tables, plan, lam, marginals, hub):
    """Make the tables agree exactly: from the roots on, each row is scaled to its parent's marginal. hub gets the marginals."""
    n, m = hub.shape
    known = np.zeros(n, np.bool_)
    sums = np.empty(m)
    for e in range(plan.shape[0]):
        parent = plan[e, 0]
        child = plan[e, 1]
        every = 0.0
        for a in range(m):
            sums[a] = 0.0
            for b in range(m):
                sums[a] += marginals[e, a, b]
            every += sums[a]
        for a in range(m):
            if not known[parent]:
                hub[parent, a] = sums[a] / every
            hub[child, a] = 0.0
        known[parent] = True
        known[child] = True
        for a in range(m):
            if sums[a] > 0.0:
                for b in range(m):
                    marginals[e, a, b] *= hub[parent, a] / sums[a]
            elif hub[parent, a] > 0.0:  # as little as the tolerance: to the entry that would come next
                best = 0
                for b in range(1, m):
                    if tables[e, a, b] + lam[2 * e + 1, b] > tables[e, a, best] + lam[2 * e + 1, best]:
                        best = b
                marginals[e, a, best] = hub[parent, a]
            for b in range(m):
                hub[child, b] += marginals[e, a, b]


@njit(cache=True, nogil=True)
def project_alone(point, degrees, hub):
    """The marginals of nodes without edges: projections on the simplex. False where all states of one are forbidden."""
    n, m = hub.shape
    node, counts, sums, zeros, whole = np.empty((1, m)), np.empty(m), np.empty(m), np.zeros(m), np.empty(1)
    for i in range(n):
        if degrees[i] > 0:
            continue
        top = -np.inf
        for a in range(m):
            x = point[i * m + a]
            node[0, a] = x if x > LOWEST else -np.inf
            top = max(top, node[0, a])
        if top == -np.inf:
            return False
        for a in range(m):
            node[0, a] -= top
        simplex_of_table(node, zeros, zeros, 0.0, counts, whole, sums, hub[i : i + 1])
    return True


@njit(cache=True, nogil=True)
def project_trees(points, offsets, sizes, plans, places, warm, tol, max_iter, multipliers, out, reached):
    """The nearest tree marginals of instances, flat; `sizes` rows: n, m, own, where the plan starts and stops in `plans`.

    multipliers[places[i]:places[i + 1]] are read where `warm`, and written. reached: 0 for each instance that came to
    tol, the largest gradient entry where it did not, -1 where there is no output.
    """
    for i in range(sizes.shape[0]):
        n, m, own, start, stop = sizes[i]
        plan = plans[start:stop]
        n_tables = stop - start
        point = points[offsets[i] : offsets[i + 1]]
        found = out[offsets[i] : offsets[i + 1]]
        lam = multipliers[places[i] : places[i + 1]].reshape((2 * n_tables, m))
        degrees = np.zeros(n, np.int64)
        for e in range(n_tables):
            degrees[plan[e, 0]] += 1
            degrees[plan[e, 1]] += 1
        tables, marginals = np.empty((n_tables, m, m)), np.empty((n_tables, m, m))
        rest, hub = np.empty((n, m)), np.zeros((n, m))
        if not prepare(point, own == 1, plan, degrees, warm, lam, tables, rest):
            reached[i] = -1.0
            continue
        moved = np.zeros((2 * n_tables, m))
        reached[i] = solve(tables, rest, own == 1, plan, degrees, moved, tol, max_iter, hub, marginals)
        round_off(tables, plan, moved, marginals, hub)
        for e in range(2 * n_tables):
            for a in range(m):
                lam[e, a] += moved[e, a]
        for e in range(n_tables):
            first = (n * m if own else 0) + plan[e, 2] * m * m
            down = 1 if plan[e, 3] else m
            for a in range(m):
                for b in range(m):
                    found[first + a * down + b * (m + 1 - down)] = marginals[e, a, b]
        if own:
            if not project_alone(point, degrees, hub):
                reached[i] = -1.0
            for k in range(n):
                for a in range(m):
                    found[k * m + a] = hub[k, a]
