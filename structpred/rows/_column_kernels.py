# mypy: ignore-errors
"""Compiled steps of multiclass losses: the point of a loss at given scores, and one column of the dual.

A loss of the scores z of m classes is  max_p <z, p> - z_y + <costs, p>,  or with the entropy of p for the costs, over points p of
the simplex that its kind names. The dual variable of the paper is alpha = e_y - p.
"""

import numpy as np

from structpred.runtime.jit import njit

#: p in the simplex, with the entropy of p; p in the simplex, p_j <= 1/k; the same filled up to e_y: a loss that is never negative
ENTROPIC, CAPPED, FILLED = range(3)
#: curvatures below are zero: the dual is linear in the column
FLAT = 1e-200


@njit(cache=True, nogil=True)
def cost_of(costs, truth, label):
    """What this label costs: costs is (1, 1) where all wrong labels cost the same."""
    if costs.shape[0] > 1:
        return costs[truth, label]
    return 0.0 if label == truth else costs[0, 0]


@njit(cache=True, nogil=True)
def score_row(indices, values, start, stop, table, out):
    """out = x_i W."""
    m = np.uint64(table.shape[1])
    for j in range(m):
        out[j] = 0.0
    for e in range(np.uint64(start), np.uint64(stop)):
        f, x = np.uint64(indices[e]), values[e]
        for j in range(m):
            out[j] += x * table[f, j]


@njit(cache=True, nogil=True)
def soft_point(z, p):
    """p = softmax(z); returns log sum exp z."""
    top, total = z.max(), 0.0
    for j in range(z.shape[0]):
        p[j] = np.exp(z[j] - top)
        total += p[j]
    for j in range(z.shape[0]):
        p[j] /= total
    return top + np.log(total)


@njit(cache=True, nogil=True)
def best_point(kind, k, z, truth, costs, p):
    """A p at which the loss has its value at the scores z, p - e_y being a subgradient; returns that value."""
    m = z.shape[0]
    if kind == ENTROPIC:
        return max(soft_point(z, p) - z[truth], 0.0)
    total = 0.0
    for j in range(m):
        p[j] = 0.0
    for _ in range(k):
        best = -1
        for j in range(m):
            if p[j] == 0.0 and (best < 0 or z[j] + cost_of(costs, truth, j) > z[best] + cost_of(costs, truth, best)):
                best = j
        p[best] = 1.0 / k
        total += z[best] + cost_of(costs, truth, best) - z[truth]
    if kind == FILLED and total <= 0.0:
        for j in range(m):
            p[j] = 1.0 if j == truth else 0.0
        return 0.0
    return total / k


@njit(cache=True, nogil=True)
def dual_value(kind, p, truth, costs):
    """-phi*(p - e_y), p a point of the loss's set."""
    total = 0.0
    for j in range(p.shape[0]):
        if kind == ENTROPIC:
            total -= p[j] * np.log(p[j]) if p[j] > 0.0 else 0.0
        else:
            total += cost_of(costs, truth, j) * p[j]
    return total


@njit(cache=True, nogil=True)
def clipped(points, cap, total, coupling, out):
    """out_j = clip(points_j - theta, 0, cap), theta the root of  sum_j out_j - coupling theta = total; returns sum_j out_j.

    The left side falls and is linear between kinks: Newton's method in a bracket ends at the root.
    """
    n, top = points.shape[0], points.max()
    left, right = points.min() - cap, top
    if coupling > 0.0:
        left, right = min(left, -total / coupling), max(right, (n * cap - total) / coupling)
    theta = min(max(top - total, left), right)
    for _ in range(200):
        found, slope = -coupling * theta, coupling
        for j in range(n):
            x = points[j] - theta
            if x >= cap:
                found += cap
            elif x > 0.0:
                found += x
                slope += 1.0
        if abs(found - total) <= 2e-16:
            break
        if found > total:
            left = theta
        else:
            right = theta
        new = theta + (found - total) / slope if slope > 0.0 else np.inf
        if not left < new < right:
            new = 0.5 * (left + right)
        if new in (left, right):
            break
        theta = new
    held = 0.0
    for j in range(n):
        out[j] = min(max(points[j] - theta, 0.0), cap)
        held += out[j]
    return held


@njit(cache=True, nogil=True)
def in_cone(points, k, before, out):
    """min_v |v - points|^2 + (sum v - before)^2  over  0 <= v_j <= sum v / (k - 1), k >= 2; returns sum v.

    The u largest entries are at the cap s, the next f are points - theta, the others 0. Each (u, f) gives s and theta by two
    linear equations; the right pair is that whose entries are on their sides.
    """
    n, room = points.shape[0], k - 1.0
    order = np.argsort(-points)
    high = points[order]
    sums = np.zeros(n + 1)
    for j in range(n):
        sums[j + 1] = sums[j] + high[j]
        out[j] = 0.0
    if sums[k - 1] / room + before <= 0.0:
        return 0.0
    best_s, best_theta, best_u, best_f, least = 0.0, 0.0, 0, 0, np.inf
    for u in range(k):
        for f in range(1 if u == k - 1 else n - u + 1):
            if u == k - 1:
                s = (sums[u] / room + before) / k
                theta = high[u - 1] - s
            else:
                d, a, c = 1.0 - u / room, room + u / room, before + sums[u] / room
                s = (d * (sums[u + f] - sums[u]) + f * c) / (d * (room - u) + f * a)
                theta = (s * a - c) / d
            wrong = -s
            if u > 0:
                wrong = max(wrong, s - (high[u - 1] - theta))
            if f > 0:
                wrong = max(wrong, high[u] - theta - s, theta - high[u + f - 1])
            if u + f < n:
                wrong = max(wrong, high[u + f] - theta)
            if wrong < least:
                best_s, best_theta, best_u, best_f, least = s, theta, u, f, wrong
    total, cap = 0.0, max(best_s, 0.0)
    for j in range(best_u + best_f):
        out[order[j]] = cap if j < best_u else min(max(high[j] - best_theta, 0.0), cap)
        total += out[order[j]]
    return total


@njit(cache=True, nogil=True)
def filled_step(k, truth, points, before, p):
    """The step of FILLED in the entries v of the wrong labels, 0 <= v_j <= min(1/k, sum v / (k - 1)), sum v <= 1.

    points: v + their slopes / q. before: sum v as it was. The entry of the truth is 1 - sum v.
    """
    v = np.empty(points.shape[0])
    most = 1.0 / k
    least_full = (k - 1.0) / k  # of sum v: from here on the cap is 1/k
    total = clipped(points, most, before, 1.0, v)
    if total > 1.0:
        total = clipped(points, most, 1.0, 0.0, v)
    elif total < least_full:
        total = in_cone(points, k, before, v)
        if total > least_full:
            total = clipped(points, most, least_full, 0.0, v)
    at, rest = 0, 1.0
    for j in range(p.shape[0]):
        if j != truth:
            p[j] = v[at]
            rest -= v[at]
            at += 1
    p[truth] = max(rest, 0.0)


@njit(cache=True, nogil=True)
def log_root(q, r, start):
    """The x <= 0 with  x + q exp(x) = r  for r <= q, by Newton's method from `start`: in logarithms nothing overflows."""
    ceiling = min(r, 0.0)  # the root is not above: x <= r, and x <= 0 as r <= q
    x = min(start, ceiling)
    for _ in range(100):
        e = q * np.exp(x)
        new = min(x + (r - x - e) / (1.0 + e), ceiling)
        if abs(new - x) <= 1e-15 * (1.0 + abs(new)):
            return new
        x = new
    return x


@njit(cache=True, nogil=True)
def entropic_step(q, slopes, p):
    """p to the root of  q p + log p = slopes - nu,  sum p = 1: bracketed Newton's method on log sum p as a function of nu."""
    m = slopes.shape[0]
    logs = np.zeros(m)
    top = slopes.max()
    left, right = top - q, top + np.log(m) - q / m  # there the largest p is 1, or 1/m
    nu = left
    for j in range(m):
        nu = max(nu, slopes[j] - q * p[j] - np.log(p[j]) if p[j] > 0.1 else left)
        logs[j] = np.log(p[j]) if p[j] > 0.0 else -700.0
    nu = min(nu, right)
    for _ in range(100):
        total, slope = 0.0, 0.0
        for j in range(m):
            logs[j] = log_root(q, slopes[j] - nu, logs[j])
            e = np.exp(logs[j])
            total += e
            slope += e / (1.0 + q * e)
        if total > 1.0:
            left = nu
        else:
            right = nu
        new = nu + np.log(total) * total / slope
        if not left <= new <= right:
            new = 0.5 * (left + right)
        if abs(total - 1.0) <= 1e-13 or abs(new - nu) <= 1e-15 * (1.0 + abs(nu)):  # what is left is divided out
            break
        nu = new
    total = 0.0
    for j in range(m):
        p[j] = np.exp(logs[j])
        total += p[j]
    for j in range(m):
        p[j] /= total


@njit(cache=True, nogil=True)
def column_step(kind, k, z, truth, costs, q, p):
    """p to the maximum of  <z + costs, p> + entropy - q/2 |p - p_before|^2  over the points of the loss.

    z: the scores; overwritten. q: p_i |x_i|^2 / lam. Where q is zero, to a maximum of the linear dual.
    """
    m = z.shape[0]
    if q <= FLAT:
        best_point(kind, k, z, truth, costs, p)
        return
    if kind == ENTROPIC:
        for j in range(m):
            z[j] += q * p[j]
        entropic_step(q, z, p)
    elif kind == CAPPED:
        top = -np.inf
        for j in range(m):
            z[j] += cost_of(costs, truth, j)
            top = max(top, z[j])
        for j in range(m):
            z[j] = (z[j] - top) / q + p[j]
        clipped(z, 1.0 / k, 1.0, 0.0, p)
    else:
        points, at, own, before = np.empty(m - 1), 0, z[truth], 0.0
        for j in range(m):
            if j != truth:
                points[at] = (z[j] + cost_of(costs, truth, j) - own) / q + p[j]
                before += p[j]
                at += 1
        filled_step(k, truth, points, before, p)


@njit(cache=True, nogil=True)
def row_losses(rows, truths, costs, kind, k, table, out):
    """out_i = the loss of row i at the weights `table` (n_features, m)."""
    indptr, indices, values = rows
    z, p = np.empty(table.shape[1]), np.empty(table.shape[1])
    for i in range(out.shape[0]):
        score_row(indices, values, indptr[i], indptr[i + 1], table, z)
        out[i] = best_point(kind, k, z, truths[i], costs, p)
