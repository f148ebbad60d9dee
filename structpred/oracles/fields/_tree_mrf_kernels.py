# mypy: ignore-errors
"""Compiled max-product and sum-product on forests, the k best outputs, and the best for each value of a whole-number loss.

`plan` is int64 (n, 5), children before parents: node, parent, and the edge between them: where its table begins among the parts,
and how far apart two states of the node, and two states of the parent, are in it. All trees but one hang below the last one's
root by edges without a table (-1).
"""

import math

import numpy as np

from structpred.oracles.fields._pairwise_kernels import LOWEST
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def best_states(scores, plan, k, values, back, labels):
    """Max-product: the best states, into labels; values (n, k) and back (n, k) are scratch."""
    n = plan.shape[0]
    for i in range(n):
        for a in range(k):
            values[i, a] = scores[i * k + a]
    for t in range(n - 1):
        node, parent, table, own_step, parent_step = plan[t]
        for b in range(k):
            top = -np.inf
            state = 0
            for a in range(k):
                value = values[node, a]
                if table >= 0:
                    value += scores[table + a * own_step + b * parent_step]
                if value > top:
                    top = value
                    state = a
            values[parent, b] += top
            back[node, b] = state
    root = plan[n - 1, 0]
    state = 0
    for a in range(1, k):
        if values[root, a] > values[root, state]:
            state = a
    if not values[root, state] > LOWEST:
        return NOTHING_LEFT
    labels[root] = state
    for t in range(n - 2, -1, -1):
        labels[plan[t, 0]] = back[plan[t, 0], labels[plan[t, 1]]]
    return OK


@njit(cache=True, nogil=True)
def best_states_of_each(scores, offsets, plan, k, labels):
    """`best_states` for each of a batch of instances of one shape; returns (status, instance)."""
    values = np.empty((plan.shape[0], k))
    back = np.empty((plan.shape[0], k), np.int32)
    for i in range(offsets.shape[0] - 1):
        status = best_states(scores[offsets[i] : offsets[i + 1]], plan, k, values, back, labels[i])
        if status != OK:
            return status, i
    return OK, 0


@njit(cache=True, nogil=True)
def softmax(values, out):
    """out = exp(values) / their sum; returns the log of the sum."""
    top = values[0]
    for a in range(1, values.shape[0]):
        top = max(top, values[a])
    total = 0.0
    for a in range(values.shape[0]):
        out[a] = math.exp(values[a] - top)
        total += out[a]
    for a in range(values.shape[0]):
        out[a] /= total
    return top + math.log(total)


@njit(cache=True, nogil=True)
def part_marginals(scores, plan, k, mu):
    """Sum-product: mu = the expected part counts; returns (status, log Z).

    On the way up, an edge's place in mu gets the distribution of the node's state given its parent's: probabilities, so that
    nothing has to be divided out or subtracted on the way down.
    """
    n = plan.shape[0]
    logs = np.empty((n, k))
    values = np.empty(k)
    given = np.empty(k)
    for i in range(n):
        for a in range(k):
            logs[i, a] = scores[i * k + a]
    for t in range(n - 1):
        node, parent, table, own_step, parent_step = plan[t]
        if table < 0:
            alone = softmax(logs[node], mu[node * k : node * k + k])
            for b in range(k):
                logs[parent, b] += alone
            continue
        for b in range(k):
            for a in range(k):
                values[a] = logs[node, a] + scores[table + a * own_step + b * parent_step]
            logs[parent, b] += softmax(values, given)
            for a in range(k):
                mu[table + a * own_step + b * parent_step] = given[a]
    root = plan[n - 1, 0]
    log_z = softmax(logs[root], mu[root * k : root * k + k])
    if not log_z > LOWEST:
        return NOTHING_LEFT, log_z
    for t in range(n - 2, -1, -1):
        node, parent, table, own_step, parent_step = plan[t]
        if table < 0:
            continue
        for b in range(k):
            for a in range(k):
                part = table + a * own_step + b * parent_step
                mu[part] *= mu[parent * k + b]
                mu[node * k + a] += mu[part]
    return OK, log_z


@njit(cache=True, nogil=True)
def merge_states(lists, extra, at, k_best, values, states, ranks):
    """The k best of the numbers lists[a, r] + extra[a] (each row descending), their a and r; ties to the first a. at: room."""
    at[:] = 0
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
def merge_sums(first, second, at, k_best, values, lefts, rights):
    """The k best sums first[i] + second[j] (both descending) with their i and j. at: room."""
    at[:] = 0
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
def read_output(plan, lefts, states, ranks, state, rank, labels):
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
def best_outputs(scores, plan, k, k_best):
    """The k best outputs that are not forbidden, best first, a row each; edges may share a table.

    Up the trees: the best values of each node's states, descending, and where each comes from. lefts[c, b, r]: the rank before
    child c was added to its parent in state b; states and ranks: those of the child.
    """
    n = plan.shape[0]
    values = np.full((n, k, k_best), -np.inf)
    lefts = np.zeros((n, k, k_best), np.int32)
    states = np.zeros((n, k, k_best), np.int32)
    ranks = np.zeros((n, k, k_best), np.int32)
    for i in range(n):
        for a in range(k):
            values[i, a, 0] = scores[i * k + a]
    extra = np.zeros(k)
    message = np.empty(k_best)
    total = np.empty(k_best)
    child_states = np.zeros(k_best, np.int32)
    child_ranks = np.zeros(k_best, np.int32)
    picks = np.zeros(k_best, np.int32)
    at_states = np.empty(k, np.int64)
    at_sums = np.empty(k_best, np.int64)
    for t in range(n - 1):
        node, parent, table, own_step, parent_step = plan[t]
        for b in range(k):
            for a in range(k):
                extra[a] = scores[table + a * own_step + b * parent_step] if table >= 0 else 0.0
            merge_states(values[node], extra, at_states, k_best, message, child_states, child_ranks)
            merge_sums(values[parent, b], message, at_sums, k_best, total, lefts[node, b], picks)
            for r in range(k_best):
                values[parent, b, r] = total[r]
                states[node, b, r] = child_states[picks[r]]
                ranks[node, b, r] = child_ranks[picks[r]]
    extra[:] = 0.0
    merge_states(values[plan[n - 1, 0]], extra, at_states, k_best, total, child_states, child_ranks)
    found = 0
    while found < k_best and total[found] > LOWEST:
        found += 1
    labels = np.empty((found, n), np.int64)
    for r in range(found):
        read_output(plan, lefts, states, ranks, child_states[r], child_ranks[r], labels[r])
    return labels


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
