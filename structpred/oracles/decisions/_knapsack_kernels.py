# mypy: ignore-errors
"""Compiled branch and bound for knapsacks of several rows, and sums over all sets, which are the paths of a diagram."""

import numpy as np

from structpred.runtime.jit import njit

#: up to this number of items are sorted by insertion
_FEW = 128


@njit(cache=True, nogil=True)
def sorted_items(scores, weights, capacities, scale, ratios, items):
    """Write the items that may be worth taking, by their score per surrogate weight, best first; returns how many there are.

    An item's surrogate weight is the sum of its shares of the capacities: scale[i] = 1 / capacities[i].
    """
    count = 0
    for j in range(scores.shape[0]):
        if scores[j] <= 0.0:
            continue
        total, fits = 0.0, True
        for i in range(capacities.shape[0]):
            total += scale[i] * weights[j, i]
            fits = fits and weights[j, i] <= capacities[i]
        if not fits:
            continue
        ratio = scores[j] / total if total > 0.0 else np.inf
        at = count
        if scores.shape[0] <= _FEW:
            while at > 0 and ratios[at - 1] < ratio:
                ratios[at], items[at] = ratios[at - 1], items[at - 1]
                at -= 1
        ratios[at], items[at] = ratio, j
        count += 1
    if scores.shape[0] > _FEW:
        order = np.argsort(-ratios[:count], kind="mergesort")
        items[:count] = items[:count][order]
    return count


@njit(cache=True, nogil=True)
def search(values, loads, totals, least, left, max_nodes, stack, chosen):
    """The best set of items 0..n-1, sorted by values / totals: (how many items it has, written to `chosen`, nodes looked at).

    loads: (n, m); totals: (n,), the surrogate weights; least: (n + 1, m), the smallest load among items j, j+1, ...; left:
    (m + 1,), what the capacities, and the surrogate one, leave free. Depth first, items that fit are taken first. Bound
    (Dantzig 1957): the items that still fit fill the surrogate capacity in their order, the last one in part.
    """
    n, m = loads.shape
    best, size = 0.0, 0
    value, depth, j, nodes = 0.0, 0, 0, 0
    while True:
        nodes += 1
        if nodes > max_nodes:
            return -1, nodes
        bound, free, q, room = value, left[m], j, True
        for i in range(m):
            room = room and least[j, i] <= left[i]
        while room and q < n:
            fits = True
            for i in range(m):
                fits = fits and loads[q, i] <= left[i]
            if fits:
                if totals[q] > free:
                    bound += values[q] * free / totals[q]
                    break
                free -= totals[q]
                bound += values[q]
                if bound > best and free <= 0.0:
                    break
            q += 1
        if bound > best:
            fits = False
            while j < n and not fits:
                fits = True
                for i in range(m):
                    fits = fits and loads[j, i] <= left[i]
                j += 0 if fits else 1
            if fits:
                stack[depth] = j
                depth += 1
                value += values[j]
                for i in range(m):
                    left[i] -= loads[j, i]
                left[m] -= totals[j]
                if value > best:
                    best, size = value, depth
                    chosen[:depth] = stack[:depth]
                j += 1
                continue
        if depth == 0:
            return size, nodes
        depth -= 1
        j = stack[depth]
        value -= values[j]
        for i in range(m):
            left[i] += loads[j, i]
        left[m] += totals[j]
        j += 1


@njit(cache=True, nogil=True)
def best_sets(scores, offsets, rows, weights, capacities, max_nodes, taken):
    """taken = 1 at the items of the best set of each of these rows, flat as the scores; the row that was not finished, or -1."""
    n, m = weights.shape
    scale = np.zeros(m)
    for i in range(m):
        if capacities[i] > 0.0:
            scale[i] = 1.0 / capacities[i]
    ratios, values, totals = np.empty(n), np.empty(n), np.empty(n)
    items, stack, chosen = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    loads, least, left = np.empty((n, m)), np.empty((n + 1, m)), np.empty(m + 1)
    for r in rows:
        own = scores[offsets[r] : offsets[r + 1]]
        count = sorted_items(own, weights, capacities, scale, ratios, items)
        for i in range(m):
            least[count, i] = np.inf
            left[i] = capacities[i]
        left[m] = 0.0
        for i in range(m):
            left[m] += scale[i] * capacities[i]
        for k in range(count - 1, -1, -1):
            values[k], totals[k] = own[items[k]], 0.0
            for i in range(m):
                loads[k, i] = weights[items[k], i]
                totals[k] += scale[i] * loads[k, i]
                least[k, i] = min(least[k + 1, i], loads[k, i])
        size, _ = search(values[:count], loads[:count], totals[:count], least[: count + 1], left, max_nodes, stack, chosen)
        if size < 0:
            return r
        taken[offsets[r] : offsets[r + 1]] = 0
        for k in range(size):
            taken[offsets[r] + items[chosen[k]]] = 1
    return -1


@njit(cache=True, nogil=True)
def set_sums(scores, offsets, rows, starts, skip, take, log_zs, mu):
    """log Z and the probability of each item, of these rows.

    Backward: log of the sum over all paths from a node to the end. Forward: a node's probability is passed on by their shares.
    """
    n, size = starts.shape[0] - 2, starts[-1]
    ways, share = np.empty(size), np.empty(size)
    for r in rows:
        first = offsets[r]
        ways[size - 1] = 0.0
        for j in range(n - 1, -1, -1):
            x = scores[first + j]
            for v in range(starts[j], starts[j + 1]):
                without = ways[skip[v]]
                ways[v] = without
                if take[v] >= 0:
                    with_it = x + ways[take[v]]
                    high, low = max(with_it, without), min(with_it, without)
                    ways[v] = high + np.log1p(np.exp(low - high))
        log_zs[r] = ways[0]
        share[:] = 0.0
        share[0] = 1.0
        for j in range(n):
            x, total = scores[first + j], 0.0
            for v in range(starts[j], starts[j + 1]):
                p = 0.0
                if take[v] >= 0:
                    p = share[v] * np.exp(x + ways[take[v]] - ways[v])
                    share[take[v]] += p
                    total += p
                share[skip[v]] += max(share[v] - p, 0.0)
            mu[first + j] = total
