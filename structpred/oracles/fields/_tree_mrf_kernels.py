# mypy: ignore-errors
"""Compiled max-product and sum-product on forests.

`plan` is int64 (n, 5), children before parents: node, parent, and the edge between them: where its table begins among the parts,
and how far apart two states of the node, and two states of the parent, are in it. All trees but one hang below the last one's
root by edges without a table (-1).
"""

import math

import numpy as np

from structpred.oracles.fields._pairwise_kernels import LOWEST, faults
from structpred.oracles.mrf import NOTHING_LEFT, OK
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def best_states(scores, plan, k, n_parts, values, back, labels):
    """Max-product: the best states, into labels; values (n, k) and back (n, k) are scratch."""
    status = faults(scores, n_parts)
    if status != OK:
        return status
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
def best_states_of_each(scores, offsets, plan, k, n_parts, labels):
    """`best_states` for each of a batch of instances of one shape; returns (status, instance)."""
    values = np.empty((plan.shape[0], k))
    back = np.empty((plan.shape[0], k), np.int32)
    for i in range(offsets.shape[0] - 1):
        status = best_states(scores[offsets[i] : offsets[i + 1]], plan, k, n_parts, values, back, labels[i])
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
def part_marginals(scores, plan, k, n_parts, mu):
    """Sum-product: mu = the expected part counts; returns (status, log Z).

    On the way up, an edge's place in mu gets the distribution of the node's state given its parent's: probabilities, so that
    nothing has to be divided out or subtracted on the way down.
    """
    status = faults(scores, n_parts)
    if status != OK:
        return status, 0.0
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
