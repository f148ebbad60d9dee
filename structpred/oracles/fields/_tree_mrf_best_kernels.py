# mypy: ignore-errors
"""Compiled k best outputs of forests, and the best for each value of a whole-number loss; for `plan` see the other kernels."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def merge_states(lists, extra, k_best, values, states, ranks):
    """The k best of the numbers lists[a, r] + extra[a] (each row descending), with their a and r; ties to the first a."""
    at = np.zeros(lists.shape[0], np.int64)
    for r in range(k_best):
        top = -np.inf
        state = -1
        for a in range(lists.shape[0]):
            if at[a] < k_best and lists[a, at[a]] + extra[a] > top:
                top = lists[a, at[a]] + extra[a]
                state = a
        values[r] = top
        states[r] = max(state, 0)
        if state >= 0:
            ranks[r] = at[state]
            at[state] += 1


@njit(cache=True, nogil=True)
def merge_sums(first, second, k_best, values, lefts, rights):
    """The k best sums first[i] + second[j] (both descending) with their i and j."""
    at = np.zeros(k_best, np.int64)
    for r in range(k_best):
        top = -np.inf
        left = -1
        for i in range(k_best):
            if at[i] < k_best and first[i] + second[at[i]] > top:
                top = first[i] + second[at[i]]
                left = i
            if at[i] == 0:  # later i are no better than this one
                break
        values[r] = top
        lefts[r] = max(left, 0)
        if left >= 0:
            rights[r] = at[left]
            at[left] += 1


@njit(cache=True, nogil=True)
def best_lists(scores, plan, k, k_best, values, lefts, states, ranks, roots):
    """Up the trees: values (n, k, k_best) descending, and where each comes from; roots (2, k_best): state and rank of the root.

    lefts[c, b, r]: the rank before child c was added to its parent in state b; states and ranks: those of the child.
    """
    n = plan.shape[0]
    values[:] = -np.inf
    for i in range(n):
        for a in range(k):
            values[i, a, 0] = scores[i * k + a]
    extra = np.zeros(k)
    message = np.empty(k_best)
    total = np.empty(k_best)
    child_states = np.zeros(k_best, np.int32)
    child_ranks = np.zeros(k_best, np.int32)
    picks = np.zeros(k_best, np.int32)
    for t in range(n - 1):
        node, parent, table, own_step, parent_step = plan[t]
        for b in range(k):
            for a in range(k):
                extra[a] = scores[table + a * own_step + b * parent_step] if table >= 0 else 0.0
            merge_states(values[node], extra, k_best, message, child_states, child_ranks)
            merge_sums(values[parent, b], message, k_best, total, lefts[node, b], picks)
            for r in range(k_best):
                values[parent, b, r] = total[r]
                states[node, b, r] = child_states[picks[r]]
                ranks[node, b, r] = child_ranks[picks[r]]
    extra[:] = 0.0
    merge_states(values[plan[n - 1, 0]], extra, k_best, total, roots[0], roots[1])
    return total


@njit(cache=True, nogil=True)
def read_lists(plan, lefts, states, ranks, state, rank, labels):
    """Down the trees: the states of one output."""
    n = plan.shape[0]
    left = np.zeros(n, np.int64)
    labels[plan[n - 1, 0]] = state
    left[plan[n - 1, 0]] = rank
    for t in range(n - 2, -1, -1):
        node = plan[t, 0]
        parent = plan[t, 1]
        b = labels[parent]
        r = left[parent]
        labels[node] = states[node, b, r]
        left[node] = ranks[node, b, r]
        left[parent] = lefts[node, b, r]


@njit(cache=True, nogil=True)
def loss_sizes(costs, plan, k, node_lows, edge_lows, edge_highs, sizes, message_sizes, merged_sizes):
    """How many losses each node's subtree, message and merged parent can have; returns the least loss of all.

    Losses are counted from each node's and edge's lowest one. costs is int64.
    """
    n = plan.shape[0]
    base = 0
    for i in range(n):
        node_lows[i] = costs[i * k : i * k + k].min()
        sizes[i] = 1 + costs[i * k : i * k + k].max() - node_lows[i]
        base += node_lows[i]
    for t in range(n - 1):
        node, parent, table = plan[t, 0], plan[t, 1], plan[t, 2]
        edge_lows[node] = 0
        edge_highs[node] = 0
        if table >= 0:
            edge_lows[node] = costs[table : table + k * k].min()
            edge_highs[node] = costs[table : table + k * k].max()
        base += edge_lows[node]
        message_sizes[node] = sizes[node] + edge_highs[node] - edge_lows[node]
        sizes[parent] += message_sizes[node] - 1
        merged_sizes[node] = sizes[parent]
    return base


@njit(cache=True, nogil=True)
def best_losses(
    scores, costs, plan, k, node_lows, edge_lows, message_sizes, merged_sizes, starts, value_starts, values, states, losses
):  # fmt: skip
    """Up the trees with the loss counted in the state: values[value_starts[v] + a * sizes[v] + l] for node v in state a.

    starts: (2, n), where the back-pointers of a node begin: states (k, message size) and losses (k, merged size).
    """
    n = plan.shape[0]
    now = np.empty(n, np.int64)
    values[:] = -np.inf
    for i in range(n):
        row = costs[i * k : i * k + k]
        now[i] = 1 + row.max() - node_lows[i]
        for a in range(k):
            values[value_starts[i] + a * (value_starts[i + 1] - value_starts[i]) // k + row[a] - node_lows[i]] = scores[i * k + a]
    message = np.empty(message_sizes.max() if n > 1 else 1)
    total = np.empty(merged_sizes.max() if n > 1 else 1)
    for t in range(n - 1):
        node, parent, table, own_step, parent_step = plan[t]
        width = (value_starts[node + 1] - value_starts[node]) // k
        parent_width = (value_starts[parent + 1] - value_starts[parent]) // k
        size = message_sizes[node]
        merged = merged_sizes[node]
        for b in range(k):
            message[:size] = -np.inf
            for a in range(k):
                weight = 0.0
                shift = 0
                if table >= 0:
                    weight = scores[table + a * own_step + b * parent_step]
                    shift = costs[table + a * own_step + b * parent_step] - edge_lows[node]
                for level in range(now[node]):
                    value = values[value_starts[node] + a * width + level] + weight
                    if value > message[level + shift]:
                        message[level + shift] = value
                        states[starts[0, node] + b * size + level + shift] = a
            here = value_starts[parent] + b * parent_width
            total[:merged] = -np.inf
            back = starts[1, node] + b * merged
            for before in range(now[parent]):
                if values[here + before] == -np.inf:
                    continue
                for level in range(size):
                    value = values[here + before] + message[level]
                    if value > total[before + level]:
                        total[before + level] = value
                        losses[back + before + level] = level
            for level in range(merged):
                values[here + level] = total[level]
        now[parent] = merged


@njit(cache=True, nogil=True)
def read_loss(costs, plan, k, edge_lows, message_sizes, merged_sizes, starts, states, losses, state, level, labels):
    """Down the trees: the states of the best output that has this loss and this state at the last root."""
    n = plan.shape[0]
    left = np.zeros(n, np.int64)
    labels[plan[n - 1, 0]] = state
    left[plan[n - 1, 0]] = level
    for t in range(n - 2, -1, -1):
        node, parent, table, own_step, parent_step = plan[t]
        b = labels[parent]
        own = losses[starts[1, node] + b * merged_sizes[node] + left[parent]]
        a = states[starts[0, node] + b * message_sizes[node] + own]
        left[parent] -= own
        labels[node] = a
        left[node] = own
        if table >= 0:
            left[node] -= costs[table + a * own_step + b * parent_step] - edge_lows[node]
