# mypy: ignore-errors
"""All outputs of a small pairwise MRF, by tables of partial sums that are only ever added up.

The nodes are cut into high ones, middle ones and low ones. An output is (y, m, c), their states read as numbers in base K,
and its score is high[y] + low[m, c] + cross(y)[m] + cross(y)[M + c]: what the high nodes say to each other, what the others say
to each other, and what the high ones say to the middle and to the low ones. Nothing is subtracted, so that a forbidden part
(-1e30) costs no accuracy in outputs without it. Ties go to the output that comes first.

`plan` is one int64 array: n, K, the numbers of high, middle and low nodes, the number of parts; then n + 1 positions, where each
node's edges to later nodes begin; there (later node, first part of the edge's table), the last node first.
"""

import math

import numpy as np

from structpred.oracles.fields._pairwise_kernels import LOWEST
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit

HEAD = 6  # what comes before the positions


@njit(cache=True, nogil=True, borrows=True)
def expand(scores, plan, node, state, first, last, out):
    """out[y] = the scores between `node` in `state` and the states y of the later nodes first..last-1."""
    k = plan[1]
    at = plan[HEAD + node]
    end = plan[HEAD + node + 1]
    while at < end and plan[at] >= last:
        at += 2
    out[0] = 0.0
    size = 1
    for other in range(last - 1, first - 1, -1):
        if at < end and plan[at] == other:
            row = plan[at + 1] + state * k
            at += 2
            for t in range(k - 1, -1, -1):
                weight = scores[row + t]
                for y in range(size):
                    out[t * size + y] = out[y] + weight
        else:
            for t in range(1, k):
                for y in range(size):
                    out[t * size + y] = out[y]
        size *= k


@njit(cache=True, nogil=True, borrows=True)
def grow(scores, plan, first, last, work, out):
    """out[y] = the scores of the nodes first..last-1 and of the edges between them, in the states y."""
    k = plan[1]
    out[0] = 0.0
    size = 1
    for node in range(last - 1, first - 1, -1):
        for state in range(k - 1, -1, -1):
            expand(scores, plan, node, state, node + 1, last, work)
            own = scores[node * k + state]
            for y in range(size):
                out[state * size + y] = out[y] + (own + work[y])
        size *= k


@njit(cache=True, nogil=True, borrows=True)
def sizes(plan):
    """The numbers of joint states of the high, the middle and the low nodes."""
    k = plan[1]
    return k ** plan[2], k ** plan[3], k ** plan[4]


@njit(cache=True, nogil=True)
def room(n_tables, plan):
    """Tables and levels of so many score vectors; digits; of each state of the low nodes the best value and its code."""
    n_high, n_middle, n_low = sizes(plan)
    wide = n_middle + n_low
    tables = np.empty((n_tables, n_high)), np.empty((n_tables, n_middle * n_low)), np.empty((n_tables, plan[2] * plan[1], wide))
    levels, digits = np.zeros((n_tables, plan[2] + 1, wide)), np.zeros(plan[2], np.int64)
    return tables, levels, digits, np.full(n_low, -np.inf), np.zeros(n_low, np.int64)


@njit(cache=True, nogil=True)
def fill(scores, plan, tables, row):
    """Row `row` of the tables: high (Y,), low (M * C,), cross (n_high * K, M + C) with a row for each state of a high node."""
    high, low, cross = tables[0][row], tables[1][row], tables[2][row]
    n = plan[0]
    k = plan[1]
    middle = plan[2] + plan[3]
    n_middle = k ** plan[3]
    work = np.empty(max(high.shape[0], low.shape[0]))
    grow(scores, plan, 0, plan[2], work, high)
    grow(scores, plan, plan[2], n, work, low)
    for node in range(plan[2]):
        for state in range(k):
            own = cross[node * k + state]
            expand(scores, plan, node, state, plan[2], middle, own[:n_middle])
            expand(scores, plan, node, state, middle, n, own[n_middle:])


@njit(cache=True, nogil=True, borrows=True)
def step(digits, k):
    """Count on by one; returns the first digit that changed."""
    i = digits.shape[0] - 1
    while i >= 0:
        digits[i] += 1
        if digits[i] < k:
            return i
        digits[i] = 0
        i -= 1
    return 0


@njit(cache=True, nogil=True, borrows=True)
def add_up(cross, digits, first, k, levels):
    """levels[i + 1] = levels[i] + the row of high node i in its state, from `first` on; the last level is cross(y)."""
    for i in range(first, digits.shape[0]):
        below = levels[i]
        above = levels[i + 1]
        row = cross[i * k + digits[i]]
        for j in range(row.shape[0]):
            above[j] = below[j] + row[j]


@njit(cache=True, nogil=True, borrows=True)
def write_states(top, codes, n_low, plan, labels):
    """The states of the output with the largest `top` (the first of equal ones); False where that is forbidden."""
    best = -np.inf
    code = np.int64(-1)
    for c in range(top.shape[0]):
        here = codes[c] * n_low + c
        if top[c] > best or (top[c] == best and here < code):
            best = top[c]
            code = here
    if not best > LOWEST:
        return False
    for i in range(plan[0] - 1, -1, -1):
        labels[i] = code % plan[1]
        code //= plan[1]
    return True


@njit(cache=True, nogil=True)
def best_output(scores, plan, labels):
    """The output with the largest score, into labels."""
    n_high, n_middle, n_low = sizes(plan)
    k = plan[1]
    tables, every_level, digits, top, codes = room(1, plan)
    fill(scores, plan, tables, 0)
    high, low, cross, levels = tables[0][0], tables[1][0], tables[2][0], every_level[0]
    changed = 0
    for y in range(n_high):
        add_up(cross, digits, changed, k, levels)
        last = levels[plan[2]]
        lanes = last[n_middle:]
        for m in range(n_middle):
            base = high[y] + last[m]
            here = y * n_middle + m
            row = low[m * n_low : (m + 1) * n_low]
            for c in range(n_low):
                value = row[c] + (base + lanes[c])
                better = value > top[c]
                top[c] = value if better else top[c]
                codes[c] = here if better else codes[c]
        changed = step(digits, k)
    return OK if write_states(top, codes, n_low, plan, labels) else NOTHING_LEFT


@njit(cache=True, nogil=True, borrows=True)
def best_outputs(scores, offsets, plan, labels):
    """`best_output` for each of a batch of instances of one shape; returns (status, instance)."""
    for i in range(offsets.shape[0] - 1):
        status = best_output(scores[offsets[i] : offsets[i + 1]], plan, labels[i])
        if status != OK:
            return status, i
    return OK, 0


@njit(cache=True, nogil=True)
def best_product(scores, costs, first, second, plan, labels):
    """The output with the largest max(0, first + score) * (second + cost) that is not forbidden."""
    n_high, n_middle, n_low = sizes(plan)
    k = plan[1]
    tables, levels, digits, top, codes = room(2, plan)
    fill(scores, plan, tables, 0)
    fill(costs, plan, tables, 1)
    high, low, cross = tables
    changed = 0
    for y in range(n_high):
        add_up(cross[0], digits, changed, k, levels[0])
        add_up(cross[1], digits, changed, k, levels[1])
        last = levels[0, plan[2]]
        lost = levels[1, plan[2]]
        lanes = last[n_middle:]
        fees = lost[n_middle:]
        for m in range(n_middle):
            base = first + high[0, y] + last[m]
            fee = second + high[1, y] + lost[m]
            here = y * n_middle + m
            row = low[0, m * n_low : (m + 1) * n_low]
            due = low[1, m * n_low : (m + 1) * n_low]
            for c in range(n_low):
                value = row[c] + (base + lanes[c])
                size = value if value > 0.0 else 0.0
                size *= due[c] + (fee + fees[c])
                size = size if value > LOWEST else -np.inf
                better = size > top[c]
                top[c] = size if better else top[c]
                codes[c] = here if better else codes[c]
        changed = step(digits, k)
    return OK if write_states(top, codes, n_low, plan, labels) else NOTHING_LEFT


@njit(cache=True, nogil=True)
def best_within(scores, rows, limits, plan, labels):
    """The output with the largest score among those with rows . mu <= limits."""
    n_high, n_middle, n_low = sizes(plan)
    k = plan[1]
    n_rows = rows.shape[0]
    tables, levels, digits, top, codes = room(n_rows + 1, plan)
    fill(scores, plan, tables, 0)
    for r in range(n_rows):
        fill(rows[r], plan, tables, r + 1)
    high, low, cross = tables
    values = np.empty(n_low)
    changed = 0
    for y in range(n_high):
        for r in range(n_rows + 1):
            add_up(cross[r], digits, changed, k, levels[r])
        for m in range(n_middle):
            here = y * n_middle + m
            for r in range(n_rows + 1):
                last = levels[r, plan[2]]
                base = high[r, y] + last[m]
                lanes = last[n_middle:]
                row = low[r, m * n_low : (m + 1) * n_low]
                if r == 0:
                    for c in range(n_low):
                        values[c] = row[c] + (base + lanes[c])
                else:
                    limit = limits[r - 1]
                    for c in range(n_low):
                        values[c] = values[c] if row[c] + (base + lanes[c]) <= limit else -np.inf
            for c in range(n_low):
                better = values[c] > top[c]
                top[c] = values[c] if better else top[c]
                codes[c] = here if better else codes[c]
        changed = step(digits, k)
    return OK if write_states(top, codes, n_low, plan, labels) else NOTHING_LEFT


@njit(cache=True, nogil=True)
def all_scores(scores, plan, out):
    """The score of every output, in order, into out (K^n,)."""
    n_high, n_middle, n_low = sizes(plan)
    k = plan[1]
    tables, every_level, digits, _, _ = room(1, plan)
    fill(scores, plan, tables, 0)
    high, low, cross, levels = tables[0][0], tables[1][0], tables[2][0], every_level[0]
    changed = 0
    for y in range(n_high):
        add_up(cross, digits, changed, k, levels)
        last = levels[plan[2]]
        for m in range(n_middle):
            base = high[y] + last[m]
            start = (y * n_middle + m) * n_low
            for c in range(n_low):
                out[start + c] = low[m * n_low + c] + (base + last[n_middle + c])
        changed = step(digits, k)


@njit(cache=True, nogil=True)
def best_of_each(values, losses, low, best, codes):
    """For each whole number losses - low: the largest of the values that go with it, and where it is first."""
    best[:] = -np.inf
    for y in range(values.shape[0]):
        level = np.int64(losses[y]) - low
        if values[y] > best[level]:
            best[level] = values[y]
            codes[level] = y


@njit(cache=True, nogil=True)
def within(table, plan, first, last, mu):
    """Add the joint distribution `table` of the nodes first..last-1 to the nodes' and the inner edges' marginals."""
    k = plan[1]
    place = 1
    for node in range(last - 1, first - 1, -1):
        at = plan[HEAD + node]
        end = plan[HEAD + node + 1]
        while at < end and plan[at] >= last:
            at += 2
        for y in range(table.shape[0]):
            mu[node * k + (y // place) % k] += table[y]
        while at < end:
            other = k ** (last - 1 - plan[at])
            part = plan[at + 1]
            for y in range(table.shape[0]):
                mu[part + (y // place) % k * k + (y // other) % k] += table[y]
            at += 2
        place *= k


@njit(cache=True, nogil=True)
def across(table, plan, node, state, first, last, mu):
    """Add the distribution `table` of the nodes first..last-1, jointly with an earlier node's state, to the edges between."""
    k = plan[1]
    for at in range(plan[HEAD + node], plan[HEAD + node + 1], 2):
        if first <= plan[at] < last:
            other = k ** (last - 1 - plan[at])
            row = plan[at + 1] + state * k
            for y in range(table.shape[0]):
                mu[row + (y // other) % k] += table[y]


@njit(cache=True, nogil=True)
def part_marginals(values, top, plan, mu):
    """mu (zeros at first) = the expected part counts; values: all scores, top: the largest of them. Returns log Z."""
    n_high, n_middle, n_low = sizes(plan)
    k = plan[1]
    rest = n_middle * n_low
    high = np.zeros(n_high)
    low = np.zeros(rest)
    cross = np.zeros((plan[2] * k, n_middle + n_low))
    sums = np.empty(n_middle + n_low)
    digits = np.zeros(plan[2], np.int64)
    for y in range(n_high):
        sums[:] = 0.0
        for m in range(n_middle):
            for c in range(n_low):
                share = math.exp(values[y * rest + m * n_low + c] - top)
                low[m * n_low + c] += share
                sums[m] += share
                sums[n_middle + c] += share
        for m in range(n_middle):
            high[y] += sums[m]
        for i in range(plan[2]):
            row = cross[i * k + digits[i]]
            for j in range(sums.shape[0]):
                row[j] += sums[j]
        step(digits, k)
    total = 0.0
    for y in range(n_high):
        total += high[y]
    for table in (high, low, cross.reshape(-1)):
        table /= total
    within(high, plan, 0, plan[2], mu)
    within(low, plan, plan[2], plan[0], mu)
    middle = plan[2] + plan[3]
    for node in range(plan[2]):
        for state in range(k):
            row = cross[node * k + state]
            across(row[:n_middle], plan, node, state, plan[2], middle, mu)
            across(row[n_middle:], plan, node, state, middle, plan[0], mu)
    return top + math.log(total)
