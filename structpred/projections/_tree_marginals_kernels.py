# mypy: ignore-errors
"""Compiled projections onto the marginals of trees, by their dual in the separators.

An instance is a forest of `n` nodes with `m` states each. Its variables are n * m node marginals, where it has them (`own`),
then an m by m table a row of `plan`. A row of `plan` is (parent, child, table, transposed): the table's columns belong to the
parent where `transposed`; parents come before their children. Each table e has two multipliers of length m in `lam`: row
2 e is that of its rows, row 2 e + 1 that of its columns. With them the table is the projection of M + lam(row) + lam(column)
on the simplex, and a node's own marginal is x - (the sum of its tables' multipliers). The dual's gradient is how far a table's
margin is from the node's marginal: its own one, or the mean of the margins of all tables around it.
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
def consistent(tables, nodes, plan, degrees, lam, messages):
    """Move scores between neighbouring tables until all hold the best output on top, by max-product; lam says what was moved.

    Large scores then agree from the start, and the digits of the small differences between good outputs are kept. Forbidden
    entries and what only they complete become -inf. False where nothing is left.
    """
    n, m = nodes.shape
    for e in range(plan.shape[0] - 1, -1, -1):
        parent, child, table, transposed = plan[e]
        for a in range(m):
            top = -np.inf
            for b in range(m):
                x = tables[table, b, a] if transposed else tables[table, a, b]
                top = max(top, x + nodes[child, b])
            messages[e, a] = top
            nodes[parent, a] += top
    best = np.full(n, np.inf)  # of a tree, kept at its root
    final = np.empty((n, m))  # max-marginals of the nodes, 0 for the best
    for i in range(n):
        final[i] = nodes[i]
    for e in range(plan.shape[0]):
        parent, child, table, transposed = plan[e]
        if best[parent] == np.inf:  # a root
            best[parent] = nodes[parent].max()
            if best[parent] == -np.inf:
                return False
            final[parent] -= best[parent]
            extra = best[parent]
        else:
            extra = 0.0
        best[child] = 0.0
        final[child] = -np.inf
        mine = 2 * table + (1 if transposed else 0)
        other = 2 * table + (0 if transposed else 1)
        for a in range(m):
            alive = final[parent, a] > -np.inf
            lam[mine, a] = extra - messages[e, a] + final[parent, a] / degrees[parent] if alive else -np.inf
            for b in range(m):
                x = tables[table, b, a] if transposed else tables[table, a, b]
                if alive:
                    final[child, b] = max(final[child, b], final[parent, a] - messages[e, a] + x + nodes[child, b])
        for b in range(m):
            alive = final[child, b] > -np.inf
            lam[other, b] = nodes[child, b] - (1.0 - 1.0 / degrees[child]) * final[child, b] if alive else -np.inf
    return True


@njit(cache=True, nogil=True)
def prepare(point, own, plan, degrees, warm, lam, tables, rest, messages):
    """Fill `tables` with the scores that lam moved, `rest` with the node terms less the sums of lam; False: nothing is left."""
    n, m = rest.shape
    first = n * m if own else 0
    for i in range(n):
        for a in range(m):
            x = point[i * m + a] if own else 0.0
            rest[i, a] = x if x > LOWEST else -np.inf
    place = first
    for e in range(plan.shape[0]):
        for a in range(m):
            for b in range(m):
                x = point[place]
                tables[e, a, b] = x if x > LOWEST else -np.inf
                place += 1
    if not warm and not consistent(tables, rest.copy(), plan, degrees, lam, messages):
        return False
    for e in range(plan.shape[0]):
        parent, child, table, transposed = plan[e]
        for a in range(m):
            if rest[parent, a] == -np.inf:
                lam[2 * table + (1 if transposed else 0), a] = -np.inf
            if rest[child, a] == -np.inf:
                lam[2 * table + (0 if transposed else 1), a] = -np.inf
    for e in range(plan.shape[0]):
        top = -np.inf
        for a in range(m):
            for b in range(m):
                tables[e, a, b] += lam[2 * e, a] + lam[2 * e + 1, b]
                top = max(top, tables[e, a, b])
        if top == -np.inf:
            return False
        tables[e] -= top
        for side in range(2):
            for a in range(m):
                if lam[2 * e + side, a] == -np.inf:  # a state that no output has
                    lam[2 * e + side, a] = 0.0
    for e in range(plan.shape[0]):
        parent, child, table, transposed = plan[e]
        for a in range(m):
            rest[parent, a] -= lam[2 * table + (1 if transposed else 0), a]
            rest[child, a] -= lam[2 * table + (0 if transposed else 1), a]
    for i in range(n):
        for a in range(m):
            if rest[i, a] == -np.inf:
                rest[i, a] = 0.0
    return True


@njit(cache=True, nogil=True)
def evaluate(tables, rest, own, plan, degrees, lam, tau, hub, marginals, grad, scratch):
    """The tables' projections for the multipliers lam, and the dual's gradient; its largest entry."""
    n, m = hub.shape
    for i in range(n):
        for a in range(m):
            hub[i, a] = rest[i, a] if own else 0.0
    for e in range(plan.shape[0]):
        parent, child, table, transposed = plan[e]
        rows = 2 * table
        tau[table] = simplex_of_table(
            tables[table], lam[rows], lam[rows + 1], tau[table], scratch, grad[rows], grad[rows + 1], marginals[table]
        )
        row_node = child if transposed else parent
        column_node = parent if transposed else child
        for a in range(m):
            hub[row_node, a] += -lam[rows, a] if own else grad[rows, a] / degrees[row_node]
            hub[column_node, a] += -lam[rows + 1, a] if own else grad[rows + 1, a] / degrees[column_node]
    worst = 0.0
    for e in range(plan.shape[0]):
        parent, child, table, transposed = plan[e]
        row_node = child if transposed else parent
        column_node = parent if transposed else child
        for a in range(m):
            grad[2 * table, a] -= hub[row_node, a]
            grad[2 * table + 1, a] -= hub[column_node, a]
            worst = max(worst, max(abs(grad[2 * table, a]), abs(grad[2 * table + 1, a])))
    return worst


@njit(cache=True, nogil=True)
def direction_of(grad, steps, changes, curvatures, shares, kept, newest, out):
    """out = H grad, with the inverse curvature of the pairs that are kept (Nocedal and Wright, algorithm 7.4)."""
    out[:] = grad
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
    scratch = np.empty((2, m))
    grad, new, trial = np.empty(size), np.empty(size), np.empty(size)
    step, shares, curvatures = np.empty(size), np.empty(MEMORY), np.empty(MEMORY)
    steps, changes = np.empty((MEMORY, size)), np.empty((MEMORY, size))
    flat = lam.reshape(size)
    shape = (2 * n_tables, m)
    worst = evaluate(tables, rest, own, plan, degrees, lam, tau, hub, marginals, grad.reshape(shape), scratch)
    kept, newest = 0, MEMORY - 1
    for _ in range(max_iter):
        limit = tol + ROUNDING * np.abs(flat).max()
        if worst <= limit:
            break
        direction_of(grad, steps, changes, curvatures, shares, kept, newest, step)
        start = -dot(grad, step)
        low, low_slope, high, high_slope, length = 0.0, start, np.inf, 0.0, 1.0
        for _ in range(SEARCH):
            for j in range(size):
                trial[j] = flat[j] - length * step[j]
            worst = evaluate(
                tables, rest, own, plan, degrees, trial.reshape(shape), tau, hub, marginals, new.reshape(shape), scratch
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
    return worst if worst > tol + ROUNDING * np.abs(flat).max() else 0.0


@njit(cache=True, nogil=True)
def round_off(tables, plan, lam, marginals, hub):
    """Make the tables agree exactly: from the roots on, each row is scaled to its parent's marginal. hub gets the marginals."""
    n, m = hub.shape
    known = np.zeros(n, np.bool_)
    for e in range(plan.shape[0]):
        parent, child, table, transposed = plan[e]
        found = marginals[table].T if transposed else marginals[table]
        if not known[parent]:
            for a in range(m):
                hub[parent, a] = found[a].sum()
            hub[parent] /= hub[parent].sum()
            known[parent] = True
        hub[child] = 0.0
        known[child] = True
        for a in range(m):
            total = found[a].sum()
            if total > 0.0:
                for b in range(m):
                    found[a, b] *= hub[parent, a] / total
            elif hub[parent, a] > 0.0:  # as little as the tolerance: to the entry that would come next
                best = 0
                for b in range(1, m):
                    x = tables[table, b, a] if transposed else tables[table, a, b]
                    y = tables[table, best, a] if transposed else tables[table, a, best]
                    other = 2 * table + (0 if transposed else 1)
                    if x + lam[other, b] > y + lam[other, best]:
                        best = b
                found[a, best] = hub[parent, a]
            for b in range(m):
                hub[child, b] += found[a, b]


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
        first = n * m if own else 0
        point = points[offsets[i] : offsets[i + 1]]
        found = out[offsets[i] : offsets[i + 1]]
        marginals = found[first:].reshape((n_tables, m, m))
        lam = multipliers[places[i] : places[i + 1]].reshape((2 * n_tables, m))
        degrees = np.zeros(n, np.int64)
        for e in range(n_tables):
            degrees[plan[e, 0]] += 1
            degrees[plan[e, 1]] += 1
        tables = np.empty((n_tables, m, m))
        rest, hub = np.empty((n, m)), np.zeros((n, m))
        if not prepare(point, own == 1, plan, degrees, warm, lam, tables, rest, np.empty((n_tables, m))):
            reached[i] = -1.0
            continue
        moved = np.zeros((2 * n_tables, m))
        reached[i] = solve(tables, rest, own == 1, plan, degrees, moved, tol, max_iter, hub, marginals)
        round_off(tables, plan, moved, marginals, hub)
        for e in range(2 * n_tables):
            for a in range(m):
                lam[e, a] += moved[e, a]
        if own:
            alone = np.empty((2, m))
            for k in range(n):
                if degrees[k] == 0:
                    node = rest[k : k + 1]
                    if not (point[k * m : k * m + m] > LOWEST).any():
                        reached[i] = -1.0
                    else:
                        for a in range(m):
                            node[0, a] = point[k * m + a] if point[k * m + a] > LOWEST else -np.inf
                        simplex_of_table(node, np.zeros(1), np.zeros(m), 1e300, alone, np.empty(1), np.empty(m), hub[k : k + 1])
                for a in range(m):
                    found[k * m + a] = hub[k, a]
